"""Whose the other end of a connection is."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deltatape.gateway import peer

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="this system does not tell whose a connection is"
)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_both_ends_of_a_connection_are_found(server: socket.socket) -> None:
    address = server.getsockname()
    with closing(socket.create_connection(address)) as client:
        assert peer.owner(client.getsockname(), address) == os.geteuid()
        accepted, _ = server.accept()
        with accepted:
            assert peer.owner(address, client.getsockname()) == os.geteuid()


def test_a_listener_is_found(server: socket.socket) -> None:
    assert peer.listener_owner(server.getsockname()) == os.geteuid()


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="there is no IPv6 here")
def test_a_socket_that_maps_the_address_into_ipv6_is_found(server: socket.socket) -> None:
    with socket.socket(socket.AF_INET6) as client:
        client.connect((f"::ffff:{server.getsockname()[0]}", server.getsockname()[1]))
        accepted, address = server.accept()
        with accepted:
            assert peer.owner(address, server.getsockname()) == os.geteuid()


def test_what_is_not_connected_has_no_owner(server: socket.socket) -> None:
    with closing(socket.create_connection(server.getsockname())) as client:
        name = client.getsockname()
        assert peer.owner(name, (name[0], server.getsockname()[1] ^ 1)) is None
        assert peer.owner(("127.0.0.2", name[1]), server.getsockname()) is None


def test_where_there_is_no_list_nothing_is_known(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peer, "_LISTS", (tmp_path / "tcp", tmp_path / "tcp6"))
    assert peer.listener_owner(server.getsockname()) is None
