"""One run of mitmproxy: the tape, and the taping of each exchange.

Bytes are handed back to mitmproxy untouched, whatever happens here: an error ends the taping of the
exchange and is reported once.

mitmproxy passes on pieces of a body. With chunked framing a piece is an HTTP chunk, or the part of
it that has arrived, and goes to the client as one chunk. So each read on the tape ends one chunk.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deltatape.clock import Clock, SystemClock, file_stamp
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import UsageError
from deltatape.gateway.recorder import RecordedExchange, Recorder, RecorderOptions
from deltatape.gateway.routes import OWN_FIELD_PREFIX, TAPE_FIELD
from deltatape.gateway.tapes import OpenTape, RingRecording, TapeBook
from deltatape.mitm.flows import (
    Flow,
    FlowMessage,
    FlowResponse,
    Headers,
    Server,
    Stream,
    close_frame,
    ending,
    message_frame,
)
from deltatape.mitm.run_session import RunSession
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.model.recording_counts import RecordingCounts
from deltatape.model.websocket import Side, whole_messages
from deltatape.store.mask_key import mask_key
from deltatape.store.names import check_name
from deltatape.store.ring import RetentionPolicy, SegmentRing
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.tap import ExchangeTap

LAST_BYTES_S = 0.5
"""How long mitmproxy may take to send the last bytes of a stream."""
_TIMEOUT_SHARE, _TIMEOUT_SLACK_S = 0.01, 0.5
"""How much shorter than mitmproxy's timeout a silence may be, as a share of it and at least in
seconds. At the timeout mitmproxy ends a connection itself, but reports that the client did."""


_BODILESS = (204, 304)
_INFORMATIONAL = 200
_DIVERTED = ("transparent", "local", "wireguard", "tun")


class FlowTaping(RecordedExchange):
    """Tapes one flow."""

    _uploading = False
    _downloading = False

    # The request.

    def asked(self, flow: Flow) -> None:
        """Tape the request's head."""
        request = flow.request
        self.request(
            method=request.method,
            target=request.data.path,
            upstream=origin(request.scheme, _host(flow), request.port),
            http=_version(request),
            headers=_sent_fields(request.headers),
        )

    def upload(self, flow: Flow, reused: Callable[[Server], bool]) -> Stream:
        """Return the stream filter for the request's body.

        Args:
            flow: the request's flow.
            reused: whether an upstream connection has served before; asked when it serves again.
        """
        other_filter = _filter_of_other_addon(flow.request)

        def read(data: bytes) -> bytes:
            if not self._uploading:
                self._uploading = True
                self._sent(flow.server_conn, reused)
            if data:
                self.request_body(data)
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
        self.sent(
            connect_ns=0 if is_reused else _between_ns(start, tcp),
            tls_ns=0 if is_reused else _between_ns(tcp, tls),
            reused=is_reused,
        )

    def asked_all(self, flow: Flow) -> None:
        """Tape that the request is complete."""
        body = flow.request.raw_content
        if body and not self._uploading:
            self.request_body(body)
        self.request_end()

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


def origin(scheme: str, host: str, port: int) -> str:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TapingOptions:
    """How to tape; see `record.recording.RecordOptions`."""

    to: Path
    keep: RetentionPolicy | None = None
    bodies: bool = True
    durable: bool = True


class MitmRun:
    """One run of mitmproxy; needs a running loop.

    Args:
        options: the options of taping.
        version: mitmproxy's.
        session: gets what there is to say.
        patience_s: after how much silence mitmproxy ends a connection.
        environment: where the state folder is looked up, and credentials that are to be masked.
    """

    def __init__(
        self,
        options: TapingOptions,
        version: str,
        session: RunSession,
        patience_s: Callable[[], float],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._clock: Clock = SystemClock()
        self._to = options.to
        self._session = session
        self._patience_s = patience_s
        masker = Masker(mask_key(environment, session.alarm))
        for secret in known_secrets(environment, read_dotenv(Path.cwd(), environment)):
            masker.learn(secret)
        self._ring = (
            SegmentRing(
                options.to, options.keep, self._clock, session.lasting_alarm, session.remark
            )
            if options.keep
            else None
        )
        self.book = TapeBook(self._create, masker)
        self._recorder = Recorder(
            self.book,
            masker,
            self._clock,
            session,
            RecorderOptions(durable=options.durable, bodies=options.bodies),
            session.analysis,
        )
        self._open: dict[str, FlowTaping] = {}
        self._clients: dict[str, int] = {}
        self._served: set[str] = set()
        self._ending: asyncio.Task[None] | None = None
        self.book.note(
            f"taped by mitmproxy {version}: reads are the pieces that it passed on, and whether"
            " upstream closed or reset a connection cannot be told"
        )
        session.attach(self)
        self._recorder.start()
        self._flight: RingRecording | None = None
        if self._ring is not None:
            self._flight = RingRecording(self._ring, self.book)
            self._flight.start()

    def _create(self, name: str | None, thread: WriterThread) -> TapeWriter:
        stem = name or file_stamp(self._clock.wall_ns())
        return TapeWriter.create(
            self._to,
            self._ring.stem(stem) if self._ring else stem,
            clock=self._clock,
            source=Source.MITM,
            alarm=self._session.alarm,
            thread=thread,
            name=name,
        )

    # What the session asks for.

    def counts(self) -> RecordingCounts:
        lost_records, lost_bytes = self.book.losses()
        counts = self._recorder.counts
        return RecordingCounts(
            exchanges=counts.exchanges,
            active=len(self._recorder.active),
            clients=counts.clients,
            lost_records=lost_records,
            lost_bytes=lost_bytes,
            tapes=tuple(tape.path for tape in self.book.all()),
            request_bytes=counts.request_bytes,
            response_bytes=counts.response_bytes,
        )

    def parsed(self, tape: OpenTape, number: int, parsed: Mapping[str, object]) -> None:
        self.book.parsed(tape, number, parsed)

    def finding(self, tape: OpenTape | None, end_ns: int | None, then: Callable[[], None]) -> None:
        if self._flight is None:
            then()
            return
        ago_ns = 0
        if tape is not None and end_ns is not None:
            ago_ns = tape.writer.now_ns() - end_ns
        self._flight.finding(self._clock.wall_ns() - ago_ns, then)

    # Connections.

    def client(self, ident: str) -> None:
        """Report a client of a taped host, once."""
        if ident not in self._clients:
            self._clients[ident] = self._recorder.client()
            self._session.report_soon()

    def client_left(self, ident: str) -> None:
        """Forget a client that has disconnected."""
        number = self._clients.pop(ident, None)
        if number is not None:
            self._recorder.client_left(number)

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
        self.client(flow.client_conn.id)
        taping = self._recorder.begin(
            FlowTaping, lambda: self._cut(flow.id), self._named(flow), self._client_of(flow)
        )
        self._session.report_soon()
        self._open[flow.id] = taping
        taping.asked(flow)
        if flow.response is None:
            flow.request.stream = taping.upload(flow, self._reused)

    def _client_of(self, flow: Flow) -> int:
        return self._clients[flow.client_conn.id]

    def _named(self, flow: Flow) -> str | None:
        """Return the tape that a request names; remove the header fields meant for deltatape."""
        fields = flow.request.headers.fields
        own = {name.lower(): value for name, value in fields if _is_own(name)}
        if not own:
            return None
        flow.request.headers.fields = tuple(each for each in fields if not _is_own(each[0]))
        if TAPE_FIELD not in own:
            return None
        name = own[TAPE_FIELD].decode("latin-1")
        try:
            return check_name(name)
        except UsageError as error:
            self._session.remark(f"{TAPE_FIELD.decode()}: {error}; taped on the main tape")
            return None

    def asked_all(self, flow: Flow) -> None:
        """End the request."""
        if taping := self._open.get(flow.id):
            taping.asked_all(flow)

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
            taping.note(whole_messages("mitmproxy"))
            return
        self._end(flow, taping, EndReason.COMPLETE, "")

    def message(self, flow: Flow) -> None:
        """Tape the latest message on a WebSocket."""
        taping, socket = self._open.get(flow.id), flow.websocket
        if taping is None or socket is None:
            return
        message = socket.messages[-1]
        del socket.messages[:-1]  # a session may last for hours
        taping.arrived()
        side = Side.CLIENT if message.from_client else Side.SERVER
        taping.frames(side, message_frame(message))

    def closed(self, flow: Flow) -> None:
        """End a WebSocket: one side has closed it, and mitmproxy the other one."""
        taping, socket = self._open.get(flow.id), flow.websocket
        if taping is None or socket is None:
            return
        data, by_client = close_frame(socket), bool(socket.closed_by_client)
        reason = EndReason.CLIENT_CLOSED if by_client else EndReason.UPSTREAM_CLOSED
        if data:
            taping.arrived()
            taping.frames(Side.CLIENT if by_client else Side.SERVER, data)
            reason = EndReason.COMPLETE
        self._end(flow, taping, reason, "")

    def failed(self, flow: Flow) -> None:
        """End a failed exchange."""
        taping = self._open.get(flow.id)
        if taping is None:
            return
        reason, detail = ending(flow)
        silent_s = taping.silent_ns() / 1e9
        patience_s = self._patience_s()
        slack_s = max(_TIMEOUT_SHARE * patience_s, _TIMEOUT_SLACK_S)
        if reason is EndReason.CLIENT_CLOSED and silent_s >= patience_s - slack_s:
            reason = EndReason.TIMEOUT
            detail = f"mitmproxy gave up after {silent_s:.0f} s without a byte: {detail}"
        self._end(flow, taping, reason, detail)

    def _end(self, flow: Flow, taping: FlowTaping, reason: EndReason, detail: str) -> None:
        del self._open[flow.id]
        taping.end(reason, detail)
        self._recorder.ended(taping)
        if self._session.analysis is None:
            self._session.remark(f"#{taping.number} {_ended_line(flow, reason)}")

    def _cut(self, ident: str) -> None:
        """Stop taping an exchange in progress."""
        taping = self._open.pop(ident)
        taping.end(EndReason.STOPPED, "mitmproxy ended")
        self._recorder.ended(taping)

    # The end.

    def drain(self, grace_s: float, then: Callable[[], None]) -> None:
        """Let streams continue for at most `grace_s`, and let their last bytes leave."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._drain(grace_s, then))

    async def _drain(self, grace_s: float, then: Callable[[], None]) -> None:
        if self._recorder.active:
            await self._recorder.drain(grace_s)
            await asyncio.sleep(LAST_BYTES_S)
        then()

    def hurry(self) -> None:
        """Stop waiting for streams and their analysis."""
        self._recorder.hurry()

    async def stop(self, reason: str, code: int | None) -> None:
        """End open exchanges, then the tape."""
        for ident in tuple(self._open):
            self._cut(ident)
        if self._flight is not None:
            await self._flight.stop()
        await self._recorder.finish(reason, code)
        self._session.stopped()


def _is_own(name: bytes) -> bool:
    return name.lower().startswith(OWN_FIELD_PREFIX)


def _ended_line(flow: Flow, reason: EndReason) -> str:
    """Return `POST /v1/chat/completions 200 complete`, with credentials masked."""
    path = flow.request.data.path.partition(b"?")[0].decode("ascii", "backslashreplace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in path)
    status = flow.response.status_code if flow.response is not None else "no response"
    return f"{flow.request.method} {shown} {status} {reason}"
