"""The gateway: listens, hands each request to a `Forward`, tapes, and stops in good order."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from deltatape.clock import Clock
from deltatape.errors import UsageError
from deltatape.gateway.access import check_access
from deltatape.gateway.analysis import Analyst, Ended, Kept
from deltatape.gateway.dial import DialError, Dialled, dial
from deltatape.gateway.forward import Forward
from deltatape.gateway.routes import Origin, Refusal, Route, Routes
from deltatape.gateway.taping import Taping
from deltatape.http1.answer import error_answer
from deltatape.http1.client import UpstreamConnection
from deltatape.http1.head import RequestHead
from deltatape.http1.listener import Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.store.ids import ulid
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.tap import ExchangeTap, TapeTap

FRESH_S = 4.0
"""How long an idle upstream connection may be used again; providers close theirs after more."""
IDLE_NS = 5_000_000_000
"""How often a silent exchange is noted as still being watched."""
FAREWELL_S = 0.5
"""How long connections that were closed may take to be gone: their end is on the tape, too."""


class Observer(Protocol):
    """Who is told what happens, on the loop's thread."""

    def exchange(self, ended: Ended) -> None:
        """An exchange has ended and was analysed."""

    def refused(self, refusal: Refusal) -> None:
        """A request was answered without an upstream."""

    def alarm(self, problem: str) -> None:
        """Taping is in trouble; may come from another thread."""


@dataclass(slots=True)
class _Pin:
    """The upstream connection that one client connection may use again."""

    origin: Origin
    connection: UpstreamConnection
    since: float


@dataclass(slots=True)
class Counts:
    """What the summary tells."""

    exchanges: int = 0
    refused: int = 0
    clients: int = 0
    active: dict[int, Forward] = field(default_factory=dict)


class Gateway:
    """See `http1.server.Owner` and `forward.Carrier`."""

    def __init__(
        self,
        routes: Routes,
        writer: TapeWriter,
        masker: Masker,
        clock: Clock,
        observer: Observer,
        *,
        durable: bool = True,
    ) -> None:
        """Args: durable: sync the tape to disk when an exchange has ended."""
        self._routes = routes
        self._writer = writer
        self._masker = masker
        self._clock = clock
        self._observer = observer
        self._durable = durable
        self._analyst = Analyst(observer.exchange)
        self._kept = Kept()
        self._tape_tap = TapeTap(writer.put)
        self._context: ssl.SSLContext | None = None
        self._pins: dict[ServerConnection, _Pin] = {}
        self._numbers: dict[ServerConnection, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticker: asyncio.TimerHandle | None = None
        self._drained = asyncio.Event()
        self._left = asyncio.Event()
        self._stopped = False
        self.listener = Listener()
        self.counts = Counts()

    # Life.

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            UsageError: the address cannot be had, or an upstream is this gateway itself.
        """
        loop = asyncio.get_running_loop()
        self._writer.on_dirty = lambda: _after_this_turn(loop, self._writer)
        await self.listener.open(host, port, lambda: ServerConnection(self))
        self._refuse_loops()
        self._writer.flush()
        self._tick()

    def _refuse_loops(self) -> None:
        upstreams = [self._routes.single] if self._routes.single else self._routes.named.values()
        for upstream in upstreams:
            origin = upstream.origin
            if origin.port == self.listener.port and origin.host.rstrip(".") in (
                "localhost",
                "127.0.0.1",
                "::1",
            ):
                self.listener.close()
                raise UsageError(
                    f"the upstream {origin.url} is deltatape's own address {self.listener.url};"
                    " choose another port with --listen"
                )

    async def stop(self, reason: str, *, grace_s: float) -> None:
        """Accept nothing more, let streams end for `grace_s`, cut the rest, end the tape."""
        self.listener.close()
        if self.counts.active:
            self._drained.clear()
            try:
                await asyncio.wait_for(self._drained.wait(), grace_s)
            except TimeoutError:
                for forward in tuple(self.counts.active.values()):
                    forward.stop()
        await self._farewell()
        await self._analyst.finish()
        for pin in self._pins.values():
            pin.connection.abort()
        if self._ticker is not None:
            self._ticker.cancel()
        self._tape_tap.stop(self._writer.now_ns(), reason, None)
        self._stopped = True
        self._writer.close()

    async def _farewell(self) -> None:
        """Let what was written leave; then end the rest, a cut as a cut."""
        await self._wait_until_left()
        self.listener.drop()
        await self._wait_until_left()

    async def _wait_until_left(self) -> None:
        if self._numbers:
            self._left.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._left.wait(), FAREWELL_S)

    def hurry(self) -> None:
        """Do not wait any longer, neither for the streams nor for their analyses."""
        self._analyst.hurry()
        for forward in tuple(self.counts.active.values()):
            forward.stop()

    def _tick(self) -> None:
        now = self._writer.now_ns()
        for forward in self.counts.active.values():
            taping = forward.taping
            if taping is not None and now - taping.last_ns >= IDLE_NS:
                taping.idle()
        self._ticker = asyncio.get_running_loop().call_later(IDLE_NS / 1e9, self._tick)

    # What connections ask (`http1.server.Owner`).

    def handler(self, connection: ServerConnection) -> Handler:
        """See `Owner.handler`."""
        return Forward(self, connection)

    def opened(self, connection: ServerConnection) -> None:
        """See `Owner.opened`."""
        self.counts.clients += 1
        self._numbers[connection] = self.counts.clients
        self.listener.opened(connection)
        self._client(connection, ClientState.OPENED)

    def closed(self, connection: ServerConnection) -> None:
        """See `Owner.closed`."""
        self.listener.closed(connection)
        pin = self._pins.pop(connection, None)
        if pin is not None:
            pin.connection.abort()
        if not self._stopped:
            self._client(connection, ClientState.CLOSED)
        self._numbers.pop(connection, None)
        if not self._numbers:
            self._left.set()

    def refused_bytes(self, problem: str) -> bytes:
        """The answer to bytes that are no request."""
        refusal = Refusal(400, "bad_request", f"not an HTTP/1 request: {problem}")
        self.refused(refusal)
        return error_answer(refusal.status, refusal.code, refusal.message)

    def _client(self, connection: ServerConnection, state: ClientState) -> None:
        self._tape_tap.client(
            self._writer.now_ns(), connection=self._numbers[connection], state=state
        )

    # What exchanges ask (`forward.Carrier`).

    def route(self, head: RequestHead) -> Route | Refusal:
        """See `Carrier.route`."""
        return check_access(head) or self._routes.resolve(head.target)

    def tape(self, forward: Forward) -> Taping:
        """See `Carrier.tape`."""
        self.counts.exchanges += 1
        number = self.counts.exchanges
        self.counts.active[number] = forward
        self._kept.begin(number)
        tap = ExchangeTap(number, self._put, self._masker)
        return Taping(number, ulid(self._clock), self._writer, tap, self._observer.alarm)

    def _put(self, number: int, line: bytes) -> None:
        self._kept.put(number, line)
        self._writer.put(number, line)

    def idle_connection(
        self, client: ServerConnection, origin: Origin
    ) -> UpstreamConnection | None:
        """See `Carrier.idle_connection`."""
        pin = self._pins.pop(client, None)
        if pin is None:
            return None
        fresh = asyncio.get_running_loop().time() - pin.since <= FRESH_S
        if pin.origin == origin and fresh and pin.connection.reusable:
            return pin.connection
        pin.connection.abort()
        return None

    def dial(
        self,
        origin: Origin,
        done: Callable[[Dialled], None],
        failed: Callable[[DialError], None],
    ) -> asyncio.Task[None]:
        """See `Carrier.dial`."""

        async def run() -> None:
            try:
                dialled = await dial(origin, self._tls(), self._clock)
            except DialError as error:
                failed(error)
            else:
                done(dialled)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _tls(self) -> ssl.SSLContext:
        """One context for all connections, made when first needed: it reads the CA bundle."""
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context

    def refused(self, refusal: Refusal) -> None:
        """See `Carrier.refused`."""
        self.counts.refused += 1
        self._observer.refused(refusal)

    def ended(
        self,
        number: int,
        origin: Origin,
        client: ServerConnection,
        spare: UpstreamConnection | None,
    ) -> None:
        """See `Carrier.ended`."""
        self.counts.active.pop(number, None)
        if spare is not None and client.transport is not None:
            self._pins[client] = _Pin(origin, spare, asyncio.get_running_loop().time())
        elif spare is not None:
            spare.abort()
        self._analyst.submit(
            str(self._writer.path or ""), self._writer.header, number, self._kept.take(number)
        )
        if self._durable:
            self._writer.durable()
        if not self.counts.active:
            self._drained.set()


def _after_this_turn(loop: asyncio.AbstractEventLoop, writer: TapeWriter) -> None:
    """Flush before any socket is read again: asyncio runs what is already due first."""
    loop.call_soon(writer.flush)
