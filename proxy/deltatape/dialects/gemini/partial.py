"""Arguments that are streamed as values with paths, as JSON text.

`{"jsonPath": "$.a[0].b", "stringValue": "x"}` says where a value stands. The strings of one path
are joined, every other kind of value replaces what was there. The text is built once, at the end,
in the order in which the values came first, without whitespace; numbers keep their source.
"""

import json
import re
from dataclasses import dataclass, field
from typing import TypeAlias

from deltatape.dialects.gemini.json_path import Step, parse_path
from deltatape.wire.json_value import join_pairs

_HALF_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class _Leaf:
    """A value that is neither object nor array."""

    strings: list[str] = field(default_factory=list)
    source: str = ""
    """Of a value that is no string; "" for strings."""
    is_open: bool = False
    """Whether more of a string is to come."""

    def write(self) -> str:
        if self.source:
            return self.source
        return _quoted(join_pairs("".join(self.strings)))


@dataclass(slots=True)
class _Branch:
    """An object or an array."""

    is_array: bool
    members: "dict[Step, _Node]" = field(default_factory=dict)


_Node: TypeAlias = _Leaf | _Branch


class PartialArguments:
    """The arguments of one call under construction."""

    def __init__(self) -> None:
        self._root = _Branch(is_array=False)
        self._leaves: dict[str, _Leaf] = {}

    def put_string(self, path: str, text: str, *, is_open: bool) -> bool:
        """Appends `text` to the string at `path`; whether a value can stand there.

        Args:
            path: a JSONPath.
            text: the piece.
            is_open: whether more of it is to come.
        """
        leaf = self._leaf(path)
        if leaf is not None:
            leaf.source = ""
            leaf.strings.append(text)
            leaf.is_open = is_open
        return leaf is not None

    def put(self, path: str, source: str) -> bool:
        """Sets the value at `path` to the JSON text `source`; whether a value can stand there."""
        leaf = self._leaf(path)
        if leaf is not None:
            leaf.source = source
            leaf.strings.clear()
            leaf.is_open = False
        return leaf is not None

    @property
    def has_gaps(self) -> bool:
        """Whether an array lacks an element before its last one; the text closes such gaps."""
        pending: list[_Branch] = [self._root]
        while pending:
            branch = pending.pop()
            if branch.is_array and max(map(int, branch.members)) >= len(branch.members):
                return True
            pending += (each for each in branch.members.values() if isinstance(each, _Branch))
        return False

    def text(self) -> str:
        """The arguments, all of them having come."""
        return self._written()[0]

    def beginning(self) -> str:
        """The arguments as far as they came: not closed, and "" if nothing came."""
        text, last = self._written()
        text = text.rstrip("]}")
        if last is not None and last.is_open:
            text = text.removesuffix('"')
        return text if last else ""

    def _leaf(self, path: str) -> _Leaf | None:
        """The value at `path`, new if nothing stands there; None if there can be no value."""
        leaf = self._leaves.get(path)
        if leaf is None:
            steps = parse_path(path)
            leaf = self._grow(steps) if steps else None
            if leaf is not None:
                self._leaves[path] = leaf
        return leaf

    def _grow(self, steps: tuple[Step, ...]) -> _Leaf | None:
        node: _Node = self._root
        for step, following in zip(steps, (*steps[1:], None), strict=True):
            if isinstance(node, _Leaf) or node.is_array != isinstance(step, int):
                return None
            child = node.members.get(step)
            if child is None:
                child = _Leaf() if following is None else _Branch(isinstance(following, int))
                node.members[step] = child
            node = child
        return node if isinstance(node, _Leaf) else None

    def _written(self) -> tuple[str, _Leaf | None]:
        """The JSON text, and the value that is written last."""
        out: list[str] = []
        last = _write(self._root, out)
        return "".join(out), last


def _write(node: _Node, out: list[str]) -> _Leaf | None:
    """Appends the JSON text of `node` to `out`; returns the last value in it."""
    if isinstance(node, _Leaf):
        out.append(node.write())
        return node
    last = None
    steps = sorted(node.members, key=int) if node.is_array else list(node.members)
    out.append("[" if node.is_array else "{")
    for place, step in enumerate(steps):
        out.append("," if place else "")
        out.append("" if node.is_array else f"{_quoted(str(step))}:")
        last = _write(node.members[step], out)
    out.append("]" if node.is_array else "}")
    return last


def _quoted(text: str) -> str:
    """`text` as a JSON string; with half a surrogate pair in it, which is no text, in escapes."""
    return json.dumps(text, ensure_ascii=_HALF_PAIR.search(text) is not None)
