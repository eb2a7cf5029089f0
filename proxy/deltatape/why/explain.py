"""Explains one exchange of a tape: the chosen one, or the worst."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from deltatape.conversation.attempts import again
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.app_names import AppNames
from deltatape.model.digest import ReadBack
from deltatape.model.exchange import Exchange, header
from deltatape.model.explanation import (
    ALONE,
    Arrival,
    Attempts,
    EventSource,
    Explanation,
    RepeatedCallPair,
    ReplyRepetition,
    RequestPromise,
    TapeContext,
    TimelineEntry,
    Verdict,
)
from deltatape.model.finding import Finding
from deltatape.model.suspect import ClientTrial, Suspect
from deltatape.rules.repeated import first_difference, same_id, same_name
from deltatape.rules.settings import DEFAULTS, Settings
from deltatape.suspects import DeliveredResponse, delivered, matrix, reads_rightly, suspects_of
from deltatape.why.accusation import (
    AppHandling,
    is_open_to_suspicion,
    matter_of,
    with_suspects,
    worth_naming,
)
from deltatape.why.survey import ExchangeSurvey, survey
from deltatape.why.tape_context import around, stop_of
from deltatape.why.tape_verdict import case_of, codes_of, ruling, ruling_on_all
from deltatape.why.timeline import ending_of, is_printed, timeline
from deltatape.why.verdict import Case, as_sentence

_KNOWN = 20
"""Characters by which a result is known that quotes an error."""
_OF_RESULTS = frozenset({"C004", "C015", "C017"})
"""Codes about the result of a call, which they name."""


def explain(
    exchanges: Sequence[Exchange],
    number: int | None = None,
    settings: Settings = DEFAULTS,
    beside: TapeContext = ALONE,
    *,
    errors: Sequence[str] = (),
    clients: bool = False,
) -> Explanation:
    """Explain the exchange `number`; None: the one with the gravest finding.

    Args:
        exchanges: all of a tape, in the order of their requests: later ones show what the
            application made of a reply.
        number: of the exchange.
        settings: the thresholds.
        beside: what the tape tells beside its exchanges.
        errors: what the application threw, as the user says.
        clients: whether to tell what every known client makes of the response.

    Raises:
        UsageError: there is no exchange, or none of this number.
    """
    seen = survey(exchanges, settings, beside.logs)
    chosen = _chosen(seen, errors) if number is None else number
    by_number = {exchange.number: exchange for exchange in exchanges}
    seen.own(chosen)  # raises when there is no such exchange
    analysis = analyse(by_number[chosen], settings.app)
    case = case_of(seen, analysis)
    verdict = ruling(seen, case, analysis.exchange, exchanges, settings)
    if number is None and not errors:
        verdict = ruling_on_all(seen, exchanges, verdict) or verdict
    matter = matter_of(case, analysis, exchanges, errors, settings)
    suspects = _suspects(matter) if matter and is_open_to_suspicion(case, verdict) else ()
    suspects = worth_naming(verdict, matter, suspects) if matter else ()
    if any(each.drop for each in suspects):
        kept = [
            _delivered(analyse(by_number[one], settings.app)) for one in seen.kept_whole(chosen)
        ]
        alike = [each for each in kept if each.follow_up == _delivered(analysis).follow_up]
        suspects = tuple(each for each in suspects if not _is_refuted(each, alike))
    told = with_suspects(verdict, matter, suspects) if matter else verdict
    tried = _tried(matter.analysis if matter else analysis) if clients else ()
    outcome = _Outcome(told, suspects, tried, seen.elsewhere(chosen), seen.row(chosen))
    return _explanation(case, analysis, by_number, beside, outcome, settings.app)


class _Outcome(NamedTuple):
    """The parts of a conclusion."""

    verdict: Verdict
    suspects: tuple[Suspect, ...]
    tried: tuple[ClientTrial, ...]
    elsewhere: tuple[Finding, ...]
    attempts: Attempts | None


def _chosen(seen: ExchangeSurvey, errors: Sequence[str]) -> int:
    """Return the exchange with the gravest finding, or for an error of the app one with a call."""
    calling = [each.exchange for each in seen.digests if each.calls or each.text_calls]
    return calling[-1] if errors and calling and seen.is_clean else seen.worst()


def _explanation(
    case: Case,
    analysis: Analysis,
    by_number: Mapping[int, Exchange],
    beside: TapeContext,
    outcome: _Outcome,
    app: AppNames,
) -> Explanation:
    repetition, heard = _again(case, by_number, app)
    others = tuple(by_number.values())
    number = analysis.exchange.number
    later = (
        *_elsewhere_shown(case.about_reply, number, case.read_back, others),
        *_tried_again(outcome.attempts, analysis.exchange),
    )
    near = around(analysis.exchange, others, beside, silent="D003" in codes_of(case.about_reply))
    findings = (*case.about_reply, *case.about_request, *case.findings)
    return Explanation(
        tape=analysis.exchange.tape,
        exchange=analysis.exchange.number,
        timed=analysis.exchange.timed,
        start_ns=analysis.exchange.request.t_ns,
        came_from=came_from(analysis.exchange),
        promise=_promise(analysis),
        arrival=_arrival(analysis),
        repetition=repetition,
        timeline=_in_order((*_told(analysis, case, near), *heard, *later)),
        findings=tuple(sorted(findings, key=lambda finding: finding.severity.rank)),
        elsewhere=outcome.elsewhere,
        verdict=replace(outcome.verdict, summary=as_sentence(outcome.verdict.summary)),
        attempts=outcome.attempts,
        suspects=outcome.suspects,
        tried=outcome.tried,
        has_log=bool(beside.logs),
    )


def _suspects(matter: AppHandling) -> tuple[Suspect, ...]:
    return suspects_of(_delivered(matter.analysis), matter.symptom)


def _is_refuted(suspect: Suspect, kept: Sequence[DeliveredResponse]) -> bool:
    """Check whether the tape refutes a suspect: it would lose calls that the app repeats."""
    return not all(reads_rightly(each, suspect) for each in kept)


def _tried(analysis: Analysis) -> tuple[ClientTrial, ...]:
    """Run each preset on the response."""
    rows = matrix(_delivered(analysis))
    return tuple(ClientTrial(name=row.name, made=row.made, differs=row.differs) for row in rows)


def _delivered(analysis: Analysis) -> DeliveredResponse:
    return delivered(analysis.exchange, analysis.stream, analysis.reply, analysis.request)


def _again(
    case: Case, by_number: Mapping[int, Exchange], app: AppNames
) -> tuple[ReplyRepetition | None, tuple[TimelineEntry, ...]]:
    """Return the later repetition, as a comparison and as timeline entries."""
    if case.read_back is None:
        return None, ()
    later = analyse(by_number[case.read_back.later.exchange], app)
    repetition = _repetition(case.read_back, later)
    return repetition, tuple(_heard(case.read_back, repetition, later, case.about_reply))


def _in_order(entries: tuple[TimelineEntry, ...]) -> tuple[TimelineEntry, ...]:
    """Sort by time, unless an entry has none."""
    if any(entry.t_ns is None for entry in entries):
        return entries
    return tuple(sorted(entries, key=lambda entry: entry.t_ns or 0))


def _told(
    analysis: Analysis, case: Case, context: Iterable[TimelineEntry]
) -> Iterator[TimelineEntry]:
    """Yield the entries of the exchange, its surroundings and its own request."""
    number, start_ns = analysis.exchange.number, analysis.exchange.request.t_ns
    printed = [each for each in case.about_request if is_printed(each)]
    shown = codes_of(each for each in case.about_request if each not in printed)
    for entry in timeline(analysis, (*case.findings, *case.about_reply, *printed), context):
        own = entry.exchange == number and entry.source is EventSource.APP
        if shown and own and entry.t_ns in (None, start_ns):
            yield replace(entry, codes=(*entry.codes, *shown))
            shown = ()
        else:
            yield entry


def _promise(analysis: Analysis) -> RequestPromise:
    asked = analysis.request
    return RequestPromise(
        known=asked.known,
        target=f"{analysis.exchange.request.method} {analysis.exchange.request.path}",
        model=asked.model,
        stream=asked.stream,
        tools=tuple(tool.name for tool in asked.tools),
        tool_choice=asked.tool_choice,
        messages=len(asked.history),
    )


def _arrival(analysis: Analysis) -> Arrival:
    exchange, reply = analysis.exchange, analysis.reply
    ended = exchange.end.t_ns if exchange.end else None
    return Arrival(
        status=exchange.response.status if exchange.response else None,
        dialect=reply.dialect,
        text=len(reply.text),
        reasoning=len(reply.reasoning),
        refusal=reply.choices[0].refusal,
        error=reply.error,
        calls=reply.choices[0].every_call,
        finish_reason=reply.finish_reason_raw,
        ending=ending_of(exchange),
        events=len(analysis.stream.events),
        reads=len(exchange.reads),
        bytes=len(exchange.body),
        duration_ns=ended - exchange.request.t_ns if ended is not None else None,
    )


def _repetition(read_back: ReadBack, later: Analysis) -> ReplyRepetition:
    heard = {pair.delivered.index: pair for pair in read_back.pairs}
    calls = []
    for said in read_back.reply.calls:
        pair = heard.get(said.index)
        same = pair is not None and (
            same_name(said, pair.repetition)
            and same_id(said, pair.repetition)
            and first_difference(said, pair.repetition) is None
        )
        calls.append(
            RepeatedCallPair(
                index=said.index, repetition=pair.repetition if pair else None, differs=not same
            )
        )
    results = tuple(
        (message.call_id, message.text)
        for message in later.request.history
        if message.call_id and message.call_id in read_back.answered
    )
    return ReplyRepetition(
        exchange=read_back.later.exchange,
        calls=tuple(calls),
        extra=read_back.extra,
        results=results,
    )


def _heard(
    link: ReadBack, repetition: ReplyRepetition, later: Analysis, about_app: Sequence[Finding]
) -> Iterable[TimelineEntry]:
    """Yield the later request as entries of the app, each marked with its findings."""
    t_ns = later.exchange.request.t_ns if later.exchange.timed else None
    shown = [each for each in about_app if each.exchange == repetition.exchange]
    shown = [each for each in shown if not is_printed(each)]
    lines = [_repeats(each) for each in repetition.calls]
    lines += [f"repeats a call that was never delivered: {each.name}" for each in repetition.extra]
    lines += [f"sends the result of {call_id}: {text}" for call_id, text in repetition.results]
    lines = lines or ["repeats a reply without calls"]
    marks: dict[int, list[Finding]] = {}
    for finding in shown:
        place = _line_of(finding, link, repetition)
        if place is None:
            place = len(lines)
            lines.append(f"sends an error text: {finding.evidence}")
        marks.setdefault(place, []).append(finding)
    for place, line in enumerate(lines):
        yield _by_app(repetition.exchange, t_ns, line, marks.get(place, ()))


def _line_of(finding: Finding, link: ReadBack, repetition: ReplyRepetition) -> int | None:
    """Return the entry of `_heard` that a finding is about: a result, else a call.

    None for an error text that stands in none of the results.
    """
    before = len(repetition.calls) + len(repetition.extra)
    for place, (call_id, text) in enumerate(repetition.results, before):
        quotes = finding.code == "C009" and finding.evidence[:_KNOWN] in text
        named = f" {call_id})" in finding.message or f" {call_id}," in finding.message
        if quotes or (finding.code in _OF_RESULTS and named):
            return place
    if finding.code == "C009":
        return None
    other = finding.against
    delivered = link.reply.calls if other and other.exchange == link.reply.exchange else ()
    about = (
        place
        for place, said in enumerate(delivered)
        if other and (said.line, said.span) == (other.line, other.span)
    )
    return next(about, 0)


def _elsewhere_shown(
    findings: Iterable[Finding], exchange: int, link: ReadBack | None, exchanges: Iterable[Exchange]
) -> Iterator[TimelineEntry]:
    """Yield other requests that show something about the reply, with their findings."""
    told = {exchange, link.later.exchange if link else exchange}
    by_request: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.exchange not in told and not is_printed(finding):
            by_request.setdefault(finding.exchange, []).append(finding)
    for each in exchanges:
        if each.number in by_request:
            t_ns = each.request.t_ns if each.timed else None
            yield _by_app(
                each.number, t_ns, "a later request of this conversation", by_request[each.number]
            )


def _tried_again(row: Attempts | None, exchange: Exchange) -> Iterator[TimelineEntry]:
    """Yield the other attempts, and how the app ended if none was answered."""
    if row is None:
        return
    for place, each in enumerate(row.tries):
        if each.exchange != exchange.number:
            first = f"first attempt: {each.outcome}"
            what = again(each) if place else first
            yield _by_app(each.exchange, each.t_ns, what)
    watch, last = exchange.watch, row.tries[-1].exchange
    if watch and row.exit_code is not None and last != exchange.number:
        yield replace(_by_app(last, watch.until_ns, stop_of(watch)), source=EventSource.RECORDER)


def _by_app(
    exchange: int, t_ns: int | None, what: str, findings: Iterable[Finding] = ()
) -> TimelineEntry:
    return TimelineEntry(
        t_ns=t_ns,
        exchange=exchange,
        event=None,
        what=what,
        source=EventSource.APP,
        codes=codes_of(findings),
    )


def _repeats(each: RepeatedCallPair) -> str:
    if each.repetition is None:
        return f"does not repeat call {each.index}"
    how = "differently" if each.differs else "as delivered"
    arguments = each.repetition.arguments or "(no arguments)"
    return f"repeats call {each.index} {how}: {each.repetition.name or 'no name'} {arguments}"


_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")
"""Header fields in which providers name a request, the most telling first."""
_SECONDS = 19
"""Characters of an RFC 3339 time up to its seconds."""


def came_from(exchange: Exchange) -> str:
    """Describe where an answer came from: host, request id, time.

    `https://api.openai.com, request id req_1, tape begun 2026-11-22T08:16:12Z`
    """
    head = exchange.response
    headers = head.headers if head else ()
    named = (header(headers, name) for name in _IDS)
    identifier = next((value.decode("latin-1") for value in named if value), "")
    parts = (
        exchange.request.upstream,
        identifier and f"request id {identifier}",
        exchange.timed and f"tape begun {exchange.recorded_at[:_SECONDS]}Z",
    )
    return ", ".join(part for part in parts if part)
