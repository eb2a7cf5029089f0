"""Through a corporate proxy: CONNECT, and what it says to that.

The proxy is asked with CONNECT also for an `http://` upstream: then it passes bytes, where a
request in absolute form would be read, changed and perhaps kept by it.

Source: RFC 9110 section 9.3.6 (CONNECT), RFC 7617 (Basic).
"""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from http import HTTPStatus

from deltatape.gateway.outbound import Proxy
from deltatape.gateway.race import connect, reason
from deltatape.http1.head import BadMessageError, ResponseHead, find_head, parse_response
from deltatape.http1.listener import bracketed

_SHOWN_BYTES = 120


class ProxyError(Exception):
    """The proxy did not let us through.

    `code` is `proxy_refused`, `proxy_unknown`, `proxy_auth` or `proxy_denied`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Passage:
    """An open way through a proxy, paused; `rest` came right behind the proxy's answer."""

    transport: asyncio.Transport
    rest: bytes


async def pass_through(
    proxy: Proxy, host: str, port: int, context: ssl.SSLContext | None
) -> Passage:
    """Ask `proxy` for a connection to `host` and `port`.

    Args:
        proxy: whom to ask.
        host: where to.
        port: where to.
        context: for a proxy that is spoken to with TLS, else None.

    Raises:
        ProxyError: there is none; the message says why, without naming the proxy.
    """
    asking = _Asking()
    try:
        await _reach(proxy, asking, context)
        try:
            asking.ask(_request(proxy, host, port))
            head, line = await asking.answer
        except BaseException:
            asking.abort()
            raise
    except (OSError, BadMessageError, UnicodeError) as error:
        raise _proxy_error(error) from None
    if head.status // 100 != HTTPStatus.OK // 100:
        asking.abort()
        raise _denied(proxy, head, line)
    return Passage(asking.transport, asking.rest)


async def _reach(proxy: Proxy, asking: "_Asking", context: ssl.SSLContext | None) -> None:
    sock = await connect(proxy.host, proxy.port)
    try:
        await asyncio.get_running_loop().create_connection(
            lambda: asking,
            sock=sock,
            ssl=context,
            server_hostname=proxy.host if context is not None else None,
        )
    except BaseException:
        sock.close()
        raise


def _request(proxy: Proxy, host: str, port: int) -> bytes:
    name = bracketed(host) if ":" in host else host.encode("idna").decode("ascii")
    authority = f"{name}:{port}".encode("ascii")
    credentials = b""
    if proxy.authorization is not None:
        credentials = b"Proxy-Authorization: %b\r\n" % proxy.authorization
    return b"CONNECT %b HTTP/1.1\r\nHost: %b\r\nUser-Agent: deltatape\r\n%b\r\n" % (
        authority,
        authority,
        credentials,
    )


def _proxy_error(error: OSError | BadMessageError | UnicodeError) -> ProxyError:
    if isinstance(error, socket.gaierror | UnicodeError):
        return ProxyError("proxy_unknown", f"its name has no address: {reason(error)}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return ProxyError(
            "proxy_refused", f"TLS failed: {error.verify_message} (--ca FILE names a private CA)"
        )
    if isinstance(error, ssl.SSLError):
        return ProxyError("proxy_refused", f"TLS failed: {error.reason or error}")
    if isinstance(error, BadMessageError):
        return ProxyError("proxy_refused", f"its answer to CONNECT is not HTTP/1: {error}")
    return ProxyError("proxy_refused", reason(error) or "it closed the connection")


def _denied(proxy: Proxy, head: ResponseHead, line: bytes) -> ProxyError:
    said = ascii(line[:_SHOWN_BYTES].decode("latin-1"))
    if head.status != HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return ProxyError("proxy_denied", f"it answered CONNECT with {said}")
    schemes = sorted(
        {
            value.split(maxsplit=1)[0].decode("latin-1")
            for name, value in head.fields
            if name.lower() == b"proxy-authenticate" and value
        }
    )
    if schemes and "basic" not in (scheme.lower() for scheme in schemes):
        advice = (
            f"it asks for {', '.join(schemes)!a}, and only Basic is spoken here; a local proxy"
            " that speaks it, such as px or cntlm, can stand in between"
        )
    elif proxy.authorization is not None:
        advice = f"the user or password in {proxy.variable} is not accepted"
    else:
        advice = (
            f"it wants a user and password: {proxy.variable}={proxy.scheme}://USER:PASSWORD@"
            f"{bracketed(proxy.host)}:{proxy.port}"
        )
    return ProxyError("proxy_auth", f"it answered CONNECT with {said}: {advice}")


class _Asking(asyncio.Protocol):
    """The client's side of one CONNECT."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[ResponseHead, bytes]] = (
            asyncio.get_running_loop().create_future()
        )
        self.rest = b""
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def ask(self, request: bytes) -> None:
        self.transport.write(request)

    def abort(self) -> None:
        if not self.answer.done():
            self.answer.cancel()
        elif not self.answer.cancelled():
            self.answer.exception()  # seen, and reported or overtaken by what led here
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            while not self.answer.done() and (end := find_head(self._buffer)):
                raw = bytes(self._buffer[:end])
                del self._buffer[:end]
                head = parse_response(raw, method="CONNECT")
                if not head.informational:
                    self.transport.pause_reading()
                    self.rest = bytes(self._buffer)
                    self.answer.set_result((head, raw.partition(b"\r\n")[0]))
        except BadMessageError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        seen = f" after {bytes(self._buffer[:_SHOWN_BYTES])!r}" if self._buffer else ""
        why = f": {reason(exc)}" if exc is not None else ""
        self._fail(ConnectionError(f"it closed the connection without an answer{seen}{why}"))

    def _fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
