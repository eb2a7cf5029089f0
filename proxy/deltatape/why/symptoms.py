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
from deltatape.model.digest import ReadBack
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.log import LogEntry
from deltatape.model.reply import ToolCall
from deltatape.model.suspect import Symptom
from deltatape.rules.parser_errors import in_log
from deltatape.rules.progress import watched_until
from deltatape.rules.settings import Settings
from deltatape.why.surroundings import LATE_NS, are_linked
from deltatape.why.verdict import Case
from deltatape.wire.json_value import canonical

_ENOUGH = 4
"""Errors that are looked at."""
_NS = 1_000_000_000
_AFTER_NS = 30 * _NS
"""How long after a response its application may complain about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """A reply, and what the application made of it."""

    analysis: Analysis
    """Of the provider's side."""
    symptom: Symptom
    across: bool
    """Whether the symptom is what the application told its own page."""


def matter_of(
    case: Case,
    analysis: Analysis,
    others: Sequence[Exchange],
    logs: Iterable[LogEntry],
    errors: Sequence[str],
    settings: Settings,
) -> Matter | None:
    """The symptom to an exchange; None if nothing is known that a client could have done wrong.

    Args:
        case: of the exchange.
        analysis: of it.
        others: all exchanges of its tape: those on the other side of the application count.
        logs: what the application printed.
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
    calls_of = _calls(case)
    until_ns = _next_ns(analysis.exchange, others)
    found = tuple(errors) or tuple(_errors(case.read_back, analysis.exchange, logs, until_ns))
    if calls_of is None and not found:
        return None
    symptom = Symptom(calls=calls_of, errors=found)
    return Matter(analysis=analysis, symptom=symptom, across=False)


def _calls(case: Case) -> tuple[RepeatedCall, ...] | None:
    """The calls that the application goes on with; None if that is not known, or as delivered."""
    link = case.read_back
    if any(each.code == "C004" for each in case.about_reply):
        return None  # a result is sent back: the call was read, and its message left out
    if link is not None:
        return link.heard if findings_of(link) else None
    silent = any(each.code == "D003" for each in case.about_reply)
    return () if silent or case.gone_on is not None else None


def _next_ns(exchange: Exchange, others: Sequence[Exchange]) -> int:
    """Until when the application may complain about a response: soon after its next request."""
    end_ns = watched_until(exchange)
    after = [each.request.t_ns for each in others if each.request.t_ns >= end_ns]
    return min(min(after, default=end_ns + _AFTER_NS) + LATE_NS, end_ns + _AFTER_NS)


def _errors(
    link: ReadBack | None, exchange: Exchange, logs: Iterable[LogEntry], until_ns: int
) -> Iterable[str]:
    """What the application's parsers say, in its results or in its log."""
    found: dict[str, None] = {}
    if link is not None:
        answered = [each for each in link.later.history if each.call_id in link.answered]
        found |= dict.fromkeys(each.failure for each in answered if each.failure)
    if exchange.timed and exchange.end:
        for entry in logs:
            meanwhile = exchange.request.t_ns <= entry.t_ns <= until_ns
            if meanwhile and len(found) < _ENOUGH:
                error = in_log(entry.line)
                found |= {error.text: None} if error else {}
    return tuple(found)[:_ENOUGH]


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
    if upstream is None:
        return None
    right = [
        _key(call) for each in upstreams if each not in wrong for call in each.reply.tool_calls
    ]
    return upstream, tuple(_told(page, right))


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


def _told(page: Analysis, right: Sequence[tuple[str | None, str]]) -> Iterable[RepeatedCall]:
    """What the page was told beside what is `right`; ids there are the application's own."""
    return (
        RepeatedCall(id=None, name=call.name, arguments=call.arguments)
        for call in page.reply.tool_calls
        if _key(call) not in right
    )
