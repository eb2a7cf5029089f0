import pytest

from deltatape.dialects._chat.names import merge_name
from deltatape.model.asked import NOTHING_ASKED, Asked, ToolSpec


def asked(*names: str) -> Asked:
    tools = tuple(ToolSpec(name=name, parameters=None) for name in names)
    return Asked(known=True, model=None, stream=True, tools=tools, tool_choice=None, history=())


@pytest.mark.parametrize(
    ("old", "new", "begun", "tools", "name", "code"),
    [
        ("", "get", True, (), "get", "T021"),
        ("get", "get", True, (), "get", "T009"),
        ("ge", "t", False, (), "get", "T021"),
        ("ge", "t", False, ("get",), "get", "T021"),
        ("old", "get", False, ("get",), "get", "T021"),
        ("ge", "get", False, (), "get", "T021"),
        ("get", "getget", False, ("getgetget",), "getgetget", "T021"),
        ("get", "put", True, ("put",), "get", "T021"),
        ("x" * 1001, "get", False, (), "x" * 1001, "T021"),
        ("edit_ex", "isting_file", False, ("other",), "edit_existing_file", "T021"),
    ],
)
def test_the_offered_tools_decide_whether_pieces_are_one_name(
    old: str,
    new: str,
    begun: bool,  # noqa: FBT001
    tools: tuple[str, ...],
    name: str,
    code: str,
) -> None:
    naming = merge_name(old, new, begun=begun, asked=asked(*tools) if tools else NOTHING_ASKED)
    assert (naming.name, naming.code) == (name, code)
    assert repr(new) in naming.detail
