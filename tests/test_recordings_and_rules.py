"""The rules over every recording: cut anyhow, spoilt, at any pace, asked for something else."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltatape.diagnose.check import check
from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Read
from deltatape.model.finding import Blame, Confidence
from deltatape.model.reply import Channel, Reply
from deltatape.store.reader import open_tape
from helpers import bedrock_bodies, eventstream
from helpers.chat import choice, sse
from helpers.exchanges import found, one
from helpers.mutation import spoilt_bytes, spoilt_values
from helpers.splits import cut, each_alone, random_cuts
from helpers.taped import MS, idle_times

FOLDER = Path(__file__).resolve().parent.parent / "recordings"
LEFT_OUT = {FOLDER / "apps", FOLDER / "faults", FOLDER / "conformance"}
"""A thousand exchanges with few kinds of streams: what they add lies between exchanges. And tapes
that are damaged on purpose.
"""
ALL = [
    (f"{path.relative_to(FOLDER).with_suffix('')}#{exchange.number}", exchange)
    for path in sorted(FOLDER.rglob("*.tape"))
    if path.parent not in LEFT_OUT
    # Of the many tapes of frameworks, one for each dialect: their streams are the same.
    if "frameworks" not in path.parts or path.match("pydantic-ai/*-values.tape")
    for exchange in open_tape(path)
    if not exchange.upgraded  # a WebSocket has no body to cut: see test_dialect_recordings.py
]
SPOKEN = {name.partition("/")[2][:-2]: one for name, one in ALL if name.startswith("dialects/")}
"""The recorded exchange of each dialect."""


# Recorded streams played at another pace: each event in a read of its own, and one long wait.

STEP_MS = 10


def paced(exchange: Exchange, after: int, wait_s: float, noise: bytes = b"") -> Exchange:
    """`exchange` had its events come `STEP_MS` apart, and `wait_s` pass in one place.

    Args:
        exchange: what was recorded.
        after: the number of the event before the wait; -1 waits for the first.
        wait_s: how long, in seconds.
        noise: what comes in the middle of the wait.
    """
    body, events = exchange.body, decode(exchange).events
    edges = [0, *(event.end for event in events[:-1]), len(body)]
    reads, t_ms = [], 0.0
    for number in range(len(events)):
        t_ms += STEP_MS
        if number == after + 1:
            t_ms += wait_s * 500
            reads += [_read(t_ms, noise)] if noise else []
            t_ms += wait_s * 500
        reads.append(_read(t_ms, body[edges[number] : edges[number + 1]]))
    assert exchange.end
    last_ns = round(t_ms * MS) + (round(wait_s * 1000) * MS if after == len(events) - 1 else 0)
    marks = (round(t_ns / MS) for t_ns in (*(read.t_ns for read in reads), last_ns))
    return replace(
        exchange,
        request=replace(exchange.request, t_ns=0, t_end_ns=0),
        sent=None,
        reads=tuple(reads),
        idle_ns=idle_times(*marks),
        end=replace(exchange.end, t_ns=last_ns, bytes=sum(len(read.data) for read in reads)),
    )


def _read(t_ms: float, data: bytes) -> Read:
    return Read(t_ns=round(t_ms * MS), data=data, boundaries=None, line=None)


def told(exchange: Exchange, pieces: list[bytes]) -> list[object]:
    """The findings on `exchange` had its body come in `pieces`, all at one time."""
    t_ns = exchange.response.t_ns if exchange.response else 0
    reads = tuple(Read(t_ns=t_ns, data=data, boundaries=None, line=None) for data in pieces)
    return [
        (one.code, one.severity, one.blame, one.message, one.event, one.span, one.evidence)
        for one in check(replace(exchange, reads=reads, delivered=()))
    ]


def test_no_cutting_changes_a_finding(subtests: pytest.Subtests) -> None:
    for name, exchange in ALL:
        with subtests.test(name):
            body = exchange.body
            whole = told(exchange, [body] if body else [])
            assert told(exchange, each_alone(body)) == whole
            # At every single cut the same is rebuilt: see test_dialect_recordings.py.
            for at in range(1, len(body), max(1, len(body) // 8)):
                assert told(exchange, cut(body, [at])) == whole


@settings(max_examples=2 * len(ALL), suppress_health_check=list(HealthCheck))
@given(st.sampled_from(ALL), st.data())
def test_no_random_cutting_changes_a_finding(
    recording: tuple[str, Exchange], data: st.DataObject
) -> None:
    _, exchange = recording
    body = exchange.body
    cuts = data.draw(random_cuts(len(body)))
    assert told(exchange, cut(body, cuts)) == told(exchange, [body] if body else [])


def test_no_damage_makes_a_rule_raise(subtests: pytest.Subtests) -> None:
    for name, exchange in ALL:
        chance = random.Random(exchange.id)
        with subtests.test(name):
            for _ in range(5):
                for body in (spoilt_bytes(exchange.body, chance), spoilt_values(exchange, chance)):
                    assert "X001" not in [one[0] for one in map(tuple_of, told(exchange, [body]))]


def tuple_of(finding: object) -> tuple[object, ...]:
    """A finding as `told` has it."""
    assert isinstance(finding, tuple)
    return finding


OFFERING = [name for name, one in SPOKEN.items() if analyse(one).request.tools]


def test_all_dialects_that_declare_tools_are_looked_at() -> None:
    assert set(SPOKEN) - set(OFFERING) == {"ai-sdk-ui", "app-events", "openai-completions"}


def asked(exchange: Exchange, old: bytes, new: bytes) -> Exchange:
    """`exchange` had its request said something else."""
    body = exchange.request.body.replace(old, new)
    assert body != exchange.request.body
    return replace(exchange, request=replace(exchange.request, body=body))


@pytest.mark.parametrize("name", OFFERING)
def test_a_tool_that_was_not_offered_is_unknown_in_every_dialect(name: str) -> None:
    exchange = asked(SPOKEN[name], b'"get_weather"', b'"weather_now"')
    assert "(get_weather) is not among the 2 tools" in one(exchange, "T007").message
    assert not found(SPOKEN[name], "T007")


@pytest.mark.parametrize("name", OFFERING)
def test_arguments_are_held_against_the_schema_in_every_dialect(name: str) -> None:
    upper = b'"INTEGER"' in SPOKEN[name].request.body
    pair = (b'"INTEGER"', b'"STRING"') if upper else (b'"integer"', b'"string"')
    finding = one(asked(SPOKEN[name], *pair), "T008")
    assert "call 1 (get_forecast) violate the tool's schema: $.days: 3 is not of type" in (
        finding.message
    )
    assert not found(SPOKEN[name], "T008")


def places(reply: Reply) -> Iterator[tuple[str, int]]:
    """Phases, and an event of `reply` after which a silence is in that phase."""
    yield "before-first", -1
    opened = [call.start_event for call in reply.tool_calls]
    finished = [event for event, _ in reply.choices[0].finishes]
    text = next(
        (p.event for p in reply.choices[0].pieces if p.channel is not Channel.REFUSAL), None
    )
    if text is not None and text not in {*opened, *finished}:
        yield "in-text", text
    for call in reply.tool_calls[:1]:
        if len(call.fragments) > 1:
            yield f"in-arguments of call 0 ({call.name})", call.fragments[0].event
            yield f"after-call of call 0 ({call.name})", call.fragments[-1].event
    last = reply.terminal_event
    if last is not None:
        yield "before-end", finished[-1] if finished else last


ALIVE = b": keep-alive\n\n"
NOISE = {
    "ai-sdk-ui": sse({"type": "data-status", "data": 1}, done=False),
    "anthropic-messages": b'event: ping\ndata: {"type":"ping"}\n\n',
    "app-events": sse({"type": "status"}, done=False),
    "bedrock-converse": eventstream.event("contentBlockDelta", {"p": "abc", "delta": {"text": ""}}),
    "bedrock-invoke": bedrock_bodies.chunk({"type": "ping"}),
    "gemini": sse({"usageMetadata": {"promptTokenCount": 1}}, done=False),
    "gemini-array": b"\n",
    "mistral": sse(choice({"content": ""}), done=False),
    "ollama": b'{"model":"m","message":{"role":"assistant","content":""},"done":false}\n',
    "openai-chat": sse(choice({}), done=False),
}
"""What keeps a connection alive, where it is more than a comment."""
PHASES = [
    (name, phase, after)
    for name, exchange in SPOKEN.items()
    for phase, after in places(analyse(exchange).reply)
]


@pytest.mark.parametrize(("name", "phase", "after"), PHASES)
def test_a_silence_has_its_phase_in_every_dialect(name: str, phase: str, after: int) -> None:
    silence = one(paced(SPOKEN[name], after, 12.0), "D001")
    assert f"({phase})" in silence.message
    blame = Blame.APP if analyse(SPOKEN[name]).reply.from_app else Blame.UPSTREAM
    thinks = phase == "before-first"
    assert (silence.blame, silence.confidence) == (
        (None, Confidence.POSSIBLE) if thinks else (blame, Confidence.LIKELY)
    )
    assert not found(paced(SPOKEN[name], after, 9.0), "D001")


@pytest.mark.parametrize(("name", "phase", "after"), PHASES)
def test_what_keeps_a_connection_alive_is_not_progress(name: str, phase: str, after: int) -> None:
    noise = NOISE.get(name, ALIVE)
    silence = one(paced(SPOKEN[name], after, 12.0, noise), "D001")
    assert f"({phase})" in silence.message
    if phase == "before-first":
        assert silence.blame is None
        return
    heard = name == "gemini-array" or silence.confidence is Confidence.PROVEN
    assert heard or after == len(analyse(SPOKEN[name]).stream.events) - 1


def test_every_phase_was_looked_at_in_every_dialect_that_has_it() -> None:
    seen = {(name, phase.partition(" ")[0]) for name, phase, _ in PHASES}
    for phase in ("before-first", "in-text", "before-end"):
        assert {name for name, kind in seen if kind == phase} == set(SPOKEN)
    whole = {"app-events", "gemini", "gemini-array", "mistral", "ollama", "openai-completions"}
    for phase in ("in-arguments", "after-call"):
        assert {name for name, kind in seen if kind == phase} == set(SPOKEN) - whole
