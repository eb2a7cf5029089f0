import asyncio
import json
import os
import re
import resource
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

import pytest

from deltatape.conversation import (
    check_conversation,
    findings_of,
    findings_of_turn,
    read_backs,
    turns,
)
from deltatape.conversation.parser_errors import printed, without_echoes
from deltatape.diagnose.check import check
from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.digest import digest
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.rules import SILENCE_RULES, TURN_RULES
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, sse
from helpers.contexts import failing
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    FINISH_TEXT,
    TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    result,
)
from helpers.program import program
from helpers.upstream import SSE_HEAD, Peer, Script, chunk, connect, post, provider, run
from helpers.watched import CALLS, watched_digests

WRONG = asks(USER, assistant(("c1", "get", "")), result("c1"))


def test_what_requests_show_comes_before_what_silence_shows() -> None:
    tape = watched_digests(CALLS, (WRONG, [*call(index=4), FINISH]), until_s=100)
    found = check_conversation(tape)
    assert [(finding.code, finding.exchange) for finding in found] == [("C002", 2), ("D003", 2)]


def test_what_one_read_back_shows_is_part_of_all() -> None:
    tape = digests(CALLS, (WRONG, TEXT_REPLY))
    (link,) = read_backs(tape)
    assert findings_of(link) == check_conversation(tape)


def test_thresholds_are_settings() -> None:
    tape = watched_digests(CALLS, until_s=2)
    assert not check_conversation(tape)
    assert [each.code for each in check_conversation(tape, Settings(unanswered_s=1))] == ["D003"]


def test_while_a_tape_goes_on_unwatched_nothing_is_said_about_silence() -> None:
    assert not check_conversation(digests(CALLS))


def test_a_rule_about_silence_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = failing("D003", SILENCE_RULES)
    monkeypatch.setattr("deltatape.conversation.SILENCE_RULES", rules)
    (finding,) = check_conversation(watched_digests(CALLS, until_s=100))
    assert (finding.code, finding.exchange) == ("X001", 1)


def test_what_a_turn_shows_comes_after_what_its_request_repeats() -> None:
    changed = asks(USER, assistant(("c1", "get", "")), result("c9"))
    found = check_conversation(digests(CALLS, (changed, []), (asks(USER, result("c8")), [])))
    assert [(finding.code, finding.exchange) for finding in found] == [
        ("C002", 2),
        ("C004", 2),
        ("C005", 2),
        ("C004", 3),
    ]


def test_what_one_turn_shows_is_part_of_all() -> None:
    tape = digests(CALLS, (asks(USER, result("c1")), []))
    found = [findings_of_turn(turn, Settings()) for turn in turns(tape, read_backs(tape))]
    assert [*chain(*found)] == [*check_conversation(tape)]


def test_a_rule_about_turns_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = failing("C004", TURN_RULES)
    monkeypatch.setattr("deltatape.conversation.TURN_RULES", rules)
    (finding,) = check_conversation(digests(CALLS))
    assert (finding.code, finding.exchange) == ("X001", 1)
    assert "C004" in finding.message


def test_what_was_printed_is_held_against_the_wire() -> None:
    line = LogEntry(t_ns=600_000_000, stream=LogStream.STDERR, line=b"Invalid tool call JSON")
    assert [each.code for each in check_conversation(digests(CALLS), logs=[line])] == ["C009"]


QUICK = Settings(unanswered_s=0.5, after_result_s=0.5)
AFTER = asks(USER, CALL_MESSAGE, result("c1"))


@asynccontextmanager
async def recorded(folder: Path, script: Script) -> AsyncIterator[int]:
    """The port of `deltatape record` in front of a provider; it stops in good order at the end."""
    async with provider(script) as upstream:
        options = ("--listen", "127.0.0.1:0", "--upstream", f"http://127.0.0.1:{upstream}")
        with program("record", *options, folder=folder) as running:
            await asyncio.to_thread(lambda: running.wait_for("OPENAI_BASE_URL"))
            yield running.port
            code, _ = await asyncio.to_thread(running.stop)
            assert code == 0


def found(folder: Path, settings: Settings) -> Sequence[Finding]:
    (tape,) = (folder / ".deltatape").glob("*.tape")
    exchanges = list(open_tape(tape))
    own = [finding for exchange in exchanges for finding in check(exchange, settings)]
    return [*own, *check_conversation(map(digest, exchanges), settings)]


async def calls_a_tool(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(*call(), FINISH)) + b"0\r\n\r\n")


async def is_silent(peer: Peer) -> None:
    await peer.request()
    await peer.rest()


@pytest.mark.slow
def test_an_application_that_never_answers_its_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recorded(tmp_path, calls_a_tool) as port:
            client = await connect(port)
            await client.send(post(json.dumps(asks(USER)).encode()))
            await client.rest_or_end()
            await asyncio.sleep(0.8)

    run(scenario())
    (finding,) = found(tmp_path, QUICK)
    assert finding.code == "D003"
    assert " s; then the recorder stopped (" in finding.message
    assert not found(tmp_path, Settings())


@pytest.mark.slow
def test_a_provider_that_is_silent_after_a_tool_result(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recorded(tmp_path, is_silent) as port:
            client = await connect(port)
            await client.send(post(json.dumps(AFTER).encode()))
            await asyncio.sleep(0.8)
            client.close()

    run(scenario())
    (finding,) = (each for each in found(tmp_path, QUICK) if each.code == "D004")
    assert re.search(
        r"the client disconnected after ([6-9][0-9]{2} ms|1\.[0-9] s)$", finding.message
    )
    assert "D004" not in [each.code for each in found(tmp_path, Settings())]


ASKED = post(json.dumps(asks(USER)).encode())


async def answers_in_two_pieces(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(sse(TEXT, done=False)))
        await asyncio.sleep(0.5)
        await peer.send(chunk(sse(FINISH_TEXT)) + b"0\r\n\r\n")


def taped(folder: Path, trouble: Callable[[int], None], after_s: float) -> list[Finding]:
    """What is found where `trouble` comes over the recorder, whose process it is given."""

    async def scenario() -> None:
        async with provider(answers_in_two_pieces) as upstream:
            options = ("--listen", "127.0.0.1:0", "--upstream", f"http://127.0.0.1:{upstream}")
            with program("record", *options, folder=folder) as running:
                await asyncio.to_thread(lambda: running.wait_for("OPENAI_BASE_URL"))
                client = await connect(running.port)
                await asyncio.sleep(0.2)  # until it is accepted
                trouble(running.process.pid)
                await client.send(ASKED)
                await asyncio.sleep(after_s)

    run(scenario())
    (tape,) = (folder / ".deltatape").glob("*.tape")
    report = check_exchanges(str(tape), open_tape(tape), DEFAULTS)
    return [each.finding for each in report.reported]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_a_full_table_of_descriptors_is_the_recorders(tmp_path: Path) -> None:
    def fill(pid: int) -> None:
        known = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names are all that is needed
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (known, known))

    (cut,) = taped(tmp_path, fill, 1.0)
    assert (cut.code, cut.blame) == ("W006", None)
    assert "Too many open files" in cut.message


@pytest.mark.slow
def test_a_recorder_that_is_killed_leaves_a_tape_that_blames_nobody(tmp_path: Path) -> None:
    def kill_soon(pid: int) -> None:
        asyncio.get_running_loop().call_later(0.3, os.kill, pid, signal.SIGKILL)

    (cut,) = taped(tmp_path, kill_soon, 1.0)
    assert (cut.code, cut.blame) == ("W006", None)
    assert "the recorder was killed or crashed" in cut.message


NS = 1_000_000_000
LINE = "Unexpected end of JSON input"


def entry(at_s: float, line: str = LINE) -> LogEntry:
    return LogEntry(t_ns=round(at_s * NS), stream=LogStream.STDOUT, line=line.encode())


def test_a_printed_error_belongs_to_the_latest_reply_with_calls() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY), (asks(USER, USER), CALL_REPLY), (asks(USER), TEXT_REPLY)
    )
    found = printed(tape, [entry(1.0), entry(2.0), entry(11.0), entry(21.0)], DEFAULTS)
    assert set(found) == {id(tape[0]), id(tape[1])}
    assert found[id(tape[0])].t_ns == NS
    assert found[id(tape[1])].t_ns == 11 * NS


def test_how_long_a_reply_may_be_complained_of_is_a_setting() -> None:
    tape = digests((asks(USER), CALL_REPLY))
    assert not printed(tape, [entry(12.0)], DEFAULTS)
    assert printed(tape, [entry(12.0)], Settings(app_error_s=20.0))


def test_without_any_calls_nothing_that_was_printed_is_read() -> None:
    def unread() -> LogEntry:
        raise AssertionError

    tape = digests((asks(USER), TEXT_REPLY))
    assert not printed(tape, (unread() for _ in range(1)), DEFAULTS)


def test_what_a_request_complains_of_is_not_told_again_from_the_log() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, CALL_MESSAGE, result("c1", LINE)), [*call("put", index=3), FINISH]),
    )
    links = read_backs(tape)
    both = turns(tape, links, [entry(1.0), entry(11.0)])
    assert [[each.logged for each in turn.complaints] for turn in both] == [[], [False, True]]
    assert list(without_echoes(both)) == list(both)
