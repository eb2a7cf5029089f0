import pytest

from deltatape.model.exchange import Exchange
from deltatape.mutate._asked import needs
from helpers.mutated import NEEDS

FREE = {"type": "object", "properties": {}}


def asked(request: dict[str, object]) -> Exchange:
    """An exchange whose request is this."""
    return Exchange.from_body(b"{}", content_type="", url="http://127.0.0.1/", request=request)


@pytest.mark.parametrize(
    "tool",
    [
        lambda schema: {"function": {"name": "f", "parameters": schema}},
        lambda schema: {"name": "f", "parameters": schema},
        lambda schema: {"name": "f", "input_schema": schema},
    ],
)
def test_what_a_tool_requires_is_read_in_each_way_of_declaring_it(tool: object) -> None:
    assert callable(tool)
    assert needs(asked({"tools": [{"name": "g"}, tool(NEEDS)]}), "f") is True
    assert needs(asked({"tools": [tool(FREE)]}), "f") is False


def test_what_converse_declares_is_read() -> None:
    spec = {"toolSpec": {"name": "f", "inputSchema": {"json": NEEDS}}}
    assert needs(asked({"toolConfig": {"tools": [spec]}}), "f") is True


def test_a_tool_without_schema_and_one_that_is_not_there_are_unknown() -> None:
    request: dict[str, object] = {"tools": [{"name": "f"}]}
    assert needs(asked(request), "f") is None
    assert needs(asked(request), "g") is None
    assert needs(asked({}), "f") is None
