"""Damage to the fragments of a call's arguments, inferred from the fragments alone.

A parser's error says where a text stops being JSON, not why: the same doubled fragment looks like a
missing colon or like an odd value, depending on its text. So repairs are tried: leaving out
fragments that come twice in a row (DOUBLED), exchanging two neighbours (SWAPPED), or inserting
something between two neighbours (LOST). The repaired value has to be an object, and one that the
tool's schema allows, where the request has one.

Servers and gateways damage fragments; models write text and know nothing of its fragments. That is
no proof: a model may repeat itself. Proof is what only the wire has: an event number that is
repeated or missing, or a repeated event whose padding is generated for each event (`proof_between`,
`proof_of_twin`).

Strategy: used for broken calls, and for repeated fragments of complete ones. A bounded number of
attempts starts where the text breaks and goes backwards; each parses the text once.
"""

import enum
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from operator import eq

from deltatape.model.finding import Blame, Confidence, Excluded
from deltatape.model.reply import Fragment
from deltatape.model.request_summary import ToolSpec
from deltatape.model.rule_settings import Settings
from deltatape.model.stream import Event
from deltatape.printable import count, excerpt
from deltatape.rules.context import Claim, RuleContext
from deltatape.wire.json_scan import JsonScanner, ScanState, scan
from deltatape.wire.json_value import join_pairs, parse

_TRIES = 64
"""Repaired texts of one kind that are parsed."""
_LONGEST_RUN = 16
"""Fragments that may come twice together: what a write or a read of a gateway holds."""
_LONGEST = 200_000
"""Longer arguments are not analysed, in characters."""
_LONGEST_REST = 20_000
"""How far behind a gap the analysis looks, in characters."""
_WINDOW = 12
"""Fragments before the break where something may be missing."""
_MARKS = re.compile(r'"(sequence_number|obfuscation)":\s*("[^"\\]{6,}"|\d+)')
"""Fields that servers generate anew for each event."""
_NUMBER = re.compile(r'"sequence_number":\s*(\d+)')
_FEWEST_MARKS = 3
_PAIR = 2


class FragmentDamage(enum.StrEnum):
    """A kind of damage that explains broken arguments."""

    DOUBLED = "doubled"
    SWAPPED = "swapped"
    LOST = "lost"


HINT = (
    "the provider or a gateway sent it this way, and one recording cannot tell which:"
    " record on both sides of the gateway, and show both this tape; in the client, return"
    " the parse error as the tool result"
)
"""The fix for damaged fragments."""
_REPAIRED = {
    FragmentDamage.DOUBLED: "without the repetition the arguments are JSON",
    FragmentDamage.SWAPPED: "in swapped order the arguments are JSON",
    FragmentDamage.LOST: (
        "the JSON breaks off exactly where one fragment ends, and the"
        " next one continues it after a gap"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentTrace:
    """The damage found in the fragments of a call.

    Messages count fragments from 1, as people do, and events from 0, as tapes do.
    """

    damage: FragmentDamage
    fragments: Sequence[Fragment]
    """All fragments of the call."""
    start: int
    """The first damaged fragment: of the second copy, of the two that are swapped; or of those
    before which something may be missing."""
    end: int
    """The fragment behind the last damaged one."""
    fits: bool | None = None
    """Whether the tool's schema allows what remains without the damage; None if that is not known:
    there is no schema, or if the missing text is unknown."""
    proof: str = ""
    """The proof on the wire, as a clause; "" if there is none."""

    @property
    def first_event(self) -> Event:
        """Return the event of the first damaged fragment."""
        return self.fragments[min(self.start, len(self.fragments) - 1)].carrier

    @property
    def repetition(self) -> str:
        """Say in a clause which fragments repeat: `fragment 3 of 9 (event 7) repeats the ...`."""
        size = self.end - self.start
        if size == 1:
            return f"{self._damaged()} repeats the fragment before it"
        return f"{self._damaged()} repeat the {size} fragments before them"

    @property
    def description(self) -> str:
        """Describe the damage as a clause: fragments, events, and what supports it."""
        start, end, fragments = self.start, self.end, self.fragments
        proof = f"; {self.proof}" if self.proof else ""
        allowed = " that the tool's schema allows" if self.fits else ""
        if self.damage is FragmentDamage.DOUBLED:
            without = "it" if end - start == 1 else "them"
            return f"{self.repetition}; without {without} the arguments are JSON{allowed}{proof}"
        if self.damage is FragmentDamage.SWAPPED:
            return (
                f"{self._damaged()} are in the wrong order; swapped, the arguments are"
                f" JSON{allowed}{proof}"
            )
        if end - start > 1:
            last = f"fragment {end} (event {fragments[end - 1].event})"
            return f"a part is missing somewhere before {last}{proof}"
        if start == 0:
            return f"the beginning is missing: the arguments start in the middle of JSON{proof}"
        both = f"fragments {start} and {start + 1} (events {fragments[start - 1].event} and"
        return f"a part is missing between {both} {fragments[start].event}){proof}"

    def _damaged(self) -> str:
        """Name the damaged fragments and their events."""
        start, end, fragments = self.start, self.end, self.fragments
        first, last = fragments[start].event, fragments[end - 1].event
        if end - start == 1:
            return f"fragment {end} of {len(fragments)} (event {first})"
        word = "and" if end - start == _PAIR else "to"
        return (
            f"fragments {start + 1} {word} {end} of {len(fragments)} (events {first} {word} {last})"
        )

    def claim(self, context: RuleContext, message: str, evidence: str = "") -> Claim:
        """Return a claim that upstream damaged the fragments."""
        because = (
            f"{_REPAIRED[self.damage]}, and a model does not know where fragments begin and end"
        )
        return Claim(
            message=message,
            hint=HINT,
            blame=Blame.UPSTREAM,
            confidence=context.seen if self.proof else Confidence.LIKELY,
            at=self.first_event,
            evidence=evidence,
            excluded=(
                Excluded("the model wrote it so", self.proof or because),
                Excluded(
                    "the app or its SDK did it",
                    "these bytes were recorded before any client read them",
                ),
            ),
        )


def fits(text: str, tool: ToolSpec | None, settings: Settings) -> bool | None:
    """Return whether the schema of `tool` allows the JSON arguments `text`; None if unknown."""
    if tool is None or tool.parameters is None:
        return None
    from deltatape.rules._schema import validate_text  # noqa: PLC0415 - takes long, and few tapes need it

    outcome = validate_text(tool.parameters, text, settings)
    if outcome.violations:
        return False
    return None if outcome.unchecked else True


def trace_of(
    fragments: Sequence[Fragment],
    events: Sequence[Event],
    tool: ToolSpec | None,
    settings: Settings,
) -> FragmentTrace | None:
    """Return what made the joined fragments an invalid JSON object; None if they do not show it.

    That is a repetition or swap whose repair makes it valid, or missing event numbers in between.

    Args:
        fragments: the fragments of one call, in wire order.
        events: the events of the whole stream.
        tool: which the call is of.
        settings: how far to look.
    """
    texts = _texts(fragments)
    if not texts:
        return None
    broken = _break_of(texts)
    last = min(broken, len(texts) - 2)
    pairs = (
        (start, start + 2) for start in range(last, -1, -1) if texts[start] != texts[start + 1]
    )
    for damage, places in (
        (FragmentDamage.DOUBLED, runs_of(texts, broken)),
        (FragmentDamage.SWAPPED, pairs),
    ):
        for start, end in islice(places, _TRIES):
            repaired = (
                without(texts, start, end)
                if damage is FragmentDamage.DOUBLED
                else join_pairs(
                    "".join([*texts[:start], texts[start + 1], texts[start], *texts[end:]])
                )
            )
            if not isinstance(parse(repaired).value, dict):
                continue
            allowed = fits(repaired, tool, settings)
            if allowed is False:
                continue
            proof = (
                proof_of_twin(fragments, start, end, events)
                if damage is FragmentDamage.DOUBLED
                else proof_between(fragments[start].carrier, fragments[start + 1].carrier, events)
            )
            return FragmentTrace(
                damage=damage, fragments=fragments, start=start, end=end, fits=allowed, proof=proof
            )
    return _counted_gap(fragments, events)


def gap_of(fragments: Sequence[Fragment]) -> FragmentTrace | None:
    """Find the fragments between which something may be missing: the text could continue there.

    None if there is no such place. Use last: many undamaged texts look so, too.
    """
    texts = _texts(fragments)
    broken = _break_of(texts)
    if broken == len(texts):
        return None  # it only ends too early
    places = [
        at
        for at in range(max(0, broken - _WINDOW), broken + 1)
        if goes_on(join_pairs("".join(texts[at:])))
    ]
    if not places:
        return None
    return FragmentTrace(
        damage=FragmentDamage.LOST, fragments=fragments, start=places[0], end=places[-1] + 1
    )


def gap_of_member(
    fragments: Sequence[Fragment], member: str, events: Sequence[Event]
) -> FragmentTrace | None:
    """Find where a lost fragment may have held `member` of an object that is complete without it.

    Between two fragments at which the object can be continued with that member: within a text, or
    between two members. None if there is no such place, if the event numbers show that nothing is
    missing, or if the lost piece would be longer than all others: then only many lost pieces could
    have held it.
    """
    texts = _texts(fragments)
    if len(texts) < _PAIR or _is_complete(fragments, events):
        return None
    key = json.dumps(member, ensure_ascii=False)
    pieces = (f'",{key}:"', f"{key}:0,", f",{key}:0")
    longest, whole = max(map(len, texts)), "".join(texts)
    possible = [piece for piece in pieces if len(piece) <= longest]
    ends = enumerate(accumulate(map(len, texts[:-1])), 1)
    for number, at in islice(ends, _TRIES):
        for piece in possible:
            value = parse(f"{whole[:at]}{piece}{whole[at:]}").value
            if isinstance(value, dict) and member in value:
                return FragmentTrace(
                    damage=FragmentDamage.LOST, fragments=fragments, start=number, end=number + 1
                )
    return None


def _is_complete(fragments: Sequence[Fragment], events: Sequence[Event]) -> bool:
    """Return whether the events are numbered, with none missing between the fragments."""
    ends = [_NUMBER.search(fragments[at].carrier.data) for at in (0, -1)]
    return None not in ends and _is_counted(events) and _counted_gap(fragments, events) is None


def difference(fragments: Sequence[Fragment], whole: str) -> str:
    """Say in a clause why the joined fragments differ from `whole`, the same text sent at once.

    "" if it is neither a repetition nor one gap.
    """
    texts = _texts(fragments)
    joined = "".join(texts)
    for start, end in islice(runs_of(texts), _TRIES):
        if without(texts, start, end) == whole:
            found = FragmentTrace(
                damage=FragmentDamage.DOUBLED, fragments=fragments, start=start, end=end
            )
            return found.repetition
    at = 0
    for number in range(len(texts) + 1):
        fewer = len(joined) < len(whole)
        if fewer and whole.startswith(joined[:at]) and whole.endswith(joined[at:]):
            place = f"before fragment {number + 1}" if number < len(texts) else "at the end"
            missing = whole[at : len(whole) - len(joined) + at]
            return f"{excerpt(missing, 60)!r} is missing {place} of {len(texts)}"
        at += len(texts[number]) if number < len(texts) else 0
    return ""


def _texts(fragments: Sequence[Fragment]) -> list[str]:
    texts = [fragment.text for fragment in fragments]
    return texts if sum(map(len, texts)) <= _LONGEST else []


def _counted_gap(fragments: Sequence[Fragment], events: Sequence[Event]) -> FragmentTrace | None:
    """Find the first jump of the event numbers within the fragments."""
    for at in range(1, len(fragments)):
        proof = proof_between(fragments[at - 1].carrier, fragments[at].carrier, events)
        if proof:
            return FragmentTrace(
                damage=FragmentDamage.LOST, fragments=fragments, start=at, end=at + 1, proof=proof
            )
    return None


def _break_of(texts: Sequence[str]) -> int:
    """Return the number of the fragment at which the text can no longer become one JSON value."""
    scanner = JsonScanner()
    for number, text in enumerate(texts):
        scanner.feed(text)
        if scanner.verdict in (ScanState.MALFORMED, ScanState.EXTRA):
            return number
    return len(texts)


def without(texts: Sequence[str], start: int, end: int) -> str:
    """Join `texts` except those from `start` to `end`."""
    return join_pairs("".join([*texts[:start], *texts[end:]]))


def runs_of(texts: Sequence[str], last: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of fragments that repeats the run before it.

    Args:
        texts: the texts of the fragments.
        last: the last fragment at which a second copy may begin; None: any. The nearest come first.
    """
    for start in range(min(len(texts) - 1, len(texts) if last is None else last), 0, -1):
        for size in range(1, min(_LONGEST_RUN, start, len(texts) - start) + 1):
            if texts[start - size] == texts[start] and (
                texts[start - size : start] == texts[start : start + size]
            ):
                yield start, start + size


def has_twins(texts: Sequence[str]) -> bool:
    """Return whether any fragment equals the one before it, which is common in healthy calls."""
    return any(map(eq, texts, texts[1:]))


_OPEN = {"}": '{"":', "]": "["}
_INSIDE = {
    "}": ("{", '{"', '{""', '{"":', '{"":"', '{"":"\\', '{"":1', '{"":1,'),
    "]": ("[", '["', '["\\', "[1", "[1,"),
}
"""Contexts in an object or a list where a text can start: in a key, before a colon, in a value."""
_LITERALS = ("tru", "fals", "nul", "tr", "fal", "nu", "t", "fa", "n", "f", "-", "1.", "1e")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+("?+)|[{}\[\]]', re.DOTALL)


def goes_on(rest: str) -> bool:
    """Return whether `rest` can be the end of a JSON object whose beginning is missing."""
    if len(rest) > _LONGEST_REST:
        return False
    for inside in (False, True):
        closers = _closers('"' + rest if inside else rest)
        if closers is None or not closers or closers[-1] != "}":
            continue
        outer = "".join(_OPEN[closer] for closer in reversed(closers[1:]))
        for before in _INSIDE[closers[0]]:
            in_string = before.count('"') % 2 == 1
            if in_string == inside and scan(outer + before + rest).verdict is ScanState.COMPLETE:
                return True
        value = outer + _OPEN[closers[0]]
        if not inside and any(
            scan(value + literal + rest).verdict is ScanState.COMPLETE for literal in _LITERALS
        ):
            return True
    return False


def _closers(text: str) -> list[str] | None:
    """Return the brackets that `text` closes without opening them; None if it leaves one open."""
    closers: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            closers += [] if depth else [token[0]]
            depth = max(0, depth - 1)
        elif not token[1]:
            return None
    return None if depth else closers


def proof_between(one: Event, other: Event, events: Sequence[Event]) -> str:
    """Return the proof that events between the two are missing or out of order, or ""."""
    first, second = _NUMBER.search(one.data), _NUMBER.search(other.data)
    if first is None or second is None:
        return ""
    came, counted = other.number - one.number, int(second[1]) - int(first[1])
    if 0 < counted <= came or not _is_counted(events):
        return ""
    return f"the sequence number {second[1]} comes {count(came, 'event')} after {first[1]}"


def _is_counted(events: Sequence[Event]) -> bool:
    """Return whether the event numbers count up, rather than being the same text in each event."""
    numbers = {match[1] for event in events if (match := _NUMBER.search(event.data))}
    return len(numbers) >= _FEWEST_MARKS


def proof_of_twin(
    fragments: Sequence[Fragment], start: int, end: int, events: Sequence[Event]
) -> str:
    """Return the proof that the fragments from `start` to `end` were sent twice, or "".

    There is no proof if the events contain nothing that a server generates for each.
    """
    size = end - start
    for at in range(start, end):
        one, other = fragments[at - size].carrier, fragments[at].carrier
        mark = _MARKS.search(one.data)
        if one is other or mark is None or one.data != other.data:
            continue
        every = [found[0] for event in events if (found := _MARKS.search(event.data))]
        if every.count(mark[0]) == _PAIR and len(set(every)) >= _FEWEST_MARKS:
            return f"both events have the same {mark[0]}, which a server generates anew for each"
    return ""
