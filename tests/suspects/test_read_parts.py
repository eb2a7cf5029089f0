import json

from deltatape.suspects.read_parts import gemini_steps, ollama_steps
from deltatape.suspects.steps import Blank, Entry, Finish, Phase, Step
from helpers import chat, gemini
from helpers.suspected import deliver

OLLAMA = "http://127.0.0.1/api/chat"
NDJSON = "application/x-ndjson"


def _gemini(*chunks: object) -> list[Step]:
    stream = deliver(chat.sse(*chunks, done=False), url=gemini.STREAM)
    return [*gemini_steps(stream.events, stream.reply.tool_calls)]


def _ollama(*lines: object) -> list[Step]:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return [*ollama_steps(deliver(body, url=OLLAMA, media=NDJSON).events)]


def _line(*, done: object = False, **message: object) -> dict[str, object]:
    return {"model": "m", "message": {"role": "assistant", **message}, "done": done}


def test_a_part_is_a_whole_call() -> None:
    found = _gemini(
        gemini.candidate({"text": "x"}, gemini.call("get", args={"a": 1}, id="i")),
        gemini.candidate(gemini.call("put"), finish="STOP"),
    )
    assert found == [
        Entry(0, Phase.WHOLE, at=1, index=0, id="i", name="get", text='{"a":1}'),
        Entry(1, Phase.WHOLE, index=1, name="put", text="{}"),
        Finish(1, "STOP"),
    ]


def test_wrapped_answers_are_unwrapped() -> None:
    wrapped = {"response": gemini.candidate(gemini.call("get"))}
    assert [step.event for step in _gemini("{", wrapped)] == [1]


def test_streamed_arguments_come_in_parts_without_a_name() -> None:
    value = {"jsonPath": "$.a", "stringValue": "x"}
    found = _gemini(
        gemini.candidate(gemini.call("get", willContinue=True)),
        gemini.candidate(gemini.pieces(value)),
        gemini.candidate(gemini.call(), finish="STOP"),
    )
    entries = [step for step in found if isinstance(step, Entry)]
    assert [one.phase for one in entries] == [Phase.START, Phase.DELTA, Phase.DELTA]
    assert [json.loads(one.text or "null") for one in entries] == [{}, {"a": "x"}, None]


def test_a_line_has_whole_calls_and_no_text() -> None:
    function = {"name": "get", "arguments": {"a": 1}}
    found = _ollama(
        _line(content="x"),
        _line(content="", tool_calls=[{"id": "i", "function": function}]),
        _line(tool_calls=[{"function": {"name": "put", "arguments": "{}"}}], done=True),
    )
    assert found == [
        Entry(1, Phase.WHOLE, id="i", name="get", text='{"a":1}'),
        Blank(1),
        Entry(2, Phase.WHOLE, name="put", text="{}"),
        Blank(2),
        Finish(2, "stop"),
    ]


def test_lines_without_a_message_say_nothing_of_calls() -> None:
    assert _ollama(_line(content="x"), {"error": "x"}) == []
