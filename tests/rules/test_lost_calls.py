from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.model.tape_summary import LogEntry, LogStream
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    digests,
    result,
    user,
)

TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
MORE = user("Hello?")


def lost(*pairs: Digest, logs: tuple[LogEntry, ...] = ()) -> list[Finding]:
    found = check_conversation(pairs, logs=logs)
    return [finding for finding in found if finding.code == "C001"]


LAST = ("c2", "put", '{"b":2}')
FIRST = ("c1", "get", '{"a":1}')


@pytest.mark.parametrize(
    ("kept", "hint", "words"),
    [
        (LAST, "only the last call was kept", "of 2 calls, the request has only call 1"),
        (FIRST, "read every entry of tool_calls", "of 2 calls, the request has only call 0"),
    ],
)
def test_one_of_two_calls_of_different_tools_may_have_been_denied(
    kept: tuple[str, str, str], hint: str, words: str
) -> None:
    after = asks(USER, assistant(kept), result(kept[0]))
    (finding,) = lost(*digests((asks(USER), TWO), (after, [])))
    assert hint in finding.hint
    assert "if the app drops it on purpose, ignore this finding" in finding.hint
    assert words in finding.message
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_only_the_last_of_two_calls_of_a_tool_that_looks_up_speaks_against_a_choice() -> None:
    same = [*call("get"), *call("get", '{"a":2}', 1), FINISH]
    after = asks(USER, assistant(("c2", "get", '{"a":2}')), result("c2"))
    (finding,) = lost(*digests((asks(USER), same), (after, [])))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert [each.because for each in finding.excluded] == [
        "it keeps other calls of get, which looks something up",
        "it keeps the last call; an app that runs one at a time takes the first",
    ]
    first = asks(USER, CALL_MESSAGE, result("c1"))
    (finding,) = lost(*digests((asks(USER), same), (first, [])))
    assert finding.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize(
    ("names", "confidence"),
    [
        (("get_time", "get_time", "get_time"), Confidence.LIKELY),
        (("mcp__clock__getTime", "mcp__clock__getTime", "mcp__clock__getTime"), Confidence.LIKELY),
        (("get", "put", "cut"), Confidence.POSSIBLE),
        (("delete_file", "delete_file", "delete_file"), Confidence.POSSIBLE),
        (("update_plan", "update_plan", "update_plan"), Confidence.POSSIBLE),
        (("forget", "forget", "forget"), Confidence.POSSIBLE),
    ],
)
def test_only_the_last_of_three_calls_may_be_the_only_allowed_or_the_last_that_counts(
    names: tuple[str, ...], confidence: Confidence
) -> None:
    three = [each for at, name in enumerate(names) for each in call(name, f'{{"a":{at}}}', at)]
    after = asks(USER, assistant(("c3", names[-1], '{"a":2}')), result("c3"))
    found = lost(*digests((asks(USER), [*three, FINISH]), (after, [])))
    assert [finding.confidence for finding in found] == [confidence] * 2


def test_who_keeps_several_calls_elsewhere_has_no_limit_of_one() -> None:
    same = [*call("get"), *call("get", '{"a":2}', 1), FINISH]
    both = assistant(FIRST, ("c2", "get", '{"a":2}'))
    more = [*call("get", '{"a":3}', 6), *call("get", '{"a":4}', 7), FINISH]
    good = [USER, both, result("c1"), result("c2")]
    kept = assistant(("c7", "get", '{"a":3}'))
    (finding,) = lost(
        *digests((asks(USER), same), (asks(*good), more), (asks(*good, kept, result("c7")), []))
    )
    assert finding.confidence is Confidence.LIKELY
    assert finding.excluded[1].because.startswith("elsewhere on the tape it repeats several")


def test_a_call_whose_result_is_there_was_not_dropped_on_purpose() -> None:
    after = asks(USER, assistant(LAST), result("c2"), result("c1"))
    (finding,) = lost(*digests((asks(USER), TWO), (after, [])))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.PROVEN)
    assert finding.excluded[0].because == "the request has the result of the call"


def test_a_call_whose_fragments_stand_in_another_one_is_proven() -> None:
    glued = ("c2", "put", '{"a":1}{"b":2}')
    (finding,) = lost(*digests((asks(USER), TWO), (asks(USER, assistant(glued), result("c2")), [])))
    assert finding.confidence is Confidence.PROVEN
    assert "together, in what the app repeats as call 1" in finding.excluded[0].because


def test_another_change_does_not_tell_where_the_fragments_are() -> None:
    changed = ("c2", "put", "")
    tape = digests((asks(USER), TWO), (asks(USER, assistant(changed), result("c2")), []))
    (finding,) = lost(*tape)
    assert finding.confidence is not Confidence.PROVEN


def test_where_all_calls_are_gone_they_may_have_been_dropped_on_purpose() -> None:
    findings = lost(*digests((asks(USER), TWO), (asks(USER, assistant(), MORE), [])))
    assert [finding.evidence for finding in findings] == ['{"a":1}', '{"b":2}']
    assert "its assistant message has no call at all; a user message follows" in findings[0].message
    assert [finding.confidence for finding in findings] == [Confidence.POSSIBLE] * 2
    assert findings[0].hint.startswith("check how the app handles a reply with calls:")


def test_an_application_that_loses_calls_elsewhere_is_likely_to_have_lost_these() -> None:
    one = [*call(index=4), FINISH]
    orphan = [USER, assistant(), MORE, result("c5")]
    tape = digests((asks(USER), TWO), (asks(*orphan[:3]), one), (asks(*orphan), []))
    assert [finding.confidence for finding in lost(*tape)] == [Confidence.LIKELY] * 2
    assert lost(*tape)[0].excluded[0].because == (
        "the app breaks other calls, too:"
        " #3 has the result of a call that its history does not have"
    )
    torn = asks(USER, assistant(), MORE, assistant(("c5", "get", '":1}')), result("c5"))
    tape = digests((asks(USER), TWO), (asks(*orphan[:3]), one), (torn, []))
    assert (
        "#3 repeats a call of #2 wrongly: only fragment 2 of 2 is there"
        in lost(*tape)[0].excluded[0].because
    )


def test_a_call_that_is_kept_in_another_form_is_not_lost() -> None:
    long_id = [calls(entry(0, "call_9fA3kQz1b", name="get", arguments='{"a":1}')), FINISH]
    told = assistant(text="Calling tools: call_9fA3kQz1b")
    assert not lost(*digests((asks(USER), long_id), (asks(USER, told, MORE), [])))
    twice = [*call("get"), *call("get", index=1), FINISH]
    once = asks(USER, assistant(FIRST), result("c1"))
    assert not lost(*digests((asks(USER), twice), (once, [])))


def test_a_text_that_tells_of_the_call_and_an_equal_call_speak_for_a_choice() -> None:
    city = [
        calls(entry(0, "c1", name="forecast", arguments='{"city":"Gent","d":[3,12345]}')),
        FINISH,
    ]
    told: dict[str, object] = user("forecast for Gent was denied")
    (finding,) = lost(*digests((asks(USER), city), (asks(USER, assistant(), told), [])))
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.POSSIBLE)
    assert "a text in the request mentions it" in finding.message
    old = [assistant(("c0", "get", '{"a": 1}')), result("c0")]
    again = asks(USER, *old, MORE, assistant(), MORE)
    (finding,) = lost(*digests((asks(USER, *old, MORE), CALL_REPLY), (again, [])))
    assert "the history has an equal call" in finding.message


def test_a_call_after_the_finish_reason_is_the_providers() -> None:
    late = [TEXT, choice({}, "stop"), *call()]
    (finding,) = lost(*digests((asks(USER), late), (asks(USER, assistant(text="Hello"), MORE), [])))
    assert (finding.blame, finding.severity) == (None, Severity.INFO)
    assert "it came after the finish reason" in finding.message


def test_nothing_is_held_against_a_request_that_had_left_or_what_the_recorder_lost() -> None:
    first, second = digests((asks(USER), TWO), (asks(USER, assistant(LAST), result("c2")), []))
    assert lost(first, second)
    assert not lost(first, replace(second, t_ns=200_000_000))
    assert not lost(replace(first, lossy=True), second)
    assert lost(first, replace(second, tape="y.tape", t_ns=1))


def test_calls_made_of_single_fragments_are_no_repetition() -> None:
    after = asks(USER, assistant((None, None, '{"a'), (None, None, '":1}')), MORE)
    findings = lost(*digests((asks(USER), CALL_REPLY), (after, [])))
    assert "instead it has 2 calls that the model never made" in findings[0].message


def test_another_text_in_its_place_is_possible_at_most() -> None:
    after = asks(USER, assistant(text="Sorry, something went wrong."), MORE)
    (finding,) = lost(*digests((asks(USER), CALL_REPLY), (after, [])))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_call_that_was_broken_on_the_wire_may_be_dropped() -> None:
    half = [TEXT, calls(entry(0, "c1", name="get", arguments='{"a":')), FINISH]
    assert not lost(*digests((asks(USER), half), (asks(USER, assistant(text="Hello"), MORE), [])))


def test_what_is_repeated_is_not_lost() -> None:
    after = asks(USER, assistant(("c1", "get", '{"a": 1}'), ("c2", "put", '{"b":2}')), result("c1"))
    assert not lost(*digests((asks(USER), TWO), (after, [])))


@pytest.mark.parametrize(
    ("line", "at_s", "confidence"),
    [
        ("Invalid tool call JSON: Unexpected end of input", 1.0, Confidence.LIKELY),
        # Too late for this request, or the error of something else that is read as JSON.
        ("Invalid tool call JSON: Unexpected end of input", 11.0, Confidence.POSSIBLE),
        ("Unexpected token < in JSON at position 0", 1.0, Confidence.POSSIBLE),
    ],
)
def test_an_error_that_was_printed_about_a_call_speaks_against_a_choice(
    line: str, at_s: float, confidence: Confidence
) -> None:
    one = [TEXT, *call("get"), FINISH]
    printed = LogEntry(t_ns=round(at_s * 1e9), stream=LogStream.STDERR, line=line.encode())
    after = asks(USER, assistant(text="Hello"), MORE)
    (finding,) = lost(*digests((asks(USER), one), (after, [])), logs=(printed,))
    assert finding.confidence is confidence
    shown = [each.because for each in finding.excluded]
    said = "after this reply the app printed 'Invalid tool call JSON: Unexpected end of input'"
    assert shown == ([said] if confidence is Confidence.LIKELY else [])


RANDOM = "call_Kb3uTr9q"


@pytest.mark.parametrize(
    ("line", "at_s", "confidence"),
    [
        (f"ERROR lost tool call {RANDOM}", 1.0, Confidence.LIKELY),
        (f"KeyError: '{RANDOM}' while adding index 1", 1.0, Confidence.LIKELY),
        (f"failed to process {RANDOM}: list index out of range", 1.0, Confidence.LIKELY),
        # A choice, another call, before the reply, after the request.
        (f"one call at a time: skipping {RANDOM}", 1.0, Confidence.POSSIBLE),
        (f"denied {RANDOM}", 1.0, Confidence.POSSIBLE),
        (f"unexpected tool in {RANDOM}: it was not offered", 1.0, Confidence.POSSIBLE),
        # Its tool failed.
        (f"{RANDOM} failed: KeyError: 'city'", 1.0, Confidence.POSSIBLE),
        ("ERROR lost tool call call_other7", 1.0, Confidence.POSSIBLE),
        (f"ERROR lost tool call {RANDOM}", -1.0, Confidence.POSSIBLE),
        (f"ERROR lost tool call {RANDOM}", 60.0, Confidence.POSSIBLE),
    ],
)
def test_a_printed_line_that_says_this_call_was_lost_speaks_against_a_choice(
    line: str, at_s: float, confidence: Confidence
) -> None:
    both = [*call("get"), calls(entry(1, RANDOM, name="put", arguments='{"b":2}')), FINISH]
    printed = LogEntry(t_ns=round(at_s * 1e9), stream=LogStream.STDERR, line=line.encode())
    after = asks(USER, assistant(FIRST), result("c1"))
    (finding,) = lost(*digests((asks(USER), both), (after, [])), logs=(printed,))
    assert finding.confidence is confidence
    if confidence is Confidence.LIKELY:
        assert finding.message.endswith(f"the app printed {line!r}")
