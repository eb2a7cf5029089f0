from itertools import chain

import pytest

from deltatape.conversation import (
    check_conversation,
    findings_of,
    findings_of_turn,
    read_backs,
    turns,
)
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.rules import SILENCE_RULES, TURN_RULES
from deltatape.rules.settings import Settings
from helpers.chat import FINISH
from helpers.contexts import failing
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result
from helpers.watched import CALLS, watched_digests

WRONG = asks(USER, assistant(("c1", "get", "")), result("c1"))


def test_what_requests_show_comes_before_what_silence_shows() -> None:
    tape = watched_digests(CALLS, (WRONG, [*call(index=4), FINISH]), until_s=100)
    found = check_conversation(tape)
    assert [(finding.code, finding.exchange) for finding in found] == [("C002", 2), ("D003", 2)]


def test_what_one_read_back_shows_is_part_of_all() -> None:
    tape = digests(CALLS, (WRONG, [TEXT, FINISH_TEXT]))
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
    monkeypatch.setattr("deltatape.conversation.check.SILENCE_RULES", rules)
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
    monkeypatch.setattr("deltatape.conversation.check.TURN_RULES", rules)
    (finding,) = check_conversation(digests(CALLS))
    assert (finding.code, finding.exchange) == ("X001", 1)
    assert "C004" in finding.message


def test_what_was_printed_is_held_against_the_wire() -> None:
    line = LogEntry(t_ns=600_000_000, stream=LogStream.STDERR, line=b"Invalid tool call JSON")
    assert [each.code for each in check_conversation(digests(CALLS), logs=[line])] == ["C009"]
