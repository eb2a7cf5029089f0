"""Listens, checks access and chooses the upstream; an `ExchangeForwarder` handles each request.

One in front of the providers, and with `--app` another in front of the application's own
endpoint; both write through the same `Recorder`.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from deltatape.errors import UsageError
from deltatape.gateway.access import check_access, mismatch, read_address
from deltatape.gateway.dial import ConnectionFailedError, OpenConnection
from deltatape.gateway.recorder import ExchangeTaping, Recorder
from deltatape.gateway.routes import (
    OWN_FIELD_PREFIX,
    UPSTREAM_FIELD,
    Origin,
    Refusal,
    Route,
    Routes,
    parse_upstream,
)
from deltatape.gateway.websocket import SocketRelay
from deltatape.http1.body import BodyScan, fin_completes, write_chunk
from deltatape.http1.client import ConnectionLost, UpstreamConnection
from deltatape.http1.head import (
    Fields,
    ParsedRequestHead,
    ParsedResponseHead,
    asks_for_websocket,
    end_to_end,
    ends_connection,
    error_answer,
    field,
    handshake_fields,
    with_close,
    write_fields,
    write_request,
    write_response,
)
from deltatape.http1.listener import Address, Listener, is_loopback
from deltatape.http1.server import Handler, ServerConnection
from deltatape.model.exchange import EndReason, Framing, Tap
from deltatape.model.websocket import Side

MAX_IDLE_S = 4.0
"""Reuse upstream connections for at most this long: providers keep idle ones a little longer."""
CLOSE_TIMEOUT_S = 0.5
"""How long to wait for closed connections to end: the tape records their end, too."""
IDLE_S = 2.0
"""How long a connection may be idle before it is closed when the gateway drains."""
_LOOK_S = 0.25
_MOST_PLANS = 128
_MOST_USER_AGENTS = 32
_SHORT_BYTES = 4096

Dial = Callable[[Origin], Awaitable[OpenConnection]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TapPolicy:
    """What a gateway accepts.

    Attributes:
        token: the secret that requests must carry where other machines can reach the gateway.
        check_keys: refuse a key of one provider that is about to go to another.
        side: the side of the application that the gateway is on.
        led: whether our proxy redirects requests to a host to this gateway, with the upstream in
            `UPSTREAM_FIELD`; None without a proxy.
    """

    token: str | None = None
    check_keys: bool = True
    side: Tap = Tap.PROVIDER
    led: Callable[[str], bool] | None = None


@dataclass(slots=True)
class _Pin:
    """An upstream connection that a client connection may reuse, unused since `since`."""

    origin: Origin
    connection: UpstreamConnection
    since: float


@dataclass(frozen=True, slots=True)
class _RequestPlan:
    """Where the requests with one pattern of their heads go, and the head that is sent."""

    route: Route
    fields: Fields
    raw: bytes
    length_at: int | None
    """The index in `fields` of the length, if requests may differ in it."""
    upgrading: bool
    """Whether it asks for a WebSocket."""

    @classmethod
    def of(cls, head: ParsedRequestHead, route: Route) -> Self:
        upgrading = asks_for_websocket(head)
        fields = _request_fields(head, route.origin, upgrading=upgrading)
        digits = b"%d" % (head.length or 0)
        places = (at for at, each in enumerate(fields) if each[0].lower() == b"content-length")
        at = next(places, None)
        return cls(
            route,
            fields,
            write_request(head.method, route.target, fields),
            at if at is not None and fields[at][1] == digits else None,
            upgrading,
        )

    def sent(self, head: ParsedRequestHead) -> tuple[Fields, bytes]:
        """Return the fields to send, and the whole head."""
        at = self.length_at
        if at is None:
            return self.fields, self.raw
        name, known = self.fields[at]
        digits = b"%d" % (head.length or 0)
        if digits == known:
            return self.fields, self.raw
        fields = (*self.fields[:at], (name, digits), *self.fields[at + 1 :])
        return fields, write_request(head.method, self.route.target, fields)


class Gateway:
    """See `http1.server.ServerOwner`."""

    def __init__(
        self, recorder: Recorder, routes: Routes, dial: Dial, policy: TapPolicy | None = None
    ) -> None:
        """Args: dial: opens a connection to an upstream, or raises `ConnectionFailedError`."""
        self.listener = Listener()
        self.user_agents: set[str] = set()
        """`User-Agent` of the requests so far."""
        self.draining = False
        """Whether each connection is to end with its next response."""
        self._recorder = recorder
        self._routes = routes
        self._dial = dial
        self._policy = policy or TapPolicy()
        self._plans: dict[bytes, _RequestPlan] = {}  # by the patterns of heads
        self._pins: dict[ServerConnection, _Pin] = {}
        self._numbers: dict[ServerConnection, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients_gone = asyncio.Event()

    async def start(self, address: Address, sockets: Iterable[socket.socket] = ()) -> None:
        """Listen, on `sockets` if there are some, which are bound to the address already.

        Raises:
            UsageError: the address is not available, other machines can reach it and there is no
                token, or an upstream is this gateway itself.
        """
        if not address.loopback and self._policy.token is None:
            raise UsageError(
                f"{address} can be reached by other machines, so a token is needed: --token TOKEN"
            )
        await self.listener.open(address, lambda: ServerConnection(self), sockets)
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

    async def drain(self) -> None:
        """Accept no more connections, and wait until those that are open have ended.

        A response that begins from now on says that its connection ends with it. One on which
        nothing is asked for a while is closed: a client that asks then sees the end first.
        """
        self.draining = True
        await self.listener.drain()
        loop = asyncio.get_running_loop()
        idle: dict[ServerConnection, float] = {}
        while self._numbers:
            now = loop.time()
            idle = {each: idle.get(each, now) for each in self._numbers if each.idle}
            for each, since in idle.items():
                if now - since >= IDLE_S:
                    each.close_unless_asked()
            await self._wait_for_clients(_LOOK_S)

    async def end_connections(self) -> None:
        """Flush what was written, then end all connections; a cut stays visible as a cut."""
        await self._wait_for_clients()
        self.listener.drop()
        await self._wait_for_clients()
        for pin in self._pins.values():
            pin.connection.abort()

    async def _wait_for_clients(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        if self._numbers:
            self._clients_gone.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._clients_gone.wait(), timeout_s)

    # Called by connections (`http1.server.ServerOwner`).

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
            self._clients_gone.set()

    def refused_bytes(self, problem: str) -> bytes:
        """Return the answer to bytes that are not a request."""
        refusal = Refusal(400, "bad_request", f"not an HTTP/1 request: {problem}")
        self.refused(refusal)
        return error_answer(refusal.status, refusal.code, refusal.message)

    # Called by `ExchangeForwarder`s.

    def plan(self, head: ParsedRequestHead) -> "_RequestPlan | Refusal":
        """Return where the request goes and what is sent there; the same for all with its pattern.

        Nothing that it depends on changes while the gateway listens.
        """
        known = self._plans.get(head.pattern)
        if known is not None:
            return known
        route = self._route(head)
        if isinstance(route, Refusal):
            return route
        if len(self.user_agents) < _MOST_USER_AGENTS:
            self.user_agents.add((field(head.fields, b"user-agent") or b"").decode("latin-1"))
        plan = _RequestPlan.of(head, route)
        # The heads of handshakes differ, each with a key of its own.
        if len(head.pattern) <= _SHORT_BYTES and not plan.upgrading:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[head.pattern] = plan
        return plan

    def _route(self, head: ParsedRequestHead) -> Route | Refusal:
        addressed = read_address(
            head, self._policy.token, reserved=self._policy.side is Tap.PROVIDER
        )
        if isinstance(addressed, Refusal):
            return addressed
        own = self.listener.address
        refusal = check_access(head, addressed, guarded=not own.loopback, local=not own.path)
        if refusal is not None:
            return refusal
        led = field(head.fields, UPSTREAM_FIELD) if self._policy.led is not None else None
        route = (
            self._routes.resolve(addressed.target)
            if led is None
            else self._led_route(led.decode("latin-1"), addressed.target)
        )
        if isinstance(route, Refusal):
            return route
        if self._policy.check_keys:
            problem = mismatch(head.fields, route.target, route.origin.host)
            if problem is not None:
                return Refusal(403, "key_mismatch", problem)
        return replace(route, tape=addressed.tape)

    def _led_route(self, upstream: str, target: bytes) -> Route | Refusal:
        assert self._policy.led is not None
        try:
            named = parse_upstream(upstream)
        except UsageError as error:
            return Refusal(400, "unknown_upstream", str(error))
        if not self._policy.led(named.origin.host):
            problem = f"{upstream}: this host is not redirected; --hosts adds it"
            return Refusal(403, "unknown_upstream", problem)
        return named.route(target)

    def tape(
        self, forward: "ExchangeForwarder", route: Route, client: ServerConnection
    ) -> ExchangeTaping:
        """Start an exchange on the tape."""
        return self._recorder.begin(
            ExchangeTaping, forward.stop, route.tape, self._numbers[client], self._policy.side
        )

    def idle_connection(
        self, client: ServerConnection, origin: Origin
    ) -> UpstreamConnection | None:
        """Return a fresh upstream connection that this client used before."""
        pin = self._pins.pop(client, None)
        if pin is None:
            return None
        fresh = asyncio.get_running_loop().time() - pin.since <= MAX_IDLE_S
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
        """Open an upstream connection, with callbacks unless cancelled."""

        async def run() -> None:
            try:
                opened = await self._dial(origin)
            except ConnectionFailedError as error:
                failed(error)
            except (OSError, RuntimeError) as error:  # no descriptor, no thread to resolve names
                failed(
                    ConnectionFailedError(
                        "upstream_refused", f"{origin.url}: no connection: {error}"
                    )
                )
            else:
                done(opened)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def refused(self, refusal: Refusal) -> None:
        """Note a request that was answered without an upstream."""
        self._recorder.refused(refusal)

    def ended(
        self,
        taping: ExchangeTaping,
        origin: Origin,
        client: ServerConnection,
        spare: UpstreamConnection | None,
    ) -> None:
        """Note the end of an exchange; `spare` is a reusable upstream connection."""
        if spare is not None and client.transport is not None:
            self._pins[client] = _Pin(origin, spare, asyncio.get_running_loop().time())
        elif spare is not None:
            spare.abort()
        self._recorder.ended(taping)


async def stop_recording(
    recorder: Recorder,
    gateways: Sequence[Gateway],
    reason: str,
    code: int | None = None,
    *,
    grace_s: float,
) -> None:
    """Stop accepting, wait `grace_s` for streams, cut the rest, end the tapes.

    Args:
        recorder: the recorder of the run.
        gateways: all that use `recorder`.
        reason: for the tape: `sigint`, `child-exit`.
        code: the exit code of the child, if there was one.
        grace_s: in seconds.
    """
    for gateway in gateways:
        gateway.close()
    await recorder.drain(grace_s)
    for gateway in gateways:
        await gateway.end_connections()
    await recorder.finish(reason, code)


# One exchange: request up, response down, each byte to its peer before the tape.
#
# The response is spliced: bytes go to the client as they were read, with the HTTP framing they came
# in. Only an HTTP/1.0 client gets a chunked body without its chunks, and a client that wants to
# close its connection gets `Connection: close`. Request heads are written again field by field. The
# ending is passed on as what it is: RST stays RST, and a cut never becomes a clean end, for which
# FIN must not follow a body that a FIN would complete.


class ExchangeForwarder:
    """Forwards one exchange; see `http1.server.Handler` and `http1.client.ResponseHandler`."""

    def __init__(self, gateway: Gateway, client: ServerConnection) -> None:
        self._gateway = gateway
        self._client = client
        self._upstream: UpstreamConnection | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._unsent: list[bytes] = []
        self._origin: Origin | None = None
        self._opened: OpenConnection | None = None
        self._reused = False
        self._upgrading = False
        self._socket: SocketRelay | None = None
        self._request: ParsedRequestHead | None = None
        self._response: ParsedResponseHead | None = None
        self._request_complete = False
        self._head = b""  # of the response, to leave with the bytes that came with it
        self._remove_chunks = False
        self._keep_client = False
        self._delivered = 0
        self._ended = False
        self.taping: ExchangeTaping | None = None

    # The request, from the client.

    def on_request(self, head: ParsedRequestHead) -> None:
        self._request = head
        plan = self._gateway.plan(head)
        if isinstance(plan, Refusal):
            self._ended = True
            self._gateway.refused(plan)
            self._answer(plan.status, plan.code, plan.message)
            return
        route = plan.route
        fields, raw = plan.sent(head)
        self._origin = route.origin
        self._upgrading = plan.upgrading
        self.taping = self._gateway.tape(self, route, self._client)
        self.taping.request(
            method=head.method,
            target=route.target,
            upstream=route.base,
            http=head.http,
            headers=fields,
        )
        self._unsent.append(raw)
        idle = self._gateway.idle_connection(self._client, route.origin)
        if idle is not None:
            self._attach(OpenConnection(idle, 0, 0), reused=True)
        else:
            self._dialling = self._gateway.dial(route.origin, self._attach, self._dial_failed)

    def on_body(self, data: bytes) -> None:
        if self._ended or self._request is None or self.taping is None:
            return
        self._send(write_chunk(data) if self._request.length is None else data)
        if self._dialling is not None and not self._client.body_ends:
            self._client.pause_body()  # what is left of it waits where it is
        self.taping.request_body(data)

    def on_request_end(self, trailers: Fields) -> None:
        if self._ended or self._request is None or self.taping is None:
            return
        self._request_complete = True
        if self._request.length is None:
            self._send(b"0\r\n%b\r\n" % write_fields(trailers))
        self.taping.request_end()
        self._tape_sent()

    def on_writable(self, *, writable: bool) -> None:
        if self._upstream is None or self.taping is None:
            return
        if writable:
            self.taping.delivered(self._delivered)
            self._upstream.resume()
        else:
            self._upstream.pause()

    def on_client_lost(self, *, was_reset: bool) -> None:
        if was_reset and self._upstream is not None:
            self._upstream.reset()
        self._end(EndReason.CLIENT_CLOSED, "the client reset its connection" if was_reset else "")

    def stop(self) -> None:
        """End both sides when the gateway stops; a running response is cut."""
        if self._socket is not None:
            self._socket.close()
        else:
            self._cut(hard=False)
        self._end(EndReason.STOPPED, "deltatape was stopped")

    # The upstream connection.

    def _attach(self, opened: OpenConnection, *, reused: bool = False) -> None:
        assert self._request is not None
        self._dialling = None
        self._upstream = opened.connection
        self._opened, self._reused = opened, reused
        opened.connection.start(
            self, self._request.method, self._on_upgrade if self._upgrading else None
        )
        if not reused:
            self._client.resume_body()  # first: the write may pause it again
        if not self._client.body_follows:
            self._flush()
        self._tape_sent()

    def _dial_failed(self, error: ConnectionFailedError) -> None:
        timeout = error.code == "upstream_timeout"
        self._end(EndReason.TIMEOUT if timeout else EndReason.REFUSED, str(error))
        self._answer(504 if timeout else 502, error.code, str(error))

    def _send(self, data: bytes) -> None:
        self._unsent.append(data)
        self._flush()

    def _flush(self) -> None:
        """Send what waits, once there is a connection."""
        if self._upstream is not None:
            unsent, self._unsent = self._unsent, []
            self._upstream.write(b"".join(unsent))

    def _tape_sent(self) -> None:
        opened = self._opened
        if self._request_complete and opened is not None and self.taping is not None:
            self.taping.sent(
                connect_ns=opened.connect_ns, tls_ns=opened.tls_ns, reused=self._reused
            )

    def on_upstream_writable(self, *, writable: bool) -> None:
        if writable:
            self._client.resume_body()
        else:
            self._client.pause_body()

    # The response, from upstream.

    def on_informational(self, head: ParsedResponseHead) -> None:
        if self._request is not None and self._request.http != "1.0":
            self._client.write(head.raw)
        if self.taping is not None:
            self.taping.informational(head)

    def on_response(self, head: ParsedResponseHead) -> None:
        assert self._request is not None
        if self.taping is not None:
            self.taping.arrived()
        self._response = head
        old = self._request.http == "1.0"
        self._remove_chunks = old and head.framing is Framing.CHUNKED
        ends_itself = ends_connection(head.http, head.framing, head.fields)
        ends = old or ends_itself or self._gateway.draining
        self._keep_client = self._request.keep_alive and not ends
        raw, fields = head.raw, head.fields
        if self._remove_chunks:
            fields = tuple(f for f in fields if f[0].lower() != b"transfer-encoding")
        if not self._keep_client and not ends_itself:
            fields = with_close(fields)
        if fields is not head.fields:
            raw = write_response(head.status, head.reason, fields, http=head.http)
        if self._upstream is not None and self._upstream.body_follows:
            self._head = raw
        else:
            self._client.write(raw)
        if self.taping is not None:
            self.taping.response(head)

    def on_response_data(self, raw: bytes, scan: BodyScan) -> None:
        """See `ResponseHandler.on_response_data`: the client first, the tape after."""
        if self.taping is not None:
            self.taping.arrived()
        data = scan.data if self._remove_chunks else raw
        if self._head:
            data, self._head = self._head + data, b""
        self._client.write(data)
        if scan.data and self.taping is not None:
            self._delivered += len(scan.data)
            self.taping.read(scan.data, scan.ends)

    def _on_upgrade(self, head: ParsedResponseHead, rest: bytes) -> None:
        """See `UpstreamConnection.start`: from here on, bytes are passed on as they come."""
        upstream, self._upstream = self._upstream, None
        if upstream is None or self.taping is None:
            return
        self.taping.arrived()
        self._client.write(head.raw + rest)
        self.taping.response(head)
        if rest:
            self.taping.frames(Side.SERVER, rest)
        self._socket = SocketRelay(self.taping, self._client, upstream, self._end)

    def on_response_note(self, text: str) -> None:
        if self.taping is not None:
            self.taping.note(text)

    def on_response_debris(self, raw: bytes) -> None:
        """See `ResponseHandler.on_response_debris`; a tape with a read but no head plays it so."""
        self._client.write(raw)
        self._client.on_pipelined = self._end_at_next_request
        if raw and self.taping is not None:
            self._delivered += len(raw)
            self.taping.debris(raw)

    def _end_at_next_request(self) -> None:
        """End a response whose end only its client can tell: it has sent its next request."""
        self.on_response_note("the client took the response for complete: it sent a request")
        self._end(EndReason.COMPLETE, "")
        self._client.finish(keep_alive=True)

    def on_response_end(self, trailers: Fields) -> None:
        if self.taping is not None and trailers:
            self.taping.trailers(trailers)
        keep = self._keep_client
        # Of the end of a connection, the client is yet to learn.
        by_close = self._response is not None and self._response.framing is Framing.CLOSE
        self._end(
            EndReason.COMPLETE, "", keep_upstream=self._request_complete, as_arrived=not by_close
        )
        self._client.finish(keep_alive=keep)

    def on_upstream_lost(self, loss: ConnectionLost, detail: str) -> None:
        self._upstream = None
        reason = (
            EndReason.UPSTREAM_RESET if loss is ConnectionLost.RESET else EndReason.UPSTREAM_CLOSED
        )
        self._end(reason, detail)
        self._cut(hard=loss is ConnectionLost.RESET)

    # Endings.

    def _cut(self, *, hard: bool) -> None:
        """End the client's connection so that the client notices the cut."""
        framing = self._response.framing if self._response else None
        if hard or fin_completes(framing, bare=self._remove_chunks):
            self._client.reset()
        else:
            self._client.close()

    def _answer(self, status: int, code: str, message: str) -> None:
        head_only = self._request is not None and self._request.method == "HEAD"
        self._client.write(error_answer(status, code, message, head_only=head_only))
        self._client.finish(keep_alive=False)

    def _end(
        self,
        reason: EndReason,
        detail: str,
        *,
        keep_upstream: bool = False,
        as_arrived: bool = False,
    ) -> None:
        if self._ended:
            return
        self._ended = True
        if self._dialling is not None:
            self._dialling.cancel()
        upstream, self._upstream = self._upstream, None
        spare = upstream if upstream is not None and keep_upstream and upstream.reusable else None
        if upstream is not None and spare is None:
            upstream.abort()
        if self.taping is not None and self._origin is not None:
            if as_arrived:
                self.taping.complete()
            else:
                self.taping.end(reason, detail)
            self._gateway.ended(self.taping, self._origin, self._client, spare)


def _request_fields(head: ParsedRequestHead, origin: Origin, *, upgrading: bool) -> Fields:
    """Return the fields to send: rewritten for this upstream, without ours."""
    kept = handshake_fields(head.fields) if upgrading else end_to_end(head.fields)
    fields = tuple(
        (name, origin.authority.encode() if name.lower() == b"host" else value)
        for name, value in kept
        if not name.lower().startswith(OWN_FIELD_PREFIX)
    )
    if field(fields, b"host") is None:  # an HTTP/1.0 client need not send one
        return ((b"Host", origin.authority.encode()), *fields)
    return fields
