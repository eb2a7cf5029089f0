from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Unanswered
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.log import LogEntry, LogStream
from deltatape.model.watch import Watch
from deltatape.rules.d003_unanswered_tool_call import UnansweredToolCall
from deltatape.rules.settings import DEFAULTS
from deltatape.store.reader import open_tape
from helpers.chat import FINISH
from helpers.exchanges import USER, asks, call
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, STALL
from helpers.watched import CALLS, NS, watched_digests

OTHER: dict[str, object] = {"role": "user", "content": "Another matter."}


def found(until_s: float, stop: str | None = "interrupted", code: int | None = None) -> Finding:
    (finding,) = check_conversation(
        watched_digests(CALLS, until_s=until_s, stop=stop, exit_code=code)
    )
    return finding


def test_it_says_for_how_long_was_watched_and_what_ended_that() -> None:
    finding = found(42.5, "child-exit", 0)
    assert (finding.code, finding.name) == ("D003", "unanswered-tool-call")
    assert finding.message == (
        "1 call (get) was delivered whole, and no request followed for 42.0 s of watched silence;"
        " then the app exited with 0"
    )
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.severity is Severity.WARNING
    assert (finding.exchange, finding.line, finding.t_ns) == (1, 150, NS // 2)
    assert finding.evidence == '{"a":1}'


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ("interrupted", "then the recorder stopped (interrupted)"),
        ("child-exit", "then the recorder stopped (child-exit)"),
        (None, "then the tape breaks off"),
    ],
)
def test_what_ended_the_watching_is_said(stop: str | None, words: str) -> None:
    assert found(60, stop).message.endswith(words)


def test_what_still_goes_on_is_said_to_do_so() -> None:
    (reply,) = watched_digests(CALLS, until_s=60)
    watch = Watch(until_ns=60 * NS, recording=True)
    (finding,) = check_conversation([replace(reply, watch=watch)])
    assert finding.message.endswith("watched silence; it still goes on")


def test_an_unknown_end_of_the_application_is_possible_at_most() -> None:
    assert found(60).confidence is Confidence.POSSIBLE
    assert found(600).severity is Severity.WARNING


def test_other_traffic_makes_it_likely_and_a_long_time_an_error() -> None:
    late: tuple[dict[str, object], list[object]] = (asks(OTHER), [])
    tape = watched_digests(CALLS, late, late, late, late, late, until_s=90)
    (finding,) = check_conversation(tape)
    assert (finding.confidence, finding.severity) == (Confidence.LIKELY, Severity.WARNING)
    assert found(400, "child-exit", 0).severity is Severity.ERROR


def test_an_application_that_answers_no_calls_may_take_them_as_its_output() -> None:
    others = [(asks({**OTHER, "name": f"n{at}"}), [*call(index=at), FINISH]) for at in (4, 5)]
    for number, words in ((1, "1 later reply"), (2, "2 later replies")):
        tape = watched_digests(CALLS, *others[:number], until_s=900, stop="child-exit")
        (finding,) = check_conversation(tape)
        assert (finding.confidence, finding.severity) == (Confidence.POSSIBLE, Severity.WARNING)
        assert finding.message.endswith(f"; the same goes for {words}")
        assert finding.hint.startswith("the app answers no calls on this tape: if it takes calls")


@pytest.mark.parametrize(
    ("until_s", "stop", "code"),
    [
        (2.5, "interrupted", None),  # Ctrl-C
        (2.5, "child-exit", 0),  # a program that takes the call as its result
        (2.5, "child-exit", 130),  # Ctrl-C in the program
        (2.5, "child-exit", -2),
        (29.9, None, None),  # a crash of the recorder
    ],
)
def test_a_tape_that_was_not_watched_for_long_proves_nothing(
    until_s: float, stop: str | None, code: int | None
) -> None:
    assert not check_conversation(
        watched_digests(CALLS, until_s=until_s, stop=stop, exit_code=code)
    )


def test_an_application_that_failed_can_never_answer() -> None:
    finding = found(0.7, "child-exit", 1)
    assert (finding.confidence, finding.severity) == (Confidence.POSSIBLE, Severity.WARNING)
    assert "no request followed before the app exited with 1, 0.2 s later" in finding.message


def test_several_calls_are_named_up_to_a_number() -> None:
    many = [each for index in range(5) for each in call(f"t{index}", "{}", index)]
    tape = watched_digests((asks(USER), [*many, FINISH]), until_s=60)
    (finding,) = check_conversation(tape)
    assert finding.message.startswith("5 calls (t0, t1, t2 and 2 more) were delivered whole")


def test_what_is_not_known_is_not_judged() -> None:
    rule = UnansweredToolCall()
    (reply,) = watched_digests(CALLS, until_s=60)
    silence = Unanswered(reply=replace(reply, watch=None), until_ns=60 * NS, alive_ns=None, alike=0)
    assert not list(rule.check(silence, DEFAULTS))


@pytest.mark.parametrize("tape", [BROKEN, FIXED, CUT, EMPTY, STALL], ids=lambda path: path.stem)
def test_the_recorded_incidents_hold_no_dead_zone(tape: Path) -> None:
    exchanges = list(open_tape(tape))
    found = [finding for exchange in exchanges for finding in check(exchange)]
    found += check_conversation(map(digest, exchanges))
    assert not {finding.code for finding in found} & {"D003", "D004"}


def crashed(line: bytes, code: int = 1) -> list[Finding]:
    tape = watched_digests(CALLS, until_s=1, stop="child-exit", exit_code=code)
    printed = LogEntry(t_ns=round(0.7 * NS), stream=LogStream.STDERR, line=line)
    found = check_conversation(tape, logs=[printed])
    return [each for each in found if each.code == "D003"]


@pytest.mark.parametrize(
    "line",
    [
        b"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        b"\x1b[31mTypeError: x is not a function\x1b[0m",
        b"panic: runtime error: index out of range [1] with length 1",
    ],
)
def test_an_app_that_ended_by_an_exception_did_not_mean_to_stay_silent(line: bytes) -> None:
    (finding,) = crashed(line)
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert "without a further request, the app printed '" in finding.message
    assert finding.message.endswith(" and exited with 1")
    assert finding.hint.startswith("the app ended by an error of its own")
    (excluded,) = finding.excluded
    assert excluded.explanation == "the app takes calls as its output, or waits for a person"


def test_an_app_that_printed_no_exception_may_have_meant_it() -> None:
    (finding,) = crashed(b"nothing to do")
    assert (finding.confidence, finding.excluded) == (Confidence.POSSIBLE, ())
    assert not crashed(b"ValueError: x", code=0)
