"""Spans as OpenLLMetry 0.62 and the SDK of Langfuse 5 export them by the SDK of Python."""

import json
from collections.abc import Mapping

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.importers.otel_spans import SpansImporter
from deltatape.model.exchange import REPORTED, Exchange
from deltatape.model.rule_settings import Settings
from helpers.imported import imported, notes, source

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = {"type": "tool_call", "name": "now", "id": "call_1", "arguments": {"city": "Gent"}}


def said(role: str, *parts: object, **more: object) -> dict[str, object]:
    texts = [{"type": "text", "content": each} if isinstance(each, str) else each for each in parts]
    return {"role": role, "parts": texts, **more}


ASKED = [said("system", "Be brief."), said("user", "Which time is it in Gent?")]
FIRST = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.response.id": "x",
    "gen_ai.input.messages": json.dumps(ASKED),
    "gen_ai.output.messages": json.dumps([said("assistant", "", CALL, finish_reason="tool_call")]),
    "gen_ai.tool.definitions": json.dumps(
        [{"type": "function", "name": "now", "description": "The time.", "parameters": PARAMETERS}]
    ),
}
RESULT = said("tool", {"type": "tool_call_response", "id": "call_1", "response": "12:00"})
SECOND = {
    **FIRST,
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.input.messages": json.dumps([*ASKED, said("assistant", CALL), RESULT]),
    "gen_ai.output.messages": json.dumps([said("assistant", "Noon.", finish_reason="")]),
}


def value(found: object) -> dict[str, object]:
    """A value as OTLP writes it."""
    if isinstance(found, list):
        return {"arrayValue": {"values": [value(each) for each in found]}}
    if isinstance(found, dict):
        return {"kvlistValue": {"values": pairs(found)}}
    if found is None:
        return {}
    return {"intValue": str(found)} if isinstance(found, int) else {"stringValue": found}


def pairs(attributes: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"key": key, "value": value(each)} for key, each in attributes.items()]


def otlp(*spans: Mapping[str, object]) -> bytes:
    listed = [
        {"traceId": "0a", "startTimeUnixNano": str(9 - at), "attributes": pairs(attributes)}
        for at, attributes in enumerate(spans)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]}).encode()


def printed(*spans: Mapping[str, object]) -> bytes:
    """Spans as `ConsoleSpanExporter` prints them."""
    texts = [
        json.dumps(
            {
                "name": "chat",
                "context": {"trace_id": "0x0a"},
                "start_time": f"2026-11-26T13:36:0{at}.5Z",
                "attributes": attributes,
            },
            indent=4,
        )
        for at, attributes in enumerate(spans)
    ]
    return "\n".join((*texts, "")).encode()


def one(**attributes: object) -> Exchange:
    (exchange,) = SpansImporter().read(source(otlp({**FIRST, **attributes})))
    return exchange


@pytest.mark.parametrize(
    "data",
    [
        otlp(SECOND, FIRST),
        printed(FIRST, SECOND),
        b"\xef\xbb\xbf" + otlp(FIRST) + b"\n" + otlp(SECOND) + b"\n\n",
        b"[" + printed(FIRST).strip() + b"," + printed(SECOND).strip() + b"]",
    ],
)
def test_a_span_is_a_call_and_its_messages_are_compared_with_the_next(data: bytes) -> None:
    first, second = imported(data)
    (call,) = analyse(first).reply.tool_calls
    assert (call.id, call.name, call.arguments) == ("call_1", "now", '{"city": "Gent"}')
    asked = analyse(second)
    assert [message.role for message in asked.request.history] == [
        *("system", "user", "assistant", "tool")
    ]
    assert asked.request.tools[0].parameters == PARAMETERS
    assert (asked.reply.text, asked.reply.finish_reason_raw) == ("Noon.", "stop")
    assert not check_exchanges("x", (first, second), Settings()).reported
    assert notes(first)[0] == f"OpenTelemetry: {REPORTED}"


def test_spans_of_agents_and_tools_are_left_out() -> None:
    agent = {**FIRST, "gen_ai.operation.name": "invoke_agent"}
    assert len(imported(otlp(agent, FIRST, {"http.route": "/"}))) == 1


def test_what_the_conventions_know_besides_text_is_kept() -> None:
    parts = [
        {"type": "reasoning", "content": "Hm."},
        {"type": "refusal", "content": "No."},
        {"type": "blob", "content": "AA=="},
        {"type": "text", "content": "Well"},
        "odd",
    ]
    exchange = one(
        **{
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Rules."}]),
            "gen_ai.response.finish_reasons": [],
            "server.address": "api.example.com",
        }
    )
    (choice,) = analyse(exchange).reply.choices
    assert (choice.text, choice.reasoning) == ("Well", "Hm.")
    assert choice.refusal == "No."
    assert analyse(exchange).request.history[0].text == "Rules."
    assert exchange.request.upstream == "https://api.example.com"
    assert "OpenTelemetry: has no finish reason; it was told by the message" in notes(exchange)


def test_a_server_has_its_port() -> None:
    exchange = one(**{"server.address": "localhost", "server.port": 8080})
    assert exchange.request.upstream == "http://localhost:8080"
    assert not one(**{"server.address": "a\nb"}).request.upstream


def test_messages_of_one_role_may_hold_results_and_words() -> None:
    both = said("user", {"type": "tool_call_response", "id": "c", "result": {"a": 1}}, "And now?")
    exchange = one(**{"gen_ai.input.messages": json.dumps([both])})
    history = analyse(exchange).request.history
    assert [(each.role, each.text) for each in history] == [
        *(("tool", '{"a": 1}'), ("user", "And now?"))
    ]


def test_calls_without_ids_get_the_same_in_answer_and_history() -> None:
    bare = {"type": "tool_call", "name": "now", "arguments": "{}"}
    answer = said("tool", {"type": "tool_call_response", "response": "12:00"})
    stray = said("tool", {"type": "tool_call_response", "response": "13:00"})
    first = {**FIRST, "gen_ai.output.messages": json.dumps([said("assistant", bare)])}
    asked = [*ASKED, said("assistant", bare), answer, stray]
    second = {**SECOND, "gen_ai.input.messages": json.dumps(asked)}
    one, two = imported(printed(first, second))
    assert [call.id for call in analyse(one).reply.tool_calls] == ["call_1"]
    history = analyse(two).request.history
    assert [call.id for call in history[2].calls] == ["call_1"]
    assert history[3].call_id == "call_1"
    assert "OpenTelemetry: has no ids for 1 call; they got one here" in notes(two)


def test_messages_that_were_cut_are_told_and_left_out() -> None:
    cut = str(FIRST["gen_ai.input.messages"])[:20]
    exchange = one(**{"gen_ai.input.messages": cut, "gen_ai.tool.definitions": ""})
    assert exchange.request.body == b""
    assert "OpenTelemetry: gen_ai.input.messages is cut or no JSON, and was left out" in notes(
        exchange
    )
    exchange = one(**{"gen_ai.output.messages": '[{"role'})
    assert exchange.response is None


def test_a_failed_call_is_an_error() -> None:
    exchange = one(**{"gen_ai.output.messages": "[]", "error.type": "500"})
    assert analyse(exchange).reply.error == "500"


def test_tools_in_other_forms_are_read() -> None:
    tools = [
        {"type": "function", "function": {"name": "a"}},
        {"name": "b", "input_schema": PARAMETERS},
    ]
    found = analyse(
        one(**{"gen_ai.tool.definitions": tools, "gen_ai.other": {"a": [1], "b": None}})
    )
    assert [(tool.name, tool.parameters) for tool in found.request.tools] == [
        *(("a", None), ("b", PARAMETERS))
    ]


def test_attributes_with_numbers_are_messages_too() -> None:
    old = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Time?",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "call_1",
        "gen_ai.prompt.1.tool_calls.0.name": "now",
        "gen_ai.prompt.1.tool_calls.0.arguments": "{}",
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "call_1",
        "gen_ai.prompt.2.content": "12:00",
        "gen_ai.completion.0.content": "Noon.",
        "gen_ai.completion.0.finish_reason": "stop",
        "llm.request.functions.0.name": "now",
        "llm.request.functions.0.parameters": json.dumps(PARAMETERS),
    }
    (exchange,) = imported(printed(old))
    found = analyse(exchange)
    assert [each.call_id for each in found.request.history] == [None, None, "call_1"]
    assert found.request.history[1].calls[0].name == "now"
    assert found.request.tools[0].parameters == PARAMETERS
    assert found.reply.text == "Noon."


def test_what_langfuse_adds_to_spans_is_read() -> None:
    message = {"role": "assistant", "content": "Noon."}
    made = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": json.dumps(
            {"tools": [], "messages": [{"role": "user", "content": "Time?"}]}
        ),
        "langfuse.observation.output": json.dumps(message),
        "langfuse.observation.model.name": "m",
    }
    (exchange,) = imported(otlp(made))
    assert analyse(exchange).reply.text == "Noon."
    assert notes(exchange)[0].startswith("Langfuse: ")


def test_times_that_are_none_come_first() -> None:
    spans = json.loads(printed(FIRST, SECOND).replace(b"}\n{", b"},{").join((b"[", b"]")))
    spans[0]["start_time"], spans[1]["start_time"] = "2026-11-26T00:00:00Z", "?"
    first, _ = imported(json.dumps(spans).encode())
    assert analyse(first).reply.text == "Noon."


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (otlp({"gen_ai.operation.name": "chat"}), "let the instrumentation capture messages"),
        (otlp(FIRST)[:-20], "torn"),
        (printed(FIRST) + b"}\n", "text that begins like JSON"),
    ],
)
def test_spans_without_messages_and_torn_files_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        imported(data)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"trace_id": "gen"}', b'x"trace_id" gen_ai.'])
def test_other_files_are_not_for_this_importer(data: bytes) -> None:
    assert not SpansImporter().claims(source(data))
