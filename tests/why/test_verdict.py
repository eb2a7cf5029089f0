from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation, read_backs
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Blame, Confidence
from deltatape.model.story import Verdict
from deltatape.rules import DOCUMENTED, INTERNAL_ERROR
from deltatape.why.verdict import CAUSES, Case, Grounds, deciding, grounds_of, judge
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    from_bytes,
    pasted,
    result,
    timed,
)
from helpers.watched import CALLS, watched

ONE = [*call(), FINISH]


def verdict(*exchanges: Exchange) -> Verdict:
    """On the first of `exchanges`."""
    digests = [digest(each) for each in exchanges]
    links = [each for each in read_backs(digests) if each.reply.exchange == 1]
    analysis = analyse(exchanges[0])
    return judge(
        Case(
            findings=check_analysis(analysis),
            about_reply=check_conversation(digests),
            about_request=(),
            reply=analysis.reply,
            read_back=links[0] if links else None,
            gone_on=None,
        )
    )


def test_a_healthy_wire_and_a_changed_call_convict_the_application() -> None:
    after = asks(USER, assistant(("c1", "get", "")), result("c1"))
    made = verdict(*conversation((asks(USER), ONE), (after, [TEXT, FINISH_TEXT])))
    assert (made.blame, made.confidence, made.code) == (Blame.APP, Confidence.PROVEN, "C002")
    assert made.summary.startswith("The wire was in order; the app was not: call 0 (get, c1)")
    assert "append every fragment" in made.fix


def test_the_gravest_of_several_differences_is_told_and_the_others_counted() -> None:
    after = asks(USER, assistant(("c1c1", "get", "")), result("c1c1"))
    made = verdict(*conversation((asks(USER), ONE), (after, [])))
    assert made.code == "C002"
    assert made.summary.endswith("(also C003).")


def test_a_healthy_wire_and_nothing_repeated_is_not_provable_and_says_what_to_tape() -> None:
    made = verdict(pasted(*ONE))
    assert (made.blame, made.confidence, made.code) == (None, None, None)
    assert made.summary.startswith("Not provable from this tape, because 1 call arrived whole")
    assert made.fix.startswith("tape the app's next request")


def test_a_faithful_application_is_acquitted() -> None:
    after = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    made = verdict(*conversation((asks(USER), ONE), (after, [])))
    assert made.blame is None
    assert made.summary == (
        "Nothing is wrong here: 1 call arrived whole, and request #2 repeats what was delivered."
    )


def test_a_text_that_arrived_whole_leaves_only_what_the_application_shows() -> None:
    assert "5 characters of text arrived whole" in verdict(pasted(TEXT, FINISH_TEXT)).summary


def test_what_is_no_reply_is_no_case() -> None:
    made = verdict(from_bytes(b"<html>", content_type="text/html"))
    assert made.summary == "No finding, and no reply of a dialect that deltatape reads."


def test_an_error_on_the_wire_decides_before_what_the_application_made_of_it() -> None:
    glued = [*call("get"), calls(entry(0, "c2", name="put", arguments='{"b":2}')), FINISH]
    after = asks(USER, assistant(("c1", "get", '{"a":1}{"b":2}')), result("c1"))
    made = verdict(*conversation((asks(USER), glued), (after, [])))
    assert (made.blame, made.code) == (Blame.UPSTREAM, "T012")
    assert "The app did not cope with it: call 1 (put, c2) of #1" in made.summary


def test_the_error_nearest_to_the_cause_decides() -> None:
    half = calls(entry(0, "c1", name="get", arguments='{"a":'))
    assert verdict(pasted(half, {"error": {"message": "overloaded"}}, done=False)).code == "S005"
    assert verdict(pasted(half, choice({}, "length"))).code == "S009"
    assert verdict(pasted(half, done=False)).code == "S001"
    assert verdict(pasted(half, FINISH)).code == "T003"


def test_without_blame_there_is_no_confidence_in_it() -> None:
    made = verdict(pasted(TEXT, done=False))
    assert (made.blame, made.confidence) == (None, None)
    assert made.code == "S001"


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("upstream_reset", "W006", "Before that: no progress for 39.9 s"),
        ("client_closed", "D001", "then the client gave up."),
    ],
)
def test_a_client_leaves_because_of_a_silence_and_a_reset_follows_one(
    reason: str, code: str, words: str
) -> None:
    half = calls(entry(0, "c1", name="get", arguments='{"a":'))
    exchange = timed((0.1, half), end_s=40)
    assert exchange.end
    made = verdict(replace(exchange, end=replace(exchange.end, reason=EndReason(reason))))
    assert made.code == code
    assert words in made.summary


def test_calls_that_nothing_answered_are_told_with_the_time_that_was_watched() -> None:
    made = verdict(*watched(conversation(CALLS), 42.5, stop="child-exit", exit_code=0))
    assert (made.blame, made.confidence, made.code) == (Blame.APP, Confidence.LIKELY, "D003")
    assert made.summary.startswith("The wire was in order: 1 call (get) was delivered whole")
    assert "42.0 s of watched silence; then the app exited with 0." in made.summary
    assert "a filter on id or name" in made.fix


def test_what_is_odd_about_a_reply_is_nearer_to_the_cause_than_the_silence_after_it() -> None:
    odd = (asks(USER), [*call(), FINISH, FINISH_TEXT])
    made = verdict(*watched(conversation(odd), 42.5))
    assert (made.code, made.blame) == ("S004", Blame.UPSTREAM)
    assert " What followed: 1 call (get) was delivered whole, and no request" in made.summary


def test_a_warning_decides_where_nothing_graver_does() -> None:
    made = verdict(pasted(*call(), FINISH, FINISH_TEXT))
    assert (made.code, made.blame) == ("S004", Blame.UPSTREAM)


def test_a_rule_that_failed_decides_nothing() -> None:
    analysis = analyse(pasted(TEXT, FINISH_TEXT))
    failed = INTERNAL_ERROR.report(DOCUMENTED[0], "", 1, ValueError())
    case = Case(
        findings=(failed,),
        about_reply=(),
        about_request=(),
        reply=analysis.reply,
        read_back=None,
        gone_on=None,
    )
    assert judge(case).code is None


SPOILED = asks(USER, assistant(("c1", "get", "")), result("c1"))


def test_a_silent_answer_to_a_request_that_the_app_spoiled_is_the_apps_doing() -> None:
    _, later = conversation((asks(USER), ONE), (SPOILED, [FINISH_TEXT]))
    about = check_conversation(map(digest, conversation((asks(USER), ONE), (SPOILED, []))))
    analysis = analyse(later)
    own = check_analysis(analysis)
    assert [each.code for each in own] == ["D002"]
    made = judge(
        Case(findings=own, about_request=about, reply=analysis.reply, read_back=None, gone_on=None)
    )
    assert (made.blame, made.code) == (Blame.APP, "C002")
    assert " This request got no answer: the answer has no text" in made.summary
    alone = Case(findings=own, reply=analysis.reply, read_back=None)
    assert judge(alone).code == "D002"
    decided = deciding(grounds_of((*own, *about)))
    assert decided == about[0]


def test_what_decides_is_a_finding_or_the_gravest_where_no_verdict_names_one() -> None:
    assert deciding(Grounds(findings=())) is None
    odd = check_analysis(analyse(pasted(*call(), FINISH, FINISH_TEXT)))
    assert [each.code for each in odd] == ["S004"]
    assert deciding(grounds_of(odd)) == odd[0]
    assert deciding(Grounds(findings=odd, gone_on=2)) == odd[0]


def test_a_silence_is_about_the_reply() -> None:
    silent = check_conversation(map(digest, watched(conversation(CALLS), 42.5)))
    assert grounds_of(silent) == Grounds(findings=(), about_reply=silent)
    assert deciding(grounds_of(silent)) == silent[0]


def test_causes_are_codes_of_rules() -> None:
    known = {rule.code for rule in DOCUMENTED}
    assert set(CAUSES) <= known
    assert len(set(CAUSES)) == len(CAUSES)
