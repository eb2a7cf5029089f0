"""Exchanges of large tapes with what surrounds them, read without the rest."""

from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.app_names import CONTRACT
from deltatape.model.exchange import Exchange
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.tape_summary import LogEntry, LogStream, TapeContext
from deltatape.render.explanation import explanation_json
from deltatape.store import packing, reader, surroundings
from deltatape.store.reader import Tape, open_tape
from deltatape.tape.encode import payload_record
from deltatape.tape.payload import ClientRecord, ClientState, LogLine, Stop
from deltatape.tape.serialize import tape_lines
from deltatape.why.explain import explain
from helpers.chat import FINISH, choice
from helpers.console import called
from helpers.exchanges import asks, assistant, call, conversation, result, user
from helpers.tapes import HEADER, write_tape

TOWNS = 20
STOP = Stop(reason="interrupted", exit_code=None)
RECORDINGS = Path(__file__).parents[2] / "recordings"


def exchanges(answer: str = "It rains in both of them.") -> list[Exchange]:
    """Twenty users ask one after another, and then all of them ask on, in the same order."""
    asked = [user(f"How is the weather in town number {town:03}?") for town in range(TOWNS)]
    said = [choice({"content": answer}), choice({}, "stop")]
    first = [(asks(one), said) for one in asked]
    return conversation(
        *first, *[(asks(one, assistant(text=answer), user("Why?")), said) for one in asked]
    )


def large(folder: Path, patch: pytest.MonkeyPatch, every: list[Exchange] | None = None) -> Tape:
    """A tape that counts as large, of which one neighbour on each side is read."""
    patch.setattr(surroundings, "LARGE", 0)
    patch.setattr(surroundings, "_NEIGHBOURS", 1)
    patch.setattr(reader, "_BLOCK", 500)
    lines = tape_lines(HEADER, exchanges() if every is None else every, STOP)
    return open_tape(write_tape(folder, b"".join(lines)))


def numbers(tape: Tape, number: int) -> list[int]:
    found = surroundings.surroundings(tape, number, CONTRACT)
    assert all(each == tape[each.number] for each in found.exchanges)
    return [each.number for each in found.exchanges]


def test_an_exchange_comes_with_its_neighbours_and_its_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = large(tmp_path, monkeypatch)
    assert numbers(tape, 5) == [4, 5, 6, 25]
    assert numbers(tape, 25) == [5, 24, 25, 26]
    assert numbers(tape, 1) == [1, 2, 21]
    assert numbers(tape, 40) == [20, 39, 40]


@pytest.mark.parametrize(
    "question",
    [
        "Wie ist das Wetter in Köln?",
        "你好吗我很好谢谢你呢再见",
        "a?",
        'in the "town" of\nX-1, I think',
    ],
)
def test_what_the_user_said_is_found_in_every_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    every = exchanges()
    asked = conversation((asks(user(question)), [choice({"content": "x"}), choice({}, "stop")]))[0]
    for number in (5, 25):
        every[number - 1] = replace(every[number - 1], request=asked.request)
    if question != "a?":  # too short to be anybody's own
        assert numbers(large(tmp_path, monkeypatch, every), 5) == [4, 5, 6, 25]
    else:
        assert numbers(large(tmp_path, monkeypatch, every), 5) == [4, 5, 6]


def test_of_many_that_are_alike_the_nearest_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = exchanges()[0]
    tape = large(tmp_path, monkeypatch, [replace(one, number=at) for at in range(1, 41)])
    monkeypatch.setattr(surroundings, "_ALIKE", 3)
    assert numbers(tape, 20) == [*range(17, 24)]


def test_the_id_of_a_call_leads_to_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivered = [*call(), FINISH]
    every = exchanges()
    ended = conversation((asks(user("hi")), delivered), (asks(result("call_0123456789")), []))
    named = [
        read._replace(data=read.data.replace(b'"c1"', b'"call_0123456789"'))
        for read in ended[0].reads
    ]
    every[4] = replace(ended[0], number=5, reads=tuple(named))
    every[29] = replace(every[29], request=ended[1].request)
    assert numbers(large(tmp_path, monkeypatch, every), 5) == [4, 5, 6, 30]
    assert numbers(open_tape(tmp_path / "x.tape"), 30) == [5, 29, 30, 31]


def test_what_is_far_away_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = large(tmp_path, monkeypatch)
    monkeypatch.setattr(surroundings, "_REACH", 5_000)
    assert numbers(tape, 5) == [4, 5, 6]
    assert numbers(tape, 25) == [24, 25, 26]


@pytest.mark.parametrize("reach", [0, 700, 1_900, 3_100, 5_000, 8_888, 20_000])
def test_a_sealed_tape_has_the_surroundings_of_its_journal(
    reach: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_SECTION_BYTES", 1_500)
    tape = large(tmp_path, monkeypatch)
    sealed = open_tape(packing.seal(Path(tape.path)).path)
    monkeypatch.setattr(surroundings, "_REACH", reach)
    monkeypatch.setattr(surroundings, "_NEIGHBOURS", 40)
    for number in (1, 5, 17, 25, 40):
        one, other = (surroundings.surroundings(each, number, CONTRACT) for each in (tape, sealed))
        assert [replace(each, tape=tape.path) for each in other.exchanges] == [*one.exchanges]
        assert other.context == one.context
        assert len(one.exchanges) > 1 or reach < 5_000


def test_bodies_of_all_that_is_read_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = large(tmp_path, monkeypatch)
    size = len(tape[25].request.body) + len(tape[25].body)
    monkeypatch.setattr(surroundings, "_TOGETHER", size)
    assert numbers(tape, 5) == [5, 25]  # the conversation goes before the neighbours
    monkeypatch.setattr(surroundings, "_TOGETHER", 0)
    assert numbers(tape, 5) == [5]


def test_an_exchange_without_an_end_is_read_and_one_without_a_beginning_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = large(tmp_path, monkeypatch)
    lines = Path(tape.path).read_bytes().splitlines(keepends=True)
    kept = [each for each in lines if b',6,"end"' not in each and b',4,"request' not in each]
    tape = open_tape(write_tape(tmp_path, b"".join(kept), "y.tape"))
    assert numbers(tape, 5) == [5, 6, 25]
    assert numbers(tape, 6) == [5, 6, 7, 26]
    with pytest.raises(UsageError, match=r"y.tape#41: no such exchange on the tape"):
        numbers(tape, 41)


def test_what_else_happened_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = large(tmp_path, monkeypatch)
    lines = Path(tape.path).read_bytes().splitlines(keepends=True)
    lines[3:3] = [
        payload_record(1, 0, ClientRecord(connection=1, state=ClientState.OPENED)),
        payload_record(2, 0, LogLine(stream=LogStream.STDERR, line=b"no")),
    ]
    tape = open_tape(write_tape(tmp_path, b"".join(lines), "y.tape"))
    context = surroundings.surroundings(tape, 5, CONTRACT).context
    assert context == TapeContext(logs=tape.logs, clients=tape.clients)
    assert context.logs == (LogEntry(t_ns=2, stream=LogStream.STDERR, line=b"no"),)


@pytest.mark.parametrize(
    "name",
    [
        "apps/supervisor-and-sub-agents",
        "apps/users-at-once-with-equal-ids",
        "faults/request-sent-twice",
    ],
)
def test_the_explanation_is_that_of_the_whole_tape(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(surroundings, "_NEIGHBOURS", 3)
    tape = open_tape(RECORDINGS / f"{name}.tape")
    every = sorted(tape, key=lambda each: each.number)
    beside = TapeContext(logs=tape.logs, clients=tape.clients)
    for number in (every[1].number, every[-1].number):
        near = surroundings.surroundings(tape, number, CONTRACT)
        explained = explain(near.exchanges, number, DEFAULTS, near.context)
        assert explanation_json(explained) == explanation_json(
            explain(every, number, DEFAULTS, beside)
        )


def test_why_and_show_say_what_they_have_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large(tmp_path, monkeypatch, exchanges(""))
    note = "note: x.tape is large: this is from #5 and 3 exchanges around it; --full reads all\n"
    for command in ("why", "show"):
        near = called(command, "x.tape#5", folder=tmp_path)
        whole = called(command, "x.tape#5", "--full", folder=tmp_path)
        assert (near.stderr.decode(), whole.stderr) == (note, b"")
        assert b"#5" in near.stdout
    elsewhere = called("why", "x.tape#5", "--full", folder=tmp_path).stdout
    assert b"elsewhere on this tape" in elsewhere
    assert b"elsewhere on this tape" not in called("why", "x.tape#5", folder=tmp_path).stdout
    for part in ("--calls", "--events", "--reads", "--raw"):
        assert called("show", "x.tape#5", part, folder=tmp_path).stderr == b""
