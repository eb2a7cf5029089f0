import pytest

from deltatape.dialects._cohere_v1 import is_v1, v1_table
from deltatape.dialects._table import TableReducer
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.fed import codes, events


def reply_to(*frames: object) -> Reply:
    reducer = TableReducer(v1_table("some"), NOTHING_ASKED)
    for event in events(*frames):
        reducer.feed(event)
    return reducer.finish(cut=False)


@pytest.mark.parametrize(
    ("frame", "ours"),
    [
        ({"event_type": "stream-start", "generation_id": "g"}, True),
        ({"event_type": "tool-calls-chunk"}, True),
        ({"event_type": "step.start"}, False),
        ({"generation_id": "g", "text": ""}, True),
        ({"text": ""}, False),
    ],
)
def test_its_objects_are_known(frame: dict[str, object], ours: bool) -> None:  # noqa: FBT001
    assert is_v1(frame) is ours


def test_a_plan_that_is_repeated_is_said_once_and_calls_come_from_the_list() -> None:
    calls = [{"name": "get", "parameters": {"a": 1}}]
    end = {"finish_reason": "COMPLETE", "response": {"text": "I look.", "tool_calls": calls}}
    reply = reply_to(
        {"event_type": "tool-calls-chunk", "text": "I "},
        {"event_type": "tool-calls-chunk", "text": "look."},
        {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "name": "get"}},
        {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "parameters": "{"}},
        {"event_type": "tool-calls-generation", "text": "I look.", "tool_calls": calls},
        {"event_type": "stream-end", **end},
    )
    assert (reply.dialect, reply.text, reply.finish_reason_raw) == ("some", "I look.", "COMPLETE")
    assert [(one.name, one.arguments) for one in reply.tool_calls] == [("get", '{"a": 1}')]
    assert codes(reply) == ["T015"]


def test_a_call_without_the_list_is_cut() -> None:
    delta = {"index": 0, "name": "get", "parameters": "{}"}
    reply = reply_to({"event_type": "tool-calls-chunk", "tool_call_delta": delta})
    assert [one.status for one in reply.tool_calls] == [CallStatus.TRUNCATED]
