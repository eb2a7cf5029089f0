import json

from deltatape.dialects.ai_sdk_ui import AISDKUI
from deltatape.model.asked import NOTHING_ASKED, Asked, RepeatedCall
from helpers.fed import spoilt

Json = dict[str, object]


def read(*messages: object) -> Asked:
    return AISDKUI().read_request(json.dumps({"id": "x", "messages": messages}).encode(), "/")


def tool(state: str, **more: object) -> Json:
    return {"type": "tool-get", "toolCallId": "c", "state": state, "input": {"a": 1}, **more}


def test_what_is_no_object_asks_for_nothing() -> None:
    assert AISDKUI().read_request(b"", "/") is NOTHING_ASKED


def test_parts_are_text_calls_and_results() -> None:
    dynamic = {"type": "dynamic-tool", "toolCallId": "d", "toolName": "f", "state": "output-error"}
    asked = read(
        {"role": "user", "parts": [{"type": "text", "text": "hi"}, {"type": "file"}, 1]},
        {
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "text", "text": "Let me"},
                tool("output-available", output="13"),
                {**dynamic, "errorText": "no"},
                tool("output-available", output=1, providerExecuted=True),
                {"type": "text", "text": " see"},
            ],
        },
        {"role": "user", "content": "old"},
        None,
    )
    assert (asked.known, asked.model, asked.stream, asked.tools) == (True, None, True, ())
    assert [(one.role, one.text, one.call_id) for one in asked.history] == [
        ("user", "hi", None),
        ("assistant", "Let me see", None),
        ("tool", "13", "c"),
        ("tool", "no", "d"),
        ("user", "old", None),
    ]
    assert asked.history[1].calls == (
        RepeatedCall(id="c", name="get", arguments='{"a": 1}'),
        RepeatedCall(id="d", name="f", arguments=""),
    )


def test_an_answer_does_not_change_the_digest_of_its_call() -> None:
    before = read({"role": "assistant", "parts": [tool("input-available")]})
    after = read({"role": "assistant", "parts": [tool("output-available", output={"b": 2})]})
    assert [one.call_id for one in after.history] == [None, "c"]
    assert before.history[0].digest == after.history[0].digest


def test_no_value_of_any_type_anywhere_raises() -> None:
    parts: list[object] = [{"type": "text", "text": "a"}, tool("output-available", output="o")]
    message: Json = {"role": "assistant", "content": "x", "parts": parts}
    for messages in spoilt([message]):
        assert read(*messages).known
