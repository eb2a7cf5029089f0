"""Every preset is found first by what it makes of some stream, and few others with it."""

import json
from functools import cache
from itertools import pairwise
from statistics import median

import pytest

from deltatape.suspects import DeliveredResponse, matrix
from deltatape.suspects.presets import PRESETS
from helpers import gemini, messages, responses
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import deliver, follow_up, names, suspects
from helpers.vectors import RESPONSES, VECTORS

OLLAMA = "http://127.0.0.1/api/chat"
ONE = entry(0, "c1", name="get", arguments='{"a":1}')
TWO = entry(1, "c2", name="put", arguments='{"b":2}')
OLD = choice({"function_call": {"name": "old", "arguments": "{}"}})
HALF = calls(entry(0, "c1", name="get", arguments='{"a":'))
TAG = '<tool>{"tool_name":"get","arguments":{"a":"}"}}</tool>'
OTHER = '<tool>{"tool_name":"put","arguments":{}}</tool>'


def _taped(body: bytes, *cuts: int) -> DeliveredResponse:
    ends = [0, *cuts, len(body)]
    reads = (body[start:end] for start, end in pairwise(ends))
    return deliver(*reads, taped=True)


def _blocks(*frames: messages.Frame) -> DeliveredResponse:
    return deliver(messages.sse(messages.start(), *frames), url=messages.URL)


def _gemini(*chunks: object) -> DeliveredResponse:
    return deliver(sse(*chunks, done=False), url=gemini.STREAM)


def _ollama(*lines: dict[str, object]) -> DeliveredResponse:
    whole = ({"model": "m", "done": False, **line} for line in lines)
    body = b"".join(json.dumps(line).encode() + b"\n" for line in whole)
    return deliver(body, url=OLLAMA, media="application/x-ndjson")


def _line(text: str, *called: str) -> dict[str, object]:
    found = [{"function": {"name": name, "arguments": {}}} for name in called]
    return {"message": {"role": "assistant", "content": text, "tool_calls": found}}


def _emptied() -> list[bytes]:
    """Calls of which only the first is continued with an empty name, and an empty id."""
    found = []
    for empty in ({"function": {"name": "", "arguments": ""}}, {"id": "", "function": {}}):
        first, second = ({"index": 0, **empty}, {"index": 1, "function": {"arguments": " "}})
        found.append(sse(calls(ONE, TWO), calls(first, second), FINISH))
    return found


def _whole() -> list[bytes]:
    twice = entry(1, "c2", name="get", arguments='{"a":1}')
    return [
        sse(calls(entry(0, "c1", name="get", arguments="")), FINISH),
        sse(calls(entry(0, "c1", name="get", arguments="{}")), calls(twice), FINISH),
        sse(calls(ONE), calls(twice), FINISH),
        sse(calls(entry(0, "c1", name="get", arguments="{}"), twice), calls(TWO), FINISH),
        *_emptied(),
        sse(calls(ONE, TWO), choice({}, "stop")),
        sse(calls(ONE), choice({}, ""), calls(TWO), FINISH),
        sse(choice({}, ""), choice({"tool_calls": [ONE]}, "stop"), calls(TWO)),
        sse(
            calls(entry(0, "c1", arguments='{"a":')),
            calls(entry(0, name="get", arguments="1")),
            calls(entry(0, arguments="}")),
            FINISH,
        ),
        sse(calls(entry(0, name="get", arguments="{}")), OLD, FINISH),
        sse(choice({"content": TAG[:3]}), choice({"content": TAG[3:] + OTHER}), choice({}, "stop")),
        sse(calls(ONE), FINISH, choice({}, "stop")),
        sse(calls(ONE), done=False),
    ]


def _spoilt() -> list[bytes]:
    first_null = calls({"index": 0, "id": "c1", "function": {"name": "get"}})
    return [
        sse(HALF, done=False),
        sse(HALF, choice({}, "length")),
        sse(calls(entry(0, "c1", name="get", arguments='{"a":1,"b":2')), FINISH),
        sse(calls(entry(0, "c1", name="get", arguments='{"a":1,"b":"x')), FINISH),
        sse(first_null, calls(entry(0, arguments="[1]")), FINISH),
        sse(calls(ONE), calls(entry(0, "c1", name="get")), FINISH),
        sse(
            calls(entry(0, "c1", name="get", arguments='[{"a":')),
            calls(entry(0, arguments="1}]")),
            FINISH,
        ),
        sse(
            calls({"index": 0, "id": "c1", "function": {"name": "get", "arguments": {"a": 1}}}),
            FINISH,
        ),
        sse(choice({"content": TAG}), choice({"content": OTHER}), choice({}, "stop")),
        sse(
            choice({"content": TAG[:20]}), choice({"content": TAG[20:] + OTHER}), choice({}, "stop")
        ),
        sse(choice({"reasoning_content": TAG}), choice({"content": OTHER}), choice({}, "stop")),
        b": keep-alive\n\n" + sse(calls(ONE), FINISH),
        sse(calls(ONE), FINISH).replace(b"\n", b"\r\n"),
        sse(calls(ONE), FINISH).replace(b"data: ", b"data:"),
    ]


def _chats() -> list[DeliveredResponse]:
    body = sse(calls(ONE), FINISH)
    letters = sse(calls(ONE), FINISH).replace(b'{\\"a\\":1}', '{\\"a\\":\\"é\\"}'.encode())
    return [
        *(deliver(each) for each in (*_whole(), *_spoilt())),
        deliver(body, request=follow_up()),
        _taped(body, 20),
        _taped(sse(calls(ONE), calls(TWO), FINISH)),
        _taped(letters, letters.index("é".encode()) + 1),
    ]


def _items() -> list[list[dict[str, object]]]:
    custom = {"type": "custom_tool_call", "id": "ctc", "call_id": "c1", "name": "run"}
    said: dict[str, object] = {**custom, "input": "ls"}
    whole: dict[str, object] = {"item_id": "ctc", "output_index": 1, "input": "ls"}
    one, two = responses.function(), responses.function(number=2)
    wrapped = responses.function("{}", type="function_tool_call")
    return [
        [
            *responses.call(),
            responses.added(custom, 1),
            {"type": "response.custom_tool_call_input.done", **whole},
            responses.done(said, 1),
        ],
        [responses.done(wrapped), *responses.call(index=1, number=2)],
        [
            responses.added(one),
            responses.added(two, 1),
            responses.delta('{"a":1}'),
            responses.done(responses.function('{"a":1}')),
            responses.done(responses.function('{"b":2}', 2), 1),
        ],
    ]


def _others() -> list[DeliveredResponse]:
    use, put = messages.tool_block(0), messages.tool_block(1, "c2", name="put")
    filled = [messages.piece("[1]", 0), messages.piece("[2]", 1)]
    ends = [messages.stop(0), messages.stop(1), *messages.END]
    value = {"jsonPath": "$.a", "stringValue": "x"}
    return [
        *(deliver(responses.sse(*events), url=responses.URL) for events in _items()),
        _blocks(use, put, *filled, *ends),
        _blocks(use, filled[0], messages.stop(0), *messages.END),
        _blocks(use, filled[0], *messages.END),
        _gemini(
            gemini.candidate(gemini.call("get", willContinue=True)),
            gemini.candidate(gemini.pieces(value)),
            gemini.candidate(gemini.call(), finish="STOP"),
        ),
        _gemini(
            gemini.candidate(gemini.call("get", args={"a": 1}), gemini.call("get", args={"a": 2})),
            gemini.candidate(gemini.call("put", args={}), finish="STOP"),
        ),
        _ollama(_line("x"), _line("", "get"), _line("x", "put"), {"done": True, **_line("x")}),
    ]


@cache
def _pool() -> tuple[DeliveredResponse, ...]:
    return (
        *(deliver(one.body) for one in VECTORS),
        *(deliver(one.body, url=responses.URL) for one in RESPONSES),
        *_chats(),
        *_others(),
    )


@cache
def _first() -> dict[str, int]:
    """By preset that some stream finds first, how many fit there."""
    found: dict[str, int] = {}
    for stream in _pool():
        for row in matrix(stream):
            errors = row.made.errors if row.made.calls == stream.calls else ()
            if row.name not in found and (row.differs or errors):
                others = suspects(stream, row.made.calls, *errors[:1])
                if names(others)[:1] == [row.name]:
                    found[row.name] = len(others)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [preset.name for preset in PRESETS])
def test_a_preset_is_found_first_by_what_it_makes(name: str) -> None:
    assert name in _first()


@pytest.mark.slow
def test_few_others_fit() -> None:
    assert median(_first().values()) <= 3
