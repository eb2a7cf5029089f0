import json

import pytest

from deltatape.diagnose.check import check
from deltatape.dialects.app_events import AppEvents, table
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.stream import Format
from helpers.events import codes, events, reduced, spoilt
from helpers.hints import hints

Json = dict[str, object]
STREAM: list[Json] = [
    {"type": "status", "state": "thinking"},
    {"type": "thinking", "content": "Hm."},
    {"type": "text", "content": "Let me"},
    {"type": "text", "content": " see."},
    {"type": "tool_call", "name": "get_weather", "arguments": {"city": "Gent"}},
    {"type": "tool_result", "name": "get_weather", "result": {"error": "none"}, "error": "no"},
    {"type": "text", "content": " 13 °C."},
    {"type": "done", "content": "Let me see. 13 °C."},
]


def reply_to(*frames: object, cut: bool = False, names: AppNames | None = None) -> Reply:
    dialect = AppEvents() if names is None else AppEvents(names)
    return reduced(dialect, events(*frames), cut=cut)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "text", "content": "a"},
        {"type": "text", "delta": None},
        {"type": "tool_call", "name": None, "arguments": 10},
        {"type": "tool_call", "args": {}},
        {"type": "tool_result"},
        {"type": "done"},
    ],
)
def test_it_claims_streams_with_a_type_of_the_contract(event: Json) -> None:
    assert AppEvents().claims(hints({"type": "status"}, event))
    assert AppEvents().claims(hints(event, form=Format.NDJSON))
    assert not AppEvents().claims(hints(event, form=Format.JSON))


def test_a_type_alone_tells_nothing_where_its_events_have_fields() -> None:
    assert not AppEvents().claims(hints({"type": "text", "x": 4}, {"type": "tool_call"}))
    names = AppNames(content=("data.text",))
    assert AppEvents(names).claims(hints({"type": "text", "data": {"text": "a"}}))
    assert not AppEvents(names).claims(hints({"type": "text", "data": "a"}))


@pytest.mark.parametrize(
    "foreign",
    [
        {"type": "thread.run.created"},
        {"type": "response.created"},
        {"type": "RUN_STARTED"},
        {"type": "message_start"},
        {"type": "content_block_start"},
        {"type": "message-start"},
        {"type": "text-start"},
        {"type": "tool-input-start"},
        {"choices": []},
        {"candidates": []},
        {"jsonrpc": "2.0"},
        {"event_type": "step.start"},
    ],
)
def test_it_claims_no_stream_with_an_event_of_another_protocol(foreign: Json) -> None:
    assert not AppEvents().claims(hints(foreign))
    assert not AppEvents().claims(hints(foreign, {"type": "text"}))


def test_an_error_alone_may_be_anybodys() -> None:
    assert not AppEvents().claims(hints({"type": "error"}))
    assert not AppEvents().claims(hints({"type": 7}, {}))
    assert not AppEvents().serves("/api/chat")


def test_text_calls_and_the_end_are_put_together() -> None:
    reply = reply_to(*STREAM)
    assert (reply.text, reply.reasoning) == ("Let me see. 13 °C.", "Hm.")
    assert [(c.id, c.name, c.arguments, c.status) for c in reply.tool_calls] == [
        (None, "get_weather", '{"city": "Gent"}', CallStatus.COMPLETE)
    ]
    assert (reply.error, reply.terminated, reply.terminator) == (None, True, "done or error")
    assert reply.observations == ()


def test_a_call_whose_name_and_arguments_are_lost_is_still_a_call() -> None:
    reply = reply_to('{"type": "tool_call", "name": null, "arguments": 10}', cut=True)
    assert [(c.name, c.arguments, c.arguments_raw, c.status) for c in reply.tool_calls] == [
        (None, "10", "10", CallStatus.NO_NAME)
    ]
    assert not reply.terminated
    reply = reply_to('{"type": "tool_call", "name": "f", "arguments": 10}')
    assert [(c.arguments, c.status) for c in reply.tool_calls] == [("10", CallStatus.NOT_OBJECT)]


def test_that_defect_is_recognised_by_the_rules() -> None:
    body = b'data: {"type": "text", "content": "I\'ll"}\n\n'
    body += b'data: {"type": "tool_call", "name": null, "arguments": 10}\n\n'
    exchange = Exchange.from_body(
        body, content_type="text/event-stream", url="http://127.0.0.1:8000/api/chat"
    )
    found = {finding.code for finding in check(exchange)}
    assert found == {"A001", "A002", "A003", "A004"}


@pytest.mark.parametrize(
    ("arguments", "text", "status"),
    [
        ('{ "a" : 1e2 }', '{ "a" : 1e2 }', CallStatus.COMPLETE),
        ('"{\\"a\\":1}"', '"{\\"a\\":1}"', CallStatus.DOUBLE_ENCODED),
        ("[1]", "[1]", CallStatus.NOT_OBJECT),
        ('"x"', '"x"', CallStatus.NOT_OBJECT),
        ("null", "", CallStatus.EMPTY_SUSPECT),
    ],
)
def test_arguments_are_their_exact_source(arguments: str, text: str, status: CallStatus) -> None:
    reply = reply_to(f'{{"type":"tool_call","name":"f","arguments":{arguments}}}', STREAM[-1])
    assert [(c.arguments, c.status) for c in reply.tool_calls] == [(text, status)]


@pytest.mark.parametrize("name", ["name", "tool", "tool_name", "function"])
@pytest.mark.parametrize("arguments", ["arguments", "args", "input", "parameters"])
def test_common_names_of_fields_are_known(name: str, arguments: str) -> None:
    reply = reply_to({"type": "tool_call", name: "f", arguments: {"a": 1}, "call_id": "c"})
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == [("c", "f", '{"a": 1}')]


@pytest.mark.parametrize("field", ["content", "text", "delta"])
def test_common_names_of_text_are_known(field: str) -> None:
    assert reply_to({"type": "text", field: "hi"}).text == "hi"
    assert reply_to({"type": "done", field: "hi"}).text == "hi"


def test_names_of_the_applications_own_can_be_given() -> None:
    names = AppNames(
        type=("event",),
        text=("chunk",),
        tool_call=("agent.call",),
        done=("bye",),
        content=("data.text",),
        name=("call.fn",),
        arguments=("call.with",),
    )
    frames: list[Json] = [
        {"event": "chunk", "data": {"text": "hi"}},
        {"event": "agent.call", "call": {"fn": "f", "with": {}}},
        {"event": "bye"},
    ]
    assert AppEvents(names).claims(hints(*frames))
    assert not AppEvents().claims(hints(*frames))
    reply = reply_to(*frames, names=names)
    assert (reply.text, reply.terminated, reply.terminator) == ("hi", True, "bye or error")
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("f", "{}")]


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "error", "content": "down"},
        {"type": "error", "message": "down"},
        {"type": "error", "error": "down"},
        {"type": "error", "error": {"message": "down"}},
    ],
)
def test_an_error_ends_it(frame: Json) -> None:
    reply = reply_to(STREAM[2], frame)
    assert (reply.text, reply.error, reply.terminated) == ("Let me", "down", True)
    assert codes(reply) == ["S005"]


def test_the_sentinel_of_others_ends_it_too() -> None:
    assert reply_to(STREAM[2], "[DONE]").terminated
    assert not reply_to(STREAM[2]).terminated


def test_the_stream_is_an_applications_and_carries_results() -> None:
    reply = reply_to(*STREAM, {"type": "tool_result", "call_id": "c", "tool": "f"})
    assert (reply.from_app, reply.results_due) == (True, True)
    assert [(one.call_id, one.name, one.event) for one in reply.results] == [
        (None, "get_weather", 5),
        ("c", "f", 8),
    ]
    assert reply.repeated_text == "Let me see. 13 °C."
    assert reply_to(STREAM[2], {"type": "done", "content": ""}).repeated_text == ""
    assert reply_to(STREAM[2], {"type": "done"}).repeated_text is None


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (STREAM[2], "A004"),
        (STREAM[4], "A004"),
        (STREAM[5], "A004"),
        (STREAM[7], "A005"),
        ({"type": "title", "title": "Weather"}, "A005"),
    ],
)
def test_nothing_but_the_sentinel_follows_the_end(frame: Json, code: str) -> None:
    assert codes(reply_to(STREAM[2], STREAM[7], frame, frame)) == [code]
    assert codes(reply_to(STREAM[2], STREAM[7], "[DONE]")) == []
    assert codes(reply_to(STREAM[2], "[DONE]", STREAM[7])) == ["A005"]


def test_a_request_is_read_where_it_looks_like_one() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "stream": True}).encode()
    asked = AppEvents().read_request(body, "/api/chat")
    assert (asked.known, asked.stream, asked.history[0].text) == (True, True, "hi")
    other = AppEvents().read_request(b'{"question":"hi"}', "/ask")
    assert (other.known, other.history) == (True, ())


@pytest.mark.slow
def test_no_value_of_any_type_anywhere_raises() -> None:
    for frames in spoilt(STREAM):
        reply_to(*frames)


def test_every_type_of_the_contract_is_in_it() -> None:
    made = table(CONTRACT)
    assert set(made.events) == {
        "text",
        "reasoning",
        "thinking",
        "tool_call",
        "tool_result",
        "done",
        "error",
    }
    assert all(made.events.values())


def test_of_a_word_for_two_things_the_more_telling_meaning_counts() -> None:
    made = table(AppNames(text=("text", "done"), error=("error",)))
    assert made.events["done"] == made.events["text"]
