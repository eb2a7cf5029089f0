import json

import pytest

from deltatape.dialects.ollama import Ollama, OllamaReducer
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Event
from helpers.events import event_of


def event(number: int, data: str) -> Event:
    return event_of(data, number=number)


def reply_to(*lines: object) -> Reply:
    reducer = Ollama().reducer(NOTHING_ASKED)
    assert isinstance(reducer, OllamaReducer)
    for number, line in enumerate(lines):
        reducer.feed(event(number, line if isinstance(line, str) else json.dumps(line)))
    return reducer.finish(cut=False)


def line(*, done: bool = False, **message: object) -> dict[str, object]:
    return {"model": "m", "message": {"role": "assistant", **message}, "done": done}


def call(name: object, arguments: object, **more: object) -> dict[str, object]:
    return {"function": {"name": name, "arguments": arguments}, **more}


DONE = {**line(done=True, content=""), "done_reason": "stop", "eval_count": 3}


def test_text_and_thinking_are_concatenated_and_calls_of_all_lines_appended() -> None:
    reply = reply_to(
        line(thinking="H"),
        line(thinking="m"),
        line(content="Hel"),
        line(content="lo", tool_calls=[call("get", {"a": 1}, id="c1"), call("put", {})]),
        line(tool_calls=[call("get", {"b": [2]})]),
        DONE,
    )
    assert (reply.text, reply.reasoning, reply.model) == ("Hello", "Hm", "m")
    assert [(one.id, one.name, one.arguments) for one in reply.tool_calls] == [
        ("c1", "get", '{"a": 1}'),
        (None, "put", "{}"),
        (None, "get", '{"b": [2]}'),
    ]
    assert {one.status for one in reply.tool_calls} == {CallStatus.COMPLETE}
    assert (reply.finish_reason_raw, reply.usage) == ("stop", {"eval_count": 3})
    assert (reply.terminated, reply.observations) == (True, ())


def test_arguments_are_the_exact_source_of_the_object() -> None:
    data = '{"message":{"tool_calls":[5,{"function":{"name":"f","arguments":{ "a":1.0 }}}]},'
    reply = reply_to(data + '"done":false}')
    assert reply.tool_calls[0].arguments == '{ "a":1.0 }'
    assert [seen.code for seen in reply.observations] == ["S006"]


def test_a_completion_without_messages_is_read_as_well() -> None:
    reply = reply_to({"response": "Hi", "thinking": "Hm", "done": False}, {"done": True})
    assert (reply.text, reply.reasoning, reply.terminated) == ("Hi", "Hm", True)
    assert reply.finish_reason_raw is None


@pytest.mark.parametrize("reason", ["load", "unload", "length"])
def test_after_an_end_that_is_not_an_answer_calls_need_not_be_whole(reason: str) -> None:
    reply = reply_to(line(tool_calls=[call("f", None)]), {"done": True, "done_reason": reason})
    assert reply.tool_calls[0].status is CallStatus.TRUNCATED


def test_an_error_line_is_the_error_and_nothing_ends_the_stream() -> None:
    reply = reply_to(line(content="a"), "x", {"error": "out of memory"})
    assert (reply.error, reply.terminated) == ("out of memory", False)
    assert [seen.code for seen in reply.observations] == ["W004", "S005"]
    assert reply_to(line(tool_calls="x")).observations[0].code == "S006"


def test_a_request_streams_unless_it_says_that_it_does_not_and_results_have_names() -> None:
    def asked(**request: object) -> tuple[bool, tuple[str | None, ...]]:
        found = Ollama().read_request(json.dumps(request).encode(), "/api/chat")
        return found.stream, tuple(message.call_id for message in found.history)

    results = [
        {"role": "tool", "tool_name": "get"},
        {"role": "tool", "name": "put"},
        {"role": "tool", "tool_call_id": "c1", "tool_name": "get"},
        {"role": "user", "name": "bob"},
    ]
    assert asked(messages=results) == (True, ("get", "put", "c1", None))
    assert asked(stream=False) == (False, ())


def test_an_image_is_something_to_show() -> None:
    assert reply_to(line(images=[""]), DONE).choices[0].media
    assert not reply_to(line(images=[]), line(content="a"), DONE).choices[0].media


def test_arguments_in_a_string_are_taken_and_told() -> None:
    reply = reply_to(line(tool_calls=[call("f", '{"a":1}')]), DONE)
    assert reply.tool_calls[0].arguments == '{"a":1}'
    assert [seen.code for seen in reply.observations] == ["T006"]
