"""The verdict on an exchange and on a whole tape, before suspects are tried.

An exchange is judged by what is found on it and about it. What an application tells its own page of
is judged by the provider's answer behind it, where that explains it.
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
"""Codes whose findings tell the attempts themselves."""
_NS = 1_000_000_000
_IN_TIME = 0.9
"""The part of the time that was asked for after which nobody is told to have been early."""
_LEFT_EARLY = (
    " The client left before the end of the stream: what came after the finish reason, if anything,"
    " is not on the tape."
)
_NOTES = 3
"""Requests with failed attempts that are told one by one."""


def case_of(seen: ExchangeSurvey, analysis: Analysis) -> Case:
    """Collect the evidence for a verdict on an exchange."""
    number = analysis.exchange.number
    return Case(
        findings=seen.own(number),
        about_reply=seen.about_reply(number),
        about_request=seen.about_request(number),
        reply=analysis.reply,
        read_back=seen.read_back(number),
        gone_on=seen.gone_on(number),
    )


def ruling(
    seen: ExchangeSurvey,
    case: Case,
    exchange: Exchange,
    others: Sequence[Exchange],
    settings: Settings,
) -> Verdict:
    """Return the verdict on an exchange.

    Args:
        seen: its tape.
        case: of it.
        exchange: it.
        others: all exchanges of the tape.
        settings: the thresholds.
    """
    verdict = _judged(case, exchange)
    if exchange.tap is Tap.APP and verdict.code == "S005":
        verdict = _behind(exchange, others, seen, settings) or _own(exchange, others, verdict)
    if verdict.kind is VerdictKind.HEALTHY and _left_early(exchange, case):
        verdict = replace(verdict, summary=f"{verdict.summary}{_LEFT_EARLY}")
    row = seen.row(exchange.number)
    if row is None or verdict.code in _OF_ATTEMPTS:
        return verdict
    verdict = replace(verdict, summary=f"{verdict.summary} {sentence(row)}.")
    waited = _waited(row, exchange)
    return replace(verdict, fix=waited) if waited and verdict.code == "S005" else verdict


def _left_early(exchange: Exchange, case: Case) -> bool:
    """Check whether the client left between the finish reason and the end of the stream."""
    end = exchange.end
    left = end is not None and end.reason is EndReason.CLIENT_CLOSED
    return left and case.reply.terminal_event is None


def _waited(row: Attempts, exchange: Exchange) -> str:
    """Say when to ask again, if the answer says so and it was not followed."""
    head = exchange.response
    told = header(head.headers, "retry-after") if head is not None else None
    pauses = [each.pause_ns for each in row.tries if each.pause_ns is not None]
    if row.answered or row.pending or told is None or not told.isdigit() or not pauses:
        return ""
    shortest, wait = min(pauses) / _NS, int(told)
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
    seen: ExchangeSurvey, exchanges: Sequence[Exchange], own: Verdict
) -> Verdict | None:
    """Return the verdict on a whole tape if nothing is wrong and nothing is open.

    Args:
        seen: the tape.
        exchanges: all of it.
        own: the verdict on the exchange that is told of.
    """
    if not (seen.is_clean and seen.is_whole and seen.is_answered):
        return None
    if any(exchange.open for exchange in exchanges):
        return None
    notes = [sentence(row) for row in seen.attempts]
    if len(notes) > _NOTES:
        notes = [*notes[:_NOTES], f"{count(len(notes) - _NOTES, 'more request')} likewise"]
    verdict = nothing_wrong(seen.replies, len(seen.read_backs), notes, seen.between)
    return replace(doubted(verdict, seen.between), possible=own.possible)


def codes_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the codes, each once, in order."""
    return tuple(dict.fromkeys(finding.code for finding in findings))


def _judged(case: Case, exchange: Exchange) -> Verdict:
    if case.about_reply or case.about_request or case.findings:
        return judge(case)
    if exchange.open:
        return going_on()
    return of_endpoint() if exchange.tap is Tap.APP else judge(case)


def _behind(
    page: Exchange, exchanges: Sequence[Exchange], seen: ExchangeSurvey, settings: Settings
) -> Verdict | None:
    """Return the verdict on the provider's answer behind an error sent to the page."""
    for each in exchanges:
        if each.tap is not Tap.PROVIDER or not are_linked(page, each):
            continue
        verdict = judge(case_of(seen, analyse(each, settings.app)))
        own = codes_of(seen.own(each.number))
        refused = verdict.code == "S005"
        if (refused or verdict.blame not in (None, Blame.APP)) and verdict.code in own:
            told = f"The app tells its page of an error; the cause is #{each.number}:"
            return replace(verdict, summary=f"{told} {verdict.summary}")
    return None


def _own(page: Exchange, exchanges: Sequence[Exchange], verdict: Verdict) -> Verdict:
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
