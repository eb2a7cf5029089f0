from collections.abc import Callable, Iterable
from dataclasses import replace

from deltatape.conversation import check_conversation
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.stream import Place
from deltatape.rules import EXCHANGE_RULES, READ_BACK_RULES, Claim, Rule, RuleContext, ask
from deltatape.rules.context import label
from deltatape.rules.rule import MAX_MESSAGE, FindingPlace
from helpers.chat import FINISH, calls, choice, entry
from helpers.contexts import context_of
from helpers.exchanges import TEXT, USER, asks, assistant, call, digests, pasted, result, timed


def made(context: RuleContext, message: str = "m", place: Place | None = None) -> Finding:
    """What W004 makes of a claim."""
    (rule,) = (each for each in EXCHANGE_RULES if each.code == "W004")
    claim = Claim(message=message, hint="h", blame=None, confidence=Confidence.LIKELY, place=place)
    (finding,) = replace(rule, check=lambda _: [claim]).findings(context)
    return finding


def test_messages_are_escaped_and_limited() -> None:
    assert made(context_of(pasted(TEXT)), "a\x1bb").message == "a\\x1bb"
    assert len(made(context_of(pasted(TEXT)), "x" * 5000).message) == MAX_MESSAGE


def test_a_finding_without_place_has_no_line_span_or_time() -> None:
    finding = made(context_of(timed((0.1, TEXT))))
    assert (finding.line, finding.span, finding.t_ns, finding.event) == (None, None, None, None)
    assert finding.tape == "x.tape"


def test_times_of_what_was_not_taped_are_unknown() -> None:
    context = context_of(pasted(TEXT))
    assert made(context, place=context.stream.events[0].place).t_ns is None
    assert context.seen is Confidence.LIKELY
    assert context_of(timed((0.1, TEXT))).seen is Confidence.PROVEN


def test_success_is_a_status_of_the_class_two_hundred() -> None:
    assert context_of(pasted(TEXT)).successful
    assert not context_of(pasted(TEXT, status=404)).successful
    assert not context_of(timed(framing=None)).successful


def test_events_are_found_by_number() -> None:
    context = context_of(pasted(TEXT))
    assert context.event(0) is context.stream.events[0]
    assert context.event(None) is context.event(7) is context.event(-1) is None


def test_a_call_is_called_by_index_and_name() -> None:
    named = context_of(pasted(*call(), FINISH)).reply.tool_calls[0]
    nameless = context_of(pasted(calls(entry(0, "c1", arguments="{}")))).reply.tool_calls[0]
    assert (label(named), label(nameless)) == ("call 0 (get)", "call 0")


def test_a_finding_lies_at_the_request_that_repeats_the_reply() -> None:
    (finding,) = check_conversation(
        digests(
            (asks(USER), [*call(), FINISH]),
            (asks(USER, assistant(("c1", "get", "")), result("c1")), []),
        )
    )
    assert (finding.tape, finding.exchange, finding.line) == ("x.tape", 2, 200)
    assert finding.t_ns == 10_000_000_000
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.PROVEN)
    assert finding.message.startswith("call 0 (get, c1) of #1 ")


def test_every_rule_about_a_conversation_blames_nobody_for_a_reply_that_broke_off() -> None:
    broken = digests(
        (asks(USER), [*call(), choice({}, "length")]),
        (asks(USER, assistant(("c1x", "gett", "")), result("c1x")), []),
    )
    assert len(READ_BACK_RULES) == 4
    assert not check_conversation(broken)


def claim(message: str) -> Claim:
    return Claim(message=message, hint="", blame=None, confidence=Confidence.LIKELY)


def rule(code: str, check: Callable[[str], Iterable[Claim]]) -> Rule[str]:
    return Rule(
        code=code,
        name=code.lower(),
        severity=Severity.ERROR,
        check=check,
        where=lambda seen: FindingPlace(seen, 3, line=7, t_ns=1),
    )


def fail(seen: str) -> Iterable[Claim]:
    yield claim(f"first on {seen}")
    raise ValueError("odd \x1b[31m")


def test_what_came_before_the_error_is_kept_and_the_next_rule_is_asked() -> None:
    found = ask([rule("T001", fail), rule("T002", lambda _: [claim("last")])], "x.tape")
    assert [(each.code, each.message) for each in found] == [
        ("T001", "first on x.tape"),
        ("X001", "the rule T001 failed: ValueError: odd \\x1b[31m"),
        ("T002", "last"),
    ]


def test_the_report_of_an_error_has_its_frames_and_its_exchange_and_blames_nobody() -> None:
    _, finding = ask([rule("T001", fail)], "x.tape")
    assert finding.evidence.startswith("fail:")
    assert (finding.tape, finding.exchange, finding.blame) == ("x.tape", 3, None)
    assert (finding.line, finding.t_ns, finding.severity) == (None, None, Severity.ERROR)


def test_without_an_error_nothing_is_added() -> None:
    assert ask([rule("T001", lambda _: ())], "x.tape") == []
