"""The verdict on an exchange and on a whole tape, before suspects are tried.

An exchange is judged by the findings on it and about it. An error that an application sends to its
own page is judged by the provider's answer behind it, where that explains it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltatape.conversation.attempts import sentence
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.attempts import Attempts
from deltatape.model.exchange import EndReason, Exchange, Tap, header
from deltatape.model.explanation import Verdict, VerdictKind
from deltatape.model.finding import Blame, Confidence, Finding
from deltatape.model.rule_settings import Settings
from deltatape.printable import count
from deltatape.why.survey import ExchangeSurvey
from deltatape.why.tape_context import are_linked
from deltatape.why.verdict import Case, doubted, going_on, judge, nothing_wrong, of_endpoint

_OF_ATTEMPTS = frozenset({"C008"})
"""Codes whose findings describe the attempts themselves."""
_NS = 1_000_000_000
_EARLY = 0.9
"""The share of the requested pause after which an attempt does not count as early."""
_LEFT_EARLY = (
    " The client left before the end of the stream: what came after the finish reason, if anything,"
    " is not on the tape."
)
_NOTES = 3
"""Requests with failed attempts that are listed one by one."""


def case_of(surveyed: ExchangeSurvey, analysis: Analysis) -> Case:
    """Collect the evidence for a verdict on an exchange."""
    number = analysis.exchange.number
    return Case(
        findings=surveyed.own(number),
        about_reply=surveyed.about_reply(number),
        about_request=surveyed.about_request(number),
        reply=analysis.reply,
        read_back=surveyed.read_back(number),
        continued_by=surveyed.continued_by(number),
    )


def ruling(
    surveyed: ExchangeSurvey,
    case: Case,
    exchange: Exchange,
    others: Sequence[Exchange],
    settings: Settings,
) -> Verdict:
    """Return the verdict on an exchange.

    Args:
        surveyed: its tape.
        case: the evidence about it.
        exchange: to judge.
        others: all exchanges of the tape.
        settings: the thresholds.
    """
    found = case.about_reply or case.about_request or case.findings
    if not found and exchange.open:
        verdict = going_on()
    elif not found and exchange.tap is Tap.APP:
        verdict = of_endpoint()
    else:
        verdict = judge(case)
    if exchange.tap is Tap.APP and verdict.code == "S005":
        providers = [
            each for each in others if each.tap is Tap.PROVIDER and are_linked(exchange, each)
        ]
        verdict = _with_cause(verdict, providers, surveyed, settings)
    left = exchange.end is not None and exchange.end.reason is EndReason.CLIENT_CLOSED
    if verdict.kind is VerdictKind.HEALTHY and left and case.reply.terminal_event is None:
        verdict = replace(verdict, summary=f"{verdict.summary}{_LEFT_EARLY}")
    row = surveyed.row(exchange.number)
    if row is None or verdict.code in _OF_ATTEMPTS:
        return verdict
    verdict = replace(verdict, summary=f"{verdict.summary} {sentence(row)}.")
    advice = _retry_advice(row, exchange)
    return replace(verdict, fix=advice) if advice and verdict.code == "S005" else verdict


def _retry_advice(row: Attempts, exchange: Exchange) -> str:
    """Say when to ask again, if the answer says so and it was not followed."""
    head = exchange.response
    asked_for = header(head.headers, "retry-after") if head is not None else None
    pauses = [each.pause_ns for each in row.tries if each.pause_ns is not None]
    if row.answered or row.pending or asked_for is None or not asked_for.isdigit() or not pauses:
        return ""
    shortest, wait = min(pauses) / _NS, int(asked_for)
    if shortest < wait * _EARLY:
        return (
            f"the app asked again after {shortest:.2f} s, although retry-after asks for {wait} s:"
            " wait that long before each attempt, and give up after a few"
        )
    return (
        f"the app waited for {wait} s, as retry-after asks, and was refused again: ask less often,"
        " wait longer from attempt to attempt, or have the limit raised"
    )


def ruling_on_all(
    surveyed: ExchangeSurvey, exchanges: Sequence[Exchange], own: Verdict
) -> Verdict | None:
    """Return the verdict on a whole tape if nothing is wrong and nothing is open.

    Args:
        surveyed: the tape.
        exchanges: all of it.
        own: the verdict on the exchange that is explained.
    """
    if not (surveyed.is_clean and surveyed.is_whole and surveyed.is_answered):
        return None
    if any(exchange.open for exchange in exchanges):
        return None
    notes = [sentence(row) for row in surveyed.attempts]
    if len(notes) > _NOTES:
        notes = [*notes[:_NOTES], f"{count(len(notes) - _NOTES, 'more request')} likewise"]
    verdict = nothing_wrong(surveyed.replies, len(surveyed.read_backs), notes, surveyed.between)
    return replace(doubted(verdict, surveyed.between), possible=own.possible)


def codes_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the codes, each once, in order."""
    return tuple(dict.fromkeys(finding.code for finding in findings))


def _with_cause(
    verdict: Verdict, providers: Sequence[Exchange], surveyed: ExchangeSurvey, settings: Settings
) -> Verdict:
    """Explain an error that the app sent to its page by the provider's answers meanwhile.

    If the provider's side is on the tape and has no error, the error is the application's own.
    """
    for each in providers:
        cause = judge(case_of(surveyed, analyse(each, settings.app)))
        at_fault = cause.code == "S005" or cause.blame not in (None, Blame.APP)
        if at_fault and cause.code in codes_of(surveyed.own(each.number)):
            reported = f"The app sent its page an error; the cause is #{each.number}:"
            return replace(cause, summary=f"{reported} {cause.summary}")
    if verdict.blame is not None or not providers:
        return verdict
    return replace(
        verdict,
        kind=VerdictKind.BLAMED,
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        summary=f"{verdict.summary} Nothing on the provider's side explains it.",
    )
