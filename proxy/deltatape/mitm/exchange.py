"""Tape one exchange that passes mitmproxy.

Bytes are handed back to mitmproxy untouched, whatever happens here: an error ends the taping of the
exchange and is reported once.

mitmproxy passes on pieces of a body. With chunked framing a piece is an HTTP chunk, or the part of
it that has arrived, and goes to the client as one chunk. So each read on the tape ends one chunk.
"""

from collections.abc import Callable

from deltatape.gateway.taping_guard import GuardedTaping, Writer
from deltatape.mitm.flows import Flow, FlowMessage, FlowResponse, Headers, Server, Stream
from deltatape.model.exchange import Framing
from deltatape.tape.tap import ExchangeTap

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
