"""A company's network: a proxy that wants credentials, and a certificate authority of its own."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import trustme

USER, PASSWORD = "ann", "s3cret:x"


@dataclass
class CorporateProxy:
    """A running proxy and what it was asked."""

    hosts: Mapping[str, int]
    """Names it knows, each a port of loopback; all others are dialled as they are."""
    guarded: bool = False
    scheme: str = "Basic"
    answer: bytes = b""
    """In place of all others."""
    interim: bool = True
    """Whether a response with status 103 precedes the final one."""
    port: int = 0
    asked: list[bytes] = field(default_factory=list)
    """The heads of the requests."""
    passed: list[str] = field(default_factory=list)
    """The authorities that were opened."""
    open: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open += 1
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            writer.transport.abort()
        finally:
            self.open -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head)
        if self.answer:
            writer.write(self.answer)
            await writer.drain()
            return
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode())
        if self.guarded and b"\r\nProxy-Authorization: Basic %b\r\n" % login not in head:
            writer.write(
                b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                b'Proxy-Authenticate: %b realm="corp"\r\nContent-Length: 0\r\n\r\n'
                % self.scheme.encode()
            )
            await writer.drain()
            return
        authority = head.split()[1].decode()
        host, _, port = authority.rpartition(":")
        host = host.strip("[]")
        try:
            far = await asyncio.open_connection(
                "127.0.0.1" if host in self.hosts else host, self.hosts.get(host, int(port))
            )
        except OSError:
            writer.write(b"HTTP/1.1 502 No \x1b[31mway\r\n\r\n")
            await writer.drain()
            return
        self.passed.append(authority)
        early = b"HTTP/1.1 103 Early Hints\r\n\r\n" if self.interim else b""
        writer.write(early + b"HTTP/1.0 200 Connection established\r\n\r\n")
        await _splice((reader, writer), far)


async def _splice(
    near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(near[0], far[1]))
            group.create_task(pump(far[0], near[1]))
    except* (ConnectionError, ssl.SSLError):
        near[1].transport.abort()
    finally:
        far[1].transport.abort()


@contextlib.asynccontextmanager
async def corporate_proxy(
    hosts: Mapping[str, int] | None = None,
    *,
    guarded: bool = False,
    scheme: str = "Basic",
    answer: bytes = b"",
    interim: bool = True,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[CorporateProxy]:
    """A proxy on loopback; `tls` when it is itself spoken to with TLS."""
    proxy = CorporateProxy(hosts or {}, guarded, scheme, answer, interim)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # asyncio logs it
                await proxy.serve(reader, writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for _ in range(4):  # what has just been accepted takes a few turns to be a task
            await asyncio.sleep(0)
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def server_context(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    """A server's side of TLS with a certificate for `names`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context
