"""Builds an answer event by event: what the reference has, and what suspects have.

The suspects are those of an explanation. Where nothing speaks against the application, they are the
clients that would have read the response wrongly.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import Explanation
from deltatape.model.finding import Blame
from deltatape.model.reply import CallKind, Channel, Choice, ToolCall
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.stepping import BuildStep, CallChange, SteppedClient, Stepping, StepUnit
from deltatape.printable import count, excerpt
from deltatape.suspects import LIMIT, delivered
from deltatape.suspects.simulation import ClientRunner
from deltatape.suspects.stepping import step_presets, step_suspects

_SHOWN = 40
"""How much of a name is shown, in characters."""


def stepping(
    explanation: Explanation, exchanges: Sequence[Exchange], settings: Settings = DEFAULTS
) -> Stepping:
    """Return how the response of an explained exchange is built.

    Args:
        explanation: the explanation of the exchange.
        exchanges: the exchanges that explain it.
        settings: likewise.
    """
    number, line = explanation.suspected or (explanation.exchange, None)
    exchange = next(each for each in exchanges if each.number == number)
    whole = analyse(exchange, settings.app)
    analysis, choice = whole, 0
    if whole.turns:
        asked = [turn for turn in whole.turns if turn.exchange.request.line == line]
        calling = [turn for turn in whole.turns if turn.reply.tool_calls]
        analysis = (asked or calling or whole.turns)[-1]
        before = whole.turns[: whole.turns.index(analysis)]
        choice = sum(len(turn.reply.choices) for turn in before)
    return Stepping(
        tape=explanation.tape,
        exchange=explanation.exchange,
        stream=number,
        choice=choice + analysis.reply.choices[0].index,
        start_ns=exchange.request.t_ns,
        reference=tuple(_placed(reference_steps(analysis), _event_places(analysis), analysis)),
        suspects=tuple(_suspects(explanation, analysis)),
    )


def _suspects(explanation: Explanation, analysis: Analysis) -> Iterator[SteppedClient]:
    stream = delivered(analysis.exchange, analysis.stream, analysis.reply, analysis.request)
    if stream.family is None:
        return
    runner = ClientRunner(stream)
    found = step_suspects(runner, explanation.suspects[:LIMIT])
    if explanation.verdict.blame is not Blame.APP:
        found = step_presets(runner, LIMIT)
    reads = analysis.exchange.reads
    numbers = stream.read_numbers
    events = _event_places(analysis)
    for client in found:
        place = events
        if client.unit is StepUnit.READ:

            def place(read: int) -> tuple[int, int]:
                return numbers[read], reads[numbers[read]].t_ns

        yield replace(client, steps=tuple(_placed(client.steps, place, analysis)))


_Places = Callable[[int], tuple[int, int]]
"""The number that a reader knows of an event or read, and its time."""


def _event_places(analysis: Analysis) -> _Places:
    events, numbers = analysis.stream.events, analysis.numbers

    def place(event: int) -> tuple[int, int]:
        return numbers[event] if numbers else event, events[event].t_ns

    return place


def _placed(steps: Iterable[BuildStep], place: _Places, analysis: Analysis) -> Iterator[BuildStep]:
    """Yield steps with their times, and the numbers of events as the whole exchange has them."""
    end, has_times = analysis.exchange.end, analysis.exchange.has_times
    for step in steps:
        at, t_ns = None, end.t_ns if end else None
        if step.at is not None:
            at, t_ns = place(step.at)
        yield step._replace(at=at, t_ns=t_ns if has_times else None)


# The reference: the rebuilt reply knows the event of each of its parts.


def reference_steps(analysis: Analysis) -> tuple[BuildStep, ...]:
    """Return the first answer of a reply after each event that adds to it, and at its end.

    Its calls are numbered as those of the reply. Those that the model wrote into its text follow,
    each of them as soon as it is whole.
    """
    choice = analysis.reply.choices[0]
    calls = _numbered(choice)
    arguments: dict[int, dict[int, list[str]]] = {}
    for number, call in calls.items():
        for event, piece in _pieces(call):
            arguments.setdefault(event, {}).setdefault(number, []).append(piece)
    texts: Counter[int] = Counter()
    for each in choice.pieces:
        if each.channel is Channel.TEXT:
            texts[each.event] += len(each.text)
    steps: list[BuildStep] = []
    lengths: dict[int, int] = {}
    for event in sorted({*arguments, *texts}):
        changes, notes = [], []
        for number, pieces in sorted(arguments.get(event, {}).items()):
            call, kept, added = calls[number], lengths.get(number, 0), "".join(pieces)
            if number not in lengths:
                named = f", {excerpt(call.name, _SHOWN)}" if call.name else ""
                notes.append(f"begins call {number}{named}")
            else:
                notes.append(f"appends to call {number}")
            changes.append(CallChange(number, call.id, call.name, kept, added))
            lengths[number] = kept + len(added)
        if texts[event]:
            notes.append("appends to the text")
        written = texts[event] + (steps[-1].text_length or 0 if steps else 0)
        steps.append(BuildStep(event, tuple(changes), (), (), "; ".join(notes), written))
    return (*steps, _end(analysis, calls, steps[-1].text_length if steps else 0))


def _numbered(choice: Choice) -> dict[int, ToolCall]:
    written = enumerate(choice.text_calls, len(choice.tool_calls))
    return {
        **dict(enumerate(choice.tool_calls)),
        **{number: one.call for number, one in written if one.channel is Channel.TEXT},
    }


def _pieces(call: ToolCall) -> Iterator[tuple[int, str]]:
    """Yield what events bring of a call's arguments, its opening with nothing first."""
    if call.kind is CallKind.TEXT:
        events = [fragment.event for fragment in call.fragments]
        yield max(events, default=call.start_event), call.arguments
        return
    yield call.start_event, ""
    yield from ((each.event, each.text) for each in call.fragments if each.text)


def _end(analysis: Analysis, calls: Mapping[int, ToolCall], text: int | None) -> BuildStep:
    """Return the end of the stream: only now it is known what has to be mended."""
    reply = analysis.reply
    changes = []
    notes = [f"has {count(len(calls), 'call')}"]
    for number, call in calls.items():
        built = "".join(piece for _, piece in _pieces(call))
        if built != call.arguments:
            grows = call.arguments.startswith(built)
            kept = len(built) if grows else 0
            changes.append(CallChange(number, call.id, call.name, kept, call.arguments[kept:]))
            codes = f" ({', '.join(call.repairs)})" if call.repairs else ""
            notes.append(f"mends the arguments of call {number}{codes}")
    reason = reply.choices[0].finish_reason_raw
    if reason is not None:
        notes.append(f"finish reason {excerpt(reason, _SHOWN)}")
    errors = () if reply.error is None else (reply.error,)
    return BuildStep(None, tuple(changes), (), errors, "; ".join(notes), text)
