"""Observations as the API of Langfuse returns them, and as it exports them."""

import json

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.importers.langfuse import LangfuseImporter
from deltatape.model.exchange import REPORTED, Exchange
from deltatape.model.rule_settings import Settings
from helpers.imported import imported, notes, source

USER = {"role": "user", "content": "Time?"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
ANSWER = {"role": "assistant", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "12:00"}


def observation(**changed: object) -> dict[str, object]:
    return {
        "id": "o1",
        "traceId": "t1",
        "type": "GENERATION",
        "startTime": "2026-11-26T13:37:53.206Z",
        "model": "m",
        "input": {"messages": [USER], "tools": [NOW]},
        "output": ANSWER,
        **changed,
    }


LATER = observation(
    startTime="2026-11-26T13:37:55Z",
    input={"messages": [USER, ANSWER, RESULT], "tools": [NOW]},
    output="It is noon.",
)


def one(**changed: object) -> Exchange:
    (exchange,) = LangfuseImporter().read(source(json.dumps(observation(**changed)).encode()))
    return exchange


@pytest.mark.parametrize(
    "data",
    [
        json.dumps({"id": "t1", "observations": [LATER, observation(), observation(type="SPAN")]}),
        json.dumps({"data": [LATER, observation()], "meta": {"page": 1}}, indent=1),
        json.dumps([observation(), LATER]),
        json.dumps(observation(output=json.dumps(ANSWER))) + "\n" + json.dumps(LATER) + "\n",
    ],
)
def test_a_generation_is_a_call_whatever_the_export(data: str) -> None:
    first, second = imported(data.encode())
    (call,) = analyse(first).reply.tool_calls
    assert (call.id, call.name, call.arguments) == ("call_1", "now", "{}")
    assert analyse(first).request.tools[0].name == "now"
    assert [each.role for each in analyse(second).request.history] == ["user", "assistant", "tool"]
    assert analyse(second).reply.text == "It is noon."
    assert not check_exchanges("x", (first, second), Settings()).reported
    assert notes(first)[0] == f"Langfuse: {REPORTED}"


@pytest.mark.parametrize(
    "output",
    [
        {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]},
        [{"role": "assistant", "content": "hi"}],
        {"role": "model", "content": "hi"},
        "hi",
    ],
)
def test_an_answer_may_have_any_form_of_a_message(output: object) -> None:
    assert analyse(one(output=output)).reply.text == "hi"


def test_an_input_may_be_the_messages_alone() -> None:
    request = analyse(one(input=[USER])).request
    assert [message.text for message in request.history] == ["Time?"]
    assert not request.tools


def test_an_input_that_is_no_conversation_is_left_out() -> None:
    for given in ("Time?", {"question": "Time?"}, [1], []):
        exchange = one(input=given)
        assert exchange.request.body == b""
        assert analyse(exchange).reply.tool_calls


def test_an_output_that_is_no_message_is_no_response() -> None:
    for given in (None, "", {"score": 1}):
        assert one(output=given).response is None


def test_an_error_is_an_answer() -> None:
    failed = one(output=None, level="ERROR", statusMessage="overloaded")
    assert analyse(failed).reply.error == "overloaded"


def test_a_time_that_is_none_comes_first() -> None:
    early = observation(startTime="?", output="early")
    first, _ = imported(json.dumps([observation(), early]).encode())
    assert analyse(first).reply.text == "early"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (json.dumps(observation(input=None, output=None)), "none of which is a generation"),
        (json.dumps(observation())[:-9], "torn"),
    ],
)
def test_other_observations_and_torn_files_are_refused(data: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        imported(data.encode())


@pytest.mark.parametrize("data", [b"", b"{}", b'{"type": "GENERATION"}', b'{"traceId": "a"}'])
def test_other_files_are_not_for_this_importer(data: bytes) -> None:
    assert not LangfuseImporter().claims(source(data))
