"""Where the addon's words go."""

import asyncio
import json
import logging
import socket
import sys
import threading
from typing import cast

import pytest

from deltatape.gateway.tapes import OpenTape
from deltatape.mitm.addon_log import (
    MitmproxyLogHandler,
    ParentLogHandler,
    PlainObserver,
    find_live,
    find_logger,
)
from deltatape.mitm.ipc import VARIABLE, AddonMessage
from deltatape.mitm.live_analysis import MitmAnalyzer
from helpers.upstream import run

MESSAGES: list[tuple[AddonMessage, dict[str, object]]] = [
    (AddonMessage.READY, {"tape": "t/x.tape"}),
    (AddonMessage.READY, {"tape": ""}),
    (AddonMessage.TRAFFIC, {"what": "client"}),
    (AddonMessage.PASSED, {"host": "example.com"}),
    (AddonMessage.LINE, {"text": "#1 POST"}),
    (AddonMessage.ALARM, {"text": "disk full"}),
    (AddonMessage.STOPPING, {"active": 1}),
    (AddonMessage.ENDED, {"exchanges": 1, "lost_records": 0}),
    (AddonMessage.ENDED, {"exchanges": 2, "lost_records": 3}),
]


def test_without_a_parent_they_go_to_mitmproxy_s_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        logger = find_logger({}, lambda *_: None, lambda: None)
        assert isinstance(logger, MitmproxyLogHandler)
        await logger.connect()
        with caplog.at_level(logging.INFO, logger="deltatape"):
            for kind, fields in MESSAGES:
                logger.send(kind, **fields)

    run(scenario())
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", "deltatape is taping: t/x.tape"),
        ("INFO", "deltatape is taping: nothing, see above"),
        ("INFO", "#1 POST"),
        ("WARNING", "TAPING IN TROUBLE: disk full"),
        ("INFO", "deltatape taped 1 exchange"),
        ("INFO", "deltatape taped 2 exchanges; NOT ON THE TAPE: 3 records"),
    ]


def test_with_a_parent_they_go_there_from_any_thread() -> None:
    async def scenario() -> list[object]:
        ours, theirs = socket.socketpair()
        gone = asyncio.Event()
        logger = find_logger({VARIABLE: str(theirs.detach())}, lambda *_: None, gone.set)
        assert isinstance(logger, ParentLogHandler)
        logger.send(AddonMessage.LINE, text="before")
        await logger.connect()
        thread = threading.Thread(target=lambda: logger.send(AddonMessage.ALARM, text="aside"))
        thread.start()
        await asyncio.to_thread(thread.join)
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        received = [json.loads(await reader.readline()) for _ in range(2)]
        writer.close()
        await gone.wait()
        await asyncio.sleep(0)
        return received

    assert run(scenario()) == [["line", {"text": "before"}], ["alarm", {"text": "aside"}]]


def test_all_of_deltatape_analyses() -> None:
    assert find_live() is MitmAnalyzer


def test_without_the_rest_only_the_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "deltatape.mitm.live_analysis")
    monkeypatch.setitem(sys.modules, "deltatape.live.analyzer", None)
    assert find_live() is PlainObserver
    lines: list[str] = []
    live = PlainObserver(lines.append)
    live.begin(1)
    live.put(1, b"[]\n")
    live.ended(cast("OpenTape", None), 1, "POST /x 200 complete")
    run(live.finish())
    assert lines == ["#1 POST /x 200 complete"]
    assert (live.with_findings, live.worst) == (None, None)
