"""What is known of what an application made of a reply: the symptom that suspects are held against.

Sources, the surest first: what its next request repeats; on the other side of the application, the
calls that it told its page of; that it went on without any call, or not at all; and the errors of
its parsers: in the results it sends back, in its log, or in what the user says that it threw.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltatape.conversation import findings_of
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.asked import RepeatedCall
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Severity
from deltatape.model.reply import ToolCall
from deltatape.model.suspect import Symptom
from deltatape.rules.settings import Settings
from deltatape.why.surroundings import are_linked
from deltatape.why.timeline import is_printed
from deltatape.why.verdict import Case
from deltatape.wire.json_value import canonical

_ENOUGH = 4
"""Errors that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """A reply, and what the application made of it."""

    analysis: Analysis
    """Of the provider's side."""
    symptom: Symptom
    across: bool
    """Whether the symptom is what the application told its own page."""
    one_off: bool = False
    """Whether it repeats all of several calls elsewhere, or printed why it lost one: what it lost
    is no habit of its reader."""


def matter_of(
    case: Case,
    analysis: Analysis,
    others: Sequence[Exchange],
    errors: Sequence[str],
    settings: Settings,
) -> Matter | None:
    """The symptom to an exchange; None if nothing is known that a client could have done wrong.

    Args:
        case: of the exchange.
        analysis: of it.
        others: all exchanges of its tape: those on the other side of the application count.
        errors: what it threw, as the user says.
        settings: the thresholds.
    """
    across = _across(analysis, others, settings)
    if across is not None:
        upstream, told = across
        symptom = Symptom(calls=told, errors=tuple(errors))
        return Matter(analysis=upstream, symptom=symptom, across=True)
    if analysis.exchange.tap is Tap.APP:
        return None
    calls_of, link = _calls(case), case.read_back
    found = tuple(errors) or _errors(case)
    if calls_of is None and not found:
        return None
    symptom = Symptom(calls=calls_of, errors=found)
    one_off = link is not None and (link.habits.keeps_several or bool(link.reported_lost))
    return Matter(analysis=analysis, symptom=symptom, across=False, one_off=one_off)


def _calls(case: Case) -> tuple[RepeatedCall, ...] | None:
    """The calls that the application goes on with; None if that is not known, or as delivered."""
    link = case.read_back
    if any(each.code == "C004" for each in case.about_reply):
        return None  # a result is sent back: the call was read, and its message left out
    if link is not None:
        return link.heard if findings_of(link) else None
    # An app that ended by an exception may have had the calls.
    silent = any(each.code == "D003" and not each.excluded for each in case.about_reply)
    return () if silent or case.gone_on is not None else None


def _errors(case: Case) -> tuple[str, ...]:
    """What the application's parsers say of calls that were whole, as far as that is likely."""
    found = (*case.about_reply, *(each for each in case.about_request if is_printed(each)))
    grave = (each for each in found if each.code == "C009" and each.severity is not Severity.INFO)
    return tuple(dict.fromkeys(each.evidence for each in grave))[:_ENOUGH]


def _across(
    analysis: Analysis, others: Sequence[Exchange], settings: Settings
) -> tuple[Analysis, tuple[RepeatedCall, ...]] | None:
    """The provider's side and what the application told its page of it, where they differ."""
    page = _page(analysis, others, settings)
    if page is None or not page.reply.tool_calls:
        return None  # many applications tell their page nothing of tools
    behind = [analyse(each, settings.app) for each in others if _is_behind(page, each)]
    upstreams = [each for each in behind if each.reply.tool_calls]
    told = [_key(call) for call in page.reply.tool_calls]
    wrong = [each for each in upstreams if not _is_told(each, told)]
    number = analysis.exchange.number
    chosen = next((each for each in wrong if each.exchange.number == number), None)
    upstream = chosen or (wrong[0] if wrong and page.exchange.number == number else None)
    if upstream is None or not _is_sure(upstream, others):
        return None
    right = [_key(call) for each in upstreams for call in each.reply.tool_calls]
    spoilt = tuple(_spoilt(page, upstream, right))
    return (upstream, spoilt) if spoilt else None


def _is_sure(upstream: Analysis, others: Sequence[Exchange]) -> bool:
    """Whether it is clear which page was told of a reply: with two users at once it is not."""
    pages = [each for each in others if each.tap is Tap.APP and are_linked(upstream.exchange, each)]
    return len(pages) == 1


def _page(analysis: Analysis, others: Sequence[Exchange], settings: Settings) -> Analysis | None:
    """The exchange with the application's own page that `analysis` is, or belongs to."""
    if analysis.exchange.tap is Tap.APP:
        return analysis if analysis.reply.from_app else None
    linked = (
        each for each in others if each.tap is Tap.APP and are_linked(analysis.exchange, each)
    )
    pages = (analyse(each, settings.app) for each in linked)
    return next((page for page in pages if page.reply.from_app), None)


def _is_behind(page: Analysis, exchange: Exchange) -> bool:
    return exchange.tap is Tap.PROVIDER and are_linked(page.exchange, exchange)


def _key(call: ToolCall) -> tuple[str | None, str]:
    return call.name, canonical(call.arguments) or call.arguments


def _is_told(upstream: Analysis, told: Sequence[tuple[str | None, str]]) -> bool:
    return all(_key(call) in told for call in upstream.reply.tool_calls)


def _spoilt(
    page: Analysis, upstream: Analysis, right: Sequence[tuple[str | None, str]]
) -> Iterable[RepeatedCall]:
    """Calls that the page was told of and that are spoilt ones of `upstream`.

    An application may hide calls from its page and name tools as it likes; but it tells of none
    without a name, nor of one of the same name with other arguments. Ids there are its own.
    """
    names = {call.name for call in upstream.reply.tool_calls}
    return (
        RepeatedCall(id=None, name=call.name, arguments=call.arguments)
        for call in page.reply.tool_calls
        if _key(call) not in right and (not call.name or call.name in names)
    )
