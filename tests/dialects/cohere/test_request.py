import json

from deltatape.dialects.cohere import Cohere
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary


def read(request: object) -> RequestSummary:
    return Cohere().read_request(json.dumps(request).encode(), "/v2/chat")


def test_what_is_no_object_asks_for_nothing() -> None:
    assert Cohere().read_request(b"[", "") is NOTHING_ASKED


def test_version_2_is_read_as_a_chat_completion() -> None:
    schema = {"type": "object", "required": ["city"]}
    asked = read(
        {
            "model": "command",
            "stream": True,
            "tool_choice": "REQUIRED",
            "tools": [{"type": "function", "function": {"name": "get", "parameters": schema}}],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "tool_plan": "plan",
                    "tool_calls": [{"id": "i", "function": {"name": "get", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "i", "content": [{"type": "document"}]},
            ],
        }
    )
    assert (asked.known, asked.model, asked.stream) == (True, "command", True)
    assert asked.tool_choice == "required"
    tool = asked.tool("get")
    assert tool is not None
    assert tool.parameters == schema
    assert asked.history[1].calls == (RepeatedCall(id="i", name="get", arguments="{}"),)
    assert [message.call_id for message in asked.history] == [None, None, "i"]
    assert read({"messages": [], "tool_choice": "NONE"}).tool_choice == "none"


def test_version_1_has_the_last_message_beside_the_history() -> None:
    asked = read(
        {
            "model": "command",
            "stream": True,
            "preamble": "Be brief.",
            "chat_history": [
                {"role": "USER", "message": "hi"},
                {"role": "CHATBOT", "tool_calls": [{"name": "f", "parameters": {"a": 1}}, 3]},
                {"role": "TOOL", "tool_results": [{"call": {"name": "f"}, "outputs": [{}]}]},
                "no message",
            ],
            "message": "and now?",
            "tool_results": [{"call": {"name": "g"}, "outputs": []}, None],
        }
    )
    assert (asked.model, asked.stream, asked.tool_choice) == ("command", True, None)
    assert [(one.role, one.text, one.call_id) for one in asked.history] == [
        ("system", "Be brief.", None),
        ("user", "hi", None),
        ("assistant", "", None),
        ("tool", "", "f"),
        ("user", "and now?", None),
        ("tool", "", "g"),
    ]
    assert asked.history[2].calls == (RepeatedCall(id=None, name="f", arguments='{"a": 1}'),)


def test_a_message_of_version_1_has_the_same_digest_once_it_is_history() -> None:
    now = read({"message": "hi"})
    later = read({"chat_history": [{"role": "USER", "message": "hi"}], "message": "on"})
    assert now.history[0].digest == later.history[0].digest
    assert read({"message": ""}).history == ()


def test_parameters_of_version_1_become_a_schema() -> None:
    definitions = {"city": {"type": "str", "required": True}, "days": {"type": "List[int]"}, "x": 1}
    asked = read(
        {"message": "m", "tools": [{"name": "f", "parameter_definitions": definitions}, {}, 1]}
    )
    assert [(tool.name, tool.parameters) for tool in asked.tools] == [
        (
            "f",
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {}, "x": {}},
                "required": ["city"],
            },
        )
    ]
