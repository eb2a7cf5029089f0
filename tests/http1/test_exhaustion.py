import asyncio
import errno
import logging

import pytest

from deltatape.http1 import exhaustion
from deltatape.http1.exhaustion import Exhaustion
from helpers.upstream import run

ACCEPTING = "socket.accept() out of system resource"


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def call(handler: Exhaustion, message: str, error: Exception) -> None:
    async def scenario() -> None:
        handler(asyncio.get_running_loop(), {"message": message, "exception": error})

    run(scenario())


def test_a_lack_of_descriptors_is_said_in_one_line_and_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = Exhaustion()
    for _ in range(100):
        call(handler, ACCEPTING, OSError(errno.EMFILE, "Too many open files"))
    (line,) = said(caplog)
    assert line.startswith("too many open files for one process (see `ulimit -n`): new connections")


def test_it_is_said_again_when_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exhaustion, "_EVERY_S", 0.0)
    handler = Exhaustion()
    for _ in range(2):
        call(handler, ACCEPTING, OSError(errno.ENFILE, "Too many open files in system"))
    assert len(said(caplog)) == 2
    assert "Too many open files in system: new connections wait" in said(caplog)[0]


def test_a_listener_that_was_closed_meanwhile_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(Exhaustion())
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        (sock,) = server.sockets
        server.close()
        # As asyncio calls it a second after it ran out of descriptors.
        loop.call_soon(loop._start_serving, asyncio.Protocol, sock)  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)

    run(scenario())
    assert said(caplog) == []


def test_other_troubles_are_told_as_asyncio_does(caplog: pytest.LogCaptureFixture) -> None:
    call(Exhaustion(), "Exception in callback", ValueError("x"))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("asyncio", logging.ERROR)
    assert "Exception in callback" in record.getMessage()
