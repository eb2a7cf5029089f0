from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import USER, asks, assistant, digests, result

LENGTH = choice({}, "length")
CUT: Sequence[object] = [
    calls(entry(0, "c1", name="write", arguments="")),
    calls(entry(0, arguments='{"text":"Dear An')),
]
NOTHING: Sequence[object] = CUT[:1]
MADE = '{"text":"Dear An"}'


def ran(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C016"]


def cut(
    arguments: str = MADE,
    text: str = "saved",
    chunks: Sequence[object] = CUT,
    end: object = LENGTH,
) -> list[Digest]:
    history = [assistant(("c1", "write", arguments)), result("c1", text)]
    return digests((asks(USER), [*chunks, end]), (asks(USER, *history), []))


def test_a_call_that_the_limit_cut_and_the_app_completed() -> None:
    (finding,) = ran(cut())
    assert finding.message == (
        "call 0 (write, c1) of #1 reached the reply's limit in the middle of its arguments; the app"
        ' completed them to {"text":"Dear An"} and ran the call'
    )
    assert (finding.exchange, finding.severity) == (2, Severity.ERROR)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.excluded[0].because == "its result is 'saved'"
    assert finding.against
    assert finding.against.exchange == 1


def test_a_call_that_broke_off_with_the_stream() -> None:
    first, second = cut()
    (finding,) = ran([replace(first, failed=True, limited=False), second])
    assert "broke off in the middle" in finding.message


def test_a_call_without_its_end_in_a_reply_that_ended_as_it_should() -> None:
    (finding,) = ran(cut(end=FINISH))
    assert "stopped in the middle" in finding.message
    assert not ran(cut("{}", chunks=NOTHING, end=FINISH))


@pytest.mark.parametrize("arguments", ["{}", MADE])
def test_a_call_without_any_argument_that_was_run_all_the_same(arguments: str) -> None:
    assert len(ran(cut(arguments, chunks=NOTHING))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Error: the arguments were incomplete",
        "The call was not executed.",
        "Interrupted by the user",
        "Could not parse the arguments",
        "Tool call denied",
    ],
)
def test_a_call_that_is_answered_with_an_error_is_answered_rightly(text: str) -> None:
    assert not ran(cut(text=text))
    assert not ran(cut("{}", text=text))


def test_arguments_that_nobody_completed_are_no_guess() -> None:
    assert not ran(cut('{"text":"Dear An'))


def test_a_whole_call_in_front_of_a_cut_one_may_be_run() -> None:
    whole = calls(entry(0, "c1", name="write", arguments=MADE))
    assert not ran(cut(chunks=[whole]))
    assert not ran(cut(chunks=[whole], end=FINISH))


def test_another_call_or_none_is_not_this_one() -> None:
    first = digests((asks(USER), [*CUT, LENGTH]))[0]
    for history in (
        [assistant(("c2", "write", MADE)), result("c2")],
        [assistant(("c1", "read", MADE)), result("c1")],
        [assistant(("c1", "write", MADE)), USER],
        [assistant(text="It was cut."), USER],
    ):
        tape = digests((asks(USER), [*CUT, LENGTH]), (asks(USER, *history), []))
        assert not ran(tape)
        assert tape[0].calls[0].status == first.calls[0].status


def test_a_second_attempt_that_brings_the_call_acquits() -> None:
    history = [assistant(("c1", "write", MADE)), result("c1", "saved")]
    whole = calls(entry(0, "c1", name="write", arguments=MADE))
    tape = digests(
        (asks(USER), [*CUT, LENGTH]), (asks(USER), [whole, FINISH]), (asks(USER, *history), [])
    )
    assert not ran(tape)


def test_what_the_recorder_lost_is_no_cut() -> None:
    first, second = cut()
    assert not ran([replace(first, lossy=True), second])
    assert not ran([replace(first, reply_id="r1"), replace(second, previous="r1")])
