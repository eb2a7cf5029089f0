"""The recorder's side of a live analysis: starts the process, restarts it, and takes its reports.

Recording never waits for it. What the process had not reported when it died is analysed by the
next one, from the tapes. One that dies before it has done what the last one left may have died of
that; after `MAX_STARTS` of those in a row, the rest is left to `deltatape check`.
"""

import asyncio
import contextlib
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from deltatape.live.messages import (
    Begin,
    Close,
    Closed,
    ExchangeReport,
    Follow,
    Look,
    Message,
    Recall,
    Settled,
    SilenceReport,
    Unreadable,
    decode,
    encode,
)
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import TapeSummary

MAX_STARTS = 3
LONG_LIFE_S = 60.0
"""After it, a process without anything to do has not died of its start."""
ANNOUNCE_S = 0.1
"""How long an end may wait for others: analysed together, exchanges take half the time."""
FINISH_S = 10.0
"""How long the end of a recording may wait for its analysis."""
MAX_MESSAGE = 64 << 20
RECALLED_EXCHANGES = 256
"""How many earlier ones of a name a new process is to know at least: as many as are compared."""
RECALLED_TAPES = 256


class LiveTape(Protocol):
    """A tape that is being recorded."""

    @property
    def path(self) -> str:
        """Its present path; "" if it was not or could not be created."""

    @property
    def pending(self) -> bool:
        """Whether it is yet to be created: no stream waits for that, nor for a slow disk."""

    name: str | None
    """What requests call it; None for the main tape."""


Tape = TypeVar("Tape", bound=LiveTape)
SeenTape_contra = TypeVar("SeenTape_contra", bound=LiveTape, contravariant=True)


class LiveObserver(Protocol[SeenTape_contra]):
    """Receives the reports, on the event loop."""

    def analysed(self, tape: SeenTape_contra, number: int, report: ExchangeReport | None) -> None:
        """An exchange was analysed; None: it will not be."""

    def silent(self, tape: SeenTape_contra, report: SilenceReport) -> None:
        """A closed tape has a reply that was never answered."""

    def analysis_failed(self, problem: str) -> None:
        """The process had a problem; recording continues."""


class AnalysisLag(NamedTuple):
    """How far an analysis is behind: exchanges that wait for it, and since when the oldest does."""

    exchanges: int
    seconds: float


@dataclass(slots=True, eq=False)
class _Followed(Generic[Tape]):
    key: int
    tape: Tape
    waiting: dict[int, float] = field(default_factory=dict)
    """The exchanges that have ended and were not reported, the oldest first: when they ended, by
    the loop's clock."""
    ended: int = 0
    """How many have ended: a new process reads all of them, and counts them."""
    unannounced: int = 0
    """How many of them the process does not know of."""
    silent: set[int] = field(default_factory=set)
    """The exchanges that were reported as never answered."""
    close: Close | None = None
    path: str = ""
    """Under which the process was to open it."""
    introduced: bool = False
    """Whether the process was told of it."""


class LiveAnalysis(Generic[Tape]):
    """The analysing process of one recording; `start` it in the event loop.

    Attributes:
        silences_unknown: whether a tape has ended, and nobody looked for replies on it that were
            never answered.

    Args:
        rules: the thresholds.
        observer: gets the reports.
        sharded: whether the tapes of one name are shards, which are read as one tape.
    """

    def __init__(
        self, rules: Settings, observer: LiveObserver[Tape], *, sharded: bool = False
    ) -> None:
        self._rules = rules
        self._sharded = sharded
        self._observer = observer
        self._tapes: dict[int, _Followed[Tape]] = {}
        self._keys: dict[Tape, int] = {}
        self._closed: deque[tuple[str | None, str, int]] = deque(maxlen=RECALLED_TAPES)
        """Name, path and number of exchanges of the tapes that were analysed to their end."""
        self._next_key = 1
        self._settled_ns = 0
        """All exchanges on shards that ended by then are known here."""
        self._settled_told_ns = 0
        """What the process knows of that."""
        self.silences_unknown = False
        self._timer: asyncio.TimerHandle | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._finishing = False
        self._owed: set[tuple[int, int]] = set()
        """What the process before has left: keys of tapes, with exchanges, or 0 for the close."""
        self._settled = False
        """Whether the process has reported all that, and more."""

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def _over(self) -> bool:
        return self._task is None or self._task.done()

    def ended(self, tape: Tape, number: int) -> None:
        """Have an exchange analysed whose end is on the tape."""
        if self._over:
            self._observer.analysed(tape, number, None)
            return
        followed = self._follow(tape)
        followed.waiting[number] = asyncio.get_running_loop().time()
        followed.ended += 1
        followed.unannounced += 1
        self._idle.clear()
        self._announce_soon()

    def _announce_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ANNOUNCE_S, self._announce)

    def _announce(self) -> None:
        """Tell the process what has ended."""
        self._timer = None
        for followed in self._tapes.values():
            if not followed.introduced:
                self._introduce(followed)
            elif followed.unannounced:
                self._send(Look(key=followed.key, ended=followed.unannounced))
                followed.unannounced = 0
        self._tell_settled()

    def settled(self, until_ns: int) -> None:
        """Have exchanges on shards judged, in the order of their ends, up to that time.

        Args:
            until_ns: all exchanges that ended by then were named to `ended`.
        """
        self._settled_ns = max(self._settled_ns, until_ns)
        if any(each.waiting for each in self._tapes.values()):
            self._announce_soon()

    def _tell_settled(self) -> None:
        if self._settled_told_ns < self._settled_ns:
            self._settled_told_ns = self._settled_ns
            self._send(Settled(until_ns=self._settled_ns))

    def close(self, tape: Tape, watch: TapeSummary) -> None:
        """Have the replies reported that were never answered on a tape that ends now."""
        key = self._keys.get(tape)
        if key is None:
            self.silences_unknown |= self._over
            return
        followed = self._tapes[key]
        followed.close = Close(
            key=key,
            until_ns=watch.until_ns,
            reason=watch.stop or "",
            exit_code=watch.exit_code,
        )
        self._idle.clear()
        if followed.introduced:
            self._announce()
            self._send(followed.close)

    def lag(self) -> AnalysisLag:
        """Return how far the process is behind."""
        waiting = [each.waiting for each in self._tapes.values() if each.waiting]
        if not waiting:
            return AnalysisLag(0, 0.0)
        oldest = min(next(iter(each.values())) for each in waiting)
        return AnalysisLag(
            sum(map(len, waiting)), max(0.0, asyncio.get_running_loop().time() - oldest)
        )

    async def finish(self) -> None:
        """Wait for the reports, at most `FINISH_S`, and not after `hurry`; then `stop`."""
        if self._task is None:
            return
        self._announce()
        hurry = asyncio.ensure_future(self._hurry.wait())
        idle = asyncio.ensure_future(self._idle.wait())
        await asyncio.wait(
            (hurry, idle, self._task), timeout=FINISH_S, return_when=asyncio.FIRST_COMPLETED
        )
        hurry.cancel()
        idle.cancel()
        await self.stop()
        self._give_up()

    async def stop(self) -> None:
        """End the process; harmless without a start, and twice."""
        task, self._task = self._task, None
        if task is None:
            return
        self._finishing = True
        if self._process is None:
            task.cancel()
        else:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await asyncio.wait((task,))

    def hurry(self) -> None:
        """Stop waiting for reports."""
        self._hurry.set()

    # The process.

    async def _run(self) -> None:
        clock = asyncio.get_running_loop()
        deaths = 0
        while deaths < MAX_STARTS:
            started_s = clock.time()
            problem = await self._serve()
            if self._finishing:
                return
            lived_long = not self._owed and clock.time() - started_s >= LONG_LIFE_S
            deaths = 1 if self._settled or lived_long else deaths + 1
            again = "starting it again" if deaths < MAX_STARTS else "deltatape check does it"
            self._observer.analysis_failed(
                f"the analysis of exchanges {problem}; recording goes on, {again}"
            )
        self._give_up()

    async def _serve(self) -> str:
        """Start the process and read from it to its end; return how it ended."""
        self._settled = False
        self._owed = {
            (followed.key, number)
            for followed in self._tapes.values()
            for number in (*followed.waiting, *((0,) if followed.close else ()))
        }
        try:
            # -P: no file of the working directory is imported. Its own session: Ctrl-C is ours.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "deltatape.live"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=MAX_MESSAGE,
            )
        except OSError as error:
            return f"could not start ({error.strerror or error})"
        self._process = process
        self._send(Begin.of(self._rules, sharded=self._sharded))
        if self._closed:
            self._send(Recall(tapes=[(name, path) for name, path, _ in self._closed]))
        for followed in tuple(self._tapes.values()):
            self._introduce(followed)
        self._settled_told_ns = 0
        self._tell_settled()
        assert process.stdout is not None
        try:
            while (line := await process.stdout.readline()).endswith(b"\n"):  # else it was killed
                self._take(decode(line))
        except (ValueError, ConnectionError) as error:  # longer than any message
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            return f"failed ({error})"
        finally:
            self._process = None
        return f"ended with exit code {await process.wait()}"

    def _introduce(self, followed: _Followed[Tape]) -> None:
        """Name an existing tape to the process, and what to report of it."""
        followed.introduced = not followed.tape.pending
        if not followed.introduced:
            if not self._over:
                self._announce_soon()
            return
        followed.path = followed.tape.path
        self._send(Follow(key=followed.key, path=followed.path, name=followed.tape.name))
        followed.unannounced = 0
        if followed.ended:
            self._send(Look(key=followed.key, ended=followed.ended))
        if followed.close is not None:
            self._send(followed.close)

    def _send(self, message: Message) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(encode(message))

    # Reports.

    def _follow(self, tape: Tape) -> _Followed[Tape]:
        key = self._keys.get(tape)
        if key is None:
            key = self._keys[tape] = self._next_key
            self._next_key += 1
            self._tapes[key] = _Followed(key, tape)
            self._introduce(self._tapes[key])
        return self._tapes[key]

    def _take(self, message: Message) -> None:
        match message:
            case SilenceReport(key=key, number=number) if key in self._tapes:
                followed = self._tapes[key]
                if number not in followed.silent:
                    followed.silent.add(number)
                    self._observer.silent(followed.tape, message)
            case ExchangeReport(key=key, number=number) if key in self._tapes:
                followed = self._tapes[key]
                if number in followed.waiting:  # else the process before has reported it
                    del followed.waiting[number]
                    self._owed.discard((key, number))
                    self._settled = self._settled or not self._owed
                    self._observer.analysed(followed.tape, number, message)
            case Closed(key=key) if key in self._tapes:
                self._tapes[key].close = None
                self._remember(self._tapes[key])
                self._forget(self._tapes[key])
            case Unreadable(key=key) if self._was_renamed(key):
                self._introduce(self._tapes[key])
            case Unreadable(key=key, problem=problem) if key in self._tapes:
                self._observer.analysis_failed(f"not analysed: {problem}")
                self._forget(self._tapes[key])
            case _:
                pass
        if not any(each.waiting or each.close for each in self._tapes.values()):
            self._idle.set()

    def _was_renamed(self, key: int) -> bool:
        """Check whether a tape has another name than the process was told."""
        followed = self._tapes.get(key)
        return followed is not None and followed.path != followed.tape.path

    def _forget(self, followed: _Followed[Tape]) -> None:
        """Drop a tape, with exchanges that were lost on it."""
        self.silences_unknown |= followed.close is not None
        del self._tapes[followed.key]
        del self._keys[followed.tape]
        self._owed -= {(followed.key, number) for number in (0, *followed.waiting)}
        for number in sorted(followed.waiting):
            self._observer.analysed(followed.tape, number, None)

    def _remember(self, closed: _Followed[Tape]) -> None:
        """Remember a closed tape, and forget those of its name that are too old."""
        name, newer = closed.tape.name, closed.ended
        kept = [(name, closed.tape.path, closed.ended)]
        for each in reversed(self._closed):
            if each[0] != name:
                kept.append(each)
            elif newer < RECALLED_EXCHANGES:
                kept.append(each)
                newer += each[2]
        self._closed = deque(reversed(kept), maxlen=RECALLED_TAPES)

    def _give_up(self) -> None:
        """Report what is waiting as not analysed."""
        for followed in tuple(self._tapes.values()):
            self._forget(followed)
        self._idle.set()
