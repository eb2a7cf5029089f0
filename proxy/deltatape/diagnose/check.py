"""Run the rules over one exchange."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.dialects import UnknownReducer
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tool_server import MCP
from deltatape.rules import EXCHANGE_RULES, RULES, Rule, RuleContext, Subject, ask
from deltatape.rules.loss import is_left, loss_of


@cache
def rules_about(subjects: frozenset[Subject], *, is_open: bool) -> tuple[Rule[RuleContext], ...]:
    """Return the rules that can find something in an exchange that has `subjects`."""
    return tuple(
        rule
        for rule in EXCHANGE_RULES
        if (rule.about is None or rule.about in subjects) and not (is_open and rule.at_end)
    )


def subjects_of(context: RuleContext) -> frozenset[Subject]:
    """Return what the exchange has of `Subject`."""
    reply = context.reply
    has_calls = any(choice.tool_calls or choice.text_calls for choice in reply.choices)
    found = (
        (Subject.CALLS, has_calls),
        (Subject.OBSERVATIONS, reply.observations),
        (Subject.ANOMALIES, context.stream.anomalies),
        (Subject.APP_EVENTS, reply.from_app),
    )
    return frozenset([subject for subject, there in found if there])


def check(exchange: Exchange, settings: Settings = DEFAULTS) -> tuple[Finding, ...]:
    """Return the findings on `exchange`: missing data (X002) first, then the worst first.

    Sorted by severity, then in the order of `EXCHANGE_RULES`, then in wire order. Never raises: a
    rule that does is reported as X001.
    """
    return check_analysis(analyse(exchange, settings.app), settings)


def check_analysis(analysis: Analysis, settings: Settings = DEFAULTS) -> tuple[Finding, ...]:
    """Check an exchange that is analysed already."""
    if analysis.turns:
        return _check_turns(analysis, settings)
    return first_the_loss(_check_alone(analysis, settings))


def _check_turns(analysis: Analysis, settings: Settings) -> tuple[Finding, ...]:
    """Check each response of a WebSocket, and whether its tape has all of it.

    Events are numbered as on the whole WebSocket.
    """
    whole = analysis.exchange
    own = replace(
        analysis, turns=(), reply=UnknownReducer().finish(cut=False), request=NOTHING_ASKED
    )
    found = [each for each in _check_alone(own, settings) if each.code == _LOSS]
    for turn in analysis.turns:
        findings = _check_alone(turn, settings)
        found += [
            each if each.event is None else replace(each, event=turn.numbers[each.event])
            for each in (as_taped(findings, whole) if loss_of(whole) else findings)
        ]
    return first_the_loss(found)


def context_of(analysis: Analysis, settings: Settings = DEFAULTS) -> RuleContext:
    """Return what rules see of an exchange."""
    return RuleContext(
        exchange=analysis.exchange,
        stream=analysis.stream,
        request=analysis.request,
        reply=analysis.reply,
        settings=settings,
    )


def _check_alone(analysis: Analysis, settings: Settings) -> Sequence[Finding]:
    context, exchange = context_of(analysis, settings), analysis.exchange
    rules = rules_about(subjects_of(context), is_open=exchange.open)
    if analysis.reply.dialect == MCP:  # the rules are about what models and their servers say
        rules = tuple(rule for rule in rules if rule.code == _LOSS)
    found = as_taped(ask(rules, context), exchange)
    if exchange.tap is Tap.APP or analysis.reply.from_app:
        found = [replace(finding, blame=_blame_upstream(finding.blame)) for finding in found]
    return found


def _blame_upstream(blame: Blame | None) -> Blame | None:
    """Return whom to blame on a tape that was taken in front of the application's own endpoint.

    There the application is the upstream, and nothing is known about the client.
    """
    if blame is Blame.TRANSPORT:
        return blame
    return None if blame in (None, Blame.APP) else Blame.APP


# Adjusts findings on an incomplete exchange, or on one that the client left.
#
# Every rule reads an exchange as if the tape were complete. Where the recorder lost some of it,
# nobody knows where: what a lost record may have caused is no finding. In one place for all rules,
# so that none can forget to ask.

_SURVIVES_LOSS = frozenset(rule.code for rule in RULES if rule.survives_loss)
_CLOCKS = frozenset({"D005"})
"""Codes that need more than the records of the answer."""
_LOSS = "X002"
_CUT = "W006"
_ABOUT_MISSING = frozenset(rule.code for rule in RULES if rule.about_missing)


def as_taped(findings: Sequence[Finding], exchange: Exchange) -> list[Finding]:
    """Return `findings` without those that the recorder or a client that left may have caused."""
    loss = loss_of(exchange)
    if loss is None:
        return _without_blame_for_missing(findings) if is_left(exchange) else [*findings]
    if not loss.answer:
        return [each for each in findings if each.code not in _CLOCKS]
    kept: list[Finding] = []
    for each in findings:
        if each.code in _SURVIVES_LOSS:
            kept.append(each)
        elif each.code == _CUT and not is_left(exchange):
            # How the transport ended is known; whether anything was missing then is not.
            proven = each.confidence is Confidence.PROVEN
            confidence = Confidence.LIKELY if proven else each.confidence
            kept.append(replace(each, confidence=confidence, excluded=()))
    codes = {each.code for each in kept}
    left_out = [*dict.fromkeys(each.code for each in findings if each.code not in codes)]
    if not left_out:
        return kept
    note = f"; {', '.join(left_out)} {'is' if len(left_out) == 1 else 'are'} not reported,"
    note += " because the missing records may be the cause"
    return [
        replace(each, message=each.message + note) if each.code == _LOSS else each for each in kept
    ]


def _without_blame_for_missing(findings: Sequence[Finding]) -> list[Finding]:
    """Remove the blame for missing parts if the client or the recorder left."""
    return [
        replace(
            each,
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.INFO,
            excluded=(),
        )
        if each.code in _ABOUT_MISSING
        else each
        for each in findings
    ]


def first_the_loss(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Order findings for a report: missing data first, then the worst first."""
    return tuple(sorted(findings, key=lambda each: (each.code != _LOSS, each.severity.rank)))
