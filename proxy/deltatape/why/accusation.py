"""Adds a suspect to a verdict on the app: which mistake explains what the app did.

A suspect alone proves nothing: many mistakes have the same effect. It is named if it explains
content: arguments, names or ids that differ from the delivered ones, or a parser's error that the
wire does not explain. If calls are only missing, they may have been dropped on purpose, so a
suspect is named only if the app is already to blame, and then as one way to lose them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deltatape.conversation import findings_of
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.explanation import Verdict, VerdictKind
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.reply import ToolCall
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.rule_settings import Settings
from deltatape.model.suspect import Suspect, Symptom
from deltatape.printable import excerpt
from deltatape.why.tape_context import are_linked
from deltatape.why.timeline import is_printed
from deltatape.why.verdict import LOSS, Case
from deltatape.wire.json_value import canonical

_SHOWN = 80
_ENOUGH = 20
"""How many characters identify a text."""
_MOST_ERRORS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AppHandling:
    """A reply, and what the application did with it."""

    analysis: Analysis
    """The exchange on the provider's side."""
    symptom: Symptom
    page: int | None
    """The exchange with the application's own page in which the symptom shows; None: it shows in
    what the application did otherwise."""
    one_off: bool = False
    """Whether it repeats several calls correctly elsewhere, or printed why it lost one: the loss is
    not systematic then."""


def is_open_to_suspicion(case: Case, verdict: Verdict, handling: AppHandling) -> bool:
    """Check whether a client's mistake may explain the verdict, so that the search is worth it.

    False if an error on the wire decides the verdict, if the exchange is incomplete on the tape
    (what the client read is unknown), and if nothing speaks against the app: many applications
    change or drop calls on purpose.
    """
    if any(each.code == LOSS for each in case.findings):
        return False
    if verdict.blame is Blame.APP:
        return not (handling.one_off and is_drop(handling))
    broken = any(each.severity is Severity.ERROR for each in case.findings if each.code[0] in "WST")
    accused = handling.page is not None or bool(handling.symptom.errors)
    return accused and not broken and not is_drop(handling)


def worth_naming(
    verdict: Verdict, handling: AppHandling, suspects: Sequence[Suspect]
) -> tuple[Suspect, ...]:
    """Return the suspects that explain what is open to suspicion."""
    if is_drop(handling):
        return tuple(replace(each, drop=True) for each in suspects if each.exact)
    return tuple(each for each in suspects if each.exact or verdict.blame is Blame.APP)


def is_drop(handling: AppHandling) -> bool:
    """Check whether calls are missing and the rest is repeated as delivered."""
    repeated, delivered = handling.symptom.calls, handling.analysis.reply.tool_calls
    if repeated is None or handling.symptom.errors or len(repeated) >= len(delivered):
        return False
    altered = Counter((call.id, *_content(call)) for call in repeated)
    altered -= Counter((call.id, *_content(call)) for call in delivered)
    return not altered


def _content(call: ToolCall | RepeatedCall) -> tuple[str | None, str]:
    return call.name, canonical(call.arguments) or call.arguments


def with_suspects(verdict: Verdict, handling: AppHandling, suspects: Sequence[Suspect]) -> Verdict:
    """Add the first exact suspect to `verdict`; return it unchanged if there is none."""
    if not suspects or not suspects[0].exact:
        return verdict
    first = suspects[0]
    if verdict.blame is Blame.APP and first.drop:
        does, mend = first.says.partition(";")[0], first.fix.rstrip(".")
        like = f"{first.name}{_or_others(suspects)} would lose it the same way: it {first.says}."
        fix = f"check whether the app {does}. If so: {mend}. If not: {verdict.fix}"
        return replace(verdict, summary=f"{verdict.summary} A client like {like}", fix=fix)
    if verdict.blame is Blame.APP:
        like = f"The app behaves like {first.name}{_or_others(suspects)}: it {first.says}."
        errors = [excerpt(error, _SHOWN) for error in handling.symptom.errors]
        if errors and not any(error[:_ENOUGH] in verdict.summary + first.says for error in errors):
            like = f"It says '{errors[0]}'. {like}"
        return replace(verdict, summary=f"{verdict.summary} {like}", fix=first.fix)
    if verdict.blame is None and handling.page is not None:
        what = f"but the app sent its page something else, in #{handling.page}."
        return _app_verdict(f"The stream was correct, {what}", first, None)
    if verdict.blame is None and handling.symptom.errors:
        error = excerpt(handling.symptom.errors[0], _SHOWN)
        return _app_verdict(
            f"The stream was correct, and the app says '{error}'.", first, verdict.code
        )
    return verdict


def _app_verdict(facts: str, suspect: Suspect, code: str | None) -> Verdict:
    """Return the verdict that `suspect` turns `facts` into, which alone blame nobody."""
    return Verdict(
        kind=VerdictKind.BLAMED,
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        summary=f"{facts} It behaves like {suspect.name}: it {suspect.says}.",
        fix=suspect.fix,
        code=code,
    )


def _or_others(suspects: Sequence[Suspect]) -> str:
    """Say how many other suspects explain the same; with several, the first is a guess."""
    others = sum(each.exact for each in suspects) - 1
    return f" (or one of {others} that do the same)" if others > 1 else ""


# What an application made of a reply: the symptom that suspects are compared with.
#
# Sources, the surest first: what its next request repeats; on its other side, the calls that it
# sent to its page; that it went on without any call, or not at all; and the errors of its parsers:
# in the results it sends back, in its log, or as the user reports them.


def app_handling(
    case: Case,
    analysis: Analysis,
    others: Sequence[Exchange],
    errors: Sequence[str],
    settings: Settings,
) -> AppHandling | None:
    """Return the symptom of an exchange; None if no client mistake can be involved.

    Args:
        case: the case of the exchange.
        analysis: its analysis.
        others: all exchanges of its tape: those on the other side of the application count.
        errors: the errors of the app, as the user reports them.
        settings: the thresholds.
    """
    damaged_on_page = _damaged_on_page(analysis, others, settings)
    if damaged_on_page is not None:
        upstream, page, page_calls = damaged_on_page
        symptom = Symptom(calls=page_calls, errors=tuple(errors))
        return AppHandling(analysis=upstream, symptom=symptom, page=page)
    if analysis.exchange.tap is Tap.APP:
        return None
    calls, link = _continued_calls(case), case.read_back
    found = tuple(errors) or _parser_errors(case)
    if calls is None and not found:
        return None
    symptom = Symptom(calls=calls, errors=found)
    one_off = link is not None and (link.habits.keeps_several or bool(link.reported_lost))
    return AppHandling(analysis=analysis, symptom=symptom, page=None, one_off=one_off)


def _continued_calls(case: Case) -> tuple[RepeatedCall, ...] | None:
    """Return the calls that the application continues with; None if unknown or as delivered."""
    link = case.read_back
    if any(each.code == "C004" for each in case.about_reply):
        return None  # a result is sent back: the call was read, and its message left out
    if link is not None:
        return link.repeated_calls if findings_of(link) else None
    # An app that ended by an exception may have had the calls.
    silent = any(each.code == "D003" and not each.excluded for each in case.about_reply)
    return () if silent or case.continued_by is not None else None


def _parser_errors(case: Case) -> tuple[str, ...]:
    """Return likely errors of the application's parsers about calls that were complete."""
    found = (*case.about_reply, *(each for each in case.about_request if is_printed(each)))
    grave = (each for each in found if each.code == "C009" and each.severity is not Severity.INFO)
    return tuple(dict.fromkeys(each.evidence for each in grave))[:_MOST_ERRORS]


def _damaged_on_page(
    analysis: Analysis, others: Sequence[Exchange], settings: Settings
) -> tuple[Analysis, int, tuple[RepeatedCall, ...]] | None:
    """Return the provider's side, the app's own page, and the calls that are damaged there.

    An application may hide calls from its page and rename tools, but does not show calls without a
    name, or with other arguments under the same name. Its ids are its own.
    """
    pages: Iterable[Analysis] = (analysis,)
    if analysis.exchange.tap is not Tap.APP:
        pages = (analyse(each, settings.app) for each in _pages_of(analysis.exchange, others))
    page = next((each for each in pages if each.reply.from_app), None)
    if page is None or not page.reply.tool_calls:
        return None  # many applications do not show tools to their page
    linked = [
        analyse(each, settings.app)
        for each in others
        if each.tap is Tap.PROVIDER and are_linked(page.exchange, each)
    ]
    upstreams = [each for each in linked if each.reply.tool_calls]
    on_page = [_content(call) for call in page.reply.tool_calls]
    differing = [
        each
        for each in upstreams
        if any(_content(call) not in on_page for call in each.reply.tool_calls)
    ]
    number = analysis.exchange.number
    upstream = next((each for each in differing if each.exchange.number == number), None)
    if upstream is None and differing and page.exchange.number == number:
        upstream = differing[0]
    if upstream is None or len(_pages_of(upstream.exchange, others)) != 1:
        return None  # with two users at once it is unclear which page belongs to the reply
    correct = [_content(call) for each in upstreams for call in each.reply.tool_calls]
    names = {call.name for call in upstream.reply.tool_calls}
    damaged = tuple(
        RepeatedCall(id=None, name=call.name, arguments=call.arguments)
        for call in page.reply.tool_calls
        if _content(call) not in correct and (not call.name or call.name in names)
    )
    return (upstream, page.exchange.number, damaged) if damaged else None


def _pages_of(exchange: Exchange, others: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges with the application's own page during `exchange`."""
    return [each for each in others if each.tap is Tap.APP and are_linked(exchange, each)]
