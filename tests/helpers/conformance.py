"""Runs a scripted exchange on raw sockets: direct, through nginx, through deltatape, and replayed.

Both sides wait for bytes, not for clocks: `SEEN` holds a sender until its peer has got something
of what was sent last. So what follows slowly arrives in pieces, whatever the machine does.
"""

import asyncio
import contextlib
import enum
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deltatape.http1.socket import reset
from deltatape.model.exchange import Exchange
from deltatape.store.reader import open_tape
from helpers.playing import playing
from helpers.recording import recording

PATIENCE_S = 10.0
"""How long to wait for bytes that do not come; most never wait."""
_TAIL = 12
REFUSED = "refused"
"""As the reason for a difference: the request must not reach its provider."""


class Do(enum.Enum):
    """A step of a script, beside bytes to send."""

    SEEN = "wait until the peer has got something of what was sent last"
    FIN = "close the sending half"
    RST = "reset"
    GONE = "wait for the peer's end"


@dataclass(frozen=True, slots=True)
class Came:
    """A step that waits until these bytes have come."""

    data: bytes


Step = bytes | Do | Came


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a client and its provider do.

    Attributes:
        name: in the table.
        client: its steps; it then reads to the end of the answer.
        upstream: its steps; HOST in all bytes stands for its address.
        deltatape: the documented reason why deltatape differs from direct; "" where it must not.
        replay: the documented reason why a replay differs from what the recorded client got; None
            where the request cannot be asked for again.
    """

    name: str
    client: tuple[Step, ...]
    upstream: tuple[Step, ...]
    deltatape: str = ""
    replay: str | None = ""

    @property
    def last_bytes(self) -> bytes | None:
        """The end of the answer; None where the connection's end is its end."""
        if self.upstream and self.upstream[-1] in (Do.FIN, Do.RST):
            return None
        return b"".join(step for step in self.upstream if isinstance(step, bytes))[-_TAIL:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side got, and how its connection stood then: open, FIN or RST."""

    got: bytes
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What both sides got. `stuck`: some step waited in vain."""

    client: Side
    upstream: Side
    stuck: bool

    def seen(self, case: Case) -> object:
        """What has to be the same; when the upstream's connection ends says nothing else."""
        sees_end = Do.GONE in case.upstream
        return self.client, self.upstream if sees_end else self.upstream.got, self.stuck


HTTP_2 = b"\0\0\0\4\0\0\0\0\0"
"""How an answer in HTTP/2 begins: with an empty SETTINGS frame."""


def is_refusal(answer: Side) -> bool:
    """Whether a client got an answer of deltatape's own, for a request that it did not pass on."""
    if answer.got.startswith(HTTP_2):
        return b"deltatape speaks HTTP/1.1" in answer.got
    return answer.got.startswith(b"HTTP/1.1 4") and b"\r\nx-deltatape-error: " in answer.got


class _Endpoint:
    """One side of a case; an upstream may have several connections, of which the last counts."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.end = "open"
        self.stuck = False
        self.transports: list[asyncio.Transport] = []
        self.changed = asyncio.Event()

    @property
    def transport(self) -> asyncio.Transport | None:
        """The present connection's."""
        return self.transports[-1] if self.transports else None

    async def until(self, condition: Callable[[], bool]) -> bool:
        """Wait for a condition of this side; return whether it came true."""
        with contextlib.suppress(TimeoutError):
            while not condition():
                self.changed.clear()
                async with asyncio.timeout(PATIENCE_S):
                    await self.changed.wait()
        return condition()

    async def play(self, steps: Iterable[Step], host: bytes, peer: "_Endpoint | None") -> None:
        """Do the steps; none without a connection."""
        marked = 0
        for step in steps:
            came = True
            if isinstance(step, Came):
                came = await self.until(partial(self._came, step.data.replace(b"HOST", host)))
            elif self.transport is None:
                return
            elif isinstance(step, bytes):
                marked = 0 if peer is None else len(peer.got)
                self.transport.write(step.replace(b"HOST", host))
            elif step is Do.SEEN and peer is not None:
                came = await peer.until(partial(peer.has_more_than, marked))
            elif step is Do.GONE:
                came = await self.until(self.has_ended)
            elif step is Do.FIN:
                with contextlib.suppress(OSError):  # the peer has left already
                    self.transport.write_eof()
            elif step is Do.RST:
                reset(self.transport)
                self.end = "left"
            self.stuck |= not came

    def _came(self, data: bytes) -> bool:
        return data in self.got

    def has_more_than(self, size: int) -> bool:
        """Whether it got more than so many bytes, or gets no more."""
        return len(self.got) > size or self.has_ended()

    def has_ended(self) -> bool:
        """Whether nothing more comes."""
        return self.end != "open"

    def side(self, host: bytes) -> Side:
        """What it got, with HOST for the upstream's address."""
        return Side(got=bytes(self.got).replace(host, b"HOST"), end=self.end)

    def drop(self) -> None:
        for transport in self.transports:
            transport.abort()


class _Connection(asyncio.Protocol):
    """One connection of a side."""

    def __init__(self, side: _Endpoint) -> None:
        self._side = side
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._side.transports.append(transport)
        self._end("open")

    def data_received(self, data: bytes) -> None:
        self._side.got += data
        self._side.changed.set()

    def eof_received(self) -> bool:
        self._end("FIN")
        return True  # a half-closed connection can still be written to

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._end("RST")

    def _end(self, how: str) -> None:
        if self._side.transport is self._transport:
            self._side.end = how
            self._side.changed.set()


async def _ask(
    case: Case, client: _Endpoint, port: int, host: bytes, upstream: _Endpoint | None
) -> None:
    """Play the client of a case to the end of the answer; it stays connected."""
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: _Connection(client), "127.0.0.1", port)
    await client.play(case.client, host, upstream)
    last = case.last_bytes
    await client.until(
        lambda: client.has_ended() or (last is not None and client.got.endswith(last))
    )


def listening() -> socket.socket:
    """A socket on a free port, which takes connections from now on."""
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)  # noqa: FBT003 - positional only
    return sock


def port_of(sock: socket.socket) -> int:
    """The port that a socket listens on."""
    return int(sock.getsockname()[1])


def _address(sock: socket.socket) -> bytes:
    return b"127.0.0.1:%d" % port_of(sock)


async def through(case: Case, upstream_socket: socket.socket, port: int) -> Outcome:
    """Play a case whose client asks at `port`."""
    host = _address(upstream_socket)
    client, upstream = _Endpoint(), _Endpoint()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(upstream), sock=upstream_socket)
    script = loop.create_task(upstream.play(case.upstream, host, client))
    await _ask(case, client, port, host, upstream)
    if upstream.transport is None:
        script.cancel()  # the request was answered without it
    else:
        await script
    outcome = Outcome(
        client=client.side(host),
        upstream=upstream.side(host),
        stuck=client.stuck or upstream.stuck,
    )
    for side in (client, upstream):
        side.drop()
    server.close()
    await asyncio.sleep(0)
    return outcome


async def direct(case: Case) -> Outcome:
    """Play a case without anything between."""
    upstream = listening()
    return await through(case, upstream, port_of(upstream))


def _exchanges(folder: Path) -> list[Exchange]:
    return [each for tape in folder.iterdir() for each in open_tape(tape)]


async def recorded(case: Case, folder: Path) -> tuple[Outcome, Side | None]:
    """Play a case through deltatape's gateway, and then what it taped to the same client."""
    upstream = listening()
    host = _address(upstream)
    async with recording(folder, port_of(upstream)) as running:
        outcome = await through(case, upstream, running.port)
    if case.replay is None:
        return outcome, None
    client = _Endpoint()
    exchanges = _exchanges(folder)
    async with playing(*exchanges) as stage:
        await _ask(case, client, stage.player.listener.port, host, None)
        replay = client.side(host)
        client.drop()
    return outcome, replay


async def recorded_twice(case: Case, folders: Sequence[Path]) -> list[Exchange]:
    """Record a case, and then its replay to the same client; what both tapes have of it."""
    upstream = listening()
    async with recording(folders[0], port_of(upstream)) as running:
        await through(case, upstream, running.port)
        await running.ended()
    async with (
        playing(*_exchanges(folders[0])) as stage,
        recording(folders[1], stage.player.listener.port) as running,
    ):
        client = _Endpoint()
        await _ask(case, client, running.port, b"127.0.0.1:%d" % running.port, None)
        client.drop()
        await running.ended()
    return [exchange for folder in folders for exchange in _exchanges(folder)]
