"""What is recorded by mitmproxy, for the session of `record`: see `record.recording`."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from deltatape.gateway.routes import Routes
from deltatape.http1.listener import Address
from deltatape.live.client import LiveAnalysis
from deltatape.mitm.environment import mitmproxy_environment
from deltatape.mitm.ipc import AnyMessage, FirstClient, Log, LogEnd, Passed, PinAround, Released
from deltatape.mitm.mitmdump import END_S, Mitmdump, MitmOptions, Started
from deltatape.model.recording_counts import NOTHING_RECORDED, RecordingCounts
from deltatape.model.tape_summary import TapeSummary
from deltatape.record.recording import NOT_BOUND, Listening, RecordingObserver
from deltatape.record.worker_messages import (
    Closing,
    Counted,
    Drained,
    Ended,
    Hurry,
    Parsed,
    Pinned,
    Said,
    Taped,
    Taping,
)

LOST = "mitmproxy ended by itself (code {}); what it had written is on the tape"


class MitmTape:
    """A tape that the addon writes; see `live.client.LiveTape`."""

    pending = False

    def __init__(self, key: int, path: str, name: str | None) -> None:
        self.key = key
        self.path = path
        self.name = name


class MitmRecording:
    """A mitmproxy with the addon; see `record.recording.RecordingPart`.

    Attributes:
        passed: the hosts whose traffic passed undecrypted and untaped.
        connected: whether an app has connected, to whatever host.

    Args:
        options: the options of mitmproxy.
        observer: gets what there is to say.
        analysis: reads the tapes.
        environment: the environment of mitmproxy.
        grace_s: how long streams may go on at the end.
    """

    def __init__(
        self,
        options: MitmOptions,
        observer: RecordingObserver,
        analysis: "LiveAnalysis[MitmTape]",
        environment: Mapping[str, str],
        grace_s: float,
    ) -> None:
        self.passed: list[str] = []
        self.connected = False
        self._options = options
        self._observer = observer
        self._analysis = analysis
        self._environment = environment
        self._grace_s = grace_s
        self._files = contextlib.ExitStack()
        self._mitmdump: Mitmdump | None = None
        self._started: Started | None = None
        self._counts = NOTHING_RECORDED
        self._tapes: dict[int, MitmTape] = {}
        self._pins: dict[int, Callable[[], None]] = {}
        self._tickets = 0
        self._stopping = False
        self._drained = asyncio.Event()

    @property
    def started(self) -> Started:
        """Return the mitmproxy that listens."""
        assert self._started is not None
        return self._started

    @property
    def tapes(self) -> tuple[str, ...]:
        return tuple(self._counts.tapes[:1]) or (self.started.tape,)

    @property
    def addresses(self) -> tuple[Address, ...]:
        parts = urlsplit(self.started.url)
        return (Address(host=parts.hostname or "", port=parts.port or 0),)

    def counts(self) -> RecordingCounts:
        return self._counts

    async def start(self, routes: Routes, inherited: Listening = NOT_BOUND) -> None:  # noqa: ARG002 - apps name their provider, mitmproxy listens itself
        self._analysis.start()
        variables = self._files.enter_context(
            mitmproxy_environment(self._options, self._environment)
        )
        self._mitmdump = Mitmdump(self._take, self._observer.remark)
        self._started = await self._mitmdump.start(self._options, variables)

    def _take(self, message: AnyMessage) -> None:
        match message:
            case FirstClient():
                self.connected = True
            case Passed(host=host):
                self.passed.append(host)
            case Taped(key=key, path=path, name=name):
                self._tapes.setdefault(key, MitmTape(key, path, name)).path = path
            case Ended(key=key, numbers=numbers):
                for number in numbers:
                    self._analysis.ended(self._tapes[key], number)
            case Closing(key=key):
                watch = TapeSummary(
                    until_ns=message.until_ns, stop=message.reason, exit_code=message.exit_code
                )
                tape = self._tapes[key] if self._stopping else self._tapes.pop(key)
                self._analysis.close(tape, watch)
            case Counted(counts=counts):
                self._counts = RecordingCounts(*counts)  # type: ignore[arg-type]
            case Said(text=text, how="alarm"):
                self._observer.alarm(text)
            case Said(text=text, how="lasting_alarm"):
                self._observer.lasting_alarm(text)
            case Said(text=text):
                self._observer.remark(text)
            case Taping(works=works):
                self._observer.taping(works=works)
            case Drained():
                self._drained.set()
            case Pinned(ticket=ticket):
                self._pins.pop(ticket)()
            case _:
                pass

    # What the session asks for.

    def _send(self, message: Log | LogEnd | PinAround | Parsed | Released | Hurry) -> None:
        if self._mitmdump is not None:
            self._mitmdump.send(message)

    def finding(self, tape: MitmTape, end_ns: int | None, then: Callable[[], None]) -> None:
        self._tickets += 1
        self._pins[self._tickets] = then
        self._send(PinAround(ticket=self._tickets, key=tape.key, end_ns=end_ns))

    def parsed(self, tape: MitmTape, number: int, parsed: Mapping[str, object]) -> None:
        self._send(Parsed(key=tape.key, number=number, parsed=parsed))

    def log(self, stream: str, data: bytes, left_out: int) -> None:
        """Put a command's output on the tape; `stream` is a `LogStream`."""
        self._send(Log.of(stream, data, left_out))

    def log_end(self) -> None:
        """Record that the command has closed its output."""
        self._send(LogEnd())

    # The end.

    def listening(self) -> Listening:
        return NOT_BOUND

    async def drain(self, timeout_s: float) -> None:
        raise AssertionError(timeout_s)  # nothing takes the place of mitmproxy

    def hurry(self) -> None:
        self._analysis.hurry()
        self._send(Hurry())

    async def failed(self) -> None:
        assert self._mitmdump is not None
        await self._mitmdump.gone()

    async def stop(self, reason: str, code: int | None) -> None:
        mitmdump = self._mitmdump
        assert mitmdump is not None
        self._stopping = True
        mitmdump.stop(reason, code, self._grace_s)
        loop = asyncio.get_running_loop()
        ends = (loop.create_task(self._drained.wait()), loop.create_task(mitmdump.gone()))
        await asyncio.wait(ends, timeout=self._grace_s + END_S, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        if not self._drained.is_set():
            for tape in self._tapes.values():
                self._analysis.close(tape, TapeSummary(until_ns=0))
        await self._analysis.finish()
        self._send(Released())
        ended = await mitmdump.ended(0.0)
        if not ended.in_order:
            self._observer.alarm(LOST.format(ended.code))
        for then in self._pins.values():  # nobody pins any more
            then()

    async def close(self) -> None:
        if self._mitmdump is not None:
            await self._mitmdump.kill()
        self._files.close()

    def discard(self) -> None:
        pass  # mitmproxy makes a tape once it listens
