"""Listens, checks access and chooses the upstream; an `ExchangeForwarder` handles each request.

One in front of the providers, and with `--app` another in front of the application's own
endpoint; both write through the same `Recorder`.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from deltatape.errors import UsageError
from deltatape.gateway.access import AddressedTarget, check_access, mismatch, read_address
from deltatape.gateway.dial import ConnectionFailedError, OpenConnection
from deltatape.gateway.forward import ExchangeForwarder
from deltatape.gateway.recorder import Recorder
from deltatape.gateway.routes import Origin, Refusal, Route, Routes
from deltatape.gateway.taping import ExchangeTaping
from deltatape.http1.answer import error_answer
from deltatape.http1.client import UpstreamConnection
from deltatape.http1.head import ParsedRequestHead
from deltatape.http1.listener import Address, Listener, is_loopback
from deltatape.http1.server import Handler, ServerConnection
from deltatape.model.exchange import Tap

FRESH_S = 4.0
"""How long an idle upstream connection may be used again; providers close theirs after more."""
FAREWELL_S = 0.5
"""How long connections that were closed may take to be gone: their end is on the tape, too."""

Dial = Callable[[Origin], Awaitable[OpenConnection]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TapPolicy:
    """What a gateway accepts.

    Attributes:
        token: opens the gateway to those who bring it; needed where others than this machine can
            reach it.
        check_keys: refuse a key of one provider that is about to go to another.
        side: of the application that it is on.
    """

    token: str | None = None
    check_keys: bool = True
    side: Tap = Tap.PROVIDER


@dataclass(slots=True)
class _Pin:
    """The upstream connection that a client connection may reuse."""

    origin: Origin
    connection: UpstreamConnection
    since: float


class Gateway:
    """See `http1.server.ServerOwner` and `forward.Carrier`."""

    def __init__(
        self, recorder: Recorder, routes: Routes, dial: Dial, policy: TapPolicy | None = None
    ) -> None:
        """Args: dial: opens a connection to an upstream, or raises `ConnectionFailedError`."""
        self.listener = Listener()
        self._recorder = recorder
        self._routes = routes
        self._dial = dial
        self._policy = policy or TapPolicy()
        self._pins: dict[ServerConnection, _Pin] = {}
        self._numbers: dict[ServerConnection, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = asyncio.Event()

    # Life.

    async def start(self, address: Address) -> None:
        """Listen.

        Raises:
            UsageError: the address cannot be had, others could reach it and there is no token, or
                an upstream is this gateway itself.
        """
        if not address.loopback and self._policy.token is None:
            raise UsageError(
                f"{address} can be reached by other machines, so a token is needed: --token TOKEN"
            )
        await self.listener.open(address, lambda: ServerConnection(self))
        try:
            self.refuse_loops(self.listener.address)
        except UsageError:
            self.listener.close()
            raise

    def refuse_loops(self, own: Address) -> None:
        """Refuse to forward to an address of deltatape's own.

        Raises:
            UsageError: an upstream is at `own`.
        """
        for upstream in self._routes.upstreams:
            origin = upstream.origin
            here = is_loopback(origin.host) or origin.host == own.host
            if not own.path and origin.port == own.port and here:
                raise UsageError(
                    f"the upstream {origin.url} is deltatape's own address"
                    f" http://{own}; choose another port with --listen"
                )

    def close(self) -> None:
        """Stop accepting."""
        self.listener.close()

    async def farewell(self) -> None:
        """Flush what was written, then end the rest; a cut stays visible as a cut."""
        await self._wait_until_left()
        self.listener.drop()
        await self._wait_until_left()
        for pin in self._pins.values():
            pin.connection.abort()

    async def _wait_until_left(self) -> None:
        if self._numbers:
            self._left.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._left.wait(), FAREWELL_S)

    # What connections ask (`http1.server.ServerOwner`).

    def handler(self, connection: ServerConnection) -> Handler:
        return ExchangeForwarder(self, connection)

    def opened(self, connection: ServerConnection) -> None:
        self._numbers[connection] = self._recorder.client()
        self.listener.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        self.listener.closed(connection)
        pin = self._pins.pop(connection, None)
        if pin is not None:
            pin.connection.abort()
        self._recorder.client_left(self._numbers.pop(connection))
        if not self._numbers:
            self._left.set()

    def refused_bytes(self, problem: str) -> bytes:
        """Return the answer to bytes that are not a request."""
        refusal = Refusal(400, "bad_request", f"not an HTTP/1 request: {problem}")
        self.refused(refusal)
        return error_answer(refusal.status, refusal.code, refusal.message)

    # What exchanges ask (`forward.Carrier`).

    def route(self, head: ParsedRequestHead) -> Route | Refusal:
        addressed = read_address(
            head, self._policy.token, reserved=self._policy.side is Tap.PROVIDER
        )
        if isinstance(addressed, Refusal):
            return addressed
        return self._refuse(head, addressed) or self._resolve(head, addressed)

    def _refuse(self, head: ParsedRequestHead, addressed: AddressedTarget) -> Refusal | None:
        own = self.listener.address
        return check_access(head, addressed, guarded=not own.loopback, local=not own.path)

    def _resolve(self, head: ParsedRequestHead, addressed: AddressedTarget) -> Route | Refusal:
        route = self._routes.resolve(addressed.target)
        if isinstance(route, Refusal):
            return route
        if self._policy.check_keys:
            problem = mismatch(head.fields, route.target, route.origin.host)
            if problem is not None:
                return Refusal(403, "key_mismatch", problem)
        return replace(route, tape=addressed.tape)

    def tape(
        self, forward: ExchangeForwarder, route: Route, client: ServerConnection
    ) -> ExchangeTaping:
        return self._recorder.begin(forward, route.tape, self._numbers[client], self._policy.side)

    def idle_connection(
        self, client: ServerConnection, origin: Origin
    ) -> UpstreamConnection | None:
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
        done: Callable[[OpenConnection], None],
        failed: Callable[[ConnectionFailedError], None],
    ) -> asyncio.Task[None]:
        async def run() -> None:
            try:
                dialled = await self._dial(origin)
            except ConnectionFailedError as error:
                failed(error)
            except (OSError, RuntimeError) as error:  # no descriptor, no thread to resolve names
                failed(
                    ConnectionFailedError(
                        "upstream_refused", f"{origin.url}: no connection: {error}"
                    )
                )
            else:
                done(dialled)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def refused(self, refusal: Refusal) -> None:
        self._recorder.refused(refusal)

    def ended(
        self,
        taping: ExchangeTaping,
        origin: Origin,
        client: ServerConnection,
        spare: UpstreamConnection | None,
    ) -> None:
        if spare is not None and client.transport is not None:
            self._pins[client] = _Pin(origin, spare, asyncio.get_running_loop().time())
        elif spare is not None:
            spare.abort()
        self._recorder.ended(taping)
