"""A fleet of recorders that seal their tapes and ship them to one store, which is away for a while.

Strategy: events, not steps. A tape ends when it is large or old enough, or its recorder restarts;
it is sealed, waits for those before it, and is uploaded. All uploads under way share the store's
bandwidth, each at most with its own: since all go at the same rate, one number tells how many bytes
every upload has got so far, and an upload ends when that number has grown by its size.

Invariants: what is recorded is shipped, once; nothing is shipped while the store is away; a
recorder uploads one tape at a time, in the order in which they ended.
"""

import heapq
import itertools
import math
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import NamedTuple

_DAY_S = 86_400.0
_STEP_S = 60.0
"""The resolution of the course of a day."""
_QUIETEST_H = 3.0
_SMALL = 1 << 20
_PART = 8 << 20
"""Bytes of a part of an upload in parts."""
_PER_LIST = 1_000
"""Objects that one request lists."""
_THOUSAND = 1_000
_MINUTES_FROM_S, _HOURS_FROM_S = 120, 7_200
_REQUESTS = 2
"""For each tape, beside those that carry it: is it there, and is it there as it was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What is simulated.

    Attributes:
        recorders: how many.
        days: how long.
        exchanges_per_day: of all recorders.
        exchange_bytes: of one, on a journal.
        sealed_share: what sealing leaves of a journal.
        seal_rate: bytes of a journal that a recorder seals in a second.
        rotate_bytes: at this size a tape ends.
        rotate_s: at this age a tape ends.
        restarts_per_day: of a recorder; its tape ends.
        bandwidth: bytes a second that a recorder may send.
        store_bandwidth: bytes a second that the store takes from all together.
        request_s: that the requests for a tape wait for answers.
        outage_s: how long the store is away.
        outage_at_s: when that begins, from the beginning of the first day; by default on the fourth
            day, when most is recorded.
        retry_s: after which a shipper tries again, at most.
        spread: how much recorders differ: the standard deviation of the logarithm of their loads.
        swing: how far the load of a day goes above and below its mean.
        seed: of everything that is drawn.
    """

    recorders: int = 1_000
    days: int = 7
    exchanges_per_day: float = 1e8
    exchange_bytes: float = 12_000
    sealed_share: float = 0.15
    seal_rate: float = 20e6
    rotate_bytes: float = 64 << 20
    rotate_s: float = 3_600
    restarts_per_day: float = 1
    bandwidth: float = 10e6
    store_bandwidth: float = 1e9
    request_s: float = 0.2
    outage_s: float = 3_600
    outage_at_s: float = 3 * _DAY_S + (_QUIETEST_H + 12 - 0.5) * 3_600
    retry_s: float = 60
    spread: float = 0.75
    swing: float = 0.6
    seed: int = 1

    @property
    def end_s(self) -> float:
        """When recording ends."""
        return self.days * _DAY_S


class Reason(Enum):
    """The reason why a tape ended."""

    SIZE = "size"
    AGE = "age"
    RESTART = "restart"
    END = "the end of the week"


class Quantiles(NamedTuple):
    """Quantiles of a series of figures."""

    least: float
    median: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The result of a simulation.

    Attributes:
        tapes: by why they ended.
        journal_bytes: recorded.
        shipped: tapes in the store.
        shipped_bytes: in the store.
        small: tapes of less than 1 MiB in the store.
        sizes: of the tapes in the store.
        disk: the most that each recorder needed.
        lag_s: from the end of a tape until it is shipped, of tapes that the outage did not delay.
        longest_lag_s: of all.
        backlog_bytes: the most that waited at once, on all recorders.
        backlog_tapes: the same in tapes.
        caught_up_s: from the end of the outage until all that had ended by then was shipped.
        begun_again: uploads that the outage interrupted.
        requests: to the store, of all shippers.
        listing: requests to list one day.
    """

    tapes: dict[Reason, int]
    journal_bytes: float
    shipped: int
    shipped_bytes: float
    small: int
    sizes: Quantiles
    disk: Quantiles
    lag_s: Quantiles
    longest_lag_s: float
    backlog_bytes: float
    backlog_tapes: int
    caught_up_s: float
    begun_again: int
    requests: int
    listing: int


class _Waiting(NamedTuple):
    ended_s: float
    bytes: float


class _State(IntEnum):
    IDLE = auto()
    ASKING = auto()
    SENDING = auto()


@dataclass(slots=True)
class _Recorder:
    rate: float
    """Bytes a second, when the day is at its mean."""
    begun_s: float = 0
    restart_s: float = math.inf
    reason: Reason = Reason.END
    journal: float = 0
    """Bytes of the tape that ends next."""
    sealed_until_s: float = 0
    held: float = 0
    """Bytes of tapes that have ended."""
    most: float = 0
    state: _State = _State.IDLE
    sealing: deque[tuple[float, float]] = field(default_factory=deque)
    """When it ended, and the bytes of the journal."""
    waiting: deque[_Waiting] = field(default_factory=deque)


class _Kind(IntEnum):
    ENDED = auto()
    SEALED = auto()
    ASKED = auto()
    AWAY = auto()
    BACK = auto()


class _Course:
    """How much is recorded in the course of the days: the integral of a load with the mean 1."""

    def __init__(self, fleet: Fleet) -> None:
        steps = int(fleet.end_s / _STEP_S)
        loads = (
            1 - fleet.swing * math.cos((at * _STEP_S / 3_600 - _QUIETEST_H) / 12 * math.pi)
            for at in range(steps)
        )
        self._sums = [0.0, *itertools.accumulate(load * _STEP_S for load in loads)]

    def until(self, at_s: float) -> float:
        """Return the bytes recorded by then."""
        step = min(int(at_s / _STEP_S), len(self._sums) - 2)
        before, after = self._sums[step : step + 2]
        return before + (after - before) * (at_s / _STEP_S - step)

    def when(self, recorded: float) -> float:
        """Return the time at which that much is recorded; infinite if it never is."""
        step = bisect_right(self._sums, recorded) - 1
        if step >= len(self._sums) - 1:
            return math.inf
        before, after = self._sums[step : step + 2]
        return (step + (recorded - before) / (after - before)) * _STEP_S


def simulate(fleet: Fleet) -> Simulated:
    """Simulate a fleet."""
    return _Simulation(fleet).run()


class _Simulation:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._choose = random.Random(fleet.seed)  # noqa: S311 - not for secrets
        self._course = _Course(fleet)
        loads = [self._choose.lognormvariate(0, fleet.spread) for _ in range(fleet.recorders)]
        bytes_per_s = fleet.exchanges_per_day * fleet.exchange_bytes / _DAY_S
        self._recorders = [_Recorder(load / sum(loads) * bytes_per_s) for load in loads]
        self._events: list[tuple[float, _Kind, int]] = []
        self._now_s = 0.0
        self._up = True
        self._sent = 0.0
        """Bytes that an upload has got that has been under way from the beginning."""
        self._sending: list[tuple[float, int]] = []
        """The number of bytes at which each upload is complete, and its sender."""
        self._tapes = dict.fromkeys(Reason, 0)
        self._journals = 0.0
        self._sizes: list[float] = []
        self._lags: list[float] = []
        self._longest_lag_s = 0.0
        self._held, self._held_tapes = 0.0, 0
        self._most_held, self._most_tapes = 0.0, 0
        self._begun_again = self._requests = 0
        self._owed = 0
        """Tapes that had ended before the end of the outage and are not shipped yet."""
        self._caught_up_s = 0.0

    @property
    def _back_s(self) -> float:
        return self._fleet.outage_at_s + self._fleet.outage_s

    def run(self) -> Simulated:
        for number, recorder in enumerate(self._recorders):
            self._restart_later(recorder, 0)
            self._begin(number, 0)
        if self._fleet.outage_s:
            heapq.heappush(self._events, (self._fleet.outage_at_s, _Kind.AWAY, 0))
            heapq.heappush(self._events, (self._back_s, _Kind.BACK, 0))
        handlers = {
            _Kind.ENDED: self._ended,
            _Kind.SEALED: self._sealed,
            _Kind.ASKED: self._asked,
            _Kind.AWAY: self._away,
            _Kind.BACK: self._back,
        }
        while self._events or self._sending:
            rate = self._rate()
            next_s = self._events[0][0] if self._events else math.inf
            if self._sending:
                done_s = self._now_s + (self._sending[0][0] - self._sent) / rate
                if done_s <= next_s:
                    self._go_on(max(done_s, self._now_s), rate)
                    self._shipped(heapq.heappop(self._sending)[1])
                    continue
            self._go_on(next_s, rate)
            _, kind, number = heapq.heappop(self._events)
            handlers[kind](number)
        return self._result()

    def _rate(self) -> float:
        return min(self._fleet.bandwidth, self._fleet.store_bandwidth / max(1, len(self._sending)))

    def _go_on(self, at_s: float, rate: float) -> None:
        if self._sending:
            self._sent += (at_s - self._now_s) * rate
        self._now_s = at_s

    def _restart_later(self, recorder: _Recorder, at_s: float) -> None:
        if self._fleet.restarts_per_day:
            after_s = self._choose.expovariate(self._fleet.restarts_per_day / _DAY_S)
            recorder.restart_s = at_s + after_s

    def _begin(self, number: int, at_s: float) -> None:
        """Begin a tape, and compute when and why it ends."""
        recorder, fleet, course = self._recorders[number], self._fleet, self._course
        before = course.until(at_s)
        ends_s, recorder.reason = min(
            (course.when(before + fleet.rotate_bytes / recorder.rate), Reason.SIZE),
            (at_s + fleet.rotate_s, Reason.AGE),
            (recorder.restart_s, Reason.RESTART),
            (fleet.end_s, Reason.END),
            key=lambda each: each[0],
        )
        recorder.begun_s = at_s
        recorder.journal = (course.until(ends_s) - before) * recorder.rate
        heapq.heappush(self._events, (ends_s, _Kind.ENDED, number))

    def _ended(self, number: int) -> None:
        recorder, fleet = self._recorders[number], self._fleet
        self._tapes[recorder.reason] += 1
        self._journals += recorder.journal
        recorder.held += recorder.journal
        # While it is sealed, both are there.
        recorder.most = max(recorder.most, recorder.held + recorder.journal * fleet.sealed_share)
        self._held += recorder.journal * fleet.sealed_share
        self._held_tapes += 1
        self._most_held = max(self._most_held, self._held)
        self._most_tapes = max(self._most_tapes, self._held_tapes)
        recorder.sealing.append((self._now_s, recorder.journal))
        begun_s = max(self._now_s, recorder.sealed_until_s)
        recorder.sealed_until_s = begun_s + recorder.journal / fleet.seal_rate
        heapq.heappush(self._events, (recorder.sealed_until_s, _Kind.SEALED, number))
        if recorder.reason is Reason.RESTART:
            self._restart_later(recorder, self._now_s)
        if recorder.reason is not Reason.END:
            self._begin(number, self._now_s)

    def _sealed(self, number: int) -> None:
        recorder = self._recorders[number]
        ended_s, journal = recorder.sealing.popleft()
        size = journal * self._fleet.sealed_share
        recorder.held += size - journal
        recorder.waiting.append(_Waiting(ended_s, size))
        if recorder.state is _State.IDLE and self._up:
            self._ask(number, self._fleet.request_s)

    def _ask(self, number: int, after_s: float) -> None:
        self._recorders[number].state = _State.ASKING
        heapq.heappush(self._events, (self._now_s + after_s, _Kind.ASKED, number))

    def _asked(self, number: int) -> None:
        recorder = self._recorders[number]
        if not self._up:
            recorder.state = _State.IDLE
            return
        recorder.state = _State.SENDING
        heapq.heappush(self._sending, (self._sent + recorder.waiting[0].bytes, number))

    def _shipped(self, number: int) -> None:
        recorder = self._recorders[number]
        ended_s, size = recorder.waiting.popleft()
        recorder.held -= size
        self._held -= size
        self._held_tapes -= 1
        assert self._up, "nothing is shipped while the store is away"
        self._requests += _REQUESTS + max(1, math.ceil(size / _PART))
        self._sizes.append(size)
        lag_s = self._now_s - ended_s
        self._longest_lag_s = max(self._longest_lag_s, lag_s)
        if self._now_s < self._fleet.outage_at_s or ended_s > self._back_s + self._caught_up_s:
            self._lags.append(lag_s)
        if self._owed and ended_s <= self._back_s:
            self._owed -= 1
            self._caught_up_s = self._now_s - self._back_s
        recorder.state = _State.IDLE
        if recorder.waiting:
            self._ask(number, self._fleet.request_s)

    def _away(self, _: int) -> None:
        self._up = False
        self._begun_again += len(self._sending)
        for upload in self._sending:
            self._recorders[upload[1]].state = _State.IDLE
        self._sending.clear()

    def _back(self, _: int) -> None:
        self._up = True
        self._owed = self._held_tapes
        for number, recorder in enumerate(self._recorders):
            if recorder.waiting and recorder.state is _State.IDLE:
                self._ask(number, self._choose.uniform(0, self._fleet.retry_s))

    def _result(self) -> Simulated:
        per_day = len(self._sizes) / self._fleet.days
        return Simulated(
            tapes=self._tapes,
            journal_bytes=self._journals,
            shipped=len(self._sizes),
            shipped_bytes=math.fsum(self._sizes),
            small=sum(size < _SMALL for size in self._sizes),
            sizes=quantiles(self._sizes),
            disk=quantiles([each.most for each in self._recorders]),
            lag_s=quantiles(self._lags),
            longest_lag_s=self._longest_lag_s,
            backlog_bytes=self._most_held,
            backlog_tapes=self._most_tapes,
            caught_up_s=self._caught_up_s,
            begun_again=self._begun_again,
            requests=self._requests,
            listing=math.ceil(per_day / _PER_LIST),
        )


def quantiles(figures: Sequence[float]) -> Quantiles:
    """Return the quantiles of `figures`; all 0 where there are none."""
    ordered = sorted(figures) or [0.0]
    last = len(ordered) - 1
    return Quantiles(ordered[0], ordered[last // 2], ordered[int(last * 0.99)], ordered[last])


def rows(fleet: Fleet, found: Simulated) -> Sequence[tuple[str, str]]:
    """Return the figures of a simulation, each with its description."""
    tapes = ", ".join(f"{reason.value}: {number:,}" for reason, number in found.tapes.items())
    return (
        ("exchanges", f"{fleet.exchanges_per_day * fleet.days:,.0f}"),
        ("journals", f"{size(found.journal_bytes)}"),
        ("sealed, in the store", f"{size(found.shipped_bytes)}"),
        ("tapes", f"{found.shipped:,} (ended by {tapes})"),
        ("size of a sealed tape, median", f"{size(found.sizes.median)}"),
        ("the largest", f"{size(found.sizes.most)}"),
        ("tapes of less than 1 MiB", f"{found.small:,} ({found.small / found.shipped:.1%})"),
        ("from its end until a tape is in the store, median", f"{found.lag_s.median:.1f} s"),
        ("the same, 99th percentile", f"{found.lag_s.p99:.1f} s"),
        ("the longest, with the outage", duration(found.longest_lag_s)),
        ("backlog of all recorders, at most", f"{size(found.backlog_bytes)}"),
        ("tapes that wait, at most", f"{found.backlog_tapes:,}"),
        ("caught up after the outage", duration(found.caught_up_s)),
        ("uploads that the outage broke off", f"{found.begun_again:,}"),
        ("disk that a recorder needs, median", f"{size(found.disk.median)}"),
        ("the recorder that needs most", f"{size(found.disk.most)}"),
        ("requests of the shippers", f"{found.requests:,}"),
        ("requests to list a day", f"{found.listing:,}"),
    )


def size(amount: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if amount < _THOUSAND:
            return f"{amount:.3g} {unit}"
        amount /= _THOUSAND
    return f"{amount:,.3g} TB" if amount < _THOUSAND else f"{amount:,.0f} TB"


def duration(seconds: float) -> str:
    """Format a duration."""
    if seconds < _MINUTES_FROM_S:
        return f"{seconds:.0f} s"
    if seconds < _HOURS_FROM_S:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"
