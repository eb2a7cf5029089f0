"""The recording of one process: its listeners, its tapes, and the ring that deletes old ones.

Data flow: a `Gateway` takes a client's request and sends it upstream over a `Connector`; the
`Recorder` writes request and response to a tape of the `TapeBook` and has them analysed. `Session`
has one `Recording` in its own process, or several in processes of `workers`.
"""

import asyncio
import itertools
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from deltatape.child.screen import Screen
from deltatape.clock import Clock, file_stamp
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.gateway.dial import Connector
from deltatape.gateway.gateway import Gateway, TapPolicy, stop_recording
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.recorder import Analysis, Recorder, RecorderObserver, RecorderOptions
from deltatape.gateway.routes import Routes, Upstream
from deltatape.gateway.tapes import OpenTape, RingRecording, TapeBook
from deltatape.http1.listener import Address, Bound
from deltatape.http1.socket import keep_freed_memory
from deltatape.model.exchange import Tap
from deltatape.model.recording_counts import RecordingCounts
from deltatape.model.rule_settings import Settings
from deltatape.store.ring import RetentionPolicy, SegmentRing
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import ShardOrigin, TapeWriter
from deltatape.tape.mask import Masker


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """All settings of a run.

    Attributes:
        listen: where the gateway listens.
        workers: how many processes share that port.
        upstreams: the user's own.
        to: the folder for tapes.
        app: the application's own endpoint, to be tapped at `app_listen`.
        token: requests must have it if other machines can reach the gateway.
        check_keys: refuse a key of one provider that is about to go to another.
        outbound: how upstreams are reached.
        grace_s: how long streams may go on at the end.
        replace: take the place of the recorder that listens there, and give it to the next.
        drain_timeout_s: how long streams may go on when another one has taken the place.
        durable: sync the tape after each exchange.
        bodies: tape the bodies of requests.
        keep: the budget of the ring of segments; None keeps everything.
        seal: seal the finished tapes of the folder.
        on_finding: a command for exchanges with findings.
        ready_file: written when the gateway listens.
        control: the address for health, status and metrics.
        otlp: the collector that metrics are pushed to, "" for that of the environment; None: none.
        command: the application to run; empty to wait for a signal.
        log: tee what it prints onto the tape.
        tunnel: watch what it reaches past the gateway.
        rules: the thresholds for findings.
        page: show what is recorded on a page.
    """

    listen: Address
    workers: int
    upstreams: tuple[Upstream, ...]
    to: Path
    app: Upstream | None
    app_listen: Address
    token: str | None
    check_keys: bool
    outbound: OutboundSettings
    grace_s: float
    durable: bool
    bodies: bool
    keep: RetentionPolicy | None
    on_finding: str | None
    ready_file: Path | None
    control: Address | None
    command: tuple[str, ...]
    log: bool
    tunnel: bool
    rules: Settings
    page: bool = False
    otlp: str | None = None
    replace: bool = False
    seal: bool = False
    drain_timeout_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """The process environment of a run."""

    environment: Mapping[str, str]
    folder: Path
    """The working directory."""
    clock: Clock
    mask_key: bytes
    tell: Callable[[str], None]
    screen: Screen = field(default_factory=Screen)
    """Where lines are printed, and a command's output."""


Listening = Mapping[str, Sequence[Bound]]
"""The sockets of listeners, by the address for which they were bound."""
NOT_BOUND: Listening = MappingProxyType({})


class RecordingPart(Protocol):
    """The interface of `Recording` and `Workers` for a session."""

    @property
    def tapes(self) -> tuple[str, ...]:
        """The paths of the main tapes."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where the gateway listens, and with `app` the tap in front of it."""

    def counts(self) -> RecordingCounts: ...

    async def start(self, routes: Routes, inherited: Listening = NOT_BOUND) -> None:
        """Listen, and record what comes, and have it analysed.

        Args:
            routes: where requests go.
            inherited: sockets that are bound already.

        Raises:
            UsageError: an address is not available.
        """

    def listening(self) -> Listening:
        """Return copies of the sockets on which it listens, for another process."""

    async def drain(self, timeout_s: float) -> None:
        """Accept no more connections, and wait for those that are open; then cut the streams."""

    def finding(self, tape: Any, end_ns: int | None, then: Callable[[], None]) -> None:
        """Keep what was taped around an exchange with findings; call `then` afterwards.

        Args:
            tape: the tape that it is on.
            end_ns: when it ended, as the tape counts.
            then: called when the tapes have their names.
        """

    def parsed(self, tape: Any, number: int, parsed: Mapping[str, object]) -> None:
        """Record what was parsed of an exchange: the payload of a `parsed` record."""

    def hurry(self) -> None:
        """Stop waiting for streams and their analysis."""

    async def failed(self) -> None:
        """Wait until nothing can be recorded any more; usually that never happens."""

    async def stop(self, reason: str, code: int | None) -> None:
        """Stop accepting, wait for streams, and end the tapes once they are analysed."""

    async def close(self) -> None:
        """Release what is left, after the recording or instead of it; harmless twice."""

    def discard(self) -> None:
        """Delete empty tapes if listening failed: one would be the latest tape."""


class RecordingObserver(RecorderObserver, Protocol):
    """Receives the reports of a recording, on the event loop's thread."""

    def lasting_alarm(self, problem: str) -> None:
        """Taping has a problem that lasts; may be called from another thread."""

    def remark(self, text: str) -> None:
        """Something else that a user should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What makes a recording one of several that share a port."""

    origin: ShardOrigin
    number: Callable[[], int]
    """Gives the number of an exchange."""


class Recording:
    """One process's part of a run, usually all of it."""

    def __init__(
        self,
        options: RecordOptions,
        around: RunEnvironment,
        observer: RecordingObserver,
        analysis: Analysis | None,
        *,
        shared: Shared | None = None,
        label: str = "",
    ) -> None:
        """Prepare; see `start`.

        Args:
            options: the options of the run.
            around: the process.
            observer: gets what there is to say.
            analysis: reads the tapes; None: nobody does.
            shared: others record, too, on the same port.
            label: what is recorded, for the names of tapes.
        """
        self._options = options
        clock = self._clock = around.clock
        self._observer = observer
        self._shared = shared
        self._label = label
        self.masker = Masker(around.mask_key)
        self._ring = (
            SegmentRing(
                options.to,
                options.keep,
                clock,
                observer.lasting_alarm,
                observer.remark,
                writers=options.workers,
            )
            if options.keep
            else None
        )
        self.book = TapeBook(self._create, self.masker)
        self.recorder = Recorder(
            self.book,
            self.masker,
            clock,
            observer,
            RecorderOptions(durable=options.durable, bodies=options.bodies),
            analysis,
            shared.number if shared is not None else None,
        )
        self.dialler = Connector(options.outbound, clock)
        self.taps: list[Gateway] = []
        self._flight: RingRecording | None = None
        # What is known before any request must be on no tape.
        dotenv = read_dotenv(around.folder, around.environment)
        for secret in known_secrets(around.environment, dotenv):
            self.masker.learn(secret)
        if options.token is not None:
            self.masker.learn(options.token.encode())

    def _create(self, name: str | None, thread: WriterThread) -> TapeWriter:
        origin = self._shared.origin if self._shared is not None else None
        stem = name or "-".join(filter(None, (file_stamp(self._clock.wall_ns()), self._label)))
        if origin is not None and name is None:
            stem += f"-w{origin.index}"
        return TapeWriter.create(
            self._options.to,
            self._ring.stem(stem) if self._ring else stem,
            clock=self._clock,
            alarm=self._observer.alarm,
            thread=thread,
            origin=origin,
            name=name,
        )

    @property
    def tapes(self) -> tuple[str, ...]:
        return (self.book.current.path,)

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(tap.listener.address for tap in self.taps)

    def counts(self) -> RecordingCounts:
        records, size = self.book.losses()
        counts = self.recorder.counts
        return RecordingCounts(
            exchanges=counts.exchanges,
            active=len(self.recorder.active),
            refused=counts.refused,
            clients=counts.clients,
            lost_records=records,
            lost_bytes=size,
            tapes=tuple(tape.path for tape in self.book.all()),
            request_bytes=counts.request_bytes,
            response_bytes=counts.response_bytes,
        )

    @property
    def user_agents(self) -> Collection[str]:
        """The `User-Agent` of the requests so far."""
        return self.taps[0].user_agents if self.taps else ()

    # From the beginning to the end.

    async def start(self, routes: Routes, inherited: Listening = NOT_BOUND) -> None:
        keep_freed_memory()
        self.recorder.start()
        options = self._options

        def bound(address: Address) -> tuple[socket.socket, ...]:
            return tuple(itertools.chain.from_iterable(inherited.get(str(address), ())))

        policy = TapPolicy(token=options.token, check_keys=options.check_keys)
        gateway = Gateway(self.recorder, routes, self.dialler.dial, policy)
        await gateway.start(options.listen, bound(options.listen))
        self.taps.append(gateway)
        if options.app is not None:
            policy = TapPolicy(token=options.token, check_keys=False, side=Tap.APP)
            tap = Gateway(self.recorder, Routes((options.app,)), self.dialler.dial, policy)
            await tap.start(options.app_listen, bound(options.app_listen))
            self.taps.append(tap)
            tap.refuse_loops(gateway.listener.address)
            gateway.refuse_loops(tap.listener.address)
        if self._ring is not None:
            self._flight = RingRecording(self._ring, self.book)
            self._flight.start()

    def listening(self) -> Listening:
        addresses = (self._options.listen, self._options.app_listen)
        return {
            str(address): [tap.listener.sockets]
            for address, tap in zip(addresses, self.taps, strict=False)
        }

    async def drain(self, timeout_s: float) -> None:
        draining = [asyncio.ensure_future(tap.drain()) for tap in self.taps]
        try:
            await asyncio.wait(draining, timeout=timeout_s)
        finally:
            for each in draining:
                each.cancel()
        await self.recorder.drain(0.0)

    def finding(self, tape: OpenTape, end_ns: int | None, then: Callable[[], None]) -> None:
        # By the wall clock, since the report is later.
        ago_ns = tape.writer.now_ns() - end_ns if end_ns is not None else 0
        self.pin(self._clock.wall_ns() - ago_ns, then)

    def pin(self, wall_ns: int, then: Callable[[], None]) -> None:
        """Keep what was taped around that time; call `then` afterwards."""
        if self._flight is not None:
            self._flight.finding(wall_ns, then)
        else:
            then()

    def parsed(self, tape: OpenTape, number: int, parsed: Mapping[str, object]) -> None:
        self.book.parsed(tape, number, parsed)

    def hurry(self) -> None:
        self.recorder.hurry()

    async def failed(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def stop(self, reason: str, code: int | None) -> None:
        await stop_recording(self.recorder, self.taps, reason, code, grace_s=self._options.grace_s)

    async def close(self) -> None:
        if self._flight is not None:
            await self._flight.stop()

    def discard(self) -> None:
        for tap in self.taps:
            tap.close()
        if not self.recorder.counts.clients:
            self.book.stop("failed", None)
            for tape in self.book.all():
                if tape.writer.path is not None:
                    tape.writer.path.unlink(missing_ok=True)
