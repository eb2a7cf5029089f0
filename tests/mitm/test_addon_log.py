"""Where the addon's words go."""

import asyncio
import json
import logging
import socket
import threading

import pytest

from deltatape.mitm.addon_log import MitmproxyLogHandler, ParentLogHandler, find_logger
from deltatape.mitm.ipc import VARIABLE, FirstClient, FromAddon, Passed, Ready, Stopped
from deltatape.record.worker_messages import Said
from helpers.upstream import run

READY = Ready(url="http://127.0.0.1:1", tape="t/x.tape", confdir="c", version="12")
MESSAGES: list[FromAddon] = [
    READY,
    Ready(url="http://127.0.0.1:1", tape="", confdir="c", version="12"),
    FirstClient(),
    Passed(host="example.com"),
    Said(text="#1 POST", how="remark"),
    Said(text="disk full", how="alarm"),
    Stopped(),
]


def test_without_a_parent_they_go_to_mitmproxy_s_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        logger = find_logger({}, lambda *_: None, lambda: None)
        assert isinstance(logger, MitmproxyLogHandler)
        await logger.connect()
        with caplog.at_level(logging.INFO, logger="deltatape"):
            for message in MESSAGES:
                logger.send(message)

    run(scenario())
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", "deltatape is taping: t/x.tape"),
        ("INFO", "deltatape is taping: nothing, see above"),
        ("INFO", "#1 POST"),
        ("WARNING", "TAPING IN TROUBLE: disk full"),
    ]


def test_with_a_parent_they_go_there_from_any_thread() -> None:
    async def scenario() -> list[object]:
        ours, theirs = socket.socketpair()
        gone = asyncio.Event()
        logger = find_logger({VARIABLE: str(theirs.detach())}, lambda *_: None, gone.set)
        assert isinstance(logger, ParentLogHandler)
        logger.send(FirstClient())
        await logger.connect()
        thread = threading.Thread(target=logger.send, args=(Passed(host="a"),))
        thread.start()
        await asyncio.to_thread(thread.join)
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        received = [json.loads(await reader.readline()) for _ in range(2)]
        writer.close()
        await gone.wait()
        await asyncio.sleep(0)
        return received

    assert run(scenario()) == [
        {"kind": "first-client"},
        {"kind": "passed", "host": "a"},
    ]
