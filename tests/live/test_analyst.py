"""The analysing process, in this process: what it reports of tapes that grow."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.live import analyst, messages
from deltatape.live.analyst import LATE_S, MAX_LATE_S, Analyst
from deltatape.live.messages import (
    Begin,
    Close,
    Closed,
    ExchangeReport,
    Follow,
    Look,
    Message,
    Recall,
    Settled,
    SilenceReport,
    Unreadable,
)
from deltatape.model.app_names import AppNames
from deltatape.model.exchange import Exchange
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.tape.payload import ParsedAs, Stop
from deltatape.tape.serialize import tape_lines
from helpers.exchanges import (
    CALL_REPLY,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    conversation,
    result,
    user,
)
from helpers.tapes import HEADER

CHANGED = asks(USER, assistant(("c1", "get", "")), result("c1"))
EXCHANGES = conversation((asks(USER), CALL_REPLY), (CHANGED, TEXT_REPLY))
CLOSE = Close(key=1, until_ns=10**12, reason="sigint", exit_code=None)


RUNNING: list["Run | Shards"] = []


def written(*exchanges: Exchange) -> list[bytes]:
    """The lines of a tape that has not ended."""
    return list(tape_lines(HEADER, exchanges, stop=Stop(reason="sigint", exit_code=None)))[:-1]


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    for running in RUNNING:
        running.analyst.stop()
    RUNNING.clear()


class Run:
    """An analyst that follows one tape, and its reports."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        RUNNING.append(self)
        self.reports: list[Message] = []
        self.analyst = Analyst(self.reports.append)
        self.analyst.handle(Follow(key=1, path=str(path), name=name))

    def look(self) -> list[Message]:
        """What is reported when an exchange has ended."""
        self.reports.clear()
        self.told(Look(key=1))
        return list(self.reports)

    def told(self, message: Message) -> None:
        """Have it handle a message alone."""
        self.analyst.handle(message)
        self.analyst.look()


def test_each_exchange_is_reported_once_after_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    lines = written(*EXCHANGES)
    half = next(at for at, line in enumerate(lines) if b',2,"request"' in line)
    path.write_bytes(b"".join(lines[:half]))
    running = Run(path, "named")
    (first,) = running.look()
    assert isinstance(first, ExchangeReport)
    assert (first.number, first.findings) == (1, [])
    assert first.lines[0].startswith("named#1 POST ")
    assert ParsedAs.from_json(first.parsed).calls == 1
    with path.open("ab") as file:
        file.write(b"".join(lines[half:]))
    (second,) = running.look()
    assert isinstance(second, ExchangeReport)
    assert "C002" in [finding["code"] for finding in second.findings]
    assert any("C002" in line for line in second.lines[1:])
    assert not running.analyst.late


def test_an_end_that_is_announced_and_not_on_the_disk_is_looked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    lines = written(EXCHANGES[0])
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:5])
    running = Run(path)
    assert running.look() == []
    assert running.analyst.late
    running.analyst.look_again()
    assert running.reports == []
    with path.open("ab") as file:
        file.write(lines[-1][5:])
    running.analyst.look_again()
    assert [type(report) for report in running.reports] == [ExchangeReport]
    assert not running.analyst.late


def test_a_closed_tape_is_reported_to_its_end_with_its_silences(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(b"".join(written(EXCHANGES[0])))
    running = Run(path)
    running.look()
    running.reports.clear()
    running.told(CLOSE)
    silence, closed = running.reports
    assert isinstance(silence, SilenceReport)
    assert silence.lines[0] == "#1 was never answered"
    assert [finding["code"] for finding in silence.findings] == ["D003"]
    assert closed == Closed(key=1)
    running.told(CLOSE)  # it is not known any more
    assert running.reports[2:] == []


def test_a_closed_tape_without_an_announced_end_is_waited_for_and_then_closed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(b"".join(written(EXCHANGES[0])[:-1]))
    running = Run(path)
    running.look()
    running.told(CLOSE)
    assert running.reports == []
    for _ in range(round(analyst.MAX_LATE_S / analyst.LATE_S)):
        assert running.analyst.late
        running.analyst.look_again()
    assert running.reports == [Closed(key=1)]
    assert not running.analyst.late


def test_a_damaged_or_missing_tape_is_reported_and_not_followed(tmp_path: Path) -> None:
    (missing,) = Run(tmp_path / "missing.tape").reports
    assert isinstance(missing, Unreadable)
    path = tmp_path / "x.tape"
    path.write_bytes(b"".join(written(EXCHANGES[0])[:2]) + b"oops\n")
    running = Run(path)
    (damaged,) = running.look()
    assert isinstance(damaged, Unreadable)
    assert "x.tape:3" in damaged.problem
    assert running.look() == []


def test_the_latest_of_closed_tapes_is_recalled_and_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole, half, damaged) = (tmp_path / f"{name}.tape" for name in ("whole", "half", "damaged"))
    lines = written(EXCHANGES[0])
    whole.write_bytes(b"".join(lines))
    half.write_bytes(b"".join([*lines, *(line.replace(b",1,", b",2,", 1) for line in lines[1:])]))
    damaged.write_bytes(b"".join([*lines[:2], b"oops\n"]))
    monkeypatch.setattr(analyst, "RECALLED_BYTES", 3 * whole.stat().st_size // 2 + 1)
    reports: list[Message] = []
    process = Analyst(reports.append)
    names = [(None, "gone.tape"), ("a", str(whole)), (None, str(half)), (None, str(damaged))]
    process.handle(Recall(tapes=names))
    assert reports == []
    histories = process._analyzer._histories
    # There is no room for the first, and for one exchange of the second.
    assert {
        name: [each.exchange for each in known.digests] for name, known in histories.items()
    } == {None: [2]}


def test_what_ended_on_several_tapes_is_reported_together_each_in_its_own_conversation(
    tmp_path: Path,
) -> None:
    lines = written(*EXCHANGES)
    half = next(at for at, line in enumerate(lines) if b',2,"request"' in line)
    contents = {"a": lines, "b": [*lines[:half], b"oops\n"], "c": [lines[0], *lines[half:]]}
    running = Run(tmp_path / "missing.tape")
    running.reports.clear()
    for key, (name, content) in enumerate(contents.items(), 2):
        path = tmp_path / f"{name}.tape"
        path.write_bytes(b"".join(content))
        running.analyst.handle(Follow(key=key, path=str(path), name=name))
        running.analyst.handle(Look(key=key))
    assert running.reports == []
    running.analyst.look()
    assert [
        (report.key, report.number, any(each["code"] == "C002" for each in report.findings))
        for report in running.reports
        if isinstance(report, ExchangeReport)
    ] == [(2, 1, False), (2, 2, True), (3, 1, False), (4, 2, False)]
    assert [(type(report), report.key) for report in running.reports[4:]] == [(Unreadable, 3)]  # type: ignore[union-attr]
    assert not running.analyst.late


# Shards: the tapes of several recorders are judged as one, whatever was read first.

LATE_NS = 10**15


class Shards:
    """An analyst that follows `a.tape`, which has the exchange 1, and `b.tape` with 2."""

    def __init__(self, folder: Path, *exchanges: Exchange) -> None:
        self.reports: list[Message] = []
        self.analyst = Analyst(self.reports.append)
        RUNNING.append(self)
        self.analyst.handle(Begin.of(DEFAULTS, sharded=True))
        header, *lines = written(*exchanges)
        self.lines = [
            [header, *(line for line in lines if json.loads(line)[1] == number)]
            for number in (1, 2)
        ]
        self.paths = [folder / "a.tape", folder / "b.tape"]
        for key, (path, lines) in enumerate(zip(self.paths, self.lines, strict=True), 1):
            path.write_bytes(b"".join(lines))
            self.analyst.handle(Follow(key=key, path=str(path), name=None))

    def told(self, *told: Message) -> list[Message]:
        self.reports.clear()
        for message in told:
            self.analyst.handle(message)
        self.analyst.look()
        return list(self.reports)

    def again(self, times: int) -> list[Message]:
        self.reports.clear()
        for _ in range(times):
            self.analyst.look_again()
        return list(self.reports)


def numbers(reports: list[Message]) -> list[int]:
    return [each.number for each in reports if isinstance(each, ExchangeReport)]


def test_the_next_request_is_judged_after_the_answer_on_another_shard(tmp_path: Path) -> None:
    shards = Shards(tmp_path, *EXCHANGES)
    assert shards.told(Look(key=2)) == []
    assert not shards.analyst.late
    assert EXCHANGES[1].end is not None
    assert shards.told(Settled(until_ns=EXCHANGES[1].end.t_ns)) == []
    first, second = shards.told(Look(key=1), Settled(until_ns=LATE_NS))
    assert isinstance(first, ExchangeReport)
    assert isinstance(second, ExchangeReport)
    assert (first.key, first.number, second.key, second.number) == (1, 1, 2, 2)
    (changed,) = [each for each in second.findings if each["code"] == "C002"]
    assert changed["tape"] == str(shards.paths[1])
    against = changed["against"]
    assert isinstance(against, dict)
    assert against["tape"] == str(shards.paths[0])


def test_an_announced_end_on_another_shard_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    shards = Shards(tmp_path, *EXCHANGES)
    shards.paths[0].write_bytes(b"".join(shards.lines[0][:-1]))
    assert shards.told(Look(key=1), Look(key=2), Settled(until_ns=LATE_NS)) == []
    assert shards.analyst.late
    looks = round(MAX_LATE_S / LATE_S)
    assert shards.again(looks - 1) == []
    assert numbers(shards.again(1)) == [2]
    with shards.paths[0].open("ab") as file:
        file.write(shards.lines[0][-1])
    assert numbers(shards.told(Look(key=1, ended=0))) == [1]


def test_many_exchanges_on_shards_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyst, "_MAX_HELD", 1)
    shards = Shards(tmp_path, *EXCHANGES)
    assert numbers(shards.told(Look(key=1))) == []
    assert numbers(shards.told(Look(key=2))) == [1, 2]


def test_a_reply_is_not_silent_that_was_answered_on_another_shard(tmp_path: Path) -> None:
    shards = Shards(tmp_path, *EXCHANGES)
    assert shards.told(CLOSE, replace(CLOSE, key=2), Look(key=1), Look(key=2)) == []
    reports = shards.told(Settled(until_ns=LATE_NS))
    assert [type(each) for each in reports] == [ExchangeReport, ExchangeReport, Closed, Closed]


def test_a_reply_that_no_shard_answers_is_silent_on_its_own(tmp_path: Path) -> None:
    first, second = conversation((asks(USER), CALL_REPLY), (asks(user("Hello")), TEXT_REPLY))
    shards = Shards(tmp_path, first, second)
    shards.told(Look(key=1), Look(key=2), Settled(until_ns=LATE_NS))
    assert [type(each) for each in shards.told(replace(CLOSE, key=2))] == [Closed]
    silent, closed = shards.told(CLOSE)
    assert isinstance(silent, SilenceReport)
    assert (silent.key, silent.number, type(closed)) == (1, 1, Closed)
    assert silent.findings[0]["tape"] == str(shards.paths[0])


def test_every_message_survives_its_way() -> None:
    settings = replace(DEFAULTS, stall_s=3.0, app=AppNames(text=("say", "speak")))
    report = ExchangeReport(key=1, number=2, lines=["a"], findings=[{"severity": "error"}])
    for message in (
        Begin.of(settings),
        Follow(key=1, path="x", name=None),
        Look(key=1, ended=3),
        CLOSE,
        report,
        SilenceReport(key=1, number=2, lines=[], findings=[]),
        Closed(key=1),
        Unreadable(key=1, problem="why"),
    ):
        again = messages.decode(messages.encode(message))
        assert type(again) is type(message)
        if not isinstance(message, Begin):
            assert again == message
    begin = messages.decode(messages.encode(Begin.of(settings)))
    assert isinstance(begin, Begin)
    assert begin.rules() == settings


def test_the_thresholds_of_the_recorder_count(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(b"".join(written(EXCHANGES[0])))
    running = Run(path)
    running.look()
    running.reports.clear()
    patient = Settings(unanswered_s=10**6)
    running = Run(path)
    running.analyst.handle(Begin.of(patient))
    running.told(Look(key=1))
    running.reports.clear()
    running.told(CLOSE)
    assert running.reports == [Closed(key=1)]


def test_it_serves_a_pipe_to_its_end_however_messages_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(b"".join(written(EXCHANGES[0])))
    reports: list[Message] = []
    source, sink = os.pipe()
    data = b"".join(
        messages.encode(message)
        for message in (Begin.of(DEFAULTS), Follow(key=1, path=str(path), name=None), Look(key=1))
    )
    os.write(sink, data[:7])
    os.write(sink, data[7:])
    os.close(sink)
    analyst.serve(Analyst(reports.append), source, lambda: None)
    os.close(source)
    assert [type(report) for report in reports] == [ExchangeReport]
    assert json.dumps(reports[0].lines)  # type: ignore[union-attr]


@pytest.mark.parametrize("message", [Look(key=7), Closed(key=7)])
def test_what_is_about_an_unknown_tape_is_ignored(message: Message) -> None:
    reports: list[Message] = []
    Analyst(reports.append).handle(message)
    assert reports == []
