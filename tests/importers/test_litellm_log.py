import json

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.errors import UsageError
from deltatape.importers.litellm_log import LiteLlmImporter
from deltatape.model.exchange import REPORTED, Exchange
from deltatape.model.finding import Confidence
from deltatape.model.rule_settings import Settings
from helpers.imported import imported, notes, source

USER = {"role": "user", "content": "Which time is it in Gent?"}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "now", "arguments": '{"city": "Gent"}'},
}
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
}
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}


def call(**changed: object) -> dict[str, object]:
    """What LiteLLM logs of a call."""
    return {
        "call_type": "acompletion",
        "stream": True,
        "status": "success",
        "startTime": 5.5,
        "model": "m",
        "api_base": "https://api.example.com/v1/",
        "messages": [USER],
        "response": ANSWER,
        "error_str": None,
        "model_parameters": {"tools": [NOW], "stream": True, "stream_options": {}},
        **changed,
    }


def lines(*calls: object) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in calls).encode()


def one(**changed: object) -> Exchange:
    (exchange,) = LiteLlmImporter().read(source(lines(call(**changed))))
    return exchange


def test_a_call_is_an_exchange_of_messages() -> None:
    exchange = one()
    assert exchange.request.upstream == "https://api.example.com"
    assert exchange.request.path == "/v1/chat/completions"
    asked = {"model": "m", "messages": [USER], "tools": [NOW]}
    assert json.loads(exchange.request.body) == asked
    assert json.loads(exchange.body) == ANSWER
    origin, streamed = notes(exchange)
    assert origin == f"LiteLLM: {REPORTED}; the response is what LiteLLM made of it"
    assert streamed == "LiteLLM: the response was streamed; the log has it whole"
    assert len(notes(one(stream=None, model_parameters={}))) == 1


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(call()).encode(),
        b"\xef\xbb\xbf" + json.dumps([call(), "other"], indent=2).encode(),
        lines(call()),
        lines(call(), {"message": "started"}),
    ],
)
def test_an_object_an_array_and_lines_are_read(data: bytes) -> None:
    assert [each.request.path for each in imported(data)] == ["/v1/chat/completions"]


def test_calls_come_in_the_order_of_their_starts_and_are_compared() -> None:
    empty = {**CALL, "function": {"name": "now", "arguments": "{}"}}
    said = {"role": "assistant", "tool_calls": [empty]}
    history = [USER, said, {"role": "tool", "tool_call_id": "c1", "content": "noon"}]
    done = {"index": 0, "message": {"role": "assistant", "content": "Noon."}}
    answer = {**ANSWER, "choices": [{**done, "finish_reason": "stop"}]}
    later = call(messages=history, startTime=7.5, response=json.dumps(answer))
    report = check_exchanges("x", imported(lines(later, call())), Settings())
    (found,) = (each.finding for each in report.reported)
    assert (found.code, found.exchange) == ("C002", 2)
    # LiteLLM may have written both: nobody is to blame.
    assert (found.blame, found.confidence) == (None, Confidence.POSSIBLE)


def test_a_wrong_call_in_a_log_blames_nobody() -> None:
    cut = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": '{"a"'}}
    message = {"role": "assistant", "content": None, "tool_calls": [cut]}
    wrong = {**ANSWER, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    report = check_exchanges("x", imported(lines(call(response=json.dumps(wrong)))), Settings())
    assert report.reported
    assert {each.finding.blame for each in report.reported} == {None}


@pytest.mark.parametrize(
    ("kind", "path", "member"),
    [
        ("anthropic_messages", "/v1/messages", "messages"),
        ("aresponses", "/v1/responses", "input"),
        ("atext_completion", "/v1/completions", "prompt"),
        ("embedding", "/embedding", "messages"),
    ],
)
def test_a_type_of_call_names_an_api(kind: str, path: str, member: str) -> None:
    exchange = one(call_type=kind, api_base=None)
    assert (exchange.request.upstream, exchange.request.path) == ("", path)
    assert json.loads(exchange.request.body)[member] == [USER]


@pytest.mark.parametrize(
    ("information", "status"),
    [
        ({"error_code": "429"}, 429),
        ({"error_code": "99"}, 500),
        ({"error_code": "x"}, 500),
        (None, 500),
    ],
)
def test_a_failed_call_is_an_error(information: object, status: int) -> None:
    exchange = one(response={}, error_str="slow down", error_information=information)
    assert exchange.response is not None
    assert exchange.response.status == status
    assert json.loads(exchange.body) == {"error": {"message": "slow down"}}


def test_a_response_that_was_not_logged_is_told() -> None:
    hidden = one(response="redacted-by-litellm", startTime=None)
    assert hidden.response is None
    assert notes(hidden)[-1] == "LiteLLM: the log has no response: redacted-by-litellm"
    assert notes(one(response={}))[-1] == "LiteLLM: the log has no response"
    assert notes(one(response="{torn"))[-1] == "LiteLLM: the log has no response: {torn"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (json.dumps(call()).encode()[:-9], "JSON that is torn"),
        (lines(call()) + b"{\n", "line 2 is no JSON object"),
        (lines(call()) + b"[1]\n", "line 2 is no JSON object"),
    ],
)
def test_a_damaged_log_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=f"x: is a log of LiteLLM, but {problem}"):
        imported(data)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"messages": [], "response": {}}', b'x "call_type"']
)
def test_what_is_no_log_is_not_for_this_importer(data: bytes) -> None:
    assert not LiteLlmImporter().claims(source(data))
