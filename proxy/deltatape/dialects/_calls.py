"""A tool call under construction: its ids, name and fragments, and its status at the end.

Reducers find the call that a delta belongs to and add the delta. The argument text is scanned at
most once, and only on demand: a reducer may ask at any time whether the call holds a whole object
already, at linear cost in all.
"""

import enum
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

from deltatape.dialects._delta_fast_path import TextDelta
from deltatape.dialects._json import shown
from deltatape.model.reply import CallKind, CallStatus, Fragment, Observation, ToolCall
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_scan import JsonScanner, ScanState, TokenKind, scan
from deltatape.wire.json_value import canonical, join_pairs, parse, read_object, values_in

# Observations of a reducer about one subject: a stream, a choice or a call.


class ObservationLog:
    """Collects observations; their choice and call are added at the end."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, str, str, Event]] = []
        self._seen: set[tuple[str, str]] = set()

    def add(self, code: str, detail: str, evidence: object, event: Event) -> None:
        """Note something under the code of the rule that reports it.

        Args:
            code: the finding's code.
            detail: one sentence: what, with the value seen.
            evidence: the JSON value, or the text, that the wire carried.
            event: what carried it.
        """
        text = evidence if isinstance(evidence, str) else shown(evidence)
        self._notes.append((code, detail, text, event))

    def once(self, kind: str, code: str, detail: str, evidence: object, event: Event) -> None:
        """Note something the first time that `kind` occurs under `code`. See `add`."""
        if (kind, code) not in self._seen:
            self._seen.add((kind, code))
            self.add(code, detail, evidence, event)

    def codes(self) -> tuple[str, ...]:
        """Return the noted codes, each once, in order."""
        return tuple(dict.fromkeys(code for code, *_ in self._notes))

    def observations(self, choice: int, call: int | None) -> list[Observation]:
        """Return the observations, for a call (index among the choice's calls) or a choice."""
        return [
            Observation(
                code=code,
                detail=detail,
                evidence=text,
                event=event.number,
                place=event.place,
                choice=choice,
                call=call,
            )
            for code, detail, text, event in self._notes
        ]


# Repairs arguments that gateways are known to damage; applied once, at the end of a call.
#
# Rule: if the plain concatenation is one JSON value, nothing is repaired, whatever it looks like.
# Else known kinds of damage are undone, each recognised by its exact pattern on the wire: an empty
# object leaked in front (T017), the whole value sent again (T014), pieces that each repeat all
# previous ones (T014). Partial JSON is never completed.


CUMULATIVE_MINIMUM = 3
"""A piece repeats the arguments so far only if these have at least this many characters."""
_CHAIN = 3
"""Pieces that are each a prefix of the next are cumulative from this number on, however short."""


class RepairedArguments(NamedTuple):
    """Arguments after repair, with the codes and details of the repairs."""

    text: str
    repairs: tuple[tuple[str, str], ...]
    is_object: bool = False
    """Whether they are known to be one whole object: parsing them once is enough."""


def repair_arguments(pieces: Sequence[str]) -> RepairedArguments:
    """Join `pieces` (none empty) and repair known damage."""
    plain = join_pairs("".join(pieces))
    parsed = parse(plain)
    if parsed.error is None:
        return RepairedArguments(plain, (), isinstance(parsed.value, dict))
    rest = _without_empty_objects(pieces)
    repairs: tuple[tuple[str, str], ...] = ()
    if len(rest) < len(pieces):
        repairs = (("T017", "an empty object {} precedes the arguments"),)
        plain = join_pairs("".join(rest))
        if _is_json(plain):
            return RepairedArguments(plain, repairs)
    once = _repeated_value(plain)
    if once is not None:
        return RepairedArguments(once, (*repairs, ("T014", "the whole arguments were sent again")))
    grown = _cumulative(rest)
    if grown is not None:
        detail = "each piece of the arguments repeats the pieces before it"
        return RepairedArguments(grown, (*repairs, ("T014", detail)))
    return RepairedArguments(plain, repairs)


def _is_json(text: str) -> bool:
    return parse(text).error is None


def _without_empty_objects(pieces: Sequence[str]) -> Sequence[str]:
    """Drop leading `{}` pieces that another object follows."""
    leaked = False
    for first, piece in enumerate(pieces):
        bare = "".join(piece.split())
        if bare not in ("", "{}") or first == len(pieces) - 1:
            return pieces[first:] if leaked and bare.startswith("{") else pieces
        leaked = leaked or bare == "{}"
    return pieces


def _repeated_value(text: str) -> str | None:
    """Return the value that `text` repeats; None if it is not a repetition."""
    values = values_in(text)
    if values is None or len(values) <= 1:
        return None
    first = canonical(values[0])
    return values[0] if all(canonical(value) == first for value in values[1:]) else None


def _cumulative(pieces: Sequence[str]) -> str | None:
    """Return the last state of cumulative arguments; None if they are not cumulative."""
    chain = all(after.startswith(before) for before, after in pairwise(pieces))
    if chain and len(pieces) >= _CHAIN and _is_json(join_pairs(pieces[-1])):
        return join_pairs(pieces[-1])
    so_far = ""
    grew = False
    for piece in pieces:
        if len(so_far) >= CUMULATIVE_MINIMUM and piece.startswith(so_far):
            grew = True
            so_far = piece
        else:
            so_far += piece
    so_far = join_pairs(so_far)
    return so_far if grew and _is_json(so_far) else None


# The status of a finished call: what a correct client can do with its arguments.


class CallEndCause(enum.Enum):
    """What ended a call."""

    NORMAL = "normal"
    """A finish reason with which calls are complete, or the dialect's terminal event."""
    CUT = "cut"
    """The end of the body, a limit, or an error."""
    OPEN = "open"
    """The end of the body, where the dialect would have said that the call is complete."""


_BROKEN = {
    ScanState.PREFIX: CallStatus.TRUNCATED,
    ScanState.MALFORMED: CallStatus.MALFORMED,
    ScanState.EXTRA: CallStatus.EXTRA_DATA,
}


def judge(text: str, name: str, ending: CallEndCause, request: RequestSummary) -> CallStatus:
    """Return the status of a call of the function `name` with the arguments `text`."""
    if ending is not CallEndCause.OPEN and read_object(text) is not None:
        return CallStatus.COMPLETE
    scanner = scan(text)
    if scanner.verdict is ScanState.EMPTY:
        return _judge_empty(name, ending, request)
    if scanner.verdict is not ScanState.COMPLETE:
        return _BROKEN[scanner.verdict]
    if ending is CallEndCause.OPEN:
        return CallStatus.TRUNCATED
    return (
        CallStatus.COMPLETE if scanner.kind is TokenKind.OBJECT else _judge_value(parse(text).value)
    )


def judge_call(
    kind: CallKind, text: str, name: str, ending: CallEndCause, request: RequestSummary
) -> CallStatus:
    """Like `judge`, for any kind of call: a custom tool's input is free text."""
    if not name:
        return CallStatus.NO_NAME
    if kind is CallKind.CUSTOM:
        return CallStatus.COMPLETE if ending is CallEndCause.NORMAL else CallStatus.TRUNCATED
    return judge(text, name, ending, request)


def _judge_value(value: object) -> CallStatus:
    """Return the status of whole JSON that is not an object."""
    if isinstance(value, str) and isinstance(parse(value).value, dict):
        return CallStatus.DOUBLE_ENCODED
    return CallStatus.NOT_OBJECT


def _judge_empty(name: str, ending: CallEndCause, request: RequestSummary) -> CallStatus:
    """Return the status of empty arguments: valid for a tool without required parameters."""
    if ending is not CallEndCause.NORMAL:
        return CallStatus.TRUNCATED
    tool = request.tool(name)
    if tool is None:
        return CallStatus.EMPTY_SUSPECT
    required = None if tool.parameters is None else tool.parameters.get("required")
    return CallStatus.EMPTY_SUSPECT if required else CallStatus.EMPTY_OK


new_tuple = tuple.__new__
"""What a named tuple's constructor calls; calling it directly takes a third of the time."""


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
        """Whether an event announced a call, perhaps without name and id."""
        self.free_text = False
        """Whether the arguments may be something else than a JSON object, whatever the kind."""
        self.whole = False
        """Whether an event says that this call is complete, whatever ends the stream."""
        self.fragments: list[Fragment] = []
        self.notes = ObservationLog()
        self._settled: str | None = None
        self._lazy_scanner: JsonScanner | None = None
        self._scanned = 0
        self._since = 0
        self._value: str | None = None
        self._repaired: RepairedArguments | None = None
        self._canonical: str | None = None

    def add(self, text: str, event: Event) -> None:
        """Append a fragment of the arguments; ignore an empty one."""
        if not text:
            return
        self.latest = event
        self.fragments.append(new_tuple(Fragment, (text, event)))

    def add_all(self, deltas: Sequence[TextDelta]) -> None:
        """Append fragments of the arguments."""
        fragments = [new_tuple(Fragment, delta) for delta in deltas if delta[0]]
        if fragments:
            self.latest = fragments[-1].carrier
            self.fragments += fragments

    def identify(self, identifier: str | None, name: str | None) -> None:
        """Set id and name, for dialects that send them whole and once."""
        if identifier:
            self.ids[identifier] = None
        self.name = self.name or name or ""

    def settle(self, text: str) -> None:
        """Set the final arguments from a source that wins over the fragments."""
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
    def repaired(self) -> RepairedArguments:
        """Return the repaired arguments. Call at the end of the call."""
        if self._repaired is None:
            self._repaired = repair_arguments(self.pieces)
        return self._repaired

    def repeats(self, other: Self) -> bool:
        """Return whether the arguments equal those of `other`, as text or as JSON."""
        if self.repaired.text.strip() == other.repaired.text.strip():
            return True
        return self._comparable == other._comparable

    @property
    def _comparable(self) -> str:
        if self._canonical is None:
            text = self.repaired.text
            self._canonical = canonical(text) or text
        return self._canonical

    def note(self, kind: str, code: str, detail: str, evidence: object, event: Event) -> None:
        """Note a repair or defect of this call, once per kind. See `ObservationLog.once`."""
        self.notes.once(kind, code, detail, evidence, event)

    def note_unquoted(self, entry: object, event: Event) -> None:
        """Note that `entry` has arguments that are not a string (T006)."""
        detail = "the arguments are JSON instead of a string with JSON in it"
        self.note("bare", "T006", detail, entry, event)

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
            text, whole_object = self.repaired.text, self.repaired.is_object
            for code, detail in self.repaired.repairs:
                self.note("repaired", code, detail, self.raw, self.latest)
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
