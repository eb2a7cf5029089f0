"""A tool call under construction: collects what the stream says and decides nothing.

Dialects find the call that a delta belongs to and say what the delta means; here it is kept, and at
the end judged. The argument text is scanned at most once, and only as far as somebody asks: a
dialect may ask at any time whether the call holds a whole object already, at linear cost in all.
"""

from collections.abc import Sequence
from typing import Self

from deltatape.dialects._argument_repair import RepairedArguments, mend
from deltatape.dialects._call_end import CallEndCause, judge_call
from deltatape.dialects._delta_fast_path import Said
from deltatape.dialects._notes import ObservationLog
from deltatape.model.reply import CallKind, CallStatus, Fragment, ToolCall
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_scan import JsonScanner, ScanState, TokenKind
from deltatape.wire.json_value import canonical, join_pairs

_new = tuple.__new__
"""What the constructor of a named tuple calls, in a third of the time: every delta makes one."""


class CallDraft:
    """A tool call under construction."""

    def __init__(self, wire_index: int | None, kind: CallKind, event: Event) -> None:
        self.wire_index = wire_index
        self.kind = kind
        self.opened = event
        """The event that opened the call."""
        self.latest = event
        """The last event that brought arguments."""
        self.ended: Event | None = None
        """The call's own end signal, in dialects that have one."""
        self.ids: dict[str, None] = {}
        """Every different id, in order."""
        self.name = ""
        self.announced = False
        """Whether an event said that this is a call, even if neither with a name nor an id."""
        self.free_text = False
        """Whether the arguments are not JSON, or no object, although the kind does not say so."""
        self.whole = False
        """Whether the wire says of this very call that it is complete, whatever ends the stream."""
        self.fragments: list[Fragment] = []
        self.notes = ObservationLog()
        self._settled: str | None = None
        self._lazy_scanner: JsonScanner | None = None
        self._scanned = 0
        self._since = 0
        self._value: str | None = None
        self._mended: RepairedArguments | None = None
        self._canonical: str | None = None

    def add(self, text: str, event: Event) -> None:
        """Append a fragment of the arguments; ignore an empty one."""
        if not text:
            return
        self.latest = event
        self.fragments.append(_new(Fragment, (text, event)))

    def add_all(self, said: Sequence[Said]) -> None:
        """Append fragments of the arguments."""
        fragments = [_new(Fragment, each) for each in said if each[0]]
        if fragments:
            self.latest = fragments[-1].carrier
            self.fragments += fragments

    def identify(self, identifier: str | None, name: str | None) -> None:
        """Set id and name, for dialects that send them whole and once."""
        if identifier:
            self.ids[identifier] = None
        self.name = self.name or name or ""

    def settle(self, text: str) -> None:
        """Set the final arguments from a source of more authority than the fragments."""
        self._settled = text

    @property
    def _scanner(self) -> JsonScanner:
        """Return a scanner that has read all fragments."""
        scanner = self._lazy_scanner or JsonScanner()
        while self._scanned < len(self.fragments):
            text = self.fragments[self._scanned].text
            if _is_empty_object(scanner) and text.lstrip().startswith("{"):
                # A leaked `{}` and then the real arguments: only those tell when the call is
                # complete.
                scanner = JsonScanner()
                self._since = self._scanned
            self._scanned += 1
            if self.kind is not CallKind.CUSTOM:
                scanner.feed(text)
        self._lazy_scanner = scanner
        return scanner

    @property
    def first_id(self) -> str | None:
        """The first id, which is the call's; None if there is none."""
        return next(iter(self.ids), None)

    @property
    def pieces(self) -> list[str]:
        """The texts of the fragments."""
        return [fragment.text for fragment in self.fragments]

    @property
    def raw(self) -> str:
        """The concatenated fragments."""
        return join_pairs("".join(self.pieces))

    @property
    def holds_object(self) -> bool:
        """Check whether the arguments start with a complete object other than `{}`."""
        scanner = self._scanner
        whole = scanner.verdict in (ScanState.COMPLETE, ScanState.EXTRA)
        return whole and scanner.kind is TokenKind.OBJECT and not _is_empty_object(scanner)

    @property
    def value(self) -> str:
        """The first complete value in the arguments. Only valid if there is one."""
        if self._value is None:
            scanner = self._scanner
            text = "".join(self.pieces[self._since :])
            self._value = text[scanner.start : scanner.end]
        return self._value

    @property
    def holds_empty_object(self) -> bool:
        """Check whether the arguments are `{}` so far."""
        return _is_empty_object(self._scanner)

    @property
    def begun(self) -> bool:
        """Check whether the arguments have begun and are incomplete."""
        return self._scanner.verdict in (ScanState.PREFIX, ScanState.MALFORMED)

    @property
    def mended(self) -> RepairedArguments:
        """Return the repaired arguments. Call at the end of the call."""
        if self._mended is None:
            self._mended = mend(self.pieces)
        return self._mended

    def repeats(self, other: Self) -> bool:
        """Check whether the arguments equal those of `other`, as text or as JSON."""
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
        """Note a repair or defect of this call, once per kind. See `ObservationLog.once`."""
        self.notes.once(kind, code, detail, evidence, event)

    def judged(
        self, index: int, ending: CallEndCause, request: RequestSummary, *, ids: bool
    ) -> ToolCall:
        """Return the finished call, with the arguments to execute and its status.

        Args:
            index: its place among the reply's calls.
            ending: what ended the call.
            request: the offered tools, which tell whether arguments are required.
            ids: whether the dialect promises an id.
        """
        bare = self.kind is CallKind.LEGACY
        if not self.ids and not self.name and not bare and not self.announced:
            return self._build(index, self.raw, CallStatus.ORPHAN)
        if ids and not self.ids and not bare:
            detail = f"no entry gives the call of {self.name!r} an id"
            self.note("", "T005", detail, detail, self.opened)
        text = self.raw if self._settled is None else self._settled
        whole_object = False
        if self.kind is not CallKind.CUSTOM and self._settled is None:
            text, whole_object = self.mended.text, self.mended.is_object
            for code, detail in self.mended.repairs:
                self.note("mended", code, detail, self.raw, self.latest)
        kind = CallKind.CUSTOM if self.free_text else self.kind
        ending = CallEndCause.NORMAL if self.whole else ending
        if whole_object and self.name and ending is not CallEndCause.OPEN and not self.free_text:
            return self._build(index, text, CallStatus.COMPLETE)
        return self._build(index, text, judge_call(kind, text, self.name, ending, request))

    def _build(self, index: int, arguments: str, status: CallStatus) -> ToolCall:
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


def _is_empty_object(scanner: JsonScanner) -> bool:
    whole = scanner.verdict is ScanState.COMPLETE and scanner.kind is TokenKind.OBJECT
    return whole and not scanner.members
