import json

import pytest

from deltatape.dialects.openai_responses.request import read_request
from deltatape.model.request_summary import NOTHING_ASKED, Message, RequestSummary


def asked(**request: object) -> RequestSummary:
    return read_request(json.dumps(request).encode())


def history(*items: object) -> tuple[Message, ...]:
    return asked(input=list(items)).history


def test_model_stream_and_plain_input_are_read() -> None:
    found = asked(model="m", stream=True, input="Hi", instructions="Be kind.")
    assert (found.known, found.model, found.stream) == (True, "m", True)
    assert [(one.role, one.text) for one in found.history] == [
        ("system", "Be kind."),
        ("user", "Hi"),
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
def test_what_is_not_an_object_asks_nothing(body: bytes) -> None:
    assert read_request(body) == NOTHING_ASKED


def test_tools_of_all_kinds_are_read() -> None:
    schema = {"type": "object"}
    found = asked(
        tools=[
            {"type": "function", "name": "get", "parameters": schema},
            {"type": "custom", "name": "sql"},
            {"type": "function", "function": {"name": "nested", "parameters": schema}},
            {"type": "web_search_preview"},
            {"type": "mcp", "server_label": "dice"},
            {"type": "namespace", "name": "crm", "tools": [{"name": "find"}, {"x": 1}, 3]},
            {},
            3,
        ],
        input=[{"type": "tool_search_output", "call_id": "c", "tools": [{"name": "loaded"}]}, 3],
    )
    assert [(tool.name, tool.parameters) for tool in found.tools] == [
        ("get", schema),
        ("sql", None),
        ("nested", schema),
        ("web_search", None),
        ("dice", None),
        ("find", None),
        ("loaded", None),
    ]


@pytest.mark.parametrize(
    ("choice", "read"),
    [
        (None, None),
        ("required", "required"),
        ({"type": "function", "name": "get"}, "get"),
        ({"type": "allowed_tools", "mode": "auto", "tools": []}, "auto"),
        ({"type": "mcp", "server_label": "dice"}, "dice"),
        ({"type": "computer_use_preview"}, "computer"),
        ({}, None),
        (3, None),
    ],
)
def test_the_tool_choice_is_read(choice: object, read: str | None) -> None:
    assert asked(tool_choice=choice).tool_choice == read


def test_calls_and_their_outputs_are_messages_of_their_own() -> None:
    found = history(
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"text": "Wait."}]},
        {"type": "function_call", "call_id": "c1", "name": "get", "arguments": '{ "a":1}'},
        {"type": "custom_tool_call", "call_id": "c2", "name": "sql", "input": "SELECT"},
        {"type": "shell_call", "call_id": "c3", "action": {"commands": ["ls"]}},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"text": "two"}]},
        {"type": "shell_call_output", "call_id": "c3", "output": []},
    )
    assert [one.role for one in found] == ["user", *["assistant"] * 5, *["tool"] * 3]
    calls = [(call.id, call.name, call.arguments) for one in found for call in one.calls]
    assert calls == [
        ("c1", "get", '{ "a":1}'),
        ("c2", "sql", "SELECT"),
    ]
    assert [(one.call_id, one.text) for one in found[6:]] == [
        ("c1", "one"),
        ("c2", "two"),
        ("c3", ""),
    ]
    assert len({one.digest for one in found}) == len(found)


def test_what_the_provider_ran_is_neither_a_call_nor_a_result_of_ours() -> None:
    found = history(
        {"type": "web_search_call", "id": "ws_1", "action": {}},
        {"type": "mcp_call", "id": "mcp_1", "name": "roll", "arguments": "{}"},
        {"type": "tool_search_output", "call_id": None, "tools": []},
    )
    assert [(one.role, one.calls, one.call_id) for one in found] == [("assistant", (), None)] * 3


def test_calls_that_are_not_compared_own_their_results_all_the_same() -> None:
    found = history(
        {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "wait"}},
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "roll", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "get", "arguments": "{}"},
        {"type": "image_generation_call", "result": ""},
    )
    assert [one.owns for one in found] == [("c1", "cu_1"), ("mcpr_1",), (), ()]


def test_answers_with_names_of_their_own_are_results() -> None:
    found = history(
        {"type": "local_shell_call_output", "id": "c1", "output": "x"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    )
    assert [(one.role, one.call_id) for one in found] == [("tool", "c1"), ("tool", "mcpr_1")]


def test_a_reply_repeated_by_reference_is_nobody_s_words() -> None:
    found = history(
        {"role": "user", "content": "Hi"},
        {"type": "message", "role": "assistant", "content": "Wait."},
        {"type": "item_reference", "id": "fc_1"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"role": "assistant", "content": "Done."},
    )
    roles = [one.role for one in found]
    assert roles == ["user", "item_reference", "item_reference", "tool", "assistant"]


def test_digests_are_of_the_item_alone() -> None:
    item = {"role": "user", "content": "Hi"}
    one, two = history(item, {"content": "Hi", "role": "user"})
    assert one.digest == two.digest
    assert asked(input="Hi").history[0].digest == one.digest


def test_instructions_stand_beside_the_history_and_system_messages_in_it() -> None:
    assert asked(instructions="Be kind.", input="Hi").instructions
    system = {"role": "system", "content": "Be kind."}
    assert not asked(input=[system]).instructions


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, False),
        ({"prompt": {"id": "pmpt_fake"}}, True),
        ({"tools": [{"type": "tool_search"}]}, False),
        ({"tools": [{"type": "tool_search"}], "previous_response_id": "resp_fake"}, True),
        ({"tools": [{"type": "tool_search"}], "conversation": "conv_fake"}, True),
        ({"tools": [{"type": "web_search"}], "previous_response_id": "resp_fake"}, False),
    ],
)
def test_prompts_and_searches_that_are_not_here_bring_tools(
    members: dict[str, object], *, expected: bool
) -> None:
    assert asked(**members).tools_elsewhere is expected


@pytest.mark.parametrize(("tools", "calls"), [(["x_search"], 0), ([], 1)])
def test_a_custom_call_behind_a_search_on_x_is_the_provider_s(tools: list[str], calls: int) -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "x_keyword_search", "input": "a"}
    found = asked(tools=[{"type": kind} for kind in tools], input=[call])
    assert [len(message.calls) for message in found.history] == [calls]
