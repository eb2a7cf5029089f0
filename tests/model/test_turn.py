from dataclasses import replace

import pytest

from deltatape.conversation import read_backs, turns
from deltatape.model.turn import Turn
from helpers.chat import FINISH
from helpers.exchanges import USER, asks, assistant, call, digests, result

TOOLS = [{"type": "function", "function": {"name": "get"}}]
CALLED = assistant(("c1", "get", '{"a":1}'))


def last(choice: str | None, arguments: str = '{"a":1}') -> Turn:
    """The turn in which a result comes, under this tool choice, and the tool is called again."""
    more = {"tools": TOOLS} if choice is None else {"tools": TOOLS, "tool_choice": choice}
    again = asks(USER, CALLED, result("c1"), **more)
    every = digests(
        (asks(USER, tools=TOOLS), [*call(), FINISH]), (again, [*call("get", arguments), FINISH])
    )
    return turns(every, read_backs(every))[-1]


@pytest.mark.parametrize(
    ("choice", "arguments", "forced"),
    [
        ("required", '{"a":1}', True),
        ("required", '{"a":2}', False),
        ("auto", '{"a":1}', False),
        (None, '{"a":1}', False),
    ],
)
def test_a_request_with_results_may_force_a_loop(
    choice: str | None, arguments: str, *, forced: bool
) -> None:
    assert last(choice, arguments).forced_to_loop is forced


def test_a_tool_that_was_not_called_yet_may_end_the_run() -> None:
    again = last("required")
    assert not replace(again, digest=replace(again.digest, tools=("get", "put"))).forced_to_loop
    named = replace(again.digest, tools=("get", "put"), tool_choice="get", forced=True)
    assert replace(again, digest=named).forced_to_loop
