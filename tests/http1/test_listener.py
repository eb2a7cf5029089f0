"""Listening: addresses, and stopping in good order."""

import asyncio
import socket

import pytest

from deltatape.errors import UsageError
from deltatape.http1.listener import Listener, is_loopback, parse_address
from helpers.serving import echo, serving
from helpers.upstream import connect, eventually, post, run


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8377", ("127.0.0.1", 8377)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("127.1.2.3:65535", ("127.1.2.3", 65535)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:8377", ("::1", 8377)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "8377", ":8377", "127.0.0.1", "127.0.0.1:", "localhost:http", "localhost:-1"),
        *("localhost:65536", "localhost:٣", "localhost:" + "9" * 5000),
    ],
    ids=ascii,
)
def test_what_is_no_address_is_told_with_what_would_be(text: str) -> None:
    with pytest.raises(UsageError, match=r"HOST:PORT is accepted, such as 127\.0\.0\.1:8377"):
        parse_address(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "example.com", "localhost.evil"])  # noqa: S104
def test_only_this_machine_may_listen(host: str) -> None:
    with pytest.raises(UsageError, match="only loopback is accepted"):
        parse_address(f"{host}:8377")


@pytest.mark.parametrize(
    ("host", "yes"),
    [("LocalHost.", True), ("127.255.0.1", True), ("::1", True), ("", False), ("1.1.1.1", False)],
)
def test_loopback_is_known_by_name_and_by_address(host: str, yes: bool) -> None:  # noqa: FBT001
    assert is_loopback(host) is yes


def test_a_taken_port_is_told_with_a_way_out() -> None:
    async def scenario() -> None:
        async with serving(echo) as running:
            other = Listener()
            with pytest.raises(UsageError, match="choose another port with --listen"):
                await other.open("127.0.0.1", running.listener.port, asyncio.Protocol)  # type: ignore[arg-type]
            other.close()  # a listener that never opened has nothing to close

    run(scenario())


def test_it_tells_its_url_and_answers_there() -> None:
    async def scenario() -> None:
        async with serving(echo) as running:
            assert running.listener.url == f"http://127.0.0.1:{running.listener.port}"
            client = await running.client()
            await client.send(post(b"1", target="/x"))
            await client.until(b"/x=1")
            sock = running.connections[0].transport
            assert sock is not None
            no_delay = sock.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
            assert no_delay  # an event must not wait for the next one

    run(scenario())


def test_ipv6_loopback_has_brackets_in_its_url() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 on this machine")

    async def scenario() -> None:
        try:
            async with serving(echo, "::1") as running:
                assert running.listener.url == f"http://[::1]:{running.listener.port}"
                reader, writer = await asyncio.open_connection("::1", running.listener.port)
                writer.write(post(b"1", target="/x"))
                assert (await reader.readuntil(b"/x=1")).startswith(b"HTTP/1.1 200 OK")
                writer.close()
        except UsageError as error:
            pytest.skip(f"no IPv6 loopback on this machine: {error}")

    run(scenario())


def test_closing_ends_idle_connections_and_leaves_the_others() -> None:
    async def scenario() -> None:
        async with serving(echo) as running:
            idle, busy = await running.client(), await running.client()
            await idle.send(post(b"1", target="/x"))
            await idle.until(b"/x=1")
            await busy.send(post(b"12", target="/y")[:-1])
            await eventually(lambda: len(running.services) == 2, "both requests")
            running.listener.close()
            assert await idle.rest() == (b"", "eof")
            await busy.send(b"2")
            assert (await busy.until(b"/y=12")).startswith(b"HTTP/1.1 200 OK")
            with pytest.raises(ConnectionRefusedError):
                await connect(running.listener.port)

    run(scenario())
