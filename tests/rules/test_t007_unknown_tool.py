import pytest

from deltatape.diagnose.check import check
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame
from helpers.chat import FINISH, calls, request
from helpers.exchanges import call, found, one, pasted
from helpers.messages import END, URL, piece, sse, start, stop, tool_block

TOOLS = request(get_weather={}, get_time={})


@pytest.mark.parametrize(
    ("name", "blame", "meant"),
    [
        ("get_wether", Blame.MODEL, "; the nearest is get_weather"),
        ("get_time<|channel|>", Blame.UPSTREAM, "; the nearest is get_time"),
        ("zzz", Blame.MODEL, ""),
    ],
)
def test_a_name_that_was_not_offered_is_reported_with_the_nearest(
    name: str, blame: Blame, meant: str
) -> None:
    finding = one(pasted(*call(name), FINISH, request=TOOLS), "T007")
    assert finding.blame is blame
    assert finding.message.endswith(f"none of the 2 tools of the request{meant}")


def test_an_offered_tool_and_a_request_without_tools_are_fine() -> None:
    assert not found(pasted(*call("get_time"), FINISH, request=TOOLS), "T007")
    assert not found(pasted(*call("get_time"), FINISH), "T007")


def test_a_call_without_a_name_is_told_by_another_rule() -> None:
    nameless = calls({"index": 0, "id": "c1", "function": {"arguments": "{}"}})
    assert not found(pasted(nameless, FINISH, request=TOOLS), "T007")


def test_tools_that_the_request_does_not_name_are_unknown_to_nobody() -> None:
    base = {"model": "m", "max_tokens": 1, "messages": []}
    tools: list[object] = [{"name": "get_time", "input_schema": {}}]
    frames = (start(), tool_block(name="navigate"), piece("{}"), stop(), *END)

    def codes(*more: object) -> list[str]:
        exchange = Exchange.from_body(
            sse(*frames),
            content_type="text/event-stream",
            url=URL,
            request={**base, "tools": [*tools, *more]},
        )
        return [finding.code for finding in check(exchange)]

    assert codes() == ["T007"]
    assert codes({"type": "browser_toolset_20260801"}) == []
