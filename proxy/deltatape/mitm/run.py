"""One run of mitmproxy: the tape, and the taping of each exchange.

Bytes are handed back to mitmproxy untouched, whatever happens here: an error ends the taping of the
exchange and is reported once.

mitmproxy passes on pieces of a body. With chunked framing a piece is an HTTP chunk, or the part of
it that has arrived, and goes to the client as one chunk. So each read on the tape ends one chunk.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from deltatape.clock import Clock, SystemClock, file_stamp
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.gateway.tapes import TapeBook
from deltatape.gateway.taping_guard import GuardedTaping, Writer
from deltatape.mitm.addon_log import AddonLogger, MakeLive
from deltatape.mitm.flows import (
    Flow,
    FlowMessage,
    FlowResponse,
    Headers,
    Server,
    Stream,
    ending,
)
from deltatape.mitm.ipc import AddonMessage
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.store.mask_key import mask_key
from deltatape.store.names import ulid
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.tap import ExchangeTap

IDLE_NS = 5_000_000_000
"""How often to record that a silent exchange is still being watched."""
LAST_BYTES_S = 0.5
"""How long mitmproxy may take to send the last bytes of a stream."""
_NEARLY = 0.99
"""Share of mitmproxy's timeout for silence. At the timeout it ends a connection itself, but reports
that the client did."""


_BODILESS = (204, 304)
_INFORMATIONAL = 200
_DIVERTED = ("transparent", "local", "wireguard", "tun")


class FlowTaping(GuardedTaping):
    """Tapes one flow."""

    def __init__(
        self, number: int, writer: Writer, tap: ExchangeTap, alarm: Callable[[str], None]
    ) -> None:
        super().__init__(number, writer, tap, alarm)
        self._uploading = False
        self._downloading = False

    # The request.

    def request(self, flow: Flow, ident: str) -> None:
        """Tape the request's head."""
        request = flow.request
        self._write(
            ExchangeTap.request,
            id=ident,
            method=request.method,
            target=request.data.path,
            upstream=_origin(request.scheme, _host(flow), request.port),
            http=_version(request),
            headers=_sent_fields(request.headers),
        )

    def upload(self, flow: Flow, reused: Callable[[Server], bool]) -> Stream:
        """Return the stream filter for the request's body.

        Args:
            flow: of which.
            reused: whether an upstream connection has served before; asked when it serves again.
        """
        other_filter = _filter_of_other_addon(flow.request)

        def read(data: bytes) -> bytes:
            if not self._uploading:
                self._uploading = True
                self._sent(flow.server_conn, reused)
            if data:
                self._write(ExchangeTap.request_body, data)
            return data if other_filter is None else other_filter(data)

        return read

    def _sent(self, server: Server, reused: Callable[[Server], bool]) -> None:
        """Tape that the request's head has left: the body follows it at once."""
        is_reused = reused(server)
        start, tcp, tls = (
            server.timestamp_start,
            server.timestamp_tcp_setup,
            server.timestamp_tls_setup,
        )
        self._write(
            ExchangeTap.sent,
            connect_ns=0 if is_reused else _between_ns(start, tcp),
            tls_ns=0 if is_reused else _between_ns(tcp, tls),
            reused=is_reused,
        )

    def request_end(self, flow: Flow) -> None:
        """Tape that the request is complete."""
        body = flow.request.raw_content
        if body and not self._uploading:
            self._write(ExchangeTap.request_body, body)
        self._write(ExchangeTap.request_end)

    # The response.

    def response(self, flow: Flow, response: FlowResponse) -> None:
        """Tape the response's head."""
        framing = _framing(flow.request.method, response)
        self._write(
            ExchangeTap.response,
            status=response.status_code,
            reason=response.reason.encode("utf-8", "surrogateescape"),
            http=_version(response),
            framing=framing,
            headers=response.headers.fields,
        )

    def download(self, flow: Flow, response: FlowResponse) -> Stream:
        """Return the stream filter for the response's body."""
        other_filter = _filter_of_other_addon(response)
        chunked = _framing(flow.request.method, response) is Framing.CHUNKED

        def read(data: bytes) -> bytes:
            self._downloading = True
            if data:
                self._read(data, chunked=chunked)
            return data if other_filter is None else other_filter(data)

        return read

    def _read(self, data: bytes, *, chunked: bool) -> None:
        ends = (len(data),) if chunked else None
        self._write(ExchangeTap.read, data, ends)

    def response_end(self, response: FlowResponse) -> None:
        """Tape that the response is complete."""
        body, trailers = response.raw_content, response.trailers
        if body and not self._downloading:
            # mitmproxy, or another of its addons, has made the answer itself.
            self._read(body, chunked=False)
        if trailers is not None:
            self._write(ExchangeTap.trailers, trailers.fields)

    def silent_ns(self) -> int:
        """Return how long nothing has arrived."""
        return self._writer.now_ns() - self.last_ns


def _host(flow: Flow) -> str:
    """Return the upstream's name; with transparent proxying only `Host` has it."""
    diverted = flow.client_conn.proxy_mode.type_name in _DIVERTED
    return flow.request.pretty_host if diverted else flow.request.host


def _origin(scheme: str, host: str, port: int) -> str:
    """Return `https://api.openai.com`, with the port only if it is not the scheme's default."""
    host = f"[{host}]" if ":" in host else host
    own = {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{host}" if port == own else f"{scheme}://{host}:{port}"


def _version(message: FlowMessage) -> str:
    return message.http_version.removeprefix("HTTP/")


def _sent_fields(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    """Return the fields sent upstream: mitmproxy answers `Expect` itself and removes it."""
    return tuple(
        (name, value)
        for name, value in headers.fields
        if (name.lower(), value.lower()) != (b"expect", b"100-continue")
    )


def _between_ns(start: float | None, end: float | None) -> int:
    """Return the nanoseconds between two times; 0 if one is unknown."""
    return max(0, round((end - start) * 1e9)) if start is not None and end is not None else 0


def _filter_of_other_addon(message: FlowMessage) -> Stream | None:
    """Return a stream filter that another addon has set."""
    return message.stream if callable(message.stream) else None


def _framing(method: str, response: FlowResponse) -> Framing:
    """Return how the body is delimited (RFC 9112 section 6.3)."""
    if (
        method == "HEAD"
        or response.status_code in _BODILESS
        or response.status_code < _INFORMATIONAL
    ):
        return Framing.NONE
    fields = {name.lower(): value.lower() for name, value in response.headers.fields}
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        return Framing.CHUNKED
    # HTTP/2 tells the end of a body in its frames: never by closing the connection.
    if b"content-length" in fields or response.http_version.startswith(("HTTP/2", "HTTP/3")):
        return Framing.LENGTH
    return Framing.CLOSE


class MitmRun:
    """One run of mitmproxy; needs a running loop.

    Args:
        folder: for the tape.
        version: mitmproxy's.
        logger: gets messages.
        make_live: see `addon_log.find_live`.
        patience_s: after how much silence mitmproxy ends a connection.
        environment: where the state folder is looked up, and credentials that are to be masked.
    """

    def __init__(
        self,
        folder: Path,
        version: str,
        logger: AddonLogger,
        make_live: MakeLive,
        patience_s: Callable[[], float],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._clock: Clock = SystemClock()
        self._logger = logger
        self._patience_s = patience_s
        self._masker = Masker(mask_key(environment, self.alarm))
        for secret in known_secrets(environment, read_dotenv(Path.cwd(), environment)):
            self._masker.learn(secret)
        self._live = make_live(lambda text: logger.send(AddonMessage.LINE, text=text))
        self.book = TapeBook(lambda _, thread: self._writer(folder, thread), self._masker)
        self._open: dict[str, FlowTaping] = {}
        self._clients: dict[str, int] = {}
        self._served: set[str] = set()
        self._connections = 0
        self._drained: Callable[[], object] | None = None
        """Called when the last exchange has ended, once a stop is wanted."""
        tape = self.book.current
        tape.tap.note(
            tape.writer.now_ns(),
            f"taped by mitmproxy {version}: reads are the pieces that it passed on, and whether"
            " upstream closed or reset a connection cannot be told",
        )
        self._ticker = asyncio.get_running_loop().call_later(IDLE_NS / 1e9, self._tick)

    def _writer(self, folder: Path, thread: WriterThread) -> TapeWriter:
        return TapeWriter.create(
            folder,
            file_stamp(self._clock.wall_ns()),
            clock=self._clock,
            source=Source.MITM,
            alarm=self.alarm,
            thread=thread,
        )

    def alarm(self, problem: str) -> None:
        """Report a problem with taping; any thread may call it."""
        self._logger.send(AddonMessage.ALARM, text=problem)

    def _tick(self) -> None:
        for taping in self._open.values():
            taping.watch(IDLE_NS)
        self.book.watch(IDLE_NS)
        self._ticker = asyncio.get_running_loop().call_later(IDLE_NS / 1e9, self._tick)

    # Connections.

    def client(self, ident: str) -> None:
        """Report a client of a taped host, once."""
        if ident not in self._clients:
            self._connections += 1
            self._clients[ident] = self._connections
            self.book.client(self._connections, ClientState.OPENED)

    def client_left(self, ident: str) -> None:
        """Forget a client that has disconnected."""
        number = self._clients.pop(ident, None)
        if number is not None:
            self.book.client(number, ClientState.CLOSED)

    def _reused(self, server: Server) -> bool:
        """Return whether an upstream connection is used again."""
        reused = server.id in self._served
        self._served.add(server.id)
        return reused

    def server_left(self, ident: str) -> None:
        """Forget an upstream connection."""
        self._served.discard(ident)

    # Exchanges.

    def begin(self, flow: Flow) -> None:
        """Begin an exchange and set the stream filters of its bodies."""
        tape = self.book.current
        self.client(flow.client_conn.id)
        tape.exchanges += 1
        tape.active += 1
        number = tape.exchanges
        self._live.begin(number)
        keep, put = self._live.put, tape.writer.put

        def both(exchange: int, line: bytes) -> None:
            keep(exchange, line)
            put(exchange, line)

        taping = FlowTaping(
            number, tape.writer, ExchangeTap(number, both, self._masker), self.alarm
        )
        self._open[flow.id] = taping
        taping.request(flow, ulid(self._clock))
        if flow.response is None:
            flow.request.stream = taping.upload(flow, self._reused)

    def request_end(self, flow: Flow) -> None:
        """End the request."""
        if taping := self._open.get(flow.id):
            taping.request_end(flow)

    def response(self, flow: Flow) -> None:
        """Tape the response's head."""
        taping, response = self._open.get(flow.id), flow.response
        if taping is not None and response is not None:
            taping.response(flow, response)
            response.stream = taping.download(flow, response)

    def complete(self, flow: Flow) -> None:
        """End a complete exchange."""
        taping = self._open.get(flow.id)
        if taping is None:
            return
        if flow.response is not None:
            taping.response_end(flow.response)
        if flow.server_conn.timestamp_start is None:
            taping.note("mitmproxy answered itself; nothing went upstream")
        if flow.websocket is not None:
            taping.note("a WebSocket follows; its frames are not taped")
        self._end(flow, taping, EndReason.COMPLETE, "")

    def failed(self, flow: Flow) -> None:
        """End a failed exchange."""
        taping = self._open.get(flow.id)
        if taping is None:
            return
        reason, detail = ending(flow)
        silent_s = taping.silent_ns() / 1e9
        if reason is EndReason.CLIENT_CLOSED and silent_s >= _NEARLY * self._patience_s():
            reason = EndReason.TIMEOUT
            detail = f"mitmproxy gave up after {silent_s:.0f} s without a byte: {detail}"
        self._end(flow, taping, reason, detail)

    def _end(self, flow: Flow, taping: FlowTaping, reason: EndReason, detail: str) -> None:
        del self._open[flow.id]
        taping.end(reason, detail)
        tape = self.book.current
        tape.active -= 1
        tape.watched_ns = tape.writer.now_ns()
        tape.writer.durable()
        self._live.ended(tape, taping.number, _ended_line(flow, reason))
        if self._drained is not None and not self._open:
            self._drained()

    # The end.

    def drain(self, grace_s: float, then: Callable[[], None]) -> None:
        """Let streams go on for `grace_s` at most, and let their last bytes leave."""
        loop = asyncio.get_running_loop()
        active = len(self._open)
        self._logger.send(AddonMessage.STOPPING, active=active)
        self._drained = lambda: loop.call_later(LAST_BYTES_S, then)
        if active:
            loop.call_later(grace_s, then)
        else:
            then()

    async def stop(self, reason: str, code: int | None) -> None:
        """End open exchanges, then the tape."""
        self._ticker.cancel()
        for taping in self._open.values():
            taping.end(EndReason.STOPPED, "mitmproxy ended")
        self._open.clear()
        await self._live.finish()
        self.book.stop(reason, code)
        lost_records, lost_bytes = self.book.losses()
        self._logger.send(
            AddonMessage.ENDED,
            exchanges=self.book.current.exchanges,
            with_findings=self._live.with_findings,
            worst=self._live.worst,
            lost_records=lost_records,
            lost_bytes=lost_bytes,
        )


def _ended_line(flow: Flow, reason: EndReason) -> str:
    """Return `POST /v1/chat/completions 200 complete`, with credentials masked."""
    path = flow.request.data.path.partition(b"?")[0].decode("ascii", "backslashreplace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in path)
    status = flow.response.status_code if flow.response is not None else "no response"
    return f"{flow.request.method} {shown} {status} {reason}"
