"""`record --workers N`: several processes share the port, and record as one.

Data flow: the system gives each connection to one of the workers, which records on its own tapes
(`worker`), and reports each ended exchange to this process. This process has the only analysis,
since the requests of a conversation can reach any worker, and the user interface: `Session` uses
`Workers` like a `Recording` in its own process.

A worker that dies is reported and replaced; the streams of the others continue.
"""

import asyncio
import contextlib
import itertools
import os
import pickle
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from deltatape.child.background import start_module
from deltatape.errors import UsageError
from deltatape.gateway.routes import Refusal, Routes
from deltatape.http1.listener import Address, Bound, bind, close_all, duplicates
from deltatape.live.client import MAX_MESSAGE, LiveAnalysis
from deltatape.live.messages import LAG_NS
from deltatape.model.recording_counts import NOTHING_RECORDED, RecordingCounts
from deltatape.model.tape_summary import TapeSummary
from deltatape.record.recording import (
    NOT_BOUND,
    RecordingObserver,
    RecordOptions,
    RunEnvironment,
)
from deltatape.record.recording import Listening as Sockets
from deltatape.record.worker_messages import (
    Closing,
    ConnectionsClosed,
    Counted,
    Drain,
    Drained,
    Ended,
    Failed,
    FromWorker,
    Hurry,
    Listening,
    Parsed,
    Pin,
    Pinned,
    Refused,
    Report,
    Said,
    Start,
    Stop,
    Taped,
    Taping,
    ToWorker,
    decode,
    encode,
)
from deltatape.store.names import ulid
from deltatape.store.writer import ShardOrigin
from deltatape.tape.fields import MAX_INT

MAX_STARTS = 3
"""How many workers in a row may die in one place before they listen."""
ASK_S = LAG_NS / 1e9
"""How often to ask workers what has ended, while exchanges wait for that."""
PATIENCE_S = 30.0
"""How long a worker may take to end its tapes."""
_BATCH = 512
"""How many numbers are written at once: so few that a pipe takes all or none."""
_LENGTH = 8


@dataclass(slots=True, eq=False)
class WorkerTape:
    """A tape that a worker writes; see `live.client.LiveTape`."""

    worker: "_Worker"
    key: int
    path: str
    name: str | None
    pending: bool = False


@dataclass(slots=True, eq=False)
class _Worker:
    """One process."""

    index: int
    process: asyncio.subprocess.Process
    tape: str = ""
    """The path of its main tape, once it listens."""
    tapes: dict[int, WorkerTape] = field(default_factory=dict)
    counts: RecordingCounts = NOTHING_RECORDED
    quiet: bool = False
    """Whether it has no connection any more, as was asked for."""
    drained: bool = False
    until_ns: int = 0
    """It has told of all exchanges that ended by then, since the beginning of the run."""
    ended: bool = False
    """Whether it has told of one since it last said so."""
    gone: bool = False
    works: bool = True
    """Whether it can tape everything."""
    failed: str = ""
    """Why it could not start."""

    def send(self, message: ToWorker) -> None:
        stdin = self.process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(encode(message))


class NumberPipe:
    """Gives numbers from 1 to any process that reads 8 bytes from `reader`, each number once.

    Nobody waits for another, and one that is killed takes a number at most.
    """

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)
        self._next = 1
        self._fill()
        asyncio.get_running_loop().add_writer(self._writer, self._fill)

    def _fill(self) -> None:
        while True:
            numbers = range(self._next, self._next + _BATCH)
            try:
                os.write(self._writer, b"".join(each.to_bytes(_LENGTH) for each in numbers))
            except BlockingIOError:
                return
            self._next += _BATCH

    def close(self) -> None:
        asyncio.get_running_loop().remove_writer(self._writer)
        os.close(self._writer)
        os.close(self.reader)


class Workers:
    """The processes of a run; see `recording.RecordingPart`."""

    def __init__(
        self,
        options: RecordOptions,
        around: RunEnvironment,
        observer: RecordingObserver,
        analysis: LiveAnalysis[WorkerTape],
    ) -> None:
        self._options = options
        self._around = around
        self._observer = observer
        self._analysis = analysis
        self._bound: dict[str, list[Bound]] = {}
        """The sockets of workers, by the address of the option: they outlive a worker."""
        self._addresses: list[Address] = []
        self._numbers: NumberPipe | None = None
        clock = around.clock
        self._origin = ShardOrigin(
            recording=ulid(clock),
            index=1,
            count=options.workers,
            zero_ns=clock.now_ns(),
            wall_ns=clock.wall_ns(),
        )
        self._start: Start | None = None
        self._workers: dict[int, _Worker] = {}
        self._past: list[RecordingCounts] = []
        """The counts of workers that have died."""
        self._tasks: list[asyncio.Task[None]] = []
        self._news = asyncio.Event()
        """Set when something has come from a worker, or one has ended."""
        self._draining = False
        self._stopping = False
        self._asking: asyncio.TimerHandle | None = None
        self._needed_ns = 0
        """Until when the others have to tell, too, before the latest exchanges are judged."""
        self._closings: list[tuple[WorkerTape, TapeSummary]] = []
        self._tickets = 0
        self._pins: dict[int, tuple[set[_Worker], Callable[[], None]]] = {}

    @property
    def tapes(self) -> tuple[str, ...]:
        return tuple(self._workers[index].tape for index in sorted(self._workers))

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(self._addresses)

    def counts(self) -> RecordingCounts:
        now = [worker.counts for worker in self._workers.values()]
        every = [*(each._replace(active=0, tapes=()) for each in self._past), *now]
        return RecordingCounts(
            exchanges=sum(each.exchanges for each in every),
            active=sum(each.active for each in every),
            refused=sum(each.refused for each in every),
            clients=sum(each.clients for each in every),
            lost_records=sum(each.lost_records for each in every),
            lost_bytes=sum(each.lost_bytes for each in every),
            tapes=tuple(path for each in every for path in each.tapes),
            request_bytes=sum(each.request_bytes for each in every),
            response_bytes=sum(each.response_bytes for each in every),
        )

    # Starting.

    async def start(self, routes: Routes, inherited: Sockets = NOT_BOUND) -> None:
        self._analysis.start()
        options = self._options
        await self._bind(options.listen, inherited)
        if options.app is not None:
            await self._bind(options.app_listen, inherited)
        self._numbers = NumberPipe()
        self._start = Start(
            options=options,
            routes=routes,
            environment=self._around.environment,
            folder=str(self._around.folder),
            mask_key=self._around.mask_key,
            origin=self._origin,
            numbers=self._numbers.reader,
            sockets={},
        )
        for index in range(1, options.workers + 1):
            task = asyncio.get_running_loop().create_task(self._keep(index))
            task.add_done_callback(lambda _: self._news.set())
            self._tasks.append(task)
        await self._until(self._is_decided)
        for worker in self._workers.values():
            if worker.gone:
                raise UsageError(worker.failed or "the workers of --workers ended at their start")

    def _is_decided(self) -> bool:
        """Check whether each worker listens, or has given up."""
        workers = self._workers.values()
        return len(workers) == self._options.workers and all(
            each.tape or (each.gone and self._tasks[each.index - 1].done()) for each in workers
        )

    async def _until(self, happened: Callable[[], object]) -> None:
        while not happened():
            self._news.clear()
            await self._news.wait()

    async def _bind(self, address: Address, inherited: Sockets) -> None:
        """Bind the sockets on which workers are to listen."""
        known = inherited.get(str(address), ())
        bound = [duplicates(each) for each in known] or await bind(address, self._options.workers)
        self._bound[str(address)] = bound
        self._addresses.append(Address(*bound[0][0].getsockname()[:2]))

    def _sockets_of(self, index: int) -> dict[str, tuple[int, ...]]:
        """Return the descriptors on which a worker listens.

        Where the sockets were made for another number of workers, some have several, or share one.
        """
        found: dict[str, tuple[int, ...]] = {}
        for address, groups in self._bound.items():
            own = groups[index - 1 :: self._options.workers] or (groups[(index - 1) % len(groups)],)
            found[address] = tuple(each.fileno() for group in own for each in group)
        return found

    # The processes.

    async def _keep(self, index: int) -> None:
        """Keep a worker running in one place."""
        deaths = 0
        while deaths < MAX_STARTS:
            worker = await self._spawn(index)
            try:
                await self._listen_to(worker)
            finally:
                if worker.process.stdin is not None:
                    worker.process.stdin.close()
            code = await worker.process.wait()
            self._gone(worker)
            if self._is_over(worker):
                return
            deaths = 0 if worker.tape else deaths + 1
            last = deaths >= MAX_STARTS
            say = self._observer.lasting_alarm if last else self._observer.alarm
            say(
                f"worker {index} {_how_ended(code)}, and its streams with it; "
                + ("it is not started again" if last else "another one takes its place")
            )
        self._abandon(index)

    def _abandon(self, index: int) -> None:
        """Have the others get the connections of a worker that is not started again."""
        for groups in self._bound.values():
            if len(groups) >= self._options.workers:
                close_all(groups[index - 1 :: self._options.workers])

    def _is_over(self, worker: _Worker) -> bool:
        """Check whether none is to follow one that has ended."""
        return self._stopping or self._draining or bool(worker.failed)

    async def _spawn(self, index: int) -> _Worker:
        assert self._start is not None
        sockets = self._sockets_of(index)
        process = await start_module(
            "deltatape.record",
            pass_fds=(self._start.numbers, *itertools.chain.from_iterable(sockets.values())),
            limit=MAX_MESSAGE,
        )
        worker = self._workers[index] = _Worker(index, process)
        origin = replace(self._origin, index=index)
        start = pickle.dumps(replace(self._start, origin=origin, sockets=sockets))
        assert process.stdin is not None
        process.stdin.write(len(start).to_bytes(_LENGTH) + start)
        return worker

    async def _listen_to(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        with contextlib.suppress(ConnectionError):
            while (line := await worker.process.stdout.readline()).endswith(b"\n"):
                message = decode(line)
                self._take(worker, message)  # type: ignore[arg-type]
                self._news.set()

    def _take(self, worker: _Worker, message: FromWorker) -> None:
        match message:
            case Listening(tape=tape):
                worker.tape = tape
            case Failed(problem=problem):
                worker.failed = problem
            case Taped(key=key, path=path, name=name):
                known = worker.tapes.setdefault(key, WorkerTape(worker, key, path, name))
                known.path = path
            case Ended(key=key, numbers=numbers):
                worker.ended = True
                for number in numbers:
                    self._analysis.ended(worker.tapes[key], number)
            case Closing(key=key, until_ns=until_ns, reason=reason):
                watch = TapeSummary(until_ns=until_ns, stop=reason)
                if self._stopping:  # what ends on other tapes may answer what is on this one
                    self._closings.append((worker.tapes[key], watch))
                else:
                    self._analysis.close(worker.tapes.pop(key), watch)
            case Refused(status=status, code=code, message=text):
                self._observer.refused(Refusal(status, code, text))
            case Said(text=text, how="alarm"):
                self._observer.alarm(text)
            case Said(text=text, how="lasting_alarm"):
                self._observer.lasting_alarm(text)
            case Said(text=text):
                self._observer.remark(text)
            case Taping(works=works):
                worker.works = works
                living = (each for each in self._workers.values() if not each.gone)
                self._observer.taping(works=all(each.works for each in living))
            case Counted(counts=counts, until_ns=until_ns):
                worker.counts = RecordingCounts(*counts)  # type: ignore[arg-type]
                worker.until_ns = until_ns
                if worker.ended:
                    worker.ended = False
                    self._needed_ns = max(self._needed_ns, until_ns + LAG_NS)
                self._settle()
            case ConnectionsClosed():
                worker.quiet = True
            case Drained():
                worker.drained = True
                self._settle()
            case Pinned(ticket=ticket):
                self._answered(ticket, worker)

    def _settle(self) -> None:
        """Have the exchanges judged that ended before all workers had told of theirs.

        An app's next request may come to a worker that tells of it before the one that has just
        brought the answer.
        """
        telling = [each for each in self._workers.values() if self._lives(each)]
        self._analysis.settled(min((each.until_ns for each in telling), default=MAX_INT))
        late = [each for each in telling if each.until_ns < self._needed_ns]
        if late and self._asking is None:
            self._asking = asyncio.get_running_loop().call_later(ASK_S, self._ask)

    def _ask(self) -> None:
        """Have all workers tell what has ended."""
        self._asking = None
        for worker in self._workers.values():
            if self._lives(worker):
                worker.send(Report())

    @staticmethod
    def _lives(worker: _Worker) -> bool:
        """Check whether a worker may still tell of exchanges that have ended."""
        return not worker.drained and not worker.gone

    def _gone(self, worker: _Worker) -> None:
        """Handle the end of a worker: what has ended on its tapes is still reported."""
        self._past.append(worker.counts)
        worker.counts = NOTHING_RECORDED
        worker.gone = True
        if not worker.drained:
            for tape in worker.tapes.values():
                self._analysis.close(tape, TapeSummary(until_ns=0))
        for ticket in tuple(self._pins):
            self._answered(ticket, worker)
        self._settle()
        self._news.set()

    # What the session asks for.

    def finding(self, tape: WorkerTape, end_ns: int | None, then: Callable[[], None]) -> None:  # noqa: ARG002 - all tapes count from the same instant
        clock = self._around.clock
        now_ns = clock.now_ns() - self._origin.zero_ns
        ago_ns = now_ns - end_ns if end_ns is not None else 0
        self._tickets += 1
        asked = {worker for worker in self._workers.values() if not worker.gone}
        self._pins[self._tickets] = (asked, then)
        for worker in asked:
            worker.send(Pin(ticket=self._tickets, wall_ns=clock.wall_ns() - ago_ns))

    def _answered(self, ticket: int, worker: _Worker) -> None:
        asked, then = self._pins.get(ticket, (set(), None))
        asked.discard(worker)
        if then is not None and not asked:
            del self._pins[ticket]
            then()

    def parsed(self, tape: WorkerTape, number: int, parsed: Mapping[str, object]) -> None:
        tape.worker.send(Parsed(key=tape.key, number=number, parsed=parsed))

    def listening(self) -> Sockets:
        return {
            address: [duplicates(each) for each in groups]
            for address, groups in self._bound.items()
        }

    async def drain(self, timeout_s: float) -> None:
        self._draining = True
        self._unbind()
        living = [each for each in self._workers.values() if not each.gone]
        for worker in living:
            worker.send(Drain(timeout_s=timeout_s))
        await self._until(lambda: all(each.quiet or each.gone for each in living))

    def _unbind(self) -> None:
        for groups in self._bound.values():
            close_all(groups)
        self._bound.clear()

    def hurry(self) -> None:
        self._analysis.hurry()
        for worker in self._workers.values():
            worker.send(Hurry())

    async def failed(self) -> None:
        await asyncio.wait(self._tasks)

    async def stop(self, reason: str, code: int | None) -> None:  # noqa: ARG002 - there is no command
        self._stopping = True
        living = [each for each in self._workers.values() if not each.gone]
        for worker in living:
            worker.send(Stop(reason=reason))
        await self._at_most(lambda: all(each.drained or each.gone for each in living))
        for tape, watch in self._closings:
            self._analysis.close(tape, watch)
        await self._analysis.finish()
        for worker in living:
            if worker.process.stdin is not None:
                worker.process.stdin.close()
        await self._at_most(lambda: all(task.done() for task in self._tasks))

    async def _at_most(self, happened: Callable[[], object]) -> None:
        """Wait for workers, as long as they may need."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until(happened), self._options.grace_s + PATIENCE_S)

    async def close(self) -> None:
        """End the remaining workers."""
        self._stopping = True
        for worker in self._workers.values():
            if not worker.gone:
                with contextlib.suppress(ProcessLookupError):
                    worker.process.kill()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._unbind()
        if self._numbers is not None:
            self._numbers.close()
            self._numbers = None

    def discard(self) -> None:
        """Delete the tapes of workers that listened, in vain."""
        for path in self.tapes:
            if path:
                Path(path).unlink(missing_ok=True)


def _how_ended(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
