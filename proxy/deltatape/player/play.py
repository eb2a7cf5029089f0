"""Answer one request from the tape by its timetable, with at most one timer per exchange.

Each step is sent in its own turn of the event loop. A step that follows shortly after another waits
until the client has read that one, where the system can tell: otherwise TCP would merge the two,
and the client would not see the reads of the tape. The client loses no time, since it has not yet
read what was there. A client that reads nothing delays the following steps, as back-pressure would
have stopped the provider.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from deltatape.http1.head import (
    Fields,
    ParsedRequestHead,
    asks_for_websocket,
    error_answer,
    expects_continue,
    write_response,
)
from deltatape.http1.server import ServerConnection
from deltatape.http1.socket import UnreadBytes
from deltatape.match.request import MatchQuery, NoMatch, RequestMatcher
from deltatape.match.schedule import ConnectionEnd, ReplayTempo
from deltatape.match.websocket import script_of
from deltatape.model.content_coding import decode_body
from deltatape.model.exchange import EndReason, Exchange, content_codings
from deltatape.player.response_bytes import Rendition, Renditions
from deltatape.player.websocket import SocketPlay, agrees, handshake

_CONTINUE = write_response(100, b"Continue", ())
_MERGEABLE_NS = 2_000_000
"""Steps that are sent further apart are hardly ever merged into one read."""
_NO_HANDSHAKE = "the tape has a WebSocket here, and this request does not ask for one"
_READ_TIMEOUT_S = 0.25
"""How long to wait at most until a step was read."""
_BUSY_POLL_S = 0.0005
_MAX_POLL_S = 0.005
"""Most clients read at once, so poll without a pause at first, then at growing intervals."""


@dataclass(slots=True)
class SendProgress:
    """The progress of sending an answer, on the clock of the loop."""

    reads_s: list[float] = field(default_factory=list)
    """When each of the reads of the tape was sent, of those that were."""
    ended_s: float | None = None
    """When nothing more was to be sent; None: more may come."""


class PlayContext(Protocol):
    """The player, as one request needs it."""

    hold_s: float
    renditions: Renditions
    unread: UnreadBytes
    longest: int
    """The longest request body that is read to its end, in bytes; no body on the tape is longer."""

    def refused(self, head: ParsedRequestHead) -> bytes | None:
        """Return the answer to a request that must not be served; None if it may be."""

    def continues(self, head: ParsedRequestHead) -> bool:
        """Return whether to send 100 Continue to a client that expects it."""

    def find(self, query: MatchQuery, play: "PlayHandler") -> Exchange | NoMatch:
        """Return the exchange to play; `play` tracks its progress."""

    def missed(self, query: MatchQuery, miss: NoMatch) -> bytes:
        """Return the answer to a request that no exchange answers."""

    def begun(self, play: "PlayHandler") -> None:
        """Note that a request is being answered."""

    def ended(self, play: "PlayHandler") -> None:
        """Note that an answer has ended."""


def query_of(head: ParsedRequestHead, body: bytes) -> MatchQuery:
    """Return a request for matching: its body without content-coding."""
    content, fault = decode_body(body, content_codings(head.fields))
    return MatchQuery(
        method=head.method, target=head.target, body=content, fault=fault.detail if fault else ""
    )


class SocketContext(PlayContext, Protocol):
    """The player, as one WebSocket needs it."""

    tempo: ReplayTempo

    def matcher_of(self, exchanges: Sequence[Exchange]) -> RequestMatcher:
        """Return a matcher of the messages of one WebSocket."""


class PlayHandler:
    """Serves one request; see `http1.server.Handler`."""

    def __init__(
        self,
        context: PlayContext,
        client: ServerConnection,
        exchange: Exchange | None = None,
        sockets: SocketContext | None = None,
    ) -> None:
        """Play what is found for one request.

        Args:
            context: finds it.
            client: asks.
            exchange: what to play, where that is known before the request is complete.
            sockets: for WebSockets; None: none is played.
        """
        self._context = context
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._request: ParsedRequestHead | None = None
        self._continued = False
        self._body: bytes | bytearray = b""
        self._exchange = exchange
        self._sockets = sockets
        self._rendition: Rendition | None = None
        self._next = 0
        self._origin_s = 0.0
        self._sent_s = 0.0
        self._wait_began_s: float | None = None
        self._writable = True
        self._timer: asyncio.TimerHandle | None = None
        self.progress = SendProgress()

    # The request.

    def on_request(self, head: ParsedRequestHead) -> None:
        self._request = head
        self._context.begun(self)
        refusal = self._context.refused(head)
        if refusal is not None:
            self._answer(refusal)
        elif (head.length or 0) > self._context.longest:
            self._refuse_long()
        elif expects_continue(head):
            self._continued = self._context.continues(head)
            if self._continued:
                self._client.write(_CONTINUE)

    def on_body(self, data: bytes) -> None:
        self._body = joined(self._body, data)
        if len(self._body) > self._context.longest:
            self._refuse_long()

    def on_request_end(self, trailers: Fields) -> None:  # noqa: ARG002 - part of the protocol
        request = self._request
        assert request is not None
        query = query_of(request, bytes(self._body))
        found = self._exchange or self._context.find(query, self)
        if isinstance(found, NoMatch):
            self._answer(self._context.missed(query, found))
            return
        self._body = b""
        self._exchange = found
        if found.upgraded:
            self._open_socket(found, request)
            return
        self._rendition = self._context.renditions.of(found, request, continued=self._continued)
        self._origin_s = self._loop.time()
        self._play()

    def _open_socket(self, found: Exchange, request: ParsedRequestHead) -> None:
        context = self._sockets
        if context is None or not asks_for_websocket(request):
            self._answer(error_answer(400, "no_websocket", _NO_HANDSHAKE))
            return
        compressed = agrees(found, request)
        self._client.write(handshake(found, request, compressed=compressed))
        script = script_of(found, compressed=compressed)
        play = SocketPlay(
            self._client,
            script,
            context.matcher_of(script.asked),
            context.tempo,
            context.missed,
            self._end_request,
        )
        play.start()

    def _refuse_long(self) -> None:
        assert self._request is not None
        self._body = b""
        miss = NoMatch(
            nearest=None,
            problem=f"its body has more than {self._context.longest} bytes,"
            " longer than any recorded",
            differences=(),
        )
        self._answer(self._context.missed(query_of(self._request, b""), miss))

    def _answer(self, response: bytes) -> None:
        """Send an answer other than an exchange."""
        self._client.write(response)
        self._finish(self._client.finish, keep_alive=False)

    def on_writable(self, *, writable: bool) -> None:
        self._writable = writable
        if writable and self._timer is None and self._rendition is not None:
            self._play()

    def on_client_lost(self, *, was_reset: bool) -> None:  # noqa: ARG002 - part of the protocol
        if self._timer is not None:
            self._timer.cancel()
        self._end_request()

    def stop(self) -> None:
        """Cut what is playing, because the player stops."""
        if self._timer is not None:
            self._timer.cancel()
        self._cut(hard=False)

    # The answer.

    def _play(self) -> None:
        """Send what is due, then wait for the next step or for the client."""
        self._timer = None
        assert self._rendition is not None
        table, loop = self._rendition.table, self._loop
        if self._next < len(table.steps):
            if not self._writable:
                return
            step = table.steps[self._next]
            due = self._origin_s + step.due_ns / 1e9
            now = loop.time()
            wait_s = due - now if due > now else self._until_read_s(now)
            if wait_s is not None:
                self._timer = loop.call_at(now + wait_s, self._play)
                return
            self._next += 1
            self._sent_s = now
            if step.brings_read:
                self.progress.reads_s.append(now)
            self._client.write(step.data)
        if self._next < len(table.steps):
            # A timer even for what is due: it comes after what can be read by now.
            due = self._origin_s + table.steps[self._next].due_ns / 1e9
            self._timer = loop.call_at(due, self._play)
            return
        due = self._origin_s + table.end_ns / 1e9
        if due > loop.time():
            self._timer = loop.call_at(due, self._end)
        else:
            self._end()

    def _until_read_s(self, now_s: float) -> float | None:
        """Return how long to wait before the next check; None if nothing waits."""
        if self._wait_began_s is None and not self._may_be_unread(now_s):
            return None
        since_s = now_s if self._wait_began_s is None else self._wait_began_s
        waited_s = now_s - since_s
        transport = self._client.transport
        if (
            transport is None
            or waited_s > _READ_TIMEOUT_S
            or not self._context.unread.has_unread(transport)
        ):
            self._wait_began_s = None
            return None
        self._wait_began_s = since_s
        return 0.0 if waited_s < _BUSY_POLL_S else min(waited_s, _MAX_POLL_S)

    def _may_be_unread(self, now_s: float) -> bool:
        """Check whether the previous step was sent so recently that TCP might merge the two."""
        if self._next == 0:
            return False
        assert self._rendition is not None
        previous, step = self._rendition.table.steps[self._next - 1 : self._next + 1]
        return min(step.due_ns - previous.due_ns, (now_s - self._sent_s) * 1e9) <= _MERGEABLE_NS

    def _end(self) -> None:
        self._timer = None
        rendition, exchange = self._rendition, self._exchange
        assert rendition is not None
        assert exchange is not None
        ending = rendition.table.ending
        if ending is ConnectionEnd.COMPLETE:
            self._finish(self._client.finish, keep_alive=rendition.keep)
        elif ending is ConnectionEnd.ANSWER:
            self._client.write(_gateway_answer(exchange))
            self._finish(self._client.finish, keep_alive=False)
        elif ending is ConnectionEnd.HOLD:
            self._timer = self._loop.call_later(self._context.hold_s, self._let_go)
        else:
            self._cut(hard=ending is ConnectionEnd.RESET)

    def _let_go(self) -> None:
        self._timer = None
        self._cut(hard=False)

    def _cut(self, *, hard: bool) -> None:
        """End the connection so that the client sees a cut: by RST where FIN would look regular."""
        if hard or (self._rendition is not None and self._rendition.fin_completes):
            self._finish(self._client.reset)
        else:
            self._finish(self._client.close)

    def _finish(self, end: Callable[..., None], **options: bool) -> None:
        self._rendition = None
        end(**options)
        self._end_request()

    def _end_request(self) -> None:
        self.progress.ended_s = self._loop.time()
        self._context.ended(self)


def joined(body: bytes | bytearray, data: bytes) -> bytes | bytearray:
    """Append data to a body, in place; the first data is not copied."""
    if not body:
        return data
    if isinstance(body, bytes):
        body = bytearray(body)
    body += data
    return body


def _gateway_answer(exchange: Exchange) -> bytes:
    """Return the gateway's answer when the upstream could not be reached."""
    assert exchange.end is not None
    late = exchange.end.reason is EndReason.TIMEOUT
    return error_answer(
        504 if late else 502,
        "upstream_timeout" if late else "upstream_refused",
        exchange.end.detail,
        head_only=exchange.request.method == "HEAD",
    )
