import pytest

from deltatape.dialects.openai_responses.kinds import ArgumentsForm, shape_of, tool_name
from deltatape.dialects.openai_responses.request import read_request
from deltatape.model.reply import CallKind
from deltatape.model.request_summary import NOTHING_ASKED


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("function_call", CallKind.FUNCTION),
        ("computer_call", CallKind.BUILT_IN),
        ("local_shell_call", CallKind.BUILT_IN),
        ("shell_call", CallKind.BUILT_IN),
        ("apply_patch_call", CallKind.BUILT_IN),
    ],
)
def test_the_client_runs_what_it_must_send_an_output_for(kind: str, found: CallKind) -> None:
    shape = shape_of({"type": kind}, NOTHING_ASKED)
    assert shape
    assert shape.kind is found


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("web_search_call", "web_search"),
        ("code_interpreter_call", "code_interpreter"),
        ("program", "program"),
        ("brand_new_call", "brand_new"),
    ],
)
def test_the_provider_runs_its_own_tools_and_those_nobody_knows(kind: str, name: str) -> None:
    shape = shape_of({"type": kind}, NOTHING_ASKED)
    assert shape
    assert (shape.kind, shape.name) == (CallKind.SERVER, name)


@pytest.mark.parametrize("item", [{"type": "message"}, {"type": "reasoning"}, {"type": 1}, {}])
def test_other_items_are_no_calls(item: dict[str, object]) -> None:
    assert shape_of(item, NOTHING_ASKED) is None


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"type": "mcp_call"}, CallKind.MCP),
        ({"type": "mcp_approval_request"}, CallKind.MCP),
        ({"type": "shell_call", "environment": {"type": "local"}}, CallKind.BUILT_IN),
        ({"type": "shell_call", "environment": None}, CallKind.BUILT_IN),
        ({"type": "shell_call", "environment": {"type": "container_reference"}}, CallKind.SERVER),
        ({"type": "tool_search_call", "execution": "server"}, CallKind.SERVER),
        ({"type": "tool_search_call", "execution": "client"}, CallKind.BUILT_IN),
    ],
)
def test_where_a_call_runs_may_stand_in_the_item(item: dict[str, object], kind: CallKind) -> None:
    shape = shape_of(item, NOTHING_ASKED)
    assert shape
    assert shape.kind is kind


def test_custom_calls_that_nobody_offered_are_the_search_on_x() -> None:
    item = {"type": "custom_tool_call", "name": "x_keyword_search"}
    asked = read_request(b'{"tools": [{"type": "x_search"}]}')
    offered = read_request(
        b'{"tools": [{"type": "x_search"}, {"type": "custom", "name": "x_keyword_search"}]}'
    )
    found = [shape_of(item, each) for each in (asked, offered, NOTHING_ASKED)]
    kinds = [(shape.kind, shape.form) for shape in found if shape]
    custom = (CallKind.CUSTOM, ArgumentsForm.TEXT)
    assert kinds == [(CallKind.SERVER, ArgumentsForm.FREE), custom, custom]


def test_a_built_in_tool_has_one_name() -> None:
    assert tool_name("computer_use_preview") == "computer"
    assert tool_name("shell") == "shell"


def test_a_computer_call_has_one_action_or_several() -> None:
    several = shape_of({"type": "computer_call", "actions": []}, NOTHING_ASKED)
    assert several
    assert (several.kind, several.field, several.form) == (
        CallKind.BUILT_IN,
        "actions",
        ArgumentsForm.FREE,
    )
    one = shape_of({"type": "computer_call", "action": {}, "actions": []}, NOTHING_ASKED)
    assert one
    assert one.field == "action"
