"""The chat endpoint against the stream that it once made nameless calls of.

In a process of its own: it inherits the base URL from this one's environment.
"""

# ruff: noqa: INP001 - programs in a folder, no package
import pytest
from programs import ask


@pytest.mark.tape("../../recordings/incidents/3-app-events/fixed.tape")
def test_a_call_reaches_the_page_with_its_name_and_arguments() -> None:
    """Whole, in one event, and not a chunk of it in each."""
    told = ask("Analyze TSLA")
    calls = [(one["name"], one["arguments"]) for one in told if one["type"] == "tool_call"]
    assert calls == [("get_stock_analysis", {"symbol": "TSLA", "include_news": True})]
    assert told[-1]["type"] == "done"
