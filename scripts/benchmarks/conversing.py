"""`deltatape check` over the tape of one long conversation, beside bare `json.loads`.

An agent sends its whole history again with every request, a call and its result longer each time,
so that the bytes of a tape grow with the square of its turns. The tapes are made: text that reads
like listings of programs, in 200 turns 100 MB of requests.
"""

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checking import run_command
from benchmarks.markdown import markdown
from benchmarks.measure import BenchError
from benchmarks.measure_rebuild import cpu_s
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.tape.encode import header_line
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap

TURNS, QUICK = (50, 100, 200), (10, 20)
_RESULT = 5_000
"""Bytes of a tool's result."""
_ROUNDS = 5
_NS = 1_000_000_000
_WORDS = (
    *("def", "class", "return", "for", "each", "in", "range(10):", "if", "not", "found:", "the"),
    *(
        "self.name",
        "=",
        "None",
        "#",
        "comment",
        'print("x")',
        "raise",
        "ValueError('a')",
        "é",
        "\t",
    ),
)

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversed:
    """One run.

    Attributes:
        language: the dialect.
        turns: requests on the tape.
        mb: of their bodies, MB (10^6 bytes).
        loads_s: seconds of CPU time of `json.loads` for these bodies.
        check_s: the same of `deltatape check`, from its start to its end.
        memory_mb: at most, MB.
    """

    language: str
    turns: int
    mb: float
    loads_s: float
    check_s: float
    memory_mb: float

    @property
    def speed(self) -> float:
        """The speed relative to `json.loads`."""
        return self.loads_s / self.check_s


@dataclass(frozen=True, slots=True)
class _Language:
    name: str
    target: str
    request: Callable[[Sequence[Json]], Json]
    turn: Callable[[str, Json, str], Sequence[Json]]
    """The messages that follow on a call, by its id, arguments and result."""
    events: Callable[[str, str], Iterator[tuple[str, Json]]]
    """The events of an answer with a call, by its id and arguments."""


def run_conversing(turns: Sequence[int], log: Callable[[str], None]) -> Sequence[Conversed]:
    """Measure conversations of so many turns.

    Raises:
        BenchError: the check took too long, could not read a tape, or found something.
    """
    found = []
    for language in _LANGUAGES:
        for count in turns:
            one = _measured(language, count)
            log(
                f"check, {one.language}, {one.turns} turns, {one.mb:.4g} MB: {one.check_s:.3g} s,"
                f" {one.speed:.3g} of json.loads, {one.memory_mb:.4g} MB of memory"
            )
            found.append(one)
    return found


def _measured(language: _Language, turns: int) -> Conversed:
    sizes = loads_s = 0.0
    with tempfile.TemporaryDirectory(prefix="deltatape-bench-") as name:
        with Path(name, "agent.tape").open("wb") as file:
            for body, lines in _tape(language, turns):
                file.write(lines)
                sizes += len(body)
                loads_s += min(_loads_s(body) for _ in range(_ROUNDS)) if body else 0
        figures = run_command("check", name)
    if figures["code"] != 0:
        raise BenchError(f"deltatape check: an error on the tape of a healthy {language.name}")
    return Conversed(
        language=language.name,
        turns=turns,
        mb=sizes / 1e6,
        loads_s=loads_s,
        check_s=figures["seconds"],
        memory_mb=figures["kib"] * 1024 / 1e6,
    )


def _loads_s(body: bytes) -> float:
    began = cpu_s()
    json.loads(body)
    return cpu_s() - began


def _tape(language: _Language, turns: int) -> Iterator[tuple[bytes, bytes]]:
    """The body of each request, and the lines of its exchange; first and last other lines."""
    lines: list[bytes] = []

    def put(_exchange: int, line: bytes) -> None:
        lines.append(line)

    header = Header(
        id="0" * 26, tool="", recorded_at="2026-01-01T00:00:00.000000000Z", source=Source.GATEWAY
    )
    yield b"", header_line(header)
    masker, rng = Masker(bytes(32)), random.Random(1)  # noqa: S311 - the same every time
    history: list[Json] = [{"role": "user", "content": _text(rng, 500)}]
    for number in range(1, turns + 1):
        body = json.dumps(language.request(history), ensure_ascii=False).encode()
        call_id = f"call_{number:05}"
        arguments: Json = {"path": f"src/{number}.py"}
        _exchange(ExchangeTap(number, put, masker), number, language, body)(
            language.events(call_id, json.dumps(arguments))
        )
        yield body, b"".join(lines)
        lines.clear()
        history += language.turn(call_id, arguments, _text(rng, _RESULT))
    TapeTap(put).stop((turns + 1) * _NS, "benchmark", None)
    yield b"", b"".join(lines)


def _exchange(
    tap: ExchangeTap, number: int, language: _Language, body: bytes
) -> Callable[[Iterator[tuple[str, Json]]], None]:
    """Tapes a request now, and its answer when it is called with the events."""
    at = number * _NS
    tap.request(
        at,
        id=f"{number:026}",
        method="POST",
        target=language.target.encode(),
        upstream="http://127.0.0.1",
        http="1.1",
        headers=(),
    )
    tap.request_body(at, body)
    tap.request_end(at)

    def answer(events: Iterator[tuple[str, Json]]) -> None:
        tap.response(
            at,
            status=200,
            reason=b"OK",
            http="1.1",
            framing=Framing.CHUNKED,
            headers=((b"content-type", b"text/event-stream"),),
        )
        for place, (kind, event) in enumerate(events):
            line = f"event: {kind}\n" if kind else ""
            tap.read(at + place, f"{line}data: {json.dumps(event)}\n\n".encode(), None)
        if language is _CHAT:
            tap.read(at + 100, b"data: [DONE]\n\n", None)
        tap.end(at + 101, EndReason.COMPLETE)
        tap.flush()

    return answer


def _text(rng: random.Random, size: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        lines.append(" ".join(rng.choices(_WORDS, k=9)) + "\n")
    return "".join(lines)


def _chat_request(history: Sequence[Json]) -> Json:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "read", "parameters": parameters}}
    return {"model": "m", "messages": history, "tools": [tool], "stream": True}


def _chat_turn(call_id: str, arguments: Json, result: str) -> Sequence[Json]:
    function = {"name": "read", "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    )


def _chat_events(call_id: str, arguments: str) -> Iterator[tuple[str, Json]]:
    opened = {"index": 0, "id": call_id, "function": {"name": "read", "arguments": ""}}
    deltas = [{"tool_calls": [opened]}] + [
        {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        for piece in _pieces(arguments)
    ]
    for delta in deltas:
        yield "", {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def _anthropic_request(history: Sequence[Json]) -> Json:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"name": "read", "input_schema": schema}]
    return {"model": "m", "max_tokens": 9, "messages": history, "tools": tools, "stream": True}


def _anthropic_turn(call_id: str, arguments: Json, result: str) -> Sequence[Json]:
    use = {"type": "tool_use", "id": call_id, "name": "read", "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
    return {"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}


def _anthropic_events(call_id: str, arguments: str) -> Iterator[tuple[str, Json]]:
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    block: Json = {"type": "tool_use", "id": call_id, "name": "read", "input": {}}
    events: list[Json] = [
        {"type": "message_start", "message": {**message, "model": "m", "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    for piece in _pieces(arguments):
        delta = {"type": "input_json_delta", "partial_json": piece}
        events.append({"type": "content_block_delta", "index": 0, "delta": delta})
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    events += [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    for event in events:
        yield str(event["type"]), event


def _pieces(arguments: str) -> Iterator[str]:
    return (arguments[at : at + 6] for at in range(0, len(arguments), 6))


_CHAT = _Language("openai-chat", "/v1/chat/completions", _chat_request, _chat_turn, _chat_events)
_LANGUAGES = (
    _CHAT,
    _Language(
        "anthropic-messages",
        "/v1/messages",
        _anthropic_request,
        _anthropic_turn,
        _anthropic_events,
    ),
)


def conversing_section(found: Sequence[Conversed]) -> str:
    """The section of the page."""
    rows = [
        ["dialect", "turns", "requests", "json.loads", "check", "speed", "memory"],
        ["---", *["---:"] * 6],
    ]
    rows += [
        [
            one.language,
            f"{one.turns}",
            f"{one.mb:.1f} MB",
            f"{one.loads_s:.3f} s",
            f"{one.check_s:.3f} s",
            f"{one.speed:.2f}",
            f"{one.memory_mb:.0f} MB",
        ]
        for one in found
    ]
    table = markdown(rows)
    return f"## Long conversations\n\n{_ABOUT}\n{table}"


_ABOUT = """\
`deltatape check` over the tape of one agent that calls a tool in every turn and sends its whole
history again each time, beside bare `json.loads` over the bodies of the same requests: CPU time,
the check from the start of its process to its end, and the check's speed as a share of that of
`json.loads`. What an earlier request of the conversation had, too, is parsed and compared once, so
memory grows with the conversation, not with the tape. The result of a tool is 5 kB of text.
"""
