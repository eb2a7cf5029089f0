"""A call under construction in a client, and the client's handling of its arguments."""

import json
from collections.abc import Mapping, Sequence

from deltatape.model.request_summary import RepeatedCall
from deltatape.suspects.client import ClientModel
from deltatape.suspects.steps import ClientCallDelta, EntryPhase
from deltatape.wire.json_scan import JsonScanner, ScanState
from deltatape.wire.json_value import parse

_SOURCES = {
    "added": ("start",),
    "deltas": ("deltas",),
    "arguments-done": ("done",),
    "item-done": ("close",),
    "completed": ("final",),
}
_BEST = ("close", "final", "done", "deltas", "start")
"""The strongest source first; an empty text never wins over a non-empty one."""
_OBJECT = "[object Object]"
_ALONE = ("fragments", "fragments-spread")
_ABSENT = {"undefined": "undefined", "None": "None"}


class CallSlot:
    """A client's state of one call."""

    __slots__ = (
        "_client",
        "_fragments",
        "_frozen",
        "_has_text",
        "_is_text",
        "_scanner",
        "_texts",
        "id",
        "item",
        "name",
        "phases",
    )

    def __init__(self, client: ClientModel) -> None:
        self._client = client
        self.id: str | None = None
        self.item: str | None = None
        self.name: str | None = None
        self.phases: set[EntryPhase] = set()
        self._is_text = False
        self._has_text = False
        self._texts: dict[str, str] = {}
        self._fragments: list[str] = []
        self._scanner: JsonScanner | None = None
        self._frozen: str | None = None

    @property
    def frozen(self) -> bool:
        """Whether the client has already used this call before its end."""
        return self._frozen is not None

    def add(self, entry: ClientCallDelta, *, opening: bool) -> None:
        """Apply `entry`."""
        if self.frozen:
            return
        if opening or entry.phase is not EntryPhase.DONE:
            self.id = _merged(self._client.id, self.id, entry.id, entry.phase)
            if opening or self._client.name != "at-opening":
                self.name = _merged(self._client.name, self.name, entry.name, entry.phase)
        self.item = entry.item or self.item
        self.phases.add(entry.phase)
        self._is_text |= entry.kind == "custom"
        if entry.phase is EntryPhase.DELTA:
            self._add_fragment(entry, opening=opening)
        elif entry.text is not None:
            key = "close" if entry.phase is EntryPhase.WHOLE else entry.phase.value
            self._texts[key] = entry.text
        self._freeze_if_used()

    def _add_fragment(self, entry: ClientCallDelta, *, opening: bool) -> None:
        how = self._client.arguments
        text = self._fragment(entry)
        if how == "replace":
            if text is not None:
                self._fragments = [text]
                self._has_text = bool(text)
        elif how in ("append", "index", "event-number") or opening is (how == "first-only"):
            self._fragments.append(text or "")
            self._has_text = self._has_text or bool(text)

    def _fragment(self, entry: ClientCallDelta) -> str | None:
        how = self._client.arguments
        if how == "index":
            return "0" if entry.index is None else str(entry.index)
        if how == "event-number":
            return str(entry.event)
        if entry.text is None:
            return _ABSENT.get(self._client.absent)
        if entry.unquoted and self._client.value == "string":
            return _OBJECT
        return entry.text

    def _freeze_if_used(self) -> None:
        """Use the call now, if the client does not wait for its end."""
        emit = self._client.emit
        if emit == "at-name" and self.id and self.name:
            self._frozen = self._joined
        elif emit == "when-parses" and self._fragments:
            self._scanner = self._scanner or JsonScanner()
            self._scanner.feed(self._fragments[-1])
            if self._scanner.verdict is ScanState.COMPLETE:
                self._frozen = self._joined

    @property
    def _joined(self) -> str:
        return "".join(self._fragments)

    @property
    def pieces(self) -> tuple[str, Sequence[str]]:
        """Return the unparsed arguments: a text, and the fragments that follow it.

        The fragments are the client's own list: while it is the same one, it only grows.
        """
        if self._frozen is not None:
            return self._frozen, ()
        client, texts = self._client, self._texts
        if client.arguments != "append" or client.parse in _ALONE:
            return ("", self._fragments) if self._has_text else (texts.get("close", ""), ())
        if client.source == "added+deltas":
            return texts.get("start", ""), self._fragments
        for source in _SOURCES.get(client.source, _BEST):
            if source == "deltas" and self._has_text:
                return "", self._fragments
            if texts.get(source):
                return texts[source], ()
        return "", ()

    @property
    def raw(self) -> str:
        """Return the unparsed arguments."""
        front, fragments = self.pieces
        return front + "".join(fragments)

    @property
    def is_parsed_alone(self) -> bool:
        """Whether its arguments are what is JSON by itself among its fragments."""
        return self._client.parse in _ALONE and not self._is_text and bool(self._fragments)

    @property
    def fragments(self) -> Sequence[str]:
        """Return the fragments that it kept."""
        return self._fragments

    @property
    def parsed_texts(self) -> list[str]:
        """Return the texts that the client parses; input of custom tools is not parsed."""
        if self._is_text:
            return []
        alone = self._client.parse in _ALONE and self._fragments
        return self._fragments if alone else [self.raw]

    def call(self) -> RepeatedCall:
        """Return the call as the client runs and repeats it."""
        identifier, name = self.identity
        arguments = _written(self._value(), self._client.written)
        return RepeatedCall(id=identifier, name=name, arguments=arguments)

    @property
    def identity(self) -> tuple[str | None, str | None]:
        """Return the id that the client answers to, and the name."""
        identifier = self.item if self._client.id == "item" else self.id
        return identifier or None, self.name or None

    @property
    def is_dropped(self) -> bool:
        """Whether the client drops the call because its arguments do not parse."""
        drops = self._client.parse == "drop" and not self._is_text
        return drops and parse(self.raw).error is not None

    def _value(self) -> str:
        text, how = self.raw, self._client.parse
        if self._is_text:
            return text
        if how in _ALONE and self._fragments:
            return _parsed_alone(self._fragments, spread=how == "fragments-spread")
        if how in ("once", "drop", *_ALONE) or not text.strip() or parse(text).error is None:
            return text
        if how == "swallow":
            return "{}"
        return repaired(text, whole_members=how == "repair-whole-members")


def _merged(how: str, old: str | None, new: str | None, phase: EntryPhase) -> str | None:
    """Merge an id or name with the next one."""
    if how in ("null-too", "empty-too") and phase is EntryPhase.DELTA:
        return new if how == "null-too" or new is not None else old
    if how == "concatenate":
        return (old or "") + (new or "") or None
    if how == "drop":
        return None
    if how == "first":
        return old or new
    return new or old


def _written(text: str, how: str) -> str:
    """Return arguments as the client writes them into the history."""
    value = None if how == "text" else parse(text).value
    if not isinstance(value, dict):
        return text
    if how == "python-repr":
        return str(value)
    return _OBJECT if how == "object-text" else json.dumps(text, ensure_ascii=False)


def _parsed_alone(fragments: list[str], *, spread: bool) -> str:
    """Merge the members of fragments that are JSON by themselves.

    Args:
        fragments: the fragments of the arguments.
        spread: spread text as JavaScript does: its characters are its members.
    """
    members: dict[str, object] = {}
    for fragment in fragments:
        members.update(members_alone(fragment, spread=spread))
    return json.dumps(members, ensure_ascii=False)


def members_alone(fragment: str, *, spread: bool) -> Mapping[str, object]:
    """Return the members of a fragment that is JSON by itself; see `_parsed_alone`."""
    value = parse(fragment).value if fragment.strip() else None
    if spread and isinstance(value, str | list):
        return {str(at): one for at, one in enumerate(value)}
    return value if isinstance(value, dict) else {}


# What tolerant parsers make of arguments that were cut: they close whatever is open.

_CLOSER = {"{": "}", "[": "]"}


def repaired(text: str, *, whole_members: bool) -> str:
    """Complete `text` to an object; `{}` if impossible.

    Parsers of partial JSON either keep the incomplete last member, with its string closed, or drop
    it.

    Args:
        text: not JSON.
        whole_members: whether the member in which it was cut is dropped.
    """
    signs, _ = _structure(text)
    member_ends = [at + (sign != ",") for at, sign in signs if sign not in _CLOSER.values()]
    for end in [*([] if whole_members else [len(text)]), *reversed(member_ends[-2:])]:
        found = parse(_closed(text[:end]))
        if found.error is None:
            return json.dumps(found.value, ensure_ascii=False)
    return "{}"


def _closed(text: str) -> str:
    """Close the strings, arrays and objects of `text`."""
    signs, quoted = _structure(text)
    closers: list[str] = []
    for _, sign in signs:
        if sign in _CLOSER:
            closers.append(_CLOSER[sign])
        elif closers and sign == closers[-1]:
            closers.pop()
    return text + '"' * quoted + "".join(reversed(closers))


def _structure(text: str) -> tuple[list[tuple[int, str]], bool]:
    """Return brackets and commas outside strings, and whether a string is open at the end."""
    found, quoted, escaped = [], False, False
    for at, sign in enumerate(text):
        if quoted:
            quoted, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign == '"':
            quoted, escaped = True, False
        elif sign in "{}[],":
            found.append((at, sign))
    return found, quoted
