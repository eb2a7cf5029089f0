"""The verdict on an exchange and on a whole tape, before suspects are tried.

An exchange is judged by the findings on it and about it. An error that an application sends to its
own page is judged by the provider's answer behind it, where that explains it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltatape.conversation.attempts import sentence
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import EndReason, Exchange, Tap, header
from deltatape.model.explanation import Attempts, Verdict, VerdictKind
from deltatape.model.finding import Blame, Confidence, Finding
from deltatape.printable import count
from deltatape.rules.settings import Settings
from deltatape.why.survey import ExchangeSurvey
from deltatape.why.tape_context import are_linked
from deltatape.why.verdict import Case, doubted, going_on, judge, nothing_wrong, of_endpoint

_OF_ATTEMPTS = frozenset({"C008"})
"""Codes whose findings describe the attempts themselves."""
_NS = 1_000_000_000
_IN_TIME = 0.9
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
        gone_on=surveyed.gone_on(number),
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
    if case.about_reply or case.about_request or case.findings:
        verdict = judge(case)
    elif exchange.open:
        verdict = going_on()
    else:
        verdict = of_endpoint() if exchange.tap is Tap.APP else judge(case)
    if exchange.tap is Tap.APP and verdict.code == "S005":
        verdict = _behind(exchange, others, surveyed, settings) or _without_cause(
            exchange, others, verdict
        )
    left = exchange.end is not None and exchange.end.reason is EndReason.CLIENT_CLOSED
    if verdict.kind is VerdictKind.HEALTHY and left and case.reply.terminal_event is None:
        verdict = replace(verdict, summary=f"{verdict.summary}{_LEFT_EARLY}")
    row = surveyed.row(exchange.number)
    if row is None or verdict.code in _OF_ATTEMPTS:
        return verdict
    verdict = replace(verdict, summary=f"{verdict.summary} {sentence(row)}.")
    waited = _waited(row, exchange)
    return replace(verdict, fix=waited) if waited and verdict.code == "S005" else verdict


def _waited(row: Attempts, exchange: Exchange) -> str:
    """Say when to ask again, if the answer says so and it was not followed."""
    head = exchange.response
    asked_for = header(head.headers, "retry-after") if head is not None else None
    pauses = [each.pause_ns for each in row.tries if each.pause_ns is not None]
    if row.answered or row.pending or asked_for is None or not asked_for.isdigit() or not pauses:
        return ""
    shortest, wait = min(pauses) / _NS, int(asked_for)
    if shortest < wait * _IN_TIME:
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


def _behind(
    page: Exchange, exchanges: Sequence[Exchange], surveyed: ExchangeSurvey, settings: Settings
) -> Verdict | None:
    """Return the verdict on the provider's answer behind an error sent to the page."""
    for each in exchanges:
        if each.tap is not Tap.PROVIDER or not are_linked(page, each):
            continue
        verdict = judge(case_of(surveyed, analyse(each, settings.app)))
        own = codes_of(surveyed.own(each.number))
        refused = verdict.code == "S005"
        if (refused or verdict.blame not in (None, Blame.APP)) and verdict.code in own:
            cause = f"The app tells its page of an error; the cause is #{each.number}:"
            return replace(verdict, summary=f"{cause} {verdict.summary}")
    return None


def _without_cause(page: Exchange, exchanges: Sequence[Exchange], verdict: Verdict) -> Verdict:
    """Return the verdict on an error sent to the page that no provider's answer explains.

    Where the provider's side is on the tape and in order, the error is the application's own.
    """
    sides = (each for each in exchanges if each.tap is Tap.PROVIDER)
    if verdict.blame is not None or not any(are_linked(page, each) for each in sides):
        return verdict
    summary = f"{verdict.summary} Nothing on the provider's side explains it."
    return replace(
        verdict,
        kind=VerdictKind.BLAMED,
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        summary=summary,
    )
