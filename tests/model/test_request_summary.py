from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary, ToolSpec


def test_a_tool_is_found_by_its_name_the_first_of_it() -> None:
    first = ToolSpec(name="get", parameters={"type": "object"})
    second = ToolSpec(name="get", parameters=None)
    asked = RequestSummary(
        known=True,
        model="m",
        stream=True,
        tools=(first, second),
        tool_choice=None,
        history=(),
    )
    assert asked.tool("get") is first
    assert asked.tool("put") is None
    assert asked.tool(None) is None


def test_nothing_is_known_of_a_request_that_was_not_recorded() -> None:
    assert not NOTHING_ASKED.known
    assert NOTHING_ASKED.tool("get") is None
