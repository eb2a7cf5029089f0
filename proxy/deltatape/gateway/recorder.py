"""The state that all listeners of a run share: tapes and numbers.

A run has one `Recorder`, whatever it listens to: the gateway in front of providers and the tap in
front of the application's own endpoint write to the same tapes. Standard library only: mitmproxy's
addon uses it, too.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from deltatape.clock import Clock
from deltatape.gateway.routes import Refusal
from deltatape.gateway.tapes import OpenTape, TapeBook
from deltatape.gateway.taping_guard import GuardedTaping, Writer
from deltatape.model.exchange import EndReason, Tap
from deltatape.model.tape_summary import TapeSummary
from deltatape.model.websocket import Side
from deltatape.store.names import ulid
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.tap import ExchangeTap

if TYPE_CHECKING:
    from deltatape.http1.head import Fields, ParsedResponseHead

IDLE_NS = 5_000_000_000
"""How often silence is noted as still being watched."""
MAX_NOTED = 1000
"""How many refusals of a run are noted on the tape."""


class RecordedExchange(GuardedTaping):
    """Writes one exchange of a `Recorder`: what the gateway and mitmproxy write alike."""

    def __init__(
        self,
        serial: int,
        ident: str,
        tape: OpenTape,
        tap: ExchangeTap,
        alarm: Callable[[str], None],
        *,
        number: int,
        side: Tap = Tap.PROVIDER,
        bodies: bool = True,
        times: Writer | None = None,
    ) -> None:
        """Write an exchange.

        Args:
            serial: its number in the run.
            ident: its ULID.
            tape: the tape.
            tap: encodes its records.
            alarm: gets a line for trouble.
            number: its number on its tape.
            side: the side of the application.
            bodies: whether to tape request bodies, too.
            times: tells the time of each record; None: the present.
        """
        super().__init__(number, times or tape.writer, tap, alarm)
        self.serial = serial
        self.tape = tape
        self._ident = ident
        self._side = side
        self._bodies = bodies
        self._counter = tap
        self._request_bytes = 0  # bytes of bodies and of a WebSocket, taped or not
        self._frame_bytes = 0  # bytes of the upstream's WebSocket
        self._counted = (0, 0)
        self._arrived_ns = self.last_ns

    def request(
        self, *, method: str, target: bytes, upstream: str, http: str, headers: "Fields"
    ) -> None:
        """Write the request head as sent upstream."""
        self._write(
            ExchangeTap.request,
            id=self._ident,
            method=method,
            target=target,
            upstream=upstream,
            http=http,
            headers=headers,
            tap=self._side,
        )

    def request_body(self, data: bytes) -> None:
        """Write bytes of the request body."""
        self._request_bytes += len(data)
        if self._bodies:
            self._write(ExchangeTap.request_body, data)

    def request_end(self) -> None:
        """Write the end of the request."""
        if self._request_bytes and not self._bodies:
            self.note(f"the request's body, {self._request_bytes} bytes, was left out on demand")
        self._write(ExchangeTap.request_end)

    def arrived(self) -> None:
        """Note when bytes came, before they are forwarded.

        What the client does then comes later, also on the tape of another process.
        """
        self._arrived_ns = self._writer.now_ns()

    def frames(self, side: Side, data: bytes) -> None:
        """Write what a side of a WebSocket has sent, as of `arrived`.

        The messages of the client are the bodies of its requests.
        """
        kept = self._bodies or side is Side.SERVER
        self._write_at(self._arrived_ns, ExchangeTap.frames, side, data, messages=kept)
        if not kept and not self._request_bytes:
            self.note("the client's messages were left out on demand")
        if side is Side.CLIENT:
            self._request_bytes += len(data)
        else:
            self._frame_bytes += len(data)

    def sent(self, *, connect_ns: int, tls_ns: int, reused: bool) -> None:
        """Write that the request was sent."""
        self._write(ExchangeTap.sent, connect_ns=connect_ns, tls_ns=tls_ns, reused=reused)

    def new_bytes(self) -> tuple[int, int]:
        """Return how many bytes of request and response have come since the last call."""
        sent, received = self._request_bytes, self._counter.total + self._frame_bytes
        before, self._counted = self._counted, (sent, received)
        return sent - before[0], received - before[1]


class ExchangeTaping(RecordedExchange):
    """Writes one exchange of a gateway; each method writes one record."""

    def informational(self, head: "ParsedResponseHead") -> None:
        """Write a 1xx head."""
        self._write(
            ExchangeTap.informational,
            status=head.status,
            reason=head.reason,
            http=head.http,
            headers=head.fields,
        )

    def response(self, head: "ParsedResponseHead") -> None:
        """Write the final head, as of `arrived`."""
        self._write_at(
            self._arrived_ns,
            ExchangeTap.response,
            status=head.status,
            reason=head.reason,
            http=head.http,
            framing=head.framing,
            headers=head.fields,
        )

    def read(self, data: bytes, ends: tuple[int, ...] | None) -> None:
        """Write one socket read of the body, as of `arrived`: the hot path, so without `_write`."""
        tap = self._tap
        if tap is None:
            return
        now = self.last_ns = self._arrived_ns
        try:
            tap.read(now, data, ends)
        except Exception as error:  # noqa: BLE001 - the tap guard: taping never harms a stream
            self._fail(error)

    def complete(self) -> None:
        """Write the end of a response, at the time of `arrived`."""
        self._write_at(self._arrived_ns, ExchangeTap.end, EndReason.COMPLETE)

    def debris(self, data: bytes) -> None:
        """Write bytes of a response without a valid head."""
        self._write(ExchangeTap.debris, data)

    def trailers(self, fields: "Fields") -> None:
        """Write the fields after a chunked body, as of `arrived`."""
        self._write_at(self._arrived_ns, ExchangeTap.trailers, fields)

    def delivered(self, total: int) -> None:
        """Write that a slow client has taken `total` body bytes."""
        self._write(ExchangeTap.delivered, total)


class RecorderObserver(Protocol):
    """Receives a run's events on the event loop's thread."""

    def refused(self, refusal: Refusal) -> None:
        """A request was answered without an upstream."""

    def alarm(self, problem: str) -> None:
        """Taping has a problem; may be called from another thread."""

    def taping(self, *, works: bool) -> None:
        """Everything can be taped now, or not; called every few seconds."""


class Analysis(Protocol):
    """Reads the tapes of a run while they are recorded; see `live.client`. It delays no stream."""

    def start(self) -> None:
        """Start; needs a running loop."""

    def ended(self, tape: OpenTape, number: int) -> None:
        """An exchange has ended, and its end is on the tape or on its way there."""

    def close(self, tape: OpenTape, watch: TapeSummary) -> None:
        """A tape ends now."""

    async def finish(self) -> None:
        """Wait for unread bytes, for some seconds at most."""

    def hurry(self) -> None:
        """Stop waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """The recorder's options.

    Attributes:
        durable: sync a tape when an exchange on it has ended.
        bodies: tape those of requests, too.
    """

    durable: bool = True
    bodies: bool = True


DEFAULT_OPTIONS = RecorderOptions()


@dataclass(slots=True)
class RecorderCounts:
    """Totals for the summary and for metrics.

    Bytes are those of bodies, without HTTP's chunk framing, and of WebSockets.
    """

    exchanges: int = 0
    refused: int = 0
    clients: int = 0
    request_bytes: int = 0
    response_bytes: int = 0


class ActiveExchange(NamedTuple):
    """An exchange in progress; `stop` cuts it."""

    taping: RecordedExchange
    stop: Callable[[], None]


Taping = TypeVar("Taping", bound=RecordedExchange)


class Recorder:
    """Numbers and tapes of a run; an `Analysis`, if there is one, reads them."""

    def __init__(
        self,
        book: TapeBook,
        masker: Masker,
        clock: Clock,
        observer: RecorderObserver,
        options: RecorderOptions = DEFAULT_OPTIONS,
        analysis: Analysis | None = None,
        number: Callable[[], int] | None = None,
    ) -> None:
        """Args: number: gives the number of an exchange; None: they are counted on each tape."""
        self.book = book
        self.counts = RecorderCounts()
        self.active: dict[int, ActiveExchange] = {}
        """The exchanges in progress, by their number in the run."""
        self._masker = masker
        self.clock = clock
        self._observer = observer
        self._options = options
        self._analysis = analysis
        self._number = number
        self._ticker: asyncio.TimerHandle | None = None
        self._replacing: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()

    def start(self) -> None:
        """Start; needs a running loop."""
        if self._analysis is not None:
            self.book.on_closing = self._closing
            self._analysis.start()
        self._tick()

    def _tick(self) -> None:
        for exchange in self.active.values():
            exchange.taping.watch(IDLE_NS)
        self.count()
        self.book.watch(IDLE_NS)
        works = not self.book.in_trouble
        if works:
            self.book.settle()
        self._observer.taping(works=works)
        if self.book.current.writer.broken and (self._replacing is None or self._replacing.done()):
            self._replacing = asyncio.get_running_loop().create_task(self._replace_tape())
        self._ticker = asyncio.get_running_loop().call_later(IDLE_NS / 1e9, self._tick)

    def count(self) -> None:
        """Update the bytes in `counts`; at the end of an exchange this happens anyway."""
        for exchange in self.active.values():
            self._count(exchange.taping)

    def _count(self, taping: RecordedExchange) -> None:
        sent, received = taping.new_bytes()
        self.counts.request_bytes += sent
        self.counts.response_bytes += received

    async def _replace_tape(self) -> None:
        """Begin a new tape in the place of one that could not be created or was deleted."""
        if await self.book.rotate(self.book.current):
            self._observer.alarm(f"a new tape has begun: {self.book.current.path}")

    # Called by gateways.

    def client(self) -> int:
        """Return the number of a new client connection."""
        self.counts.clients += 1
        self.book.client(self.counts.clients, ClientState.OPENED)
        return self.counts.clients

    def client_left(self, connection: int) -> None:
        """Note that a client left."""
        self.book.client(connection, ClientState.CLOSED)

    def refused(self, refusal: Refusal) -> None:
        """Note a request that was answered without an upstream."""
        self.counts.refused += 1
        if self.counts.refused <= MAX_NOTED:  # evidence, but no way to fill a disk
            self.book.note(f"a request was refused with {refusal.status} {refusal.code}")
        self._observer.refused(refusal)

    def begin(
        self,
        kind: type[Taping],
        stop: Callable[[], None],
        name: str | None,
        connection: int,
        side: Tap = Tap.PROVIDER,
        times: Callable[[Writer], Writer] | None = None,
    ) -> Taping:
        """Start an exchange on the tape called `name`; `stop` is called to cut it.

        `times` makes what tells the times of its records from what tells the present.
        """
        tape = self.book.named(name)
        tape.client(connection, ClientState.OPENED)
        tape.exchanges += 1
        tape.active += 1
        self.counts.exchanges += 1
        serial = self.counts.exchanges
        number = tape.exchanges if self._number is None else self._number()
        taping = kind(
            serial,
            ulid(self.clock),
            tape,
            ExchangeTap(number, tape.writer.put, self._masker),
            self._observer.alarm,
            number=number,
            side=side,
            bodies=self._options.bodies,
            times=times(tape.writer) if times is not None else None,
        )
        self.active[serial] = ActiveExchange(taping, stop)
        return taping

    def ended(self, taping: RecordedExchange) -> None:
        """Handle the end of an exchange whose end is on the tape."""
        tape = taping.tape
        self.active.pop(taping.serial, None)
        self._count(taping)
        tape.active -= 1
        tape.watched_ns = tape.writer.now_ns()
        if self._analysis is not None:
            self._analysis.ended(tape, taping.number)
        if self._options.durable:
            tape.writer.durable()
        self.book.release(tape)
        if not self.active:
            self._drained.set()

    # Stopping.

    async def drain(self, grace_s: float) -> None:
        """Wait for the streams, then cut the remaining ones."""
        if not self.active:
            return
        self._drained.clear()
        try:
            await asyncio.wait_for(self._drained.wait(), grace_s)
        except TimeoutError:
            self._cut()

    async def finish(self, reason: str, code: int | None) -> None:
        """End the tapes, after they were analysed."""
        for running in (self._ticker, self._replacing):
            if running is not None:
                running.cancel()
        if self._analysis is not None:
            for tape in tuple(self.book.all()):
                self._closing(tape, reason, code)
            await self._analysis.finish()
        self.book.stop(reason, code)

    def _closing(self, tape: OpenTape, reason: str, code: int | None = None) -> None:
        assert self._analysis is not None
        watch = TapeSummary(until_ns=tape.writer.now_ns(), stop=reason, exit_code=code)
        self._analysis.close(tape, watch)

    def _cut(self) -> None:
        for exchange in tuple(self.active.values()):
            exchange.stop()

    def hurry(self) -> None:
        """Stop waiting for streams and their analysis."""
        if self._analysis is not None:
            self._analysis.hurry()
        self._cut()
