"""Listening: addresses, and stopping in good order."""

import asyncio
import errno
import logging
import os
import socket
import stat
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.http1 import listener
from deltatape.http1.listener import (
    Address,
    DescriptorExhaustionHandler,
    Listener,
    is_loopback,
    parse_address,
)
from helpers.serving import echo, serving
from helpers.upstream import connect, eventually, post, run


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8377", Address("127.0.0.1", 8377)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("127.1.2.3:65535", Address("127.1.2.3", 65535)),
        ("localhost:1", Address("localhost", 1)),
        ("[::1]:8377", Address("::1", 8377)),
        ("0.0.0.0:8377", Address("0.0.0.0", 8377)),  # noqa: S104 - read, not opened
        ("unix:run/deltatape.sock", Address(path="run/deltatape.sock")),
    ],
)
def test_an_address_is_a_host_and_a_port_or_a_path(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ":",
            "8377",
            ":8377",
            "127.0.0.1",
            "127.0.0.1:",
            "unix:",
            "localhost:http",
            "localhost:-1",
        ),
        *("localhost:65536", "localhost:٣", "localhost:" + "9" * 5000),
    ],
    ids=ascii,
)
def test_what_is_no_address_is_told_with_what_would_be(text: str) -> None:
    with pytest.raises(UsageError, match=r"use HOST:PORT, such as 127\.0\.0\.1:8377"):
        parse_address(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "example.com", "localhost.evil"])  # noqa: S104
def test_an_address_knows_that_others_can_reach_it(host: str) -> None:
    assert not parse_address(f"{host}:8377").loopback


@pytest.mark.parametrize("text", ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:x"])
def test_an_address_knows_that_only_this_machine_can_reach_it(text: str) -> None:
    assert parse_address(text).loopback


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
            with pytest.raises(UsageError, match="choose another port, 0 takes any"):
                await other.open(running.listener.address, asyncio.Protocol)  # type: ignore[arg-type]
            other.close()  # a listener that never opened has nothing to close

    run(scenario())


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (
            Address("no-such-host.invalid", 80),
            "Name or service not known; use an address of this machine, such as 127.0.0.1",
        ),
        (
            Address("203.0.113.5", 0),
            "Cannot assign requested address; use an address of this machine, such as 127.0.0.1",
        ),
        (Address(path="none/x.sock"), "No such file or directory; choose another path"),
    ],
    ids=str,
)
def test_an_address_that_is_none_of_this_machine_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, address: Address, problem: str
) -> None:
    look_up = socket.getaddrinfo

    def known(host: str, *more: object, **settings: object) -> object:
        if host.endswith(".invalid"):  # asks no name server
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *more, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", known)

    async def scenario() -> None:
        with pytest.raises(UsageError) as told:
            await Listener().open(address, asyncio.Protocol)  # type: ignore[arg-type]
        assert str(told.value) == f"cannot listen on {address}: {problem}"

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
            async with serving(echo, Address("::1")) as running:
                assert running.listener.url == f"http://[::1]:{running.listener.port}"
                reader, writer = await asyncio.open_connection("::1", running.listener.port)
                writer.write(post(b"1", target="/x"))
                assert (await reader.readuntil(b"/x=1")).startswith(b"HTTP/1.1 200 OK")
                writer.close()
        except UsageError as error:
            pytest.skip(f"no IPv6 loopback on this machine: {error}")

    run(scenario())


def test_a_unix_socket_is_its_owners_and_goes_with_the_listener(tmp_path: Path) -> None:
    place = tmp_path / "deltatape.sock"

    async def scenario() -> None:
        async with serving(echo, Address(path=str(place))) as running:
            assert running.listener.url == f"http+unix://{str(place).replace('/', '%2F')}"
            assert stat.S_IMODE(place.stat().st_mode) == 0o600
            reader, writer = await asyncio.open_unix_connection(place)
            writer.write(post(b"1", target="/x"))
            assert (await reader.readuntil(b"/x=1")).startswith(b"HTTP/1.1 200 OK")
            writer.close()
        assert not place.exists()

    run(scenario())


def test_a_unix_socket_that_a_dead_process_left_is_replaced_and_a_live_one_not(
    tmp_path: Path,
) -> None:
    place = Address(path=str(tmp_path / "deltatape.sock"))
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(place.path)
    dead.close()

    async def scenario() -> None:
        async with serving(echo, place):
            with pytest.raises(UsageError, match="Address already in use"):
                await Listener().open(place, asyncio.Protocol)  # type: ignore[arg-type]
            assert stat.S_ISSOCK(os.stat(place.path).st_mode)  # noqa: PTH116

    run(scenario())


def test_a_file_in_the_way_of_a_unix_socket_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("mine")

    async def scenario() -> None:
        with pytest.raises(UsageError, match="cannot listen on unix:"):
            await Listener().open(Address(path=str(place)), asyncio.Protocol)  # type: ignore[arg-type]

    run(scenario())
    assert place.read_text() == "mine"


def test_all_addresses_are_reached_by_loopback_here() -> None:
    async def scenario() -> None:
        async with serving(echo, Address("0.0.0.0")) as running:  # noqa: S104 - what is tested
            assert running.listener.url == f"http://127.0.0.1:{running.listener.port}"

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


ACCEPTING = "socket.accept() out of system resource"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def call(handler: DescriptorExhaustionHandler, message: str, error: Exception) -> None:
    async def scenario() -> None:
        handler(asyncio.get_running_loop(), {"message": message, "exception": error})

    run(scenario())


def test_a_lack_of_descriptors_is_said_in_one_line_and_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = DescriptorExhaustionHandler()
    for _ in range(100):
        call(handler, ACCEPTING, OSError(errno.EMFILE, "Too many open files"))
    (line,) = warnings(caplog)
    assert line.startswith("too many open files for one process (see `ulimit -n`): new connections")


def test_it_is_said_again_when_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_EVERY_S", 0.0)
    handler = DescriptorExhaustionHandler()
    for _ in range(2):
        call(handler, ACCEPTING, OSError(errno.ENFILE, "Too many open files in system"))
    assert len(warnings(caplog)) == 2
    assert "Too many open files in system: new connections wait" in warnings(caplog)[0]


def test_a_listener_that_was_closed_meanwhile_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(DescriptorExhaustionHandler())
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        (sock,) = server.sockets
        server.close()
        # As asyncio calls it a second after it ran out of descriptors.
        loop.call_soon(loop._start_serving, asyncio.Protocol, sock)  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)

    run(scenario())
    assert warnings(caplog) == []


def test_other_troubles_are_told_as_asyncio_does(caplog: pytest.LogCaptureFixture) -> None:
    call(DescriptorExhaustionHandler(), "Exception in callback", ValueError("x"))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("asyncio", logging.ERROR)
    assert "Exception in callback" in record.getMessage()
