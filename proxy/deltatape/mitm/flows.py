"""The parts of mitmproxy's objects that are used: the same in versions 11 and 12.

mitmproxy hands them to the hooks of an addon; times are seconds since 1970.
"""

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from deltatape.model.exchange import EndReason
from deltatape.model.websocket import CLOSE, Side
from deltatape.wire.websocket import closure_data, encode_head, whole_message_head

Address: TypeAlias = tuple[str, int]
Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]
Stream: TypeAlias = Callable[[bytes], bytes]


class ProxyMode(Protocol):
    """How mitmproxy received a connection."""

    type_name: str
    """`regular`, `reverse`, `upstream`, `transparent`, `local`, `socks5`, ..."""


class ClientConnection(Protocol):
    """A connection from an application."""

    id: str
    connected: bool
    """Whether it is open both ways."""
    proxy_mode: ProxyMode


class Server(Protocol):
    """A connection to an upstream, open or not."""

    id: str
    connected: bool
    address: Address | None
    alpn: bytes | None
    """The protocol that TLS agreed on, such as `h2`; without one mitmproxy speaks HTTP/1."""
    tls: bool
    error: str | None
    """Set before it is opened: why it must not be."""
    timestamp_start: float | None
    timestamp_tcp_setup: float | None
    timestamp_tls_setup: float | None


class Headers(Protocol):
    """Header fields as they were on the wire."""

    fields: Fields


class RequestData(Protocol):
    """A request's texts as bytes."""

    path: bytes


class FlowMessage(Protocol):
    """The common part of requests and responses."""

    headers: Headers
    http_version: str
    """`HTTP/1.1`, `HTTP/2.0`."""
    raw_content: bytes | None
    """None if the body was streamed."""
    stream: bool | Stream
    trailers: Headers | None


class FlowRequest(FlowMessage, Protocol):
    """A request."""

    method: str
    scheme: str
    host: str
    port: int
    pretty_host: str
    """The name in `Host`, if the address is only a number."""
    data: RequestData


class FlowResponse(FlowMessage, Protocol):
    """A response."""

    status_code: int
    reason: str


class Error(Protocol):
    """Why a flow failed."""

    msg: str


class SocketMessage(Protocol):
    """A message on a WebSocket: whole, decompressed, and without what its frames were."""

    type: int
    """Its opcode."""
    from_client: bool
    content: bytes


class SocketData(Protocol):
    """A WebSocket."""

    messages: list[SocketMessage]
    closed_by_client: bool | None
    close_code: int | None
    """1006 if the connection ended without a close frame."""
    close_reason: str | None


def message_frame(message: SocketMessage) -> bytes:
    """Return a frame with all of a message: what it consisted of is not known."""
    return _frame(message.type, message.content, from_client=message.from_client)


def close_frame(socket: SocketData) -> bytes:
    """Return the close frame of a WebSocket; empty if there was none."""
    data = closure_data(socket.close_code, socket.close_reason or "")
    return b"" if data is None else _frame(CLOSE, data, from_client=bool(socket.closed_by_client))


def _frame(opcode: int, data: bytes, *, from_client: bool) -> bytes:
    side = Side.CLIENT if from_client else Side.SERVER
    return encode_head(whole_message_head(side, opcode, len(data))) + data


class Flow(Protocol):
    """A request, and its response once there is one."""

    id: str
    client_conn: ClientConnection
    server_conn: Server
    request: FlowRequest
    response: FlowResponse | None
    error: Error | None
    websocket: SocketData | None


class ClientHello(Protocol):
    """The first message of a TLS handshake."""

    sni: str | None


class FlowContext(Protocol):
    """The context of a connection."""

    client: ClientConnection
    server: Server


class ClientHelloData(Protocol):
    """A client that starts TLS."""

    context: FlowContext
    client_hello: ClientHello
    ignore_connection: bool


class TlsConnection(Protocol):
    """The side that a handshake failed with."""

    error: str | None
    sni: str | None


class TlsData(Protocol):
    """A handshake."""

    conn: TlsConnection
    context: FlowContext


class ServerData(Protocol):
    """A connection to an upstream, and its client."""

    server: Server


class Loader(Protocol):
    """Registers an addon's options."""

    add_option: Callable[[str, object, object, str], None]


class AddonOptions(Protocol):
    """The values of mitmproxy's options, and of this addon's."""

    confdir: str
    mode: Sequence[str]
    update_known: Callable[..., object]
    deltatape_to: str
    deltatape_hosts: Sequence[str]
    deltatape_decrypt_others: bool
    deltatape_keep: str
    deltatape_bodies: bool
    deltatape_durable: bool


# How an exchange ended, as far as mitmproxy tells.
#
# mitmproxy gives a text that is not always right: it calls every HTTP/2 reset one "by client". The
# states of the two connections are more reliable, but it closes that to an HTTP/1 upstream itself
# before it tells of a client's reset. FIN and RST of an upstream cannot be told apart. Where a side
# announces with GOAWAY that it takes no more streams, mitmproxy ends all, also those that it would
# complete (RFC 9113 section 6.8).
#
# Source: mitmproxy 11.0.2 and 12.2.3, `proxy/layers/http` and `proxy/server`.

KILLED = "Connection killed."
CLIENT_LEFT = "Client disconnected."
_RESET = "stream reset by client"
_CANCEL = "(CANCEL)"
_GOAWAY = re.compile(
    r"HTTP/2 connection closed: <ConnectionTerminated error_code:(?:\w+\.)?(\w+), "
    r"last_stream_id:(\d+), .*>",
    re.DOTALL,
)
_CODES = (
    *("NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT"),
    *("STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR"),
    *("CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"),
)
"""By their numbers (RFC 9113 section 7)."""
_MULTIPLEXED = ("HTTP/2", "HTTP/3")
_TIMED_OUT = ("[Errno 110]", "[Errno 60]", "timed out")
"""ETIMEDOUT of Linux and macOS."""


def ending(flow: Flow) -> tuple[EndReason, str]:
    """Return why a flow failed, and mitmproxy's own words."""
    message = _GOAWAY.sub(_goaway, flow.error.msg) if flow.error is not None else ""
    if message == KILLED:
        return EndReason.STOPPED, message
    if message == CLIENT_LEFT or not flow.client_conn.connected:
        return EndReason.CLIENT_CLOSED, message
    if not _was_connected(flow):
        timed_out = any(sign in message for sign in _TIMED_OUT)
        return EndReason.TIMEOUT if timed_out else EndReason.REFUSED, message
    if message.startswith(_RESET):
        return _reset(flow, message)
    return EndReason.UPSTREAM_CLOSED, message


def _goaway(found: re.Match[str]) -> str:
    code = found[1]
    if code.isdecimal() and int(code) < len(_CODES):
        code = _CODES[int(code)]
    return (
        f"HTTP/2: GOAWAY ({code}, last stream {found[2]}); mitmproxy ends all streams then, also"
        " those that would be completed"
    )


def _was_connected(flow: Flow) -> bool:
    """Return whether there was a connection to upstream that could carry HTTP."""
    server = flow.server_conn
    if server.timestamp_tcp_setup is None:
        return False
    return flow.request.scheme != "https" or server.timestamp_tls_setup is not None


def _reset(flow: Flow, message: str) -> tuple[EndReason, str]:
    """Return which side reset an HTTP/2 stream: the only one with HTTP/2; else the code tells."""
    message = f"HTTP/2: {message}"
    if not _has_streams(flow.request.http_version):
        return EndReason.UPSTREAM_RESET, message.replace("by client", "by upstream")
    if not _has_streams(_upstream_version(flow)):
        return EndReason.CLIENT_CLOSED, message
    message = message.replace(" by client", "") + "; mitmproxy does not tell by which side"
    cancelled = _CANCEL in message
    return EndReason.CLIENT_CLOSED if cancelled else EndReason.UPSTREAM_RESET, message


def _upstream_version(flow: Flow) -> str:
    if flow.response is not None:
        return flow.response.http_version
    alpn = (flow.server_conn.alpn or b"").decode("latin-1")
    return f"HTTP/{alpn[1:]}" if alpn.startswith(("h2", "h3")) else ""


def _has_streams(version: str) -> bool:
    """Return whether a version of HTTP can end one exchange without closing the connection."""
    return version.startswith(_MULTIPLEXED)
