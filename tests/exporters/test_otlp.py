import json
from dataclasses import replace
from typing import Any

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.exporters import export
from deltatape.exporters.otlp import OtlpExporter
from deltatape.model.exchange import EndReason, Exchange
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import TEXT, USER, call, pasted, system
from helpers.responses_socket import call as answered
from helpers.responses_socket import question
from helpers.taped import taped
from helpers.websocket import socket

TOOL = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}


def spans(*exchanges: Exchange) -> list[dict[str, Any]]:
    files = export([analyse(each) for each in exchanges], OtlpExporter(), "1.2").files
    (resource,) = json.loads(files[""])["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert scope["scope"] == {"name": "deltatape", "version": "1.2"}
    found: list[dict[str, Any]] = scope["spans"]
    return found


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def streamed(*chunks: object, **request: object) -> Exchange:
    asked = {"model": "m", "messages": [system("Be brief."), USER], "tools": [TOOL], **request}
    return taped([(20, sse(*chunks))], body=asked, end_ms=30)


def test_a_call_is_a_span_with_its_times_and_messages() -> None:
    (span,) = spans(streamed(*call(arguments='{"a": 1}'), FINISH))
    assert (span["name"], span["kind"]) == ("chat m", 3)
    assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == 30_000_000
    assert int(span["startTimeUnixNano"]) == 1_795_293_361_000_000_000
    assert (len(span["traceId"]), len(span["spanId"])) == (32, 16)
    assert "status" not in span
    said = attributes(span)
    assert said["gen_ai.provider.name"] == "openai"
    assert (said["server.address"], said["server.port"]) == ("api.openai.com", "443")
    assert json.loads(said["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": USER["content"]}]},
    ]
    made = {"type": "tool_call", "id": "c1", "name": "get", "arguments": {"a": 1}}
    assert json.loads(said["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [made], "finish_reason": "tool_call"}
    ]
    assert said["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "tool_call"}]}
    assert json.loads(said["gen_ai.tool.definitions"])[0]["name"] == "get"


@pytest.mark.parametrize("arguments", ['{"a":1}', '{"a": 1', "[1]"])
def test_arguments_that_an_object_would_change_are_their_text(arguments: str) -> None:
    (span,) = spans(streamed(*call(arguments=arguments), FINISH))
    (answer,) = json.loads(attributes(span)["gen_ai.output.messages"])
    assert answer["parts"][0]["arguments"] == arguments


def test_results_of_tools_name_their_call() -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    history = [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c1", "content": "12"},
    ]
    (span,) = spans(streamed(TEXT, choice({}, "stop"), messages=history))
    asked, result = json.loads(attributes(span)["gen_ai.input.messages"])
    assert asked["parts"][0]["type"] == "tool_call"
    assert result == {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": "12"}],
    }


def test_tokens_are_counted_as_the_provider_did() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": True}}
    (span,) = spans(streamed(TEXT, choice({}, "stop"), usage))
    said = attributes(span)
    assert said["gen_ai.usage.input_tokens"] == "3"
    assert "gen_ai.usage.output_tokens" not in said


def test_a_call_that_failed_says_how() -> None:
    cut = streamed(TEXT)
    assert cut.end is not None
    cut = replace(cut, end=replace(cut.end, reason=EndReason.UPSTREAM_RESET))
    refused = pasted({"error": {"message": "no"}}, request={"messages": [USER]}, status=429)
    told = pasted({"error": {"message": "no"}}, request={"messages": [USER]})
    first, second, third = spans(cut, refused, told)
    assert first["status"] == {"code": 2, "message": "upstream_reset"}
    assert (second["status"]["message"], attributes(second)["error.type"]) == ("no", "429")
    assert attributes(third)["error.type"] == "error"
    assert first["traceId"] == second["traceId"]
    assert first["spanId"] != second["spanId"]


def test_an_import_has_no_times_and_a_call_may_have_no_model() -> None:
    exchange = pasted(TEXT, FINISH, request={"messages": [USER]})
    nowhere = replace(exchange, request=replace(exchange.request, upstream="http://[x"))
    port = replace(exchange, request=replace(exchange.request, upstream="http://x:99999"))
    first, second, third = spans(exchange, nowhere, port)
    assert (first["name"], first["startTimeUnixNano"]) == ("chat", "0")
    assert "server.address" not in attributes(second)
    assert "server.port" not in attributes(third)
    unanswered = taped([], framing=None, body={"messages": [USER]}, reason=None)
    (span,) = spans(unanswered)
    assert span["endTimeUnixNano"] == span["startTimeUnixNano"]
    assert attributes(span)["gen_ai.operation.name"] == "chat"


def test_each_response_on_a_websocket_is_a_span() -> None:
    found = spans(socket(question(), *answered(1), question(), *answered(2)))
    assert [attributes(span)["gen_ai.request.model"] for span in found] == ["gpt-5", "gpt-5"]


def test_other_providers_have_the_names_of_the_conventions() -> None:
    exchange = streamed(TEXT, FINISH)
    known = replace(exchange, request=replace(exchange.request, upstream="https://api.mistral.ai"))
    (span,) = spans(known)
    assert attributes(span)["gen_ai.provider.name"] == "mistral_ai"
    local = replace(exchange, request=replace(exchange.request, upstream="http://127.0.0.1:1"))
    (span,) = spans(local)
    assert attributes(span)["gen_ai.provider.name"] == "openai"


def test_what_looks_like_a_key_is_overwritten() -> None:
    key = "sk-" + "fake" * 8
    (span,) = spans(streamed(TEXT, messages=[{"role": "user", "content": key}]))
    assert "fakefake" not in json.dumps(span)


def test_a_request_without_messages_is_left_out() -> None:
    with pytest.raises(UsageError, match="without messages"):
        spans(taped([(1, b"{}")], body={"input": 1}, headers=((b"Content-Type", b"text/plain"),)))
