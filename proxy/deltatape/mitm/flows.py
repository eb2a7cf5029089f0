"""What is used of mitmproxy's objects: the same in versions 11 and 12.

mitmproxy hands them to the hooks of an addon; times are seconds since 1970.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

Address: TypeAlias = tuple[str, int]
Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]
Stream: TypeAlias = Callable[[bytes], bytes]


class Mode(Protocol):
    """How mitmproxy came to a connection."""

    type_name: str
    """`regular`, `reverse`, `upstream`, `transparent`, `local`, `socks5`, ..."""


class Client(Protocol):
    """A connection from an application."""

    id: str
    connected: bool
    """Whether it is open both ways."""
    proxy_mode: Mode


class Server(Protocol):
    """A connection to an upstream, or the wish for one."""

    id: str
    connected: bool
    address: Address | None
    tls: bool
    timestamp_start: float | None
    timestamp_tcp_setup: float | None
    timestamp_tls_setup: float | None


class Headers(Protocol):
    """Header fields as they were on the wire."""

    fields: Fields


class RequestData(Protocol):
    """The bytes behind a request's texts."""

    path: bytes


class Message(Protocol):
    """What requests and responses have in common."""

    headers: Headers
    http_version: str
    """`HTTP/1.1`, `HTTP/2.0`."""
    raw_content: bytes | None
    """None where the body was passed on as it came."""
    stream: bool | Stream
    trailers: Headers | None


class Request(Message, Protocol):
    """A request."""

    method: str
    scheme: str
    host: str
    port: int
    pretty_host: str
    """What `Host` says, where the address is only a number."""
    data: RequestData


class Response(Message, Protocol):
    """A response."""

    status_code: int
    reason: str


class Error(Protocol):
    """Why a flow failed."""

    msg: str


class Flow(Protocol):
    """A request, and its response once there is one."""

    id: str
    client_conn: Client
    server_conn: Server
    request: Request
    response: Response | None
    error: Error | None
    websocket: object | None


class ClientHello(Protocol):
    """The beginning of TLS."""

    sni: str | None


class Context(Protocol):
    """What a connection belongs to."""

    client: Client
    server: Server


class ClientHelloData(Protocol):
    """A client wants to speak TLS."""

    context: Context
    client_hello: ClientHello
    ignore_connection: bool


class TlsConnection(Protocol):
    """The side that a handshake failed with."""

    error: str | None
    sni: str | None


class TlsData(Protocol):
    """A handshake."""

    conn: TlsConnection
    context: Context


class ServerData(Protocol):
    """A connection to an upstream, and for whom."""

    server: Server


class Loader(Protocol):
    """Takes an addon's options."""

    add_option: Callable[[str, object, object, str], None]


class Options(Protocol):
    """The values of mitmproxy's options, and of this addon's."""

    confdir: str
    mode: Sequence[str]
    update_known: Callable[..., object]
    deltatape_to: str
    deltatape_hosts: Sequence[str]
    deltatape_decrypt_others: bool
