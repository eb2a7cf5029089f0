"""A tool call under construction: what the wire said about it so far, and nothing decided.

Dialects find the call that a delta belongs to and say what the delta means; here it is kept. The
argument text is scanned as it arrives, so that a dialect can ask at any time whether the call holds
a whole object already, at no more than linear cost.
"""

from typing import Self

from deltatape.dialects._mend import Mended, mend
from deltatape.dialects._notes import Notes
from deltatape.model.reply import CallKind, CallStatus, Fragment, ToolCall
from deltatape.model.stream import Event
from deltatape.wire.json_scan import JsonScanner, Kind, Verdict
from deltatape.wire.json_value import canonical, join_pairs


class CallDraft:
    """A tool call under construction."""

    def __init__(self, wire_index: int | None, kind: CallKind, event: Event) -> None:
        self.wire_index = wire_index
        self.kind = kind
        self.opened = event
        """The event that opened the call."""
        self.latest = event
        """The last event that brought arguments."""
        self.ids: dict[str, None] = {}
        """Every different id, in order."""
        self.name = ""
        self.fragments: list[Fragment] = []
        self.notes = Notes()
        self._scanner = JsonScanner()
        self._since = 0
        self._value: str | None = None
        self._mended: Mended | None = None
        self._canonical: str | None = None

    def add(self, text: str, event: Event) -> None:
        """Appends a piece of the arguments; an empty one is not kept."""
        if not text:
            return
        if self.holds_empty_object and text.lstrip().startswith("{"):
            # A leaked `{}` and then the real arguments: only those tell when the call is whole.
            self._scanner = JsonScanner()
            self._since = len(self.fragments)
        self.latest = event
        self.fragments.append(Fragment(text=text, event=event.number, place=event.place))
        if self.kind is not CallKind.CUSTOM:
            self._scanner.feed(text)

    @property
    def first_id(self) -> str | None:
        """The first id, which is the call's; None if there was none."""
        return next(iter(self.ids), None)

    @property
    def pieces(self) -> list[str]:
        """The texts of the fragments."""
        return [fragment.text for fragment in self.fragments]

    @property
    def raw(self) -> str:
        """The plain concatenation of the pieces."""
        return join_pairs("".join(self.pieces))

    @property
    def holds_object(self) -> bool:
        """Whether the arguments hold a whole object, other than `{}`, whatever follows it."""
        whole = self._scanner.verdict in (Verdict.COMPLETE, Verdict.EXTRA)
        return whole and self._scanner.kind is Kind.OBJECT and not self.holds_empty_object

    @property
    def value(self) -> str:
        """The first whole value in the arguments; to be asked only where there is one."""
        if self._value is None:
            text = "".join(self.pieces[self._since :])
            self._value = text[self._scanner.start : self._scanner.end]
        return self._value

    @property
    def holds_empty_object(self) -> bool:
        """Whether the arguments are `{}` so far."""
        scanner = self._scanner
        if scanner.verdict is not Verdict.COMPLETE or scanner.kind is not Kind.OBJECT:
            return False
        return not scanner.members

    @property
    def begun(self) -> bool:
        """Whether the arguments have begun and are not whole."""
        return self._scanner.verdict in (Verdict.PREFIX, Verdict.MALFORMED)

    @property
    def mended(self) -> Mended:
        """The arguments, freed of what gateways add; to be asked at the end of the call."""
        if self._mended is None:
            self._mended = mend(self.pieces)
        return self._mended

    def repeats(self, other: Self) -> bool:
        """Whether the arguments are those of `other`: equal text, or equal JSON."""
        if self.mended.text.strip() == other.mended.text.strip():
            return True
        return self._comparable == other._comparable

    @property
    def _comparable(self) -> str:
        if self._canonical is None:
            text = self.mended.text
            self._canonical = canonical(text) or text
        return self._canonical

    def note(self, kind: str, code: str, detail: str, evidence: object, event: Event) -> None:
        """Notes a repair or defect of this call, once per kind. See `Notes.once`."""
        self.notes.once(kind, code, detail, evidence, event)

    def build(self, index: int, arguments: str, status: CallStatus) -> ToolCall:
        """The call as judged.

        Args:
            index: its place among the reply's calls.
            arguments: the text that a correct client should execute.
            status: what such a client can do with it.
        """
        codes = self.notes.codes()
        return ToolCall(
            index=index,
            wire_index=self.wire_index,
            id=self.first_id,
            ids=tuple(self.ids),
            name=self.name or None,
            kind=self.kind,
            arguments=arguments,
            arguments_raw=self.raw,
            status=status,
            repairs=tuple(code for code in codes if code.startswith("T")),
            fragments=tuple(self.fragments),
            start=self.opened.place,
            start_event=self.opened.number,
        )
