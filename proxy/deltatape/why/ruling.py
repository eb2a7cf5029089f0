"""The verdict on an exchange of a tape, and on a tape as a whole, before anybody is suspected.

An exchange is judged by what is found on it and about it. What an application tells its own page of
is judged by the provider's answer behind it, where that explains it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Blame, Finding
from deltatape.model.story import Verdict
from deltatape.rules.settings import Settings
from deltatape.why.surroundings import are_linked
from deltatape.why.survey import Survey
from deltatape.why.verdict import Case, going_on, judge, nothing_wrong, of_endpoint


def case_of(seen: Survey, analysis: Analysis) -> Case:
    """All that a verdict on an exchange is made from."""
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
    seen: Survey, case: Case, exchange: Exchange, others: Sequence[Exchange], settings: Settings
) -> Verdict:
    """The verdict on an exchange.

    Args:
        seen: its tape.
        case: of it.
        exchange: it.
        others: all exchanges of the tape.
        settings: the thresholds.
    """
    if not (case.about_reply or case.about_request or case.findings):
        return _without_findings(exchange, case)
    verdict = judge(case)
    if exchange.tap is Tap.APP and verdict.code == "S005":
        return _behind(exchange, others, seen, settings) or verdict
    return verdict


def ruling_on_all(seen: Survey, exchanges: Sequence[Exchange]) -> Verdict | None:
    """The verdict on a whole tape, if nothing is wrong on it and nothing is left open."""
    if seen.count() or not seen.is_answered or any(exchange.open for exchange in exchanges):
        return None
    return nothing_wrong(seen.replies, len(seen.read_backs))


def codes_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Their codes, each once, in order."""
    return tuple(dict.fromkeys(finding.code for finding in findings))


def _without_findings(exchange: Exchange, case: Case) -> Verdict:
    if exchange.open:
        return going_on()
    return of_endpoint() if exchange.tap is Tap.APP else judge(case)


def _behind(
    page: Exchange, exchanges: Sequence[Exchange], seen: Survey, settings: Settings
) -> Verdict | None:
    """The verdict on a provider's answer that made the application tell its page of an error."""
    for each in exchanges:
        if each.tap is not Tap.PROVIDER or not are_linked(page, each):
            continue
        verdict = judge(case_of(seen, analyse(each, settings.app)))
        own = codes_of(seen.own(each.number))
        if verdict.blame not in (None, Blame.APP) and verdict.code in own:
            told = f"The app tells its page of an error; the cause is #{each.number}:"
            return replace(verdict, summary=f"{told} {verdict.summary}")
    return None
