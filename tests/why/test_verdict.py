from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation, read_backs
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.explanation import Verdict, VerdictKind
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules import RULES
from deltatape.rules.endings import NOBODYS_FAULT
from deltatape.rules.rule import FAILURES, FindingPlace, RuleFailure
from deltatape.why.explain import explain
from deltatape.why.verdict import (
    CAUSES,
    LOSS,
    Case,
    VerdictEvidence,
    deciding,
    evidence_of,
    judge,
)
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    conversation,
    from_bytes,
    pasted,
    result,
    timed,
    user,
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
            continued_by=None,
        )
    )


def test_a_healthy_wire_and_a_changed_call_convict_the_application() -> None:
    after = asks(USER, assistant(("c1", "get", "")), result("c1"))
    made = verdict(*conversation((asks(USER), ONE), (after, [TEXT, FINISH_TEXT])))
    assert (made.blame, made.confidence, made.code) == (Blame.APP, Confidence.PROVEN, "C002")
    assert made.summary.startswith(
        "The stream was correct; the mistake is in the app: call 0 (get, c1)"
    )
    assert "append every fragment" in made.fix


def test_what_a_later_reply_did_wrong_does_not_convict_the_application() -> None:
    after = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    made = verdict(*conversation((asks(USER), ONE), (after, ONE)))
    assert (made.blame, made.code) == (Blame.UPSTREAM, "T026")
    assert made.summary.startswith("call 0 (get, c1) of #2 has the id of call 0 (get, c1) of #1")


def test_the_gravest_of_several_differences_is_shown_and_the_others_counted() -> None:
    after = asks(USER, assistant(("c1c1", "get", "")), result("c1c1"))
    made = verdict(*conversation((asks(USER), ONE), (after, [])))
    assert made.code == "C002"
    assert made.summary.endswith(" Also found: C003.")


def test_a_second_finding_with_the_same_code_is_counted() -> None:
    both = [*call(), *call("put", index=1), FINISH]
    repeated = assistant(("c1", "get", ""), ("c2", "put", ""))
    after = asks(USER, repeated, result("c1"), result("c2"))
    made = verdict(*conversation((asks(USER), both), (after, [])))
    assert made.code == "C002"
    assert made.summary.endswith(" Also found: 1 more C002.")


def test_a_healthy_wire_and_nothing_repeated_is_not_provable_and_says_what_to_tape() -> None:
    made = verdict(pasted(*ONE))
    assert (made.blame, made.confidence, made.code) == (None, None, None)
    assert made.summary.startswith("1 call arrived complete, but no later request on the tape")
    assert made.fix.startswith("tape the app's next request")


def test_a_faithful_application_is_acquitted() -> None:
    after = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    made = verdict(*conversation((asks(USER), ONE), (after, [])))
    assert made.blame is None
    assert made.summary == (
        "No defect found: 1 call arrived complete, and request #2 repeats what was delivered."
    )


def test_a_text_that_arrived_whole_leaves_only_what_the_application_shows() -> None:
    assert "5 characters of text arrived complete" in verdict(pasted(TEXT, FINISH_TEXT)).summary


def test_without_a_reply_there_is_no_case() -> None:
    made = verdict(from_bytes(b"<html>", content_type="text/html"))
    assert made.summary == "No finding, and no reply of a dialect that deltatape reads."


def test_an_error_on_the_wire_decides_before_what_the_application_made_of_it() -> None:
    glued = [*call("get"), calls(entry(0, "c2", name="put", arguments='{"b":2}')), FINISH]
    after = asks(USER, assistant(("c1", "get", '{"a":1}{"b":2}')), result("c1"))
    made = verdict(*conversation((asks(USER), glued), (after, [])))
    assert (made.blame, made.code) == (Blame.UPSTREAM, "T012")
    assert "The app did not handle it: call 1 (put, c2) of #1" in made.summary


def test_the_error_nearest_to_the_cause_decides() -> None:
    half = calls(entry(0, "c1", name="get", arguments='{"a":'))
    assert verdict(pasted(half, {"error": {"message": "overloaded"}}, done=False)).code == "S005"
    assert verdict(pasted(half, choice({}, "length"))).code == "S009"
    assert verdict(pasted(half, done=False)).code == "S001"
    assert verdict(pasted(half, FINISH)).code == "T003"


def test_a_verdict_without_blame_has_no_confidence() -> None:
    made = verdict(pasted(TEXT, done=False))
    assert (made.blame, made.confidence) == (None, None)
    assert made.code == "S001"


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("upstream_reset", "W006", "Before that: no progress for 39.9 s"),
        ("client_closed", "D001", "then the client disconnected."),
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


def test_calls_that_nothing_answered_are_shown_with_the_time_that_was_watched() -> None:
    other = user("Another matter.")
    again = asks(other, assistant(("c5", "get", '{"a":1}')), result("c5"))
    steps = (CALLS, (asks(other), [*call(index=4), FINISH]), (again, TEXT_REPLY))
    made = verdict(*watched(conversation(*steps), 42.5, stop="child-exit", exit_code=0))
    assert (made.blame, made.confidence, made.code) == (Blame.APP, Confidence.LIKELY, "D003")
    assert made.summary.startswith("The stream was correct: 1 call (get) was delivered")
    assert "42.0 s; then the app exited with 0; elsewhere on the tape it" in made.summary
    assert "a filter on id or name" in made.fix


def test_what_is_odd_about_a_reply_is_nearer_to_the_cause_than_the_silence_after_it() -> None:
    odd = (asks(USER), [*call(), FINISH, FINISH_TEXT])
    made = verdict(*watched(conversation(odd), 42.5))
    assert (made.code, made.blame) == ("S004", Blame.UPSTREAM)
    assert [each.code for each in made.possible] == ["D003"]


def test_a_warning_decides_where_nothing_graver_does() -> None:
    made = verdict(pasted(*call(), FINISH, FINISH_TEXT))
    assert (made.code, made.blame) == ("S004", Blame.UPSTREAM)


def test_a_rule_that_failed_decides_nothing() -> None:
    analysis = analyse(pasted(TEXT, FINISH_TEXT))
    (rule,) = FAILURES.rules
    (failed,) = rule.findings(RuleFailure(RULES[0].code, ValueError(), FindingPlace("", 1)))
    case = Case(
        findings=(failed,),
        about_reply=(),
        about_request=(),
        reply=analysis.reply,
        read_back=None,
        continued_by=None,
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
        Case(
            findings=own,
            about_request=about,
            reply=analysis.reply,
            read_back=None,
            continued_by=None,
        )
    )
    assert (made.blame, made.code) == (Blame.APP, "C002")
    assert " This request got no answer: the answer has no text" in made.summary
    alone = Case(findings=own, reply=analysis.reply, read_back=None)
    assert judge(alone).code == "D002"
    decided = deciding(evidence_of((*own, *about)))
    assert decided == about[0]


def test_what_decides_is_a_finding_or_the_gravest_where_no_verdict_names_one() -> None:
    assert deciding(VerdictEvidence(findings=())) is None
    odd = check_analysis(analyse(pasted(*call(), FINISH, FINISH_TEXT)))
    assert [each.code for each in odd] == ["S004"]
    assert deciding(evidence_of(odd)) == odd[0]
    assert deciding(VerdictEvidence(findings=odd, continued_by=2)) == odd[0]


def test_a_silence_is_about_the_reply() -> None:
    silent = check_conversation(map(digest, watched(conversation(CALLS), 42.5)))
    assert evidence_of(silent) == VerdictEvidence(findings=(), about_reply=silent)
    assert deciding(evidence_of(silent)) == silent[0]


def test_causes_are_codes_of_rules() -> None:
    known = {rule.code for rule in RULES}
    assert set(CAUSES) <= known
    assert len(set(CAUSES)) == len(CAUSES)


def without_a_read(exchange: Exchange) -> Exchange:
    """`exchange` as a full disk leaves it."""
    assert exchange.end
    recorder = {"lost_records": 1, "lost_bytes": 90, "error": "No space left on device"}
    return replace(exchange, reads=exchange.reads[1:], end=replace(exchange.end, recorder=recorder))


def test_a_loss_on_the_tape_comes_first_in_the_summary() -> None:
    text = [choice({"content": "Hello"}), choice({"content": " there"}), FINISH_TEXT]
    exchanges = conversation((asks(USER), text), (asks(USER, USER), text))
    whole = explain(exchanges).verdict
    assert whole.summary.startswith("Both replies arrived complete.")
    lacking = explain([without_a_read(exchanges[0]), exchanges[1]]).verdict
    assert (lacking.code, lacking.blame, lacking.healthy) == ("X002", None, False)
    assert lacking.summary.startswith("The tape is missing 1 record of this exchange")
    error = timed((0.1, TEXT), (0.2, TEXT), (0.3, {"error": {"message": "overloaded"}}))
    failed = verdict(without_a_read(error))
    assert failed.code == "S005"
    assert failed.summary.startswith("The tape is missing 1 record of this exchange (No space left")


def test_replies_are_not_said_to_be_whole_where_the_tape_breaks_off() -> None:
    text = [choice({"content": "Hello"}), FINISH_TEXT]
    exchanges = conversation((asks(USER), text), (asks(USER, USER), text))
    crashed = [exchanges[0], replace(exchanges[1], end=None)]
    assert "arrived complete" not in explain(crashed).verdict.summary


def test_a_client_that_left_is_nobodys_fault_and_not_said_to_have_had_all() -> None:
    exchange = timed((0.1, TEXT))
    assert exchange.end
    made = verdict(replace(exchange, end=replace(exchange.end, reason=EndReason.CLIENT_CLOSED)))
    assert (made.code, made.blame) == ("W006", None)
    assert "a user who presses stop looks the same" in made.summary


def claimed(code: str, blame: Blame | None, confidence: Confidence, severity: Severity) -> Finding:
    """A finding of `code` on exchange 1."""
    return Finding(
        code=code,
        name="a-name",
        severity=severity,
        blame=blame,
        confidence=confidence,
        message=f"what {code} says",
        hint=f"mend {code}",
        tape="x.tape",
        line=None,
        exchange=1,
        event=None,
        span=None,
        t_ns=None,
        evidence="",
    )


def judged(
    *own: Finding, about: tuple[Finding, ...] = (), continued_by: int | None = None
) -> Verdict:
    """On a healthy reply with one call, if nothing else were found on it."""
    reply = analyse(pasted(*ONE)).reply
    return judge(
        Case(
            findings=own,
            about_request=about,
            continued_by=continued_by,
            reply=reply,
            read_back=None,
        )
    )


WARNING, PROVEN, POSSIBLE = Severity.WARNING, Confidence.PROVEN, Confidence.POSSIBLE
LOST = claimed("X002", None, PROVEN, WARNING)
LEFT = claimed("W006", None, POSSIBLE, Severity.INFO)


@pytest.mark.parametrize("code", ["T020", "D001", "W007", "C001"])
def test_a_possible_finding_stands_below_the_verdict(code: str) -> None:
    maybe = claimed(code, Blame.APP, POSSIBLE, WARNING)
    made = judged(*(() if code == "C001" else (maybe,)), about=(maybe,) if code == "C001" else ())
    assert (made.kind, made.blame, made.code) == (VerdictKind.UNPROVABLE, None, None)
    assert made.possible == (maybe,)
    assert maybe.message not in made.summary


def test_a_loss_on_the_tape_is_said_before_anything_else() -> None:
    alone = judged(LOST)
    assert (alone.kind, alone.code) == (VerdictKind.UNPROVABLE, "X002")
    assert alone.summary == "what X002 says."
    made = judged(LOST, claimed("S005", Blame.UPSTREAM, PROVEN, Severity.ERROR))
    assert (made.code, made.summary) == ("S005", "What X002 says. What S005 says.")
    assert judged(LEFT, LOST).code == "X002"


def test_a_client_that_left_is_nobodys_fault() -> None:
    made = judged(LEFT)
    assert (made.kind, made.code, made.blame) == (VerdictKind.NOBODY, "W006", None)


@pytest.mark.parametrize("blame", [None, Blame.PROVIDER])
def test_a_limit_or_a_filter_is_nobodys_fault(blame: Blame | None) -> None:
    limit = claimed("S009", blame, Confidence.LIKELY, WARNING)
    assert judged(limit).kind is VerdictKind.NOBODY
    missing = claimed("D002", Blame.UPSTREAM, PROVEN, Severity.ERROR)
    made = judged(missing, limit)
    assert (made.kind, made.code, made.blame) == (VerdictKind.NOBODY, "S009", None)
    other = claimed("W004", Blame.UPSTREAM, PROVEN, Severity.ERROR)
    assert judged(other, limit).code == "W004"


def test_a_refusal_by_the_model_is_nobodys_fault() -> None:
    made = verdict(pasted(choice({"refusal": "I cannot help with that."}), FINISH_TEXT))
    assert made.kind is VerdictKind.NOBODY
    assert made.summary == "The model refused to answer: 'I cannot help with that.'."


def test_a_fact_blames_nobody_and_is_noted() -> None:
    fact = claimed("C002", None, PROVEN, Severity.INFO)
    made = judged(about=(fact,))
    assert (made.kind, made.code) == (VerdictKind.UNPROVABLE, None)
    assert made.summary.endswith(" Noted: what C002 says.")
    assert "the mistake is in the app" not in made.summary
    of_app = claimed("C011", Blame.APP, PROVEN, Severity.INFO)
    assert "C011" not in judged(about=(of_app,)).summary


def test_a_conversation_that_blames_nobody_does_not_speak_of_the_app() -> None:
    loop = claimed("C006", None, PROVEN, WARNING)
    made = judged(about=(loop,))
    assert (made.kind, made.code, made.summary) == (
        VerdictKind.UNPROVABLE,
        "C006",
        "what C006 says.",
    )
    blamed = claimed("C010", Blame.APP, Confidence.LIKELY, WARNING)
    made = judged(about=(loop, blamed))
    assert (
        made.summary
        == "The stream was correct; the mistake is in the app: what C010 says. Also found: C006."
    )


def test_what_is_odd_about_a_reply_decides_before_a_request_that_goes_on_without_it() -> None:
    odd = claimed("S004", Blame.UPSTREAM, PROVEN, WARNING)
    made = judged(odd, continued_by=7)
    assert (made.code, made.blame) == ("S004", Blame.UPSTREAM)
    assert made.summary == "what S004 says. Request #7 goes on without this reply."
    burst = claimed("W007", Blame.UPSTREAM, PROVEN, WARNING)
    assert judged(burst, continued_by=7).kind is VerdictKind.UNPROVABLE


def test_after_an_error_a_silence_is_shown_only_if_it_is_more_than_possible() -> None:
    error = claimed("S005", Blame.UPSTREAM, PROVEN, Severity.ERROR)
    silent = claimed("D003", Blame.APP, Confidence.LIKELY, WARNING)
    reply = analyse(pasted(*ONE)).reply
    made = judge(Case(findings=(error,), about_reply=(silent,), reply=reply, read_back=None))
    assert made.summary == "what S005 says. What followed: what D003 says."
    odd = claimed("S004", Blame.UPSTREAM, PROVEN, WARNING)
    made = judge(Case(findings=(odd,), about_reply=(silent,), reply=reply, read_back=None))
    assert made.summary == "what S004 says. What followed: what D003 says."


def test_what_a_limit_explains_are_codes_of_their_own() -> None:
    assert {"X001", LOSS}.isdisjoint(CAUSES)
    assert {rule.code for rule in RULES} >= NOBODYS_FAULT


def test_of_a_silence_in_which_the_stream_ended_that_end_decides() -> None:
    silent = claimed("D001", Blame.UPSTREAM, Confidence.LIKELY, Severity.ERROR)
    ended = claimed("S001", Blame.UPSTREAM, PROVEN, Severity.ERROR)
    made = judged(silent, ended)
    assert (made.code, made.confidence) == ("S001", PROVEN)
    assert made.summary == "what S001 says. Before that: what D001 says."
    assert judged(silent, replace(ended, blame=None)).code == "D001"


def test_a_call_that_the_app_may_have_lost_is_not_healthy() -> None:
    kept = asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
    two = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
    tape = conversation((asks(USER), two), (kept, [TEXT, FINISH_TEXT]))
    for made in (explain(tape).verdict, explain(tape, 1).verdict):
        assert made.kind is VerdictKind.UNPROVABLE
        assert made.summary.startswith("Call 1 (put, c2) of #1 was delivered")
        assert made.fix.startswith("if all calls should run, read every entry of tool_calls,")


def test_a_legitimate_change_is_shown_with_a_healthy_verdict() -> None:
    kept = asks(USER, assistant(("c1", "get", '{"a":"Gent"}')), result("c1"))
    said = [*call("get", '{"a":"gent "}'), FINISH]
    tape = conversation((asks(USER), said), (kept, [TEXT, FINISH_TEXT]))
    for made in (explain(tape).verdict, explain(tape, 1).verdict):
        assert made.kind is VerdictKind.HEALTHY
        assert (
            "The app changed something, which is no defect: call 0 (get, c1) of #1" in made.summary
        )
        assert "just as delivered" not in made.summary
    both = [*call("get", '{"a":"gent "}'), *call("get", '{"a":"rome "}', 1), FINISH]
    fixed = assistant(("c1", "get", '{"a":"Gent"}'), ("c2", "get", '{"a":"Rome"}'))
    after = asks(USER, fixed, result("c1"), result("c2"))
    made = explain(conversation((asks(USER), both), (after, [TEXT, FINISH_TEXT]))).verdict
    assert ", and 1 more change." in made.summary


def test_of_a_timeout_and_a_silence_the_silence_is_nearer_to_the_cause() -> None:
    left = claimed("W006", Blame.APP, Confidence.LIKELY, Severity.ERROR)
    silence = claimed("D001", Blame.UPSTREAM, Confidence.LIKELY, Severity.ERROR)
    decided = deciding(VerdictEvidence(findings=(left, silence)))
    assert decided is not None
    assert decided.code == "D001"
