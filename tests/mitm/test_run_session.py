"""The session of a mitmproxy that the user has started."""

import sys
from types import SimpleNamespace

import pytest

from deltatape.mitm.ipc import FromAddon
from deltatape.mitm.run_session import OwnSession, can_analyse
from deltatape.model.recording_counts import RecordingCounts
from deltatape.record.worker_messages import Said
from helpers.upstream import run


class Log:
    """An `AddonLogger` that keeps what it gets."""

    def __init__(self) -> None:
        self.sent: list[FromAddon] = []

    def send(self, message: FromAddon) -> None:
        self.sent.append(message)

    async def connect(self) -> None:
        """It is there."""


def test_an_interpreter_with_all_of_deltatape_analyses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_analyse()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not can_analyse()


def test_without_it_nothing_is_analysed_and_the_end_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert not can_analyse()
    log = Log()
    session = OwnSession(log, analysed=False)
    assert session.analysis is None
    session.lasting_alarm("no disk")
    session.stopped()
    assert log.sent == [
        Said(text="no disk", how="alarm"),
        Said(text="deltatape taped 0 exchanges", how="remark"),
    ]


def test_a_record_that_is_not_on_the_tape_is_told_at_the_end() -> None:
    log = Log()
    session = OwnSession(log, analysed=False)
    counts = RecordingCounts(exchanges=1, lost_records=1)
    session.attach(SimpleNamespace(counts=lambda: counts))
    session.stopped()
    told = "deltatape taped 1 exchange; NOT ON THE TAPE: 1 record"
    assert log.sent == [Said(text=told, how="remark")]


def test_with_it_the_tapes_are_analysed() -> None:
    async def scenario() -> None:
        assert OwnSession(Log(), analysed=True).analysis is not None

    run(scenario())
