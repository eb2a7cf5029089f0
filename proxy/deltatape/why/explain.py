"""Explains one exchange of a tape: the chosen one, or the worst."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltatape.conversation.attempts import again
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.attempts import Attempts
from deltatape.model.digest import ReadBack
from deltatape.model.exchange import Exchange, header
from deltatape.model.explanation import (
    Arrival,
    EventSource,
    Explanation,
    RepeatedCallPair,
    ReplyRepetition,
    RequestPromise,
    TimelineEntry,
)
from deltatape.model.finding import Finding
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.suspect import ClientTrial, Suspect
from deltatape.model.tape_summary import ALONE, TapeContext
from deltatape.rules.progress import watched_until
from deltatape.rules.repeated import first_difference, same_id, same_name
from deltatape.suspects import DeliveredResponse, delivered, matrix, reads_rightly, suspects_of
from deltatape.why.accusation import (
    app_handling,
    is_open_to_suspicion,
    with_suspects,
    worth_naming,
)
from deltatape.why.survey import survey
from deltatape.why.tape_context import around, stop_of
from deltatape.why.tape_verdict import case_of, codes_of, ruling, ruling_on_all
from deltatape.why.timeline import (
    call_places,
    ending_of,
    is_printed,
    time_axis,
    timeline,
    timeline_entry,
)
from deltatape.why.verdict import Case, as_sentence

_KNOWN = 20
"""How many characters of an error identify a result that quotes it."""
_OF_RESULTS = frozenset({"C004", "C015", "C017"})
"""Codes about the result of a call, which they name."""


def explain(
    exchanges: Sequence[Exchange],
    number: int | None = None,
    settings: Settings = DEFAULTS,
    context: TapeContext = ALONE,
    *,
    errors: Sequence[str] = (),
    clients: bool = False,
) -> Explanation:
    """Explain the exchange `number`; None: the one with the gravest finding.

    Args:
        exchanges: all of a tape, in the order of their requests: later ones show what the
            application made of a reply.
        number: the number of the exchange.
        settings: the thresholds.
        context: what is on the tape besides its exchanges.
        errors: the errors of the application, as the user reports them.
        clients: whether to run every known client on the response.

    Raises:
        UsageError: there is no exchange, or none of this number.
    """
    surveyed = survey(exchanges, settings, context.logs)
    chosen = number
    if chosen is None:
        # An error that the app reports is about a call.
        calling = [each.exchange for each in surveyed.digests if each.calls or each.text_calls]
        reported = bool(errors and calling) and surveyed.is_clean
        chosen = calling[-1] if reported else surveyed.worst()
    by_number = {exchange.number: exchange for exchange in exchanges}
    surveyed.own(chosen)  # raises when there is no such exchange
    exchange = by_number[chosen]
    analysis = analyse(exchange, settings.app)
    case = case_of(surveyed, analysis)
    verdict = ruling(surveyed, case, exchange, exchanges, settings)
    if number is None and not errors:
        verdict = ruling_on_all(surveyed, exchanges, verdict) or verdict
    replied = analysis.turn_at(case.read_back.reply.line) if case.read_back else analysis
    handling = app_handling(case, replied, exchanges, errors, settings)
    suspects: tuple[Suspect, ...] = ()
    if handling and is_open_to_suspicion(case, verdict, handling):
        found = suspects_of(_delivered(handling.analysis), handling.symptom)
        suspects = worth_naming(verdict, handling, found)
    if any(each.drop for each in suspects):
        # A suspect that would lose calls which the app repeats elsewhere is refuted.
        repeated = [
            _delivered(analyse(by_number[each], settings.app))
            for each in surveyed.repeated_unchanged(chosen)
        ]
        follow_up = _delivered(analysis).follow_up
        similar = [stream for stream in repeated if stream.follow_up == follow_up]
        suspects = tuple(
            each for each in suspects if all(reads_rightly(stream, each) for stream in similar)
        )
    if handling:
        verdict = with_suspects(verdict, handling, suspects)
    tried = matrix(_delivered(handling.analysis if handling else analysis)) if clients else ()
    attempts = surveyed.row(chosen)
    repetition = later = None
    if case.read_back is not None:
        request = case.read_back.later
        later = analyse(by_number[request.exchange], settings.app).turn_at(request.line)
        repetition = _repetition(case.read_back, replied, later)
    entries = [
        *_own_entries(analysis, case, exchanges, context),
        *_repetition_entries(case, repetition, later, exchange),
        *_server_entries(case),
        *_later_entries(case, exchange, exchanges),
        *_attempt_entries(attempts, exchange),
    ]
    if all(entry.t_ns is not None for entry in entries):
        entries.sort(key=lambda entry: entry.t_ns or 0)
    findings = (*case.about_reply, *case.about_request, *case.findings)
    codes = {each.code for each in case.findings}
    return Explanation(
        tape=exchange.tape,
        exchange=chosen,
        timed=exchange.timed,
        has_times=exchange.has_times,
        start_ns=exchange.request.t_ns,
        came_from=came_from(exchange),
        promise=_promise(analysis),
        arrival=_arrival(analysis),
        repetition=repetition,
        timeline=tuple(entries),
        axis=time_axis(analysis, codes, settings, unanswered=_is_unanswered(case)),
        findings=tuple(sorted(findings, key=lambda finding: finding.severity.rank)),
        elsewhere=surveyed.elsewhere(chosen),
        verdict=replace(verdict, summary=as_sentence(verdict.summary)),
        attempts=attempts,
        suspects=suspects,
        suspected=_place(handling.analysis) if handling else None,
        tried=tuple(
            ClientTrial(name=row.name, made=row.made, differs=row.differs) for row in tried
        ),
        has_log=bool(context.logs),
    )


def _place(analysis: Analysis) -> tuple[int, int | None]:
    """Return the exchange of a response, and the line of its request."""
    return analysis.exchange.number, analysis.exchange.request.line


def _delivered(analysis: Analysis) -> DeliveredResponse:
    return delivered(analysis.exchange, analysis.stream, analysis.reply, analysis.request)


def _own_entries(
    analysis: Analysis, case: Case, exchanges: Sequence[Exchange], context: TapeContext
) -> Iterator[TimelineEntry]:
    """Yield the entries of the exchange, its surroundings and its own request."""
    exchange = analysis.exchange
    silent = _is_unanswered(case)
    surroundings = around(exchange, exchanges, context, silent=silent)
    printed = [each for each in case.about_request if is_printed(each)]
    marks: dict[int | None, list[Finding]] = {}
    for each in case.about_request:
        if each not in printed:
            # Requests over a WebSocket have times of their own.
            came_ns = each.t_ns if analysis.turns else exchange.request.t_ns
            marks.setdefault(came_ns if exchange.has_times else None, []).append(each)
    for entry in timeline(analysis, (*case.findings, *case.about_reply, *printed), surroundings):
        own = entry.exchange == exchange.number and entry.source is EventSource.APP
        codes = codes_of(marks.pop(entry.t_ns, ())) if own else ()
        yield replace(entry, codes=(*entry.codes, *codes)) if codes else entry


def _is_unanswered(case: Case) -> bool:
    return any(finding.code == "D003" for finding in case.about_reply)


def _promise(analysis: Analysis) -> RequestPromise:
    request = analysis.request
    return RequestPromise(
        known=request.known,
        target=f"{analysis.exchange.request.method} {analysis.exchange.request.path}",
        model=request.model,
        stream=request.stream,
        tools=tuple(tool.name for tool in request.tools),
        tool_choice=request.tool_choice,
        messages=len(request.history),
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
        places=tuple(call_places(analysis)),
        finish_reason=reply.finish_reason_raw,
        ending=ending_of(exchange),
        events=len(analysis.stream.events),
        reads=len(exchange.reads) + len(exchange.frames),
        bytes=len(analysis.stream.body) if exchange.upgraded else exchange.body_size,
        duration_ns=ended - exchange.request.t_ns if ended is not None else None,
    )


def _repetition(read_back: ReadBack, replied: Analysis, later: Analysis) -> ReplyRepetition:
    pairs = {pair.delivered.index: pair for pair in read_back.pairs}
    calls = []
    for call in read_back.reply.calls:
        pair = pairs.get(call.index)
        same = pair is not None and (
            same_name(call, pair.repetition)
            and same_id(call, pair.repetition)
            and first_difference(call, pair.repetition) is None
        )
        calls.append(
            RepeatedCallPair(
                index=call.index,
                delivered=RepeatedCall(id=call.id, name=call.name, arguments=call.arguments),
                repetition=pair.repetition if pair else None,
                differs=not same,
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
        places=tuple(
            place
            for place in call_places(replied)
            if place.list == "calls" and place.choice == replied.reply.choices[0].index
        ),
    )


def _request_ns(later: Exchange, exchange: Exchange) -> int | None:
    """Return when a later request came; None if unknown.

    Imported exchanges may each count from their own beginning: then the later one seems to be
    earlier.
    """
    at_ns = later.request.t_ns
    return at_ns if later.timed or (at_ns and at_ns >= watched_until(exchange)) else None


def _repetition_entries(
    case: Case, repetition: ReplyRepetition | None, later: Analysis | None, exchange: Exchange
) -> Iterator[TimelineEntry]:
    """Yield the later request as entries of the app, each marked with its findings."""
    if case.read_back is None or repetition is None or later is None:
        return
    lines = []
    for pair in repetition.calls:
        line = f"does not repeat call {pair.index}"
        if pair.repetition is not None:
            how = "differently" if pair.differs else "as delivered"
            name, arguments = pair.repetition.name, pair.repetition.arguments
            line = f"repeats call {pair.index} {how}: {name or 'no name'}"
            line += f" {arguments or '(no arguments)'}"
        lines.append(line)
    lines += [f"repeats a call that was never delivered: {each.name}" for each in repetition.extra]
    lines += [f"sends the result of {call_id}: {text}" for call_id, text in repetition.results]
    lines = lines or ["repeats the reply, which has no calls"]
    marks: dict[int, list[Finding]] = {}
    shown = [each for each in case.about_reply if each.exchange == repetition.exchange]
    for finding in [each for each in shown if not is_printed(each)]:
        place = _line_of(finding, case.read_back, repetition)
        if place is None:
            place = len(lines)
            lines.append(f"sends an error text: {finding.evidence}")
        marks.setdefault(place, []).append(finding)
    t_ns = _request_ns(later.exchange, exchange)
    for place, line in enumerate(lines):
        codes = codes_of(marks.get(place, ()))
        yield timeline_entry(repetition.exchange, t_ns, EventSource.APP, line, codes=codes)


def _server_entries(case: Case) -> Iterator[TimelineEntry]:
    """Yield what tool servers were asked for the reply's calls, and what they answered."""
    for call in case.read_back.with_server if case.read_back else ():
        index = call.delivered.index
        for served in call.served:
            asked = f"asks the tool server for call {index}: {served.name} {served.arguments}"
            yield timeline_entry(served.exchange, served.asked_ns, EventSource.APP, asked)
            if served.texts is not None:
                how = "fails" if served.failed else "answers"
                answer = f"the tool server {how}: {' '.join(served.texts)}"
                yield timeline_entry(served.exchange, served.answered_ns, EventSource.WIRE, answer)


def _line_of(finding: Finding, read_back: ReadBack, repetition: ReplyRepetition) -> int | None:
    """Return the line of `_repetition_entries` that a finding is about: a result, else a call.

    None for an error text that is in none of the results.
    """
    before = len(repetition.calls) + len(repetition.extra)
    for place, (call_id, text) in enumerate(repetition.results, before):
        quotes = finding.code == "C009" and finding.evidence[:_KNOWN] in text
        named = f" {call_id})" in finding.message or f" {call_id}," in finding.message
        if quotes or (finding.code in _OF_RESULTS and named):
            return place
    if finding.code == "C009":
        return None
    other, reply = finding.against, read_back.reply
    calls = reply.calls if other and other.exchange == reply.exchange else ()
    about = (
        place
        for place, call in enumerate(calls)
        if other and (call.line, call.span) == (other.line, other.span)
    )
    return next(about, 0)


def _later_entries(
    case: Case, exchange: Exchange, exchanges: Sequence[Exchange]
) -> Iterator[TimelineEntry]:
    """Yield other requests that show something about the reply, with their findings."""
    shown = {exchange.number, *([case.read_back.later.exchange] if case.read_back else [])}
    by_request: dict[int, list[Finding]] = {}
    for finding in case.about_reply:
        if finding.exchange not in shown and not is_printed(finding):
            by_request.setdefault(finding.exchange, []).append(finding)
    for each in exchanges:
        if each.number in by_request:
            yield timeline_entry(
                each.number,
                _request_ns(each, exchange),
                EventSource.APP,
                "a later request of this conversation",
                codes=codes_of(by_request[each.number]),
            )


def _attempt_entries(row: Attempts | None, exchange: Exchange) -> Iterator[TimelineEntry]:
    """Yield the other attempts, and how the app ended if none was answered."""
    if row is None:
        return
    for place, each in enumerate(row.tries):
        if each.exchange != exchange.number:
            what = again(each) if place else f"first attempt: {each.outcome}"
            yield timeline_entry(each.exchange, each.t_ns, EventSource.APP, what)
    watch, last = exchange.watch, row.tries[-1].exchange
    if watch and row.exit_code is not None and last != exchange.number:
        yield timeline_entry(last, watch.until_ns, EventSource.RECORDER, stop_of(watch))


_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")
"""Header fields in which providers name a request, the most telling first."""
_SECONDS = 19
"""The length of an RFC 3339 time up to its seconds."""


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
