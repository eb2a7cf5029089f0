"""Strict YAML: parses text to values that know their place in the file.

Of YAML there are mappings, sequences and scalars, nothing else: no anchors or aliases (a few of
them make gigabytes), no tags (they name types to construct), no key twice, no deep nesting, one
document. Scalars stay text.
"""

import yaml

from deltatape.errors import UsageError
from deltatape.settings.file import (
    FilePosition,
    MappingNode,
    MappingValue,
    Scalar,
    SequenceNode,
    Value,
)

MAX_BYTES = 256 << 10
MAX_DEPTH = 8

_ABSENT = frozenset({"", "~", "null", "Null", "NULL"})


def parse(data: bytes, file: str) -> Value:
    """Parse a document; an empty one is an absent scalar.

    Args:
        data: at most `MAX_BYTES`.
        file: how places call it.

    Raises:
        UsageError: not UTF-8, not YAML, or YAML of a kind that is not accepted.
    """
    if len(data) > MAX_BYTES:
        raise UsageError(f"{file}: more than {MAX_BYTES} bytes; a settings file has at most that")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place(file, data[: error.start].decode("utf-8", "replace"))
        raise place.refuse(f"not UTF-8: byte {data[error.start]:#04x}; UTF-8 is accepted") from None
    node = _compose(text, file)
    if node is None:
        return Scalar(text="", place=FilePosition(file=file, line=1, column=1), absent=True)
    return _value(node, file)


def _compose(text: str, file: str) -> yaml.Node | None:
    try:
        loader = _Strict(text)
    except yaml.reader.ReaderError as error:
        raise _place(file, text[: error.position]).refuse(
            f"character {chr(int(error.character))!a} is not accepted in YAML; write it as an"
            " escape in double quotes"
        ) from None
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _marked(error, file) from None
    except (ValueError, OverflowError):
        mark = loader.get_mark()
        raise FilePosition(file=file, line=mark.line + 1, column=mark.column + 1).refuse(
            "this escape stands for no character; \\U00000000 to \\U0010FFFF are accepted"
        ) from None


class _Strict(yaml.SafeLoader):
    """Builds mappings, sequences and scalars only."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Reject other nodes; every node passes here."""
        event: yaml.NodeEvent = self.peek_event()  # type: ignore[no-untyped-call]
        if event.anchor is not None:  # of an alias, too
            raise _refused("anchors and aliases are not accepted; write the value out", event)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _refused(f"the tag {tag!a} is not accepted; values have no tags", event)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _refused(f"nested deeper than {MAX_DEPTH} levels", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _refused(problem: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)  # type: ignore[arg-type]


def _marked(error: yaml.MarkedYAMLError, file: str) -> UsageError:
    mark = error.problem_mark or error.context_mark
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    if mark is None:
        return UsageError(f"{file}: {problem}")
    return FilePosition(file=file, line=mark.line + 1, column=mark.column + 1).refuse(problem)


def _place(file: str, before: str) -> FilePosition:
    """Return the place after that text."""
    line = before.count("\n") + 1
    return FilePosition(file=file, line=line, column=len(before) - before.rfind("\n"))


def _value(node: yaml.Node, file: str) -> Value:
    place = FilePosition(
        file=file, line=node.start_mark.line + 1, column=node.start_mark.column + 1
    )
    if isinstance(node, yaml.ScalarNode):
        plain = node.style is None
        return Scalar(text=node.value, place=place, absent=plain and node.value in _ABSENT)
    if isinstance(node, yaml.SequenceNode):
        return SequenceNode(items=tuple(_value(each, file) for each in node.value), place=place)
    entries: dict[str, MappingValue] = {}
    for key_node, value_node in node.value:
        key = _value(key_node, file)
        if not isinstance(key, Scalar) or key.absent:
            raise key.place.refuse("a key is a word, such as `record`")
        first = entries.get(key.text)
        if first is not None:
            raise key.place.refuse(
                f"the key {key.text!a} is there twice: see line {first.key.line}"
            )
        entries[key.text] = MappingValue(key=key.place, value=_value(value_node, file))
    return MappingNode(entries=entries, place=place)
