"""The upstream side: one connection, one response at a time.

Every read is scanned for framing and handed on raw beside its scan, so that the handler can
splice the bytes as they came. A response whose head or framing is invalid is not repaired: its
bytes go on raw until upstream closes, since clients accept more than llhttp does.
"""

import asyncio
import enum
import os
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

from deltatape.http1.body import BodyScan, ChunkedBody, CloseBody, MessageBody, body_of
from deltatape.http1.event_loop import StreamingEventLoop
from deltatape.http1.head import (
    BadMessageError,
    Fields,
    ParsedResponseHead,
    find_head,
    parse_response,
)
from deltatape.http1.socket import (
    READ_BYTES,
    break_cycle,
    leftovers,
    limit_reads,
    reset_now,
    socket_of,
)
from deltatape.http1.tls import TLS_BUFFER_BYTES, ReadableTLS
from deltatape.model.exchange import BROKEN_CHUNKS, CUT_LAST_CHUNK, INVALID_HEAD, Framing


class ConnectionLost(enum.Enum):
    """How an upstream connection ended before its response was complete."""

    CLOSED = "closed"
    RESET = "reset"


class ResponseHandler(Protocol):
    """Handles one response."""

    def on_informational(self, head: ParsedResponseHead) -> None:
        """A 1xx head; another head follows."""

    def on_response(self, head: ParsedResponseHead) -> None:
        """The final head."""

    def on_response_data(self, raw: bytes, scan: BodyScan) -> None:
        """One socket read of the body: raw bytes, and their body content."""

    def on_response_note(self, text: str) -> None:
        """The framing is odd; the bytes are forwarded anyway."""

    def on_response_debris(self, raw: bytes) -> None:
        """Bytes of a response without a valid head: from an invalid or incomplete one on."""

    def on_response_end(self, trailers: Fields) -> None:
        """The response is complete."""

    def on_upstream_lost(self, how: ConnectionLost, detail: str) -> None:
        """The connection ended before the response was complete."""

    def on_upstream_writable(self, *, writable: bool) -> None:
        """False: the upstream is slow to take the request."""


class UpstreamConnection(asyncio.Protocol):
    """One connection to an upstream."""

    def __init__(self, *, tls_in_tls: bool = False) -> None:
        """Args: tls_in_tls: the connection's TLS lies within that of a proxy."""
        self._tls_in_tls = tls_in_tls
        self._handler: ResponseHandler | None = None
        self._method = ""
        self._on_upgrade: Callable[[ParsedResponseHead, bytes], None] | None = None
        self._buffer = bytearray()
        self._body: MessageBody | None = None
        self._invalid = ""
        """What is wrong with the response's head: then its bytes are not scanned."""
        self.body_follows = False
        """During `ResponseHandler.on_response`: whether `on_response_data` is called right after
        it."""
        self._keep_alive = False
        self._transport: asyncio.Transport | None = None
        self._direct: StreamingEventLoop | None = None
        """The loop that reads the body without the transport; None: the transport reads."""
        self._fd = -1
        self._tls: ReadableTLS | None = None
        """What decrypts the bytes that are read directly."""

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        limit_reads(transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._handler is None:
            self.abort()  # an answer that nobody asked for: never reuse this connection
        elif self._invalid:
            self._handler.on_response_debris(data)
        elif self._body is not None:
            self._feed_body(data)
        else:
            self._buffer += data
            self._next_head()

    def eof_received(self) -> None:
        """See `asyncio.Protocol`: at once, not when the rest of a stuck upload has left."""
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        if exc is not None and self._transport is not None:
            for data in leftovers(self._transport):
                if self._handler is not None:
                    self.data_received(data)
        if self._transport is not None:
            break_cycle(self._transport)
        self._transport = self._tls = None
        handler, self._handler = self._handler, None
        if handler is None:
            return
        if exc is None and isinstance(self._body, CloseBody) and not self._body.broken:
            handler.on_response_end(())
            return
        self._forward_incomplete_head(handler)
        if isinstance(self._body, ChunkedBody) and self._body.in_last_chunk:
            handler.on_response_note(f"{CUT_LAST_CHUNK}, which some clients take for its end")
        if exc is None:
            handler.on_upstream_lost(ConnectionLost.CLOSED, self._invalid)
        else:
            handler.on_upstream_lost(ConnectionLost.RESET, str(exc))

    def _forward_incomplete_head(self, handler: ResponseHandler) -> None:
        """Forward an incomplete head: the client sees what it would have seen."""
        if self._buffer:
            raw, self._buffer = bytes(self._buffer), bytearray()
            handler.on_response_debris(raw)
            handler.on_response_note(f"the response ended inside a head: {raw[:80]!r}")

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.on_upstream_writable(writable=False)

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.on_upstream_writable(writable=True)

    # What a handler calls.

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent: open, idle, and without errors."""
        transport = self._transport
        return (
            transport is not None
            and not transport.is_closing()
            and self._handler is None
            and self._keep_alive
        )

    def start(
        self,
        handler: ResponseHandler,
        method: str,
        on_upgrade: Callable[[ParsedResponseHead, bytes], None] | None = None,
    ) -> None:
        """Start a request.

        Args:
            handler: gets its response.
            method: the method of the request.
            on_upgrade: gets, in the place of a response, the head of a 101 and what has come behind
                it, and takes the connection with `detach`. None: no other protocol is asked for.
        """
        self._handler = handler
        self._method = method
        self._on_upgrade = on_upgrade
        self._keep_alive = False
        self.resume()  # the response before may have left it paused

    def detach(self, protocol: asyncio.Protocol) -> None:
        """Give the open connection to another protocol; this one has ended."""
        self._leave()
        self._handler = None
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
            transport.resume_reading()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def pause(self) -> None:
        """Stop reading while the client is slow."""
        self._leave()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()
            self._read_directly()

    def abort(self) -> None:
        """Drop the connection at once, without calling the handler."""
        self._leave()
        self._handler = None
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Drop the connection at once, with RST, without calling the handler."""
        self._leave()
        self._handler = None
        if self._transport is not None:
            reset_now(self._transport)

    # Reading.

    def _read_directly(self) -> None:
        """Read the body without the transport, where the loop can."""
        loop, transport = asyncio.get_running_loop(), self._transport
        reading = self._body is not None and self._handler is not None
        if not reading or not isinstance(loop, StreamingEventLoop) or transport is None:
            return
        sock, tls = socket_of(transport), transport.get_extra_info("ssl_object")
        if sock is None:
            return
        if tls is None:
            reader = self._read
        elif isinstance(tls, ReadableTLS) and not self._tls_in_tls:
            self._tls, reader = tls, self._read_tls
        else:
            return
        self._direct, self._fd = loop, sock.fileno()
        loop.read_directly(self._fd, reader)

    def _leave(self) -> None:
        """Have the transport read again."""
        direct, self._direct = self._direct, None
        if direct is not None:
            direct.read_by_transport(self._fd)

    def _read(self) -> bool:
        """See `event_loop.Reader`."""
        if self._direct is None:  # it has been paused since the loop saw that there is something
            return True
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return True
        except OSError as error:
            self._fail(error)
            return True
        if not data:
            self._leave()
            return False
        try:
            self._feed_body(data)
        except Exception as error:  # noqa: BLE001 - as asyncio does with those of `data_received`
            self._fail_inside(error)
        return True

    def _read_tls(self) -> bool:
        """See `event_loop.Reader`; asyncio keeps handshakes, writes and ends."""
        tls, transport = self._tls, self._transport
        if self._direct is None or tls is None or transport is None:
            return True
        if transport.is_closing():  # the socket is closed before `connection_lost` tells it
            self._leave()
            return False
        try:
            data = os.read(self._fd, TLS_BUFFER_BYTES)
        except BlockingIOError:
            return True
        except OSError as error:
            self._fail(error)
            return True
        if not data:
            self._leave()
            return False
        data = tls.decrypt(data)
        if data:
            try:
                self._feed_body(data)
            except Exception as error:  # noqa: BLE001 - see `_read`
                self._fail_inside(error)
                return True
        if tls.ended:
            if tls.ended is True:
                self._leave()
                self.eof_received()
            else:
                self._fail(tls.ended)
        else:
            self._send_waiting()
        return True

    def _send_waiting(self) -> None:
        """Have asyncio send what OpenSSL has to say, as it does after each read of its own."""
        transport = self._transport
        if self._direct is not None and transport is not None and transport.get_write_buffer_size():
            transport.pause_reading()
            transport.resume_reading()

    def _fail_inside(self, error: Exception) -> None:
        context = {"message": "a response could not be passed on", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        transport = self._transport
        self.connection_lost(error)
        if transport is not None:
            transport.abort()

    def _next_head(self) -> None:
        while self._handler is not None and self._body is None:
            try:
                end = find_head(self._buffer)
                if not end:
                    return
                head = parse_response(bytes(self._buffer[:end]), method=self._method)
            except BadMessageError as error:
                self._forward_invalid(f"{INVALID_HEAD}: {error}")
                return
            del self._buffer[:end]
            if head.informational:
                self._handler.on_informational(head)
            else:
                self._begin(head)

    def _begin(self, head: ParsedResponseHead) -> None:
        assert self._handler is not None
        if self._on_upgrade is not None and head.status == HTTPStatus.SWITCHING_PROTOCOLS:
            rest, self._buffer = bytes(self._buffer), bytearray()
            self._on_upgrade(head, rest)
            return
        self._body = body_of(head.framing, head.length)
        self._keep_alive = head.keep_alive
        rest, self._buffer = bytes(self._buffer), bytearray()
        self.body_follows = bool(rest) and not self._body.done
        self._handler.on_response(head)
        self.body_follows = False
        if head.framing is Framing.NONE or self._body.done or rest:
            self._feed_body(rest)
        self._read_directly()

    def _feed_body(self, raw: bytes) -> None:
        body, handler = self._body, self._handler
        if body is None or handler is None:
            return
        scan = body.feed(raw)
        if body.problem:
            self._forward_unframed(raw, scan)
            return
        if scan.used < len(raw):
            handler.on_response_note(f"{len(raw) - scan.used} bytes after the response's end")
            self._keep_alive = False
        if scan.used:
            handler.on_response_data(raw[: scan.used] if scan.used < len(raw) else raw, scan)
        if body.done:
            self._leave()
            self._body = None
            self._handler = None
            if not self._keep_alive:
                self.abort()
            handler.on_response_end(body.trailers)

    def _forward_unframed(self, raw: bytes, scan: BodyScan) -> None:
        """Stop framing and forward all further bytes as they come."""
        body, handler = self._body, self._handler
        assert isinstance(body, ChunkedBody)
        assert handler is not None
        if scan.used:
            handler.on_response_data(raw[: scan.used], scan)
        handler.on_response_note(f"{BROKEN_CHUNKS}, bytes go on as they came: {body.problem}")
        self._body = CloseBody(broken=True)
        rest = raw[scan.used :]
        tail = BodyScan(body.pending + rest, None, len(rest))
        handler.on_response_data(rest, tail)

    def _forward_invalid(self, problem: str) -> None:
        """Forward everything from an invalid head on, as it comes, until upstream closes."""
        handler = self._handler
        assert handler is not None
        self._invalid = problem
        raw, self._buffer = bytes(self._buffer), bytearray()
        handler.on_response_debris(raw)
        handler.on_response_note(f"{problem}; bytes go on as they came")
