from dataclasses import replace

import pytest

from deltatape.conversation import read_backs, turns
from deltatape.model.turn import Turn
from helpers.chat import FINISH
from helpers.exchanges import USER, asks, assistant, call, digests, result

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get", "put")]
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


def test_a_request_that_names_the_tool_always_does() -> None:
    named = last("required", '{"a":2}')
    digest = replace(named.digest, tool_choice="get", forced=True)
    assert replace(named, digest=digest).forced_to_loop
