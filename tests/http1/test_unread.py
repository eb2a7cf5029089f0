import asyncio
import platform
import socket
from pathlib import Path

import pytest

from deltatape.http1.unread import Unread
from helpers.upstream import run

on_linux = pytest.mark.skipif(platform.system() != "Linux", reason="only Linux tells")


async def accepted(listener: socket.socket, client: socket.socket) -> asyncio.Transport:
    """The transport of the connection that `client` makes."""
    loop = asyncio.get_running_loop()
    client.connect(listener.getsockname())
    sock, _ = listener.accept()
    sock.setblocking(False)  # noqa: FBT003 - the socket's own interface
    transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, sock)
    assert isinstance(transport, asyncio.Transport)
    return transport


def states(listener: socket.socket, client: socket.socket) -> list[bool]:
    """Whether something waits: before anything is sent, then unread, read in part, read."""

    async def scenario() -> list[bool]:
        unread = Unread()
        transport = await accepted(listener, client)
        found = [unread.waits(transport)]
        transport.write(b"four")
        found.append(unread.waits(transport))
        client.recv(3)
        found.append(unread.waits(transport))
        client.recv(1)
        found.append(unread.waits(transport))
        transport.write(b"more")
        unread.close()
        unread.close()
        found.append(unread.waits(transport))
        transport.close()
        return found

    with listener, client:
        return run(scenario())


EXPECTED = [False, True, True, False, False]


@on_linux
def test_what_a_client_has_not_read_is_known() -> None:
    assert states(socket.create_server(("127.0.0.1", 0)), socket.socket()) == EXPECTED


@on_linux
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_what_a_client_of_ipv6_has_not_read_is_known() -> None:
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    assert states(listener, socket.socket(socket.AF_INET6)) == EXPECTED


@on_linux
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_a_client_of_ipv4_at_a_listener_of_both_is_known() -> None:
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)

    class Client(socket.socket):
        def connect(self, address: object) -> None:
            assert isinstance(address, tuple)
            super().connect(("127.0.0.1", address[1]))

    assert states(listener, Client()) == EXPECTED


@on_linux
def test_what_waits_in_a_unix_socket_is_known(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    assert states(listener, socket.socket(socket.AF_UNIX)) == EXPECTED


def test_nothing_waits_where_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    listener = socket.create_server(("127.0.0.1", 0))
    assert states(listener, socket.socket()) == [False] * 5


def test_nothing_waits_in_a_connection_that_is_gone() -> None:
    async def scenario() -> bool:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            transport = await accepted(listener, client)
            transport.abort()
            await asyncio.sleep(0)
            return Unread().waits(transport)

    assert not run(scenario())


def test_nothing_waits_where_the_kernel_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.http1.unread._NETLINK_SOCK_DIAG", 99)
    listener = socket.create_server(("127.0.0.1", 0))
    assert states(listener, socket.socket()) == [False] * 5


def test_nothing_waits_at_a_peer_that_has_left() -> None:
    async def scenario() -> bool:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
            transport = await accepted(listener, client)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
            unread = Unread()
            waits = unread.waits(transport)
            unread.close()
            transport.abort()
            return waits

    assert not run(scenario())
