"""An explanation as text, for somebody who has an incident and no time.

A terminal shows the end of what is printed, so the conclusion comes last: suspect, verdict, fix and
the next command, after the timeline, the three columns of evidence (requested, arrived, repeated)
and the findings. Nothing is printed twice, and no line exceeds the width. `short_lines` is the
conclusion alone.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from deltatape.conversation.attempts import sentence
from deltatape.model.attempts import Attempts
from deltatape.model.explanation import (
    Arrival,
    EventSource,
    Explanation,
    RepeatedCallPair,
    ReplyRepetition,
    RequestPromise,
    TimelineEntry,
    VerdictKind,
)
from deltatape.model.finding import Blame, Finding
from deltatape.model.reply import CallKind
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientReading, ClientTrial, Suspect
from deltatape.printable import count, escape, excerpt
from deltatape.render.findings import (
    one_finding,
    possible,
    seen_from,
    sides,
    summary,
)
from deltatape.render.json_document import document, finding_object
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    LEAST,
    WIDTH,
    Cell,
    Line,
    StyledText,
    cropped,
    line,
    measured,
    table,
    wrapped,
)
from deltatape.render.numbers import NO_TIMES, duration, seconds, since_request, size
from deltatape.render.show import axis_object, call_cells, call_lists, shown_fragments
from deltatape.secret_text.search import without_secrets
from deltatape.why.alignment import (
    DeliveredFragment,
    DeliveredFragments,
    common_start,
    edits,
    segments,
)
from deltatape.why.reproduction import mistakes
from deltatape.why.verdict import LOSS

_INDENT = 10
_RED = "bold red"
_STYLES = {VerdictKind.HEALTHY: GOOD}
_AXIS = {
    EventSource.WIRE: "wire  |",
    EventSource.APP: "app   o",
    EventSource.RECORDER: "      :",
    EventSource.LOG: "log   >",
}
_RECORD = "deltatape record -- CMD"
_SHOWN = 60
_OTHERS = 4
"""Other exchanges that are named, each with its worst finding."""
_ALIKE = 2
"""Findings of one code that are shown in full."""
_HALF = 40
"""Lines of the timeline that are shown at its beginning and at its end."""


def explanation_lines(explanation: Explanation, width: int = WIDTH) -> list[Line]:
    """Format the whole explanation in `width` columns; print it with `plain` or `styled`."""
    lines = [
        *_head(explanation, width),
        *_labelled("TIMELINE", timeline_lines(explanation, width)),
        *_requested(explanation, width),
        *_arrived(explanation, width),
        *_repeated(explanation, width),
        *_findings(explanation, width),
        line(),
        *_suspects(explanation, width),
        *_verdict(explanation, width),
    ]
    return [cropped(each, width) for each in lines]


def short_lines(explanation: Explanation, width: int) -> list[Line]:
    """Format the conclusion in five paragraphs: verdict, what, where, fix, next command.

    Args:
        explanation: what to conclude.
        width: columns of the page; each paragraph is one line where it has room.
    """
    whole = f"deltatape why {_named(explanation)}"  # all of it: the short form has left most out
    lines = [_label("VERDICT", *_judged(explanation))]
    for name, text in (
        ("WHAT", _summary_line(explanation)),
        ("WHERE", _place(explanation)),
        ("FIX", explanation.verdict.fix),
        ("NEXT", whole if explanation.timed else next_step(explanation)[1]),
    ):
        lines += _labelled(name, wrapped(text, _INDENT, width=width))
    return lines


def _summary_line(explanation: Explanation) -> str:
    verdict, parts = explanation.verdict, _happened(explanation)
    if explanation.suspects and explanation.suspects[0].exact:
        parts.append(f"suspect: {explanation.suspects[0].name}")
    doubts = verdict.possible[:1] if possible(verdict) else ()
    parts += [f"possible, not provable: {each.code} {each.name}" for each in doubts]
    text = "; ".join(parts)
    return escape(f"{text[:1].upper()}{text[1:]}")


def _happened(explanation: Explanation) -> list[str]:
    """Return what went wrong in few clauses: what was lost, and what the verdict rests on."""
    verdict, decided = explanation.verdict, _decided(explanation)
    if decided is None or verdict.kind is VerdictKind.NOBODY:
        return [verdict.summary.rstrip(".")]
    lost = [each.message for each in explanation.findings if each.code == LOSS]
    parts = [*lost, *([decided.message] if decided.message not in lost else [])]
    return [*parts, *([sentence(explanation.attempts)] if explanation.attempts else [])]


def _decided(explanation: Explanation) -> Finding | None:
    """Return the finding that the verdict rests on."""
    code = explanation.verdict.code
    return next((each for each in explanation.findings if each.code == code), None)


def _place(explanation: Explanation) -> str:
    """Describe the place: exchange, event and tape line."""
    decided = _decided(explanation)
    if decided is None:
        return escape(f"{explanation.tape}#{explanation.exchange}")
    parts = [f"{decided.tape}#{decided.exchange}"]
    parts += [f"event {decided.event}"] if decided.event is not None else []
    parts += [f"tape line {decided.line}"] if decided.line is not None else []
    other = decided.against
    if other is not None and other.exchange != decided.exchange:
        line_of = f", tape line {other.line}" if other.line is not None else ""
        parts.append(f"delivered in #{other.exchange}{line_of}")
    return escape(", ".join(parts))


def next_step(explanation: Explanation) -> tuple[str, str]:
    """Return what to do next, and its command."""
    verdict, name = explanation.verdict, _named(explanation)
    if not explanation.timed:
        code = verdict.code
        explain = ("read what the code means", f"deltatape why {code}")
        return explain if code else ("tape the app itself", _RECORD)
    if verdict.kind is VerdictKind.UNPROVABLE and not explanation.has_log:
        return "tape it again, with what the app prints", _RECORD
    if verdict.blame is Blame.APP and mistakes(explanation):
        return "write a failing test", f"deltatape why {name} --fix DIR"
    if verdict.kind in (VerdictKind.HEALTHY, VerdictKind.UNPROVABLE):
        return "see what arrived, call by call", f"deltatape show {name} --calls"
    return "see the wire, event by event", f"deltatape show {name} --events"


def _named(explanation: Explanation) -> str:
    return f"{shlex.quote(escape(explanation.tape))}#{explanation.exchange}"


def _head(explanation: Explanation, width: int) -> list[Line]:
    arrival = explanation.arrival
    model = f"  {excerpt(explanation.promise.model, _SHOWN)}" if explanation.promise.model else ""
    status = "no response" if arrival.status is None else f"status {arrival.status}"
    took = "" if arrival.duration_ns is None else f", {duration(arrival.duration_ns)}"
    name = f"{_end_of(explanation.tape)}#{explanation.exchange}"
    target = excerpt(explanation.promise.target, _SHOWN)
    what = f"{count(arrival.events, 'event')} in {count(arrival.reads, 'read')}"
    first = [line(StyledText(name, BOLD), f"  {target}  {arrival.dialect}{model}")]
    if measured(first[0]) > width:
        first = [line(StyledText(name, BOLD)), line(f"{target}  {arrival.dialect}{model}")]
    return [
        *first,
        line(StyledText(f"{status}, {what}, {size(arrival.bytes)}{took}", DIM)),
        *(
            [line(StyledText(f"from {excerpt(explanation.came_from)}", DIM))]
            if explanation.came_from
            else []
        ),
        line(),
    ]


def _end_of(name: str) -> str:
    """Return a tape's name; of a long one the end, which distinguishes files."""
    shown = escape(name)
    return shown if len(shown) <= _SHOWN else f"...{shown[3 - _SHOWN :]}"


def _judged(explanation: Explanation) -> tuple[Cell, ...]:
    verdict = explanation.verdict
    code = f"  ({verdict.code})" if verdict.code else ""
    style = _STYLES.get(verdict.kind, _RED if verdict.blame is Blame.APP else BOLD)
    return (StyledText(f"{verdict.shown}{code}", style),)


def _verdict(explanation: Explanation, width: int) -> list[Line]:
    verdict = explanation.verdict
    lines = [
        _label("VERDICT", *_judged(explanation)),
        *wrapped(verdict.summary, _INDENT, width=width),
    ]
    what, command = next_step(explanation)
    for each in possible(verdict):
        lines += wrapped(each, _INDENT, DIM, width)
    return [
        *lines,
        line(),
        *_labelled("FIX", wrapped(verdict.fix, _INDENT, width=width)),
        *_labelled("NEXT", wrapped(f"{what}:", _INDENT, DIM, width)),
        *wrapped(command, _INDENT, width=width),
    ]


def _suspects(explanation: Explanation, width: int) -> list[Line]:
    """Format the suspects, and how known clients read the response."""
    lines = []
    if explanation.suspects:
        summary = explanation.verdict.summary
        suspects = suspect_lines(explanation.suspects, _INDENT, width, above=summary)
        lines += [*_labelled("SUSPECT", suspects), line()]
    if explanation.tried:
        lines += [*_labelled("CLIENTS", tried_lines(explanation.tried, _INDENT, width)), line()]
    return lines


def _label(name: str, *pieces: Cell) -> Line:
    return line(StyledText(name.ljust(_INDENT), BOLD), *pieces)


def _labelled(name: str, lines: list[Line]) -> list[Line]:
    """Indent `lines`, with `name` before the first."""
    return [_label(name, *lines[0][1:]), *lines[1:]]


def timeline_lines(explanation: Explanation, width: int = WIDTH) -> list[Line]:
    """Format the timeline; a blank line ends it."""
    unit = since_request(explanation.start_ns) if explanation.has_times else NO_TIMES
    lines = wrapped(unit, _INDENT, DIM, width)
    entries = [_entry(entry, explanation, width) for entry in explanation.timeline]
    left = len(entries) - 2 * _HALF
    if left > 0:
        more = line(" " * _INDENT, StyledText(f"  ... {count(left, 'more line')} ...", DIM))
        entries = [*entries[:_HALF], more, *entries[-_HALF:]]
    return [*lines, *entries, line()]


def _entry(entry: TimelineEntry, explanation: Explanation, width: int) -> Line:
    time = "" if entry.t_ns is None else seconds(entry.t_ns - explanation.start_ns)
    number = f"#{entry.exchange} " if entry.exchange != explanation.exchange else ""
    marks = f"  <- {' '.join(entry.codes)}" if entry.codes else ""
    front = f"{time:>{_INDENT}}  {_AXIS[entry.source]} "
    room = width - len(front) - len(number) - len(marks)
    style = DIM if entry.source is EventSource.RECORDER else ""
    what = StyledText(f"{number}{excerpt(entry.what, room)}", style)
    return line(StyledText(front, DIM), what, StyledText(marks, _RED))


def _requested(explanation: Explanation, width: int) -> list[Line]:
    promise = explanation.promise
    if not promise.known:
        no = "the request is not on the tape, or cannot be read"
        return _labelled("REQUESTED", wrapped(no, _INDENT, DIM, width))
    what = [
        f"{'a stream' if promise.stream else 'an answer'} to {count(promise.messages, 'message')}"
    ]
    if promise.tools:
        what.append(f"tools: {', '.join(promise.tools)}")
    if promise.tool_choice:
        what.append(f"tool choice: {promise.tool_choice}")
    return _labelled("REQUESTED", wrapped("; ".join(what), _INDENT, width=width))


def _arrived(explanation: Explanation, width: int) -> list[Line]:
    arrival = explanation.arrival
    what = []
    if arrival.error is not None:
        what.append(f"error: {excerpt(arrival.error)}")
    if arrival.refusal:
        what.append(f"refusal: {excerpt(arrival.refusal)}")
    what += [
        f"{number} characters of {kind}"
        for number, kind in ((arrival.text, "text"), (arrival.reasoning, "reasoning"))
        if number
    ]
    if not what and not arrival.calls:
        what.append("no text and no calls")
    what.append(f"finish reason: {excerpt(arrival.finish_reason or 'none', _SHOWN)}")
    what.append(arrival.ending)
    lines = _labelled("ARRIVED", wrapped("; ".join(what), _INDENT, width=width))
    rows = [[StyledText("call", DIM), *call_cells(call)] for call in arrival.calls]
    lines += table(rows, _INDENT, width=width, give=dict.fromkeys((2, 3, 5), LEAST))
    for call in arrival.calls:
        if call.kind is CallKind.TEXT:
            written = f"text {call.index} as written: {excerpt(call.arguments_raw)}"
            lines += wrapped(written, _INDENT, DIM, width)
    return lines


def _repeated(explanation: Explanation, width: int) -> list[Line]:
    repetition = explanation.repetition
    if repetition is None:
        no = "no later request on the tape repeats this reply"
        return [*_labelled("REPEATED", wrapped(no, _INDENT, DIM, width)), line()]
    text = (
        " (text, no calls)"
        if explanation.arrival.text and not (repetition.calls or repetition.extra)
        else ""
    )
    lines = [_label("REPEATED", f"by request #{repetition.exchange}{text}")]
    rows = [
        _repeated_cells(f"call {each.index}", each.repetition, each) for each in repetition.calls
    ]
    rows += [_repeated_cells("not delivered", call, None) for call in repetition.extra]
    lines += table(rows, _INDENT, width=width, give=dict.fromkeys((1, 2, 4), LEAST))
    for call_id, text in repetition.results:
        lines += wrapped(f"result of {excerpt(call_id, 40)}: {excerpt(text)}", _INDENT, width=width)
    return [*lines, line()]


def _repeated_cells(
    name: str, repeated: RepeatedCall | None, each: RepeatedCallPair | None
) -> list[Cell]:
    if repeated is None:
        return [name, "-", "-", StyledText("missing", _RED), ""]
    same = each is not None and not each.differs
    return [
        name,
        excerpt(repeated.id or "-", 40),
        excerpt(repeated.name or "-", 40),
        StyledText("as delivered", GOOD) if same else StyledText("DIFFERS", _RED),
        excerpt(repeated.arguments) or "(no bytes)",
    ]


def _findings(explanation: Explanation, width: int) -> list[Line]:
    if not explanation.findings:
        return [_label("FINDINGS", StyledText("none", GOOD)), *_elsewhere(explanation, width)]
    lines = [
        _label("FINDINGS", summary(explanation.findings)),
        *_elsewhere(explanation, width),
        line(),
    ]
    verdict = explanation.verdict
    known = [verdict.summary, *possible(verdict)]
    told: Counter[str] = Counter()
    for finding in explanation.findings:
        told[finding.code] += 1
        if told[finding.code] <= _ALIKE:
            fixed = finding.hint in verdict.fix or _is_of_suspect(finding, explanation)
            lines += one_finding(finding, seen_from(explanation), width, fixed=fixed, known=known)
            known += sides(finding)
    more = [f"{number - _ALIKE} more {code}" for code, number in told.items() if number > _ALIKE]
    if more:
        lines += [*wrapped(f"and {', '.join(more)}: deltatape check", 0, DIM, width), line()]
    codes = ", ".join(dict.fromkeys(finding.code for finding in explanation.findings))
    return [*lines, *wrapped(f"more: deltatape why CODE   ({codes})", 0, DIM, width)]


def _is_of_suspect(finding: Finding, explanation: Explanation) -> bool:
    """Check whether the suspect's fix, shown at the top, fixes this finding."""
    return (
        bool(explanation.suspects)
        and finding.code[0] in "AC"
        and explanation.verdict.blame is Blame.APP
    )


def _elsewhere(explanation: Explanation, width: int) -> list[Line]:
    """Format the worst finding of each other exchange on the tape."""
    worst: dict[int, str] = {}
    for finding in sorted(explanation.elsewhere, key=lambda each: each.severity.rank):
        worst.setdefault(finding.exchange, f"{finding.code} {finding.name}")
    by_code: dict[str, list[int]] = {}
    for number, what in sorted(worst.items()):
        by_code.setdefault(what, []).append(number)
    if not by_code:
        return []
    told = "; ".join(f"{what} on {_numbers(found)}" for what, found in by_code.items())
    return wrapped(f"elsewhere on this tape: {told}", _INDENT, DIM, width)


def _numbers(found: list[int]) -> str:
    rest = len(found) - _OTHERS
    more = f" and {count(rest, 'more exchange')}" if rest > 0 else ""
    return f"{', '.join(f'#{number}' for number in found[:_OTHERS])}{more}"


# Suspects, and what known clients make of a stream.

_WRONG = StyledText("WRONG", "bold red")
_NOT_TRIED = StyledText("not tried", DIM)
_OTHER_SUSPECTS = 5
"""Suspects that are named beside the first."""
_CALLS = 4


def suspect_lines(
    suspects: Sequence[Suspect], indent: int, width: int = WIDTH, *, above: str = ""
) -> list[Line]:
    """Format the first suspect in full and name the others.

    Args:
        suspects: best first.
        indent: the indent of every line.
        width: the width of the page.
        above: text that is shown above these lines and not repeated.
    """
    if not suspects:
        return []
    first, *others = suspects
    lines = [
        line(" " * indent, StyledText(first.name, BOLD), StyledText(f"  {suspect_fit(first)}", DIM))
    ]
    if measured(lines[0]) > width:
        lines = [line(" " * indent, StyledText(first.name, BOLD))]
        lines += wrapped(suspect_fit(first), indent, DIM, width)
    if first.says not in above:
        lines += wrapped(f"it {first.says}", indent, width=width)
    if others:
        lines += wrapped(f"or {_other_suspects(others)}", indent, DIM, width)
    return lines


def suspect_fit(suspect: Suspect) -> str:
    """Describe how well a suspect explains the app, and by which mistakes."""
    mistakes = ", ".join(f"{each.axis}={each.value}" for each in suspect.mistakes)
    fit = "explains what the app did" if suspect.exact else "comes close to it"
    fit = "loses the same calls" if suspect.drop else fit
    return f"{fit} ({mistakes})"


def _other_suspects(suspects: Sequence[Suspect]) -> str:
    named = [each.name for each in suspects]
    rest = len(named) - _OTHER_SUSPECTS
    more = f", and {rest} more" if rest > 0 else ""
    fit = "would do the same" if all(each.exact for each in suspects) else "come near"
    return f"{', '.join(named[:_OTHER_SUSPECTS])}{more}, which {fit}: deltatape why NAME"


def tried_lines(tried: Iterable[ClientTrial], indent: int, width: int = WIDTH) -> list[Line]:
    """Format a row per client that reads the response wrongly or was not tried; name the others."""
    every = tuple(tried)
    rows: list[list[Cell]] = [
        [each.name, _NOT_TRIED if each.problem else _WRONG, client_outcome(each)]
        for each in every
        if each.problem or each.differs
    ]
    right = [each.name for each in every if not each.problem and not each.differs]
    lines = table(rows, indent, width=width, give={2: LEAST, 0: LEAST})
    if right:
        lines += wrapped(f"right: {', '.join(right)}", indent, GOOD, width)
    return lines


def client_outcome(tried: ClientTrial) -> str:
    """Describe how a client reads a response; not escaped."""
    if tried.problem:
        return tried.problem
    return "; ".join(_outcomes(tried.made))


def _outcomes(made: ClientReading) -> Iterator[str]:
    for problem in made.errors[:1]:
        yield f"throws {excerpt(problem)}"
    for call in made.calls[:_CALLS]:
        yield _call_text(call)
    if len(made.calls) > _CALLS:
        yield f"and {count(len(made.calls) - _CALLS, 'more call')}"
    if not made.calls and not made.errors:
        yield "no call"


def _call_text(call: RepeatedCall) -> str:
    arguments = excerpt(call.arguments, _SHOWN) or "(no bytes)"
    identity = f" ({excerpt(call.id, _SHOWN)})" if call.id else ""
    return f"{excerpt(call.name or 'no name', _SHOWN)}{identity} {arguments}"


# `why --format json`.
#
# The keys of the JSON are a contract: they are added to, never renamed. docs/why.schema.json says
# what each means.


def explanation_json(explanation: Explanation) -> str:
    """`why --format json`."""
    return document(**explanation_object(explanation))


def explanation_object(explanation: Explanation) -> dict[str, object]:
    """Return an explanation with the keys of the contract; `document` hides its secrets."""
    verdict = explanation.verdict
    what, command = next_step(explanation)
    origins = _Origins(explanation)
    return {
        "tape": explanation.tape,
        "exchange": explanation.exchange,
        "verdict": {
            "blame": verdict.blame,
            "confidence": verdict.confidence,
            "summary": verdict.summary,
            "fix": verdict.fix,
            "kind": verdict.kind,
            "shown": verdict.shown,
            "means": verdict.term.means,
            "code": verdict.code,
            "possible": [finding_object(finding) for finding in verdict.possible],
        },
        "conclusion": {
            "what": _happened(explanation),
            "next": {"what": what, "command": command},
        },
        "suspects": [_json_suspect(each, origins) for each in explanation.suspects],
        "clients": [_json_trial(each, origins) for each in explanation.tried],
        "axis": axis_object(explanation.axis),
        "timeline": [_json_entry(entry) for entry in explanation.timeline],
        "requested": _json_promise(explanation.promise),
        "arrived": _json_arrival(explanation.arrival, explanation.exchange),
        "findings": [finding_object(finding) for finding in explanation.findings],
        "attempts": _json_attempts(explanation.attempts),
        "repetition": _json_repetition(explanation.repetition, origins),
    }


def _json_promise(promise: RequestPromise) -> dict[str, object]:
    return {
        "known": promise.known,
        "target": promise.target,
        "model": promise.model,
        "stream": promise.stream,
        "tools": list(promise.tools),
        "tool_choice": promise.tool_choice,
        "messages": promise.messages,
    }


def _json_arrival(arrival: Arrival, exchange: int) -> dict[str, object]:
    return {
        "status": arrival.status,
        "dialect": arrival.dialect,
        "text": arrival.text,
        "reasoning": arrival.reasoning,
        "refusal": arrival.refusal,
        "error": arrival.error,
        "finish_reason": arrival.finish_reason,
        "ending": arrival.ending,
        "events": arrival.events,
        "reads": arrival.reads,
        "bytes": arrival.bytes,
        "duration_ns": arrival.duration_ns,
        **call_lists(arrival.places, exchange, arrival.dialect),
    }


def _json_repetition(
    repetition: ReplyRepetition | None, origins: "_Origins"
) -> dict[str, object] | None:
    """Return what the app sent back beside what was delivered; None if it sent nothing back."""
    if repetition is None:
        return None
    return {
        "exchange": repetition.exchange,
        "calls": [
            {
                "delivered": _json_call(each.delivered),
                "sent": _json_call(each.repetition) if each.repetition else None,
                "differs": each.differs,
                "different": _different(each),
                "edits": _edits(each),
                "segments": each.repetition
                and origins.of(each.repetition, each.index, alike=not each.differs),
            }
            for each in repetition.calls
        ],
        "extra": [
            {**_json_call(each), "segments": origins.of(each, None)} for each in repetition.extra
        ],
        "results": [{"id": call_id, "text": text} for call_id, text in repetition.results],
    }


class _Origins:
    """Tells which fragments of the reply an app's or a client's arguments come from."""

    def __init__(self, explanation: Explanation) -> None:
        repetition, places = explanation.repetition, explanation.arrival.places
        if repetition is not None:
            places = repetition.places
        self._calls = [
            place for place in places if place.list == "calls" and place.choice == places[0].choice
        ]
        found = [
            DeliveredFragment(place.call.index, each.event, each.text)
            for place in self._calls
            for each in shown_fragments(place)
        ]
        self._fragments = DeliveredFragments(sorted(found, key=lambda each: each.event))
        self._known: dict[tuple[str, int | None, bool], list[dict[str, object]]] = {}

    def of(
        self, made: RepeatedCall, own: int | None, *, alike: bool = False
    ) -> list[dict[str, object]]:
        """Return the segments of the arguments of a call.

        Args:
            made: the call.
            own: the delivered one that it is.
            alike: whether it says the same as that one.
        """
        key = made.arguments, own, alike
        if key not in self._known:
            self._known[key] = [
                {
                    "range": [each.start, each.end],
                    "call": each.source.call if each.source else None,
                    "event": each.source.event if each.source else None,
                }
                for each in segments(
                    without_secrets(made.arguments), self._fragments, own, alike=alike
                )
            ]
        return self._known[key]

    def of_reading(self, calls: Sequence[RepeatedCall]) -> list[list[dict[str, object]]]:
        """Return the same for all calls of a client: each is the one with its id, or its place."""
        by_id = {place.call.id: place.call.index for place in reversed(self._calls)}
        return [self.of(each, by_id.get(each.id, at)) for at, each in enumerate(calls)]


def _edits(pair: RepeatedCallPair) -> list[dict[str, object]] | None:
    """Return the steps from the delivered arguments to the sent ones; None: none were sent."""
    if pair.repetition is None:
        return None
    texts = pair.delivered.arguments, pair.repetition.arguments
    return [
        {"op": each.op, "delivered": list(each.delivered), "sent": list(each.sent)}
        for each in edits(*map(without_secrets, texts))  # as they are shown
    ]


def _different(pair: RepeatedCallPair) -> dict[str, list[int]] | None:
    """Return the ranges of the arguments between what both have in front and at the end."""
    if pair.repetition is None or not pair.differs:
        return None
    texts = pair.delivered.arguments, pair.repetition.arguments
    one, other = map(without_secrets, texts)  # as they are shown
    front = common_start(one, other)
    back = common_start(one[front:][::-1], other[front:][::-1])
    if one == other:
        return None
    return {"delivered": [front, len(one) - back], "sent": [front, len(other) - back]}


def _json_attempts(row: Attempts | None) -> dict[str, object] | None:
    """Return the attempts that the exchange belongs to; None if there was one."""
    if row is None:
        return None
    return {
        "answered": row.answered,
        "exit_code": row.exit_code,
        "tries": [
            {
                "exchange": each.exchange,
                "t_ns": each.t_ns,
                "outcome": each.outcome,
                "pause_ns": each.pause_ns,
                "changed": each.changed or None,
            }
            for each in row.tries
        ],
    }


def _json_suspect(suspect: Suspect, origins: _Origins) -> dict[str, object]:
    return {
        "name": suspect.name,
        "mistakes": [
            {"axis": each.axis, "value": each.value, "says": each.says, "fix": each.fix}
            for each in suspect.mistakes
        ],
        "exact": suspect.exact,
        "drop": suspect.drop,
        "says": suspect.says,
        "fix": suspect.fix,
        "source": suspect.source,
        "made": _json_reading(suspect.made, origins),
    }


def _json_trial(tried: ClientTrial, origins: _Origins) -> dict[str, object]:
    return {
        "name": tried.name,
        "differs": None if tried.problem else tried.differs,
        "problem": tried.problem or None,
        "made": _json_reading(tried.made, origins),
    }


def _json_reading(made: ClientReading, origins: _Origins) -> dict[str, object]:
    calls = [
        {**_json_call(each), "segments": found}
        for each, found in zip(made.calls, origins.of_reading(made.calls), strict=True)
    ]
    return {"calls": calls, "errors": list(made.errors), "text": made.text}


def _json_call(call: RepeatedCall) -> dict[str, object]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _json_entry(entry: TimelineEntry) -> dict[str, object]:
    return {
        "t_ns": entry.t_ns,
        "exchange": entry.exchange,
        "event": entry.event,
        "what": entry.what,
        "source": entry.source,
        "codes": list(entry.codes),
    }
