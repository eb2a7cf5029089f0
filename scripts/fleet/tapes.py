"""Writes the tapes of a fleet of recorders, fast, and the same for the same seed.

Each tape is a function of the plan, its number and the conversations, so that a run holds one tape
at a time and an interrupted run can continue. Conversations run in parallel; some begin on one
tape and continue, after a restart or another choice of the load balancer, on a later tape of the
same or another recorder. Both tapes find these by the seed of the earlier one.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from deltatape.clock import parse_rfc3339, rfc3339
from fleet.conversations import CAPTURED, DEFECTIVE, HEALTHY, Conversation, filled

SHARES = {CAPTURED: 0.6, HEALTHY: 0.3, DEFECTIVE: 0.1}
"""Shares of the exchanges by kind of conversation; kinds that are missing are left out."""
_GOING_OVER = 0.01
"""The share of the exchanges of a tape whose conversation continues on another tape."""
_FIRST_NS = parse_rfc3339("2026-11-01T00:00:00.000000000Z")
_NS = 1_000_000_000
_DAY_NS = 86_400 * _NS
_LATEST = 0.8
"""The part of a tape's time after which conversations begin that continue on another tape."""
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_STAMP, _RANDOM = 10, 6
"""Digits of a ULID that say when, and the first that are random."""
_SOURCE = '"source":"gateway"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The tapes to make.

    Attributes:
        exchanges: on all tapes.
        seed: decides everything else.
        gateways: recorders.
        days: over which they record.
        per_tape: exchanges of a tape, at most.
    """

    exchanges: int
    seed: int = 1
    gateways: int = 4
    days: int = 7
    per_tape: int = 2_500

    @property
    def tapes(self) -> int:
        """How many tapes: the last may not be one of every recorder."""
        return -(-self.exchanges // self.per_tape)

    def gateway(self, tape: int) -> int:
        """Return which recorder wrote a tape."""
        return tape % self.gateways

    def count(self, tape: int) -> int:
        """Return how many exchanges a tape has."""
        each, more = divmod(self.exchanges, self.tapes)
        return each + (tape < more)

    @property
    def span_ns(self) -> int:
        """How long a tape is recorded."""
        return self.days * _DAY_NS // -(-self.tapes // self.gateways)

    def began_ns(self, tape: int) -> int:
        """Return when a tape was begun."""
        return _FIRST_NS + tape // self.gateways * self.span_ns

    def path(self, folder: Path, tape: int) -> Path:
        """Return the file of a tape: each recorder has a folder."""
        at = rfc3339(self.began_ns(tape))[:19].replace(":", "").replace("-", "")
        return folder / f"gateway-{self.gateway(tape) + 1:02}" / f"{at}Z.tape"


class _Run(NamedTuple):
    """A copy of a conversation, or of its beginning or rest.

    Attributes:
        conversation: that is copied.
        values: what differs in this copy.
        start_ns: when it begins, in the time of the tape.
        first: the exchange with which it begins, from 1.
        last: the exchange with which it ends.
    """

    conversation: Conversation
    values: Mapping[bytes, bytes]
    start_ns: int
    first: int
    last: int

    @property
    def exchanges(self) -> int:
        return self.last - self.first + 1


class _GoingOver(NamedTuple):
    """A conversation that begins on one tape and continues on another."""

    run: _Run
    rest: _Run
    tape: int
    """With the rest."""


class Maker:
    """Makes the tapes of a plan.

    Args:
        plan: of all tapes.
        conversations: to copy.
    """

    def __init__(self, plan: Plan, conversations: Sequence[Conversation]) -> None:
        self._plan = plan
        self._kinds = [[each for each in conversations if each.kind == kind] for kind in SHARES]
        # By exchanges, not by conversations, whatever their lengths.
        self._weights = [
            share * len(found) / sum(each.exchanges for each in found) if found else 0
            for share, found in zip(SHARES.values(), self._kinds, strict=True)
        ]
        self._single = [each for each in conversations if each.exchanges == 1]
        self._cut = [each for each in conversations if each.cuts]

    def lines(self, tape: int) -> Iterator[bytes]:
        """Yield the lines of a tape."""
        plan, choose = self._plan, self._random(tape, "own")
        yield self._header(tape)
        runs = [*self._arriving(tape), *(each.run for each in self._going_over(tape))]
        ids = self._ids(tape, "0")
        missing = plan.count(tape) - sum(each.exchanges for each in runs)
        gap_ns, at_ns = plan.span_ns / max(1, plan.count(tape)), 0.0
        while missing > 0:
            at_ns += choose.expovariate(1 / gap_ns)
            picked = self._pick(choose, missing)
            values = picked.values(choose, ids)
            runs.append(_Run(picked, values, int(at_ns), 1, picked.exchanges))
            missing -= picked.exchanges
            at_ns += gap_ns * (picked.exchanges - 1)
        yield from _merged(runs)

    def _pick(self, choose: random.Random, most: int) -> Conversation:
        """Return a conversation of at most `most` exchanges."""
        (kind,) = choose.choices(self._kinds, self._weights)
        picked = choose.choice(kind)
        return picked if picked.exchanges <= most else choose.choice(self._single)

    def _random(self, tape: int, purpose: str) -> random.Random:
        return random.Random(f"{self._plan.seed} {tape} {purpose}")  # noqa: S311 - not for secrets

    def _going_over(self, tape: int) -> Sequence[_GoingOver]:
        """Return the conversations that begin on a tape and continue on a later one."""
        plan, choose = self._plan, self._random(tape, "over")
        turn = tape // plan.gateways + 1
        following = range(turn * plan.gateways, min((turn + 1) * plan.gateways, plan.tapes))
        ids, found, room = self._ids(tape, "1"), [], int(plan.count(tape) * _GOING_OVER)
        while following and self._cut and room > 0:
            picked = choose.choice(self._cut)
            room -= picked.exchanges
            cut, values = choose.choice(picked.cuts), picked.values(choose, ids)
            start_ns = int(plan.span_ns * choose.uniform(_LATEST, 1))
            ended_ns = start_ns + max(each.t_ns for each in picked.lines if each.exchange <= cut)
            began_ns = max(0, ended_ns - plan.span_ns) + choose.randrange(_NS, 30 * _NS)
            rest = _Run(picked, values, began_ns, cut + 1, picked.exchanges)
            found.append(
                _GoingOver(_Run(picked, values, start_ns, 1, cut), rest, choose.choice(following))
            )
        return found

    def _arriving(self, tape: int) -> Iterator[_Run]:
        """Yield the conversations that continue on a tape."""
        gateways = self._plan.gateways
        before = tape // gateways - 1
        for earlier in range(before * gateways, (before + 1) * gateways) if before >= 0 else ():
            yield from (each.rest for each in self._going_over(earlier) if each.tape == tape)

    def _header(self, tape: int) -> bytes:
        at = rfc3339(self._plan.began_ns(tape))
        return (
            f'{{"deltatape":1,"id":"{self._ulid(tape)}{0:010}","tool":"scripts/fleet-tapes",'
            f'"recorded_at":"{at}",{_SOURCE}}}\n'
        ).encode()

    def _ulid(self, tape: int) -> str:
        """Return the digits of a tape's ids, but for the last ten."""
        when = _in_base32(self._plan.began_ns(tape) // 1_000_000, _STAMP)
        return when + _in_base32(self._random(tape, "id").getrandbits(5 * _RANDOM), _RANDOM)

    def _ids(self, tape: int, series: str) -> Iterator[bytes]:
        """Yield unique ids of exchanges."""
        prefix, number = f"{self._ulid(tape)}{series}", 0
        while True:
            number += 1
            yield f"{prefix}{number:09}".encode()


def _in_base32(number: int, digits: int) -> str:
    return "".join(_DIGITS[number >> 5 * place & 31] for place in reversed(range(digits)))


def _merged(runs: Sequence[_Run]) -> Iterator[bytes]:
    """Yield the lines of conversations in the order of their times, and the end of the tape."""
    records = []
    for run in runs:
        kept = [each for each in run.conversation.lines if run.first <= each.exchange <= run.last]
        from_ns = run.start_ns - kept[0].t_ns
        numbers: dict[int, int] = {}
        records += [(from_ns + each.t_ns, each, run.values, numbers) for each in kept]
    # Stable: lines of equal times stay in the order of their conversation.
    records.sort(key=itemgetter(0))
    count = 0
    for t_ns, line, values, numbers in records:
        number = numbers.get(line.exchange)
        if number is None:
            # Exchanges are numbered in the order in which their requests came.
            count += 1
            number = numbers[line.exchange] = count
        yield b"[%d,%d,%b" % (t_ns, number, filled(line.rest, values))
    end_ns = records[-1][0] + _NS if records else 0
    yield b'[%d,0,"stop",{"reason":"interrupted"}]\n' % end_ns


class Written(NamedTuple):
    """The totals written."""

    tapes: int
    exchanges: int
    bytes: int


def write(maker: Maker, plan: Plan, folder: Path, tapes: Sequence[int]) -> Written:
    """Write tapes into the folders of their recorders; keep those that exist."""
    exchanges = size = 0
    for tape in tapes:
        path = plan.path(folder, tape)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            draft = path.with_suffix(".draft")
            with draft.open("wb") as file:
                file.writelines(maker.lines(tape))
            draft.rename(path)
        exchanges += plan.count(tape)
        size += path.stat().st_size
    return Written(len(tapes), exchanges, size)
