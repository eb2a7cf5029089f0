"""Plays a recorded WebSocket: what the server sent after each message of the client.

Messages of the client are matched as the bodies of requests are; one that is not on the tape ends
the connection with a close frame that says so. Pings are answered at once, a close frame with that
of the tape.
"""

import asyncio
import base64
import hashlib
from collections import deque
from collections.abc import Callable

from deltatape.http1.head import Fields, ParsedRequestHead, field, write_response
from deltatape.http1.server import ServerConnection
from deltatape.http1.socket import reset
from deltatape.match.request import MatchQuery, NoMatch, RequestMatcher
from deltatape.match.schedule import ReplayTempo
from deltatape.match.websocket import SocketScript, SocketStep, agreed_deflate
from deltatape.model.exchange import EndReason, Exchange, header
from deltatape.model.websocket import CLOSE, PING, FrameHead, FramePiece, Message, Side
from deltatape.tape.frames import SideTaping
from deltatape.wire.websocket import (
    MessageInflater,
    MessageReader,
    encode_head,
    is_control,
    negotiated_deflate,
)

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455 section 1.3."""
_KEY, _ACCEPT = b"sec-websocket-key", b"sec-websocket-accept"
_KEY_NAME = _KEY.decode()
_EXTENSIONS = b"sec-websocket-extensions"
_NOT_ON_TAPE = (1008).to_bytes(2, "big") + b"not on the tape"


def agrees(exchange: Exchange, request: ParsedRequestHead) -> bool:
    """Return whether a client offers the compression that was recorded, if any was."""
    offered = (value for name, value in request.fields if name.lower() == _EXTENSIONS)
    return agreed_deflate(exchange) is not None and negotiated_deflate(offered) is not None


def handshake(exchange: Exchange, request: ParsedRequestHead, *, compressed: bool) -> bytes:
    """Return the recorded answer to the handshake, for the key of `request`."""
    assert exchange.response is not None
    accept = _accept(field(request.fields, _KEY) or b"")
    recorded = header(exchange.request.headers, _KEY_NAME)
    right = None if recorded is None else _accept(recorded)
    fields: Fields = tuple(
        # A wrong one stays wrong.
        (name, accept if name.lower() == _ACCEPT and right in (None, value) else value)
        for name, value in exchange.response.headers
        if isinstance(value, bytes) and (compressed or name.lower() != _EXTENSIONS)
    )
    return write_response(exchange.response.status, exchange.response.reason, fields)


def _accept(key: bytes) -> bytes:
    """Return what answers a key (RFC 6455 section 4.2.2)."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


class SocketPlay(asyncio.Protocol):
    """Plays one WebSocket on the connection of its handshake.

    Args:
        client: the connection.
        script: how it goes.
        matcher: the matcher of the client's messages.
        tempo: how time passes.
        missed: called with a message that is not on the tape.
        ended: called when the connection has ended.
    """

    def __init__(
        self,
        client: ServerConnection,
        script: SocketScript,
        matcher: RequestMatcher,
        tempo: ReplayTempo,
        missed: Callable[[MatchQuery, NoMatch], object],
        ended: Callable[[], None],
    ) -> None:
        self._client = client
        self._script = script
        self._matcher = matcher
        self._tempo = tempo
        self._missed = missed
        self._ended = ended
        deflate = script.deflate
        inflater = None if deflate is None else MessageInflater(takeover=deflate.client_takeover)
        self._pieces = SideTaping(inflater)
        self._reader = MessageReader(compressed=deflate is not None)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, SocketStep]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._last_s = 0.0
        self._answered = 0
        self._closed = False
        self._writable = True
        self._transport: asyncio.Transport | None = None

    def start(self) -> None:
        """Take the connection, and send what comes first."""
        early = self._client.detach(self)
        self._answer(0)
        if early:
            self.data_received(early)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for piece in self._pieces.feed(data):
            if isinstance(piece, str):  # about compressed messages that cannot be read
                continue
            opcode, head, at, content, wire, more, raw, *_ = piece
            message = self._reader.add(
                FramePiece(0, Side.CLIENT, opcode, head, at, content, wire, more, raw)
            )
            if message is not None:
                self._take(message)

    def eof_received(self) -> None:
        """See `asyncio.Protocol`: the connection ends."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._transport = None
        self._client.connection_lost(exc)
        self._ended()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._send_due()

    # The client's messages.

    def _take(self, message: Message) -> None:
        if message.opcode == PING:
            self._write(encode_head(FrameHead(PING + 1, len(message.data))) + message.data)
        elif message.opcode == CLOSE:
            answer = self._script.closing or _close_frame(message.data)
            self._close(b"" if self._closed else answer)
        elif not is_control(message.opcode):
            self._match(message)

    def _match(self, message: Message) -> None:
        asked = self._script.asked
        if not asked:
            self._close(_close_frame(_NOT_ON_TAPE))
            return
        request = asked[0].request
        query = MatchQuery(method=request.method, target=request.target_bytes, body=message.data)
        found = self._matcher.match(query)
        if isinstance(found, NoMatch):
            self._missed(query, found)
            self._close(_close_frame(_NOT_ON_TAPE))
            return
        self._matcher.play(found.position, spent=True)
        self._answer(found.position + 1)

    # What is sent.

    def _answer(self, number: int) -> None:
        answer = self._script.answers[number]
        begun_s = max(self._loop.time(), self._last_s)
        waits = self._tempo.waits(step.t_ns - answer.asked_ns for step in answer.steps)
        for wait_ns, step in zip(waits, answer.steps, strict=True):
            self._last_s = begun_s + wait_ns / 1e9
            self._waiting.append((self._last_s, step))
        self._answered += 1
        self._send_due()

    def _send_due(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and self._writable:
            due_s, step = self._waiting[0]
            if due_s > self._loop.time():
                self._timer = self._loop.call_at(due_s, self._send_due)
                return
            self._waiting.popleft()
            self._closed |= step.closes
            self._write(step.data)
        if not self._waiting and self._answered == len(self._script.answers):
            self._end()

    def _end(self) -> None:
        """End the connection if the provider did, after all was sent."""
        if self._transport is None:
            return
        if self._script.ending is EndReason.UPSTREAM_RESET:
            reset(self._transport)
        elif self._script.ending is EndReason.UPSTREAM_CLOSED:
            self._transport.close()

    def _close(self, data: bytes) -> None:
        self._stop()
        self._write(data)
        if self._transport is not None:
            self._transport.close()

    def _stop(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def _close_frame(data: bytes) -> bytes:
    return encode_head(FrameHead(CLOSE, len(data))) + data
