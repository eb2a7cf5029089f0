"""The client side: one connection, one request at a time.

The connection parses requests and hands them, piece by piece, to a `Handler` of its own making;
the handler answers with `write` and ends with `finish`, `close` or `reset`. Bytes of a next,
pipelined request wait until the present one is finished. Back-pressure: `pause_body` stops
reading, `Handler.on_writable` says when the client lags. A client that leaves is noticed at any
time, also while nothing is read (`socket.HangupWatch`).
"""

import asyncio
import contextlib
import select
from collections.abc import Callable
from typing import Protocol

from deltatape.http1.body import ChunkedBody, LengthBody, MessageBody
from deltatape.http1.head import (
    BadMessageError,
    Fields,
    Http2Error,
    ParsedRequestHead,
    find_head,
    http2_refusal,
    parse_request,
)
from deltatape.http1.socket import HangupWatch, break_cycle, limit_reads, reset, reset_now

WRITE_HIGH_BYTES = 64 * 1024
_MAX_PIPELINED_BYTES = 64 * 1024
_LINGER_S = 5.0
_EMPTY_LINE = b"\r\n"


class Handler(Protocol):
    """Handles one request. Calls come in this order; `on_client_lost` at most once."""

    def on_request(self, head: ParsedRequestHead) -> None:
        """The head is complete."""

    def on_body(self, data: bytes) -> None:
        """The next bytes of the body, after transfer-coding."""

    def on_request_end(self, trailers: Fields) -> None:
        """The request is complete."""

    def on_writable(self, *, writable: bool) -> None:
        """False: the client is slow, stop writing. True: everything written was taken."""

    def on_client_lost(self, *, was_reset: bool) -> None:
        """The client left before `finish`; nothing can be written any more."""


class ServerOwner(Protocol):
    """The server of a connection."""

    def handler(self, connection: "ServerConnection") -> Handler:
        """Return a handler for the next request."""

    def opened(self, connection: "ServerConnection") -> None:
        """Note an open connection."""

    def closed(self, connection: "ServerConnection") -> None:
        """Note a closed connection."""

    def refused_bytes(self, problem: str) -> bytes:
        """Return the response to bytes that are not a request."""


class ServerConnection(asyncio.Protocol):
    """One accepted connection."""

    def __init__(self, owner: ServerOwner) -> None:
        self._owner = owner
        self._handler: Handler | None = None
        self._head: ParsedRequestHead | None = None
        self._body: MessageBody | None = None
        self._buffer = bytearray()
        self._request_complete = True
        self._answering = False
        self._ignoring = False
        self._retired = False
        self._resetting = False
        self._writable = True
        self._paused: set[str] = set()
        self._transport: asyncio.Transport | None = None
        self._watch: HangupWatch | None = None
        self.on_pipelined: Callable[[], None] | None = None
        """Called when bytes of a next request come before the response has ended. A handler that
        cannot know its response's end may set it, for its own request."""
        self.body_follows = False
        """During `Handler.on_request`: whether `on_body` is called right after it. What a handler
        sends then can wait for that, so that a small request leaves as one segment."""
        self.body_ends = False
        """During `Handler.on_body`: whether these bytes are the last ones."""

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        limit_reads(transport)
        # Low 0: `resume_writing` means that everything has gone to the kernel.
        transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES, low=0)
        self._transport = transport
        self._watch = HangupWatch(transport, transport.abort)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._ignoring:
            return
        if self._request_complete and (self._handler is not None or not self._writable):
            self._buffer += data  # pipelined: its turn comes
            if len(self._buffer) > _MAX_PIPELINED_BYTES:
                self._pause("pipelined")
            if self.on_pipelined is not None:
                self.on_pipelined()
            return
        if self._body is not None:
            self._feed_body(data)
            return
        self._buffer += data
        self._next_head()

    def eof_received(self) -> None:
        """See `asyncio.Protocol`: closing the sending half is leaving, as for most servers."""

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.stop()
        if self._transport is not None:
            break_cycle(self._transport)
        self._transport = None
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.on_client_lost(was_reset=isinstance(exc, ConnectionResetError))
        self._owner.closed(self)

    def pause_writing(self) -> None:
        self._writable = False
        if self._handler is not None:
            self._handler.on_writable(writable=False)

    def resume_writing(self) -> None:
        self._writable = True
        if self._handler is not None:
            self._handler.on_writable(writable=True)
        else:
            # asyncio tells of a full buffer once: a next request must not begin before it drains.
            self._next_head()

    # What a handler calls.

    @property
    def idle(self) -> bool:
        """Whether nothing is in progress, not even an end."""
        return self._handler is None and not self._buffer and not self._ignoring

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport; None after the end of the connection."""
        return self._transport

    def write(self, data: bytes) -> None:
        self._answering = True
        if self._transport is not None:
            self._transport.write(data)

    def detach(self, protocol: asyncio.Protocol) -> bytes:
        """Give the connection to another protocol; return what the client has sent already.

        `connection_lost` has to be called when it ends; until then, it is one of its server's.
        """
        assert self._transport is not None
        self._handler = None
        self._ignoring = True  # it is not idle, and takes no request any more
        rest, self._buffer = bytes(self._buffer), bytearray()
        self._paused.clear()
        if self._watch is not None:
            self._watch.stop()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        self._transport.resume_reading()
        return rest

    def pause_body(self) -> None:
        """Stop reading the request body."""
        self._pause("body")

    def resume_body(self) -> None:
        """Continue reading the request body."""
        self._resume("body")

    def finish(self, *, keep_alive: bool) -> None:
        """End the response: take the next request, or close."""
        self._handler = self.on_pipelined = None
        paused = bool(self._paused)
        self._paused.discard("body")
        if not self._request_complete:
            self._linger()
        elif keep_alive and self._transport is not None and not self._retired:
            if paused:
                self._resume("pipelined")
            if self._buffer:
                asyncio.get_running_loop().call_soon(self._next_head)
        else:
            self.close()

    def close(self) -> None:
        """Close with FIN after everything written."""
        self._handler = None
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Close with RST after everything written; ignore further bytes."""
        self._handler = None
        self._ignoring = True
        self._resetting = True
        if self._transport is not None:
            reset(self._transport)

    def retire(self) -> None:
        """Take no further request: close when idle or after the current one."""
        self._retired = True
        if self.idle:
            self.close()

    def close_unless_asked(self) -> None:
        """Close if idle and nothing is unread."""
        if self.idle and self._transport is not None:
            arrived = select.poll()
            arrived.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
            if not arrived.poll(0):
                self.close()

    def drop(self) -> None:
        """Close at once, with unsent bytes; with RST if one is due."""
        self._handler = None
        if self._transport is None:
            return
        if self._resetting:
            reset_now(self._transport)
        else:
            self._transport.abort()

    def fail(self, response: bytes) -> None:
        """Answer something that cannot be a request, and close."""
        self.write(response)
        self._linger()

    # Reading.

    def _next_head(self) -> None:
        transport = self._transport
        busy = self._handler is not None or self._ignoring or not self._writable
        if transport is None or transport.is_closing() or busy:
            return
        while self._buffer.startswith(_EMPTY_LINE):  # RFC 9112 section 2.2: to be ignored
            del self._buffer[:2]
        try:
            end = find_head(self._buffer)
            if not end:
                return
            self._head = parse_request(bytes(self._buffer[:end]))
        except BadMessageError as error:
            refusal = self._owner.refused_bytes(str(error))
            self.fail(http2_refusal(str(error)) if isinstance(error, Http2Error) else refusal)
            return
        del self._buffer[:end]
        head = self._head
        self._body = ChunkedBody(strict=True) if head.length is None else LengthBody(head.length)
        self._request_complete = False
        self._answering = False
        self._handler = self._owner.handler(self)
        rest, self._buffer = bytes(self._buffer), bytearray()
        self.body_follows = bool(head.length and rest)
        self._handler.on_request(head)
        self.body_follows = False
        self._feed_body(rest)

    def _feed_body(self, raw: bytes) -> None:
        body, handler = self._body, self._handler
        if body is None or handler is None:
            return
        scan = body.feed(raw)
        if body.problem:
            self._body = self._handler = None
            handler.on_client_lost(was_reset=False)
            if self._answering:
                self.reset()  # words of ours would become part of the response that has begun
            else:
                self.fail(self._owner.refused_bytes(body.problem))
            return
        if scan.data:
            self.body_ends = body.done
            handler.on_body(scan.data)
        if body.done:
            self._body = None
            self._request_complete = True
            self._buffer += raw[scan.used :]
            if self._handler is not None:
                self._handler.on_request_end(body.trailers)

    def _pause(self, why: str) -> None:
        if self._transport is not None and self._watch is not None:
            self._paused.add(why)
            self._transport.pause_reading()
            self._watch.start()

    def _resume(self, why: str) -> None:
        self._paused.discard(why)
        if not self._paused and self._transport is not None and self._watch is not None:
            self._watch.stop()
            self._transport.resume_reading()

    def _linger(self) -> None:
        """Close after reading on for a moment.

        Closing beside unread bytes sends an RST that would take the response with it (RFC 9112
        section 9.6).
        """
        self._ignoring = True
        self._handler = None
        transport = self._transport
        if transport is None:
            return
        self._resume("body")
        with contextlib.suppress(OSError):  # a client that is quick has gone already
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER_S, transport.close)
