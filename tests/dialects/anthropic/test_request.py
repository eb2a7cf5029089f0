import json

import pytest

from deltatape.dialects._anthropic.request import read_request
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary

USER = {"role": "user", "content": "Hi"}
CACHED = {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"ttl": 1}}]}


def asked(**members: object) -> RequestSummary:
    return read_request(json.dumps({"model": "m", "messages": [], **members}).encode())


def test_what_is_no_object_asks_nothing() -> None:
    assert read_request(b"[]") == NOTHING_ASKED


def test_model_and_stream_are_read() -> None:
    found = asked(stream=True)
    assert (found.known, found.model, found.stream) == (True, "m", True)
    assert not asked(stream="yes").stream


def test_tools_of_the_provider_have_no_schema() -> None:
    schema = {"type": "object"}
    tools = asked(
        tools=[
            {"name": "get", "input_schema": schema},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "mcp_toolset"},
            None,
        ]
    ).tools
    assert [(tool.name, tool.parameters) for tool in tools] == [
        ("get", schema),
        ("web_search", None),
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "get"}, "get"),
        ({"type": "new"}, None),
        ("auto", None),
        (None, None),
    ],
)
def test_tool_choice_is_said_in_common_words(choice: object, expected: str | None) -> None:
    assert asked(tool_choice=choice).tool_choice == expected


def test_the_system_prompt_is_the_first_message() -> None:
    history = asked(system="Be kind.", messages=[USER]).history
    assert [(one.role, one.text) for one in history] == [("system", "Be kind."), ("user", "Hi")]
    blocks = asked(system=[{"type": "text", "text": "Be kind."}]).history
    assert blocks[0] == history[0]


def test_several_results_in_one_message_are_messages_of_their_own() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
        {
            "type": "tool_result",
            "tool_use_id": "c2",
            "is_error": True,
            "content": [{"type": "text", "text": "2"}],
        },
        {"type": "tool_result", "tool_use_id": "c3"},
        {"type": "text", "text": "Go on."},
    ]
    history = asked(messages=[{"role": "user", "content": content}]).history
    assert [(one.role, one.text, one.call_id) for one in history] == [
        ("tool", "1", "c1"),
        ("tool", "2", "c2"),
        ("tool", "", "c3"),
        ("user", "Go on.", None),
    ]
    assert len({one.digest for one in history}) == 4
    alone = asked(messages=[{"role": "user", "content": content[:1]}]).history
    assert alone == history[:1]


def test_calls_are_repeated_with_their_exact_source() -> None:
    body = (
        b'{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},'
        b'{"type":"text","text":"Look: "},'
        b'{"type":"tool_use","id":"c1","name":"get","input":{"a" : 1.0}},'
        b'{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},'
        b'{"type":"tool_use","id":"c2","name":"put"},7]}]}'
    )
    (message,) = read_request(body).history
    assert (message.role, message.text) == ("assistant", "Look: ")
    assert message.calls == (
        RepeatedCall(id="c1", name="get", arguments='{"a" : 1.0}'),
        RepeatedCall(id="c2", name="put", arguments=""),
    )


def test_marks_for_the_cache_do_not_change_what_was_said() -> None:
    plain, marked = asked(messages=[USER]).history, asked(messages=[CACHED]).history
    assert plain == marked
    other = asked(messages=[{"role": "user", "content": "Hi!"}]).history
    assert other[0].digest != plain[0].digest


def test_odd_messages_are_left_out_or_empty() -> None:
    history = asked(messages=[None, {"role": 1, "content": 2}]).history
    assert [(one.role, one.text, one.calls) for one in history] == [("", "", ())]


def test_tools_may_be_added_by_a_message() -> None:
    tool = {"type": "tool_definition", "definition": {"name": "later", "input_schema": {}}}
    reference = {"type": "tool_reference", "tool_name": "get"}
    blocks = [{"type": "tool_addition", "tool": each} for each in (tool, reference, None)]
    found = asked(messages=[{"role": "user", "content": blocks}, 1, USER])
    assert [spec.name for spec in found.tools] == ["later"]
    assert not found.tools_elsewhere


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "browser_toolset_20260801"}, True),
        ({"type": "mcp_toolset", "mcp_server_name": "s"}, False),
        ({"type": "bash_20250124", "name": "bash"}, False),
        ({}, False),
        (1, False),
    ],
)
def test_a_toolset_offers_tools_that_the_request_does_not_name(
    tool: object, *, expected: bool
) -> None:
    assert asked(tools=[tool]).tools_elsewhere is expected
