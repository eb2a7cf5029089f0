import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.why.event_kinds import news
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import TEXT, call, pasted


def told(*chunks: object) -> tuple[str, ...]:
    return news(analyse(pasted(*chunks)))


def test_a_call_is_told_fragment_by_fragment() -> None:
    assert told(TEXT, *call(), FINISH) == (
        "text: 'Hello'",
        "call 0 opens: get (c1)",
        """call 0 arguments: '{"a'""",
        "call 0 arguments: '\":1}'",
        "ends: tool_calls",
        "[DONE]",
    )


def test_an_event_may_bring_several_things() -> None:
    whole = calls(entry(0, name="get", arguments="{}"), entry(1, "c2", arguments="[]"))
    first, *_ = told(whole)
    assert first == (
        "call 0 opens: get (no id); call 0 arguments: '{}';"
        " call 1 opens: no name (c2); call 1 arguments: '[]'"
    )
    assert told(choice({"content": "bye"}, "stop"))[0] == "text: 'bye'; ends: stop"


def test_an_empty_piece_of_arguments_is_nothing_new() -> None:
    empty = calls(entry(0, arguments=""))
    assert told(call()[0], empty)[1].startswith("nothing new: ")


@pytest.mark.parametrize(
    ("delta", "new"),
    [
        ({"reasoning_content": "hm"}, "reasoning: 'hm'"),
        ({"refusal": "no"}, "refusal: 'no'"),
        ({"content": " \n"}, "text: ' \n'"),
    ],
)
def test_text_is_told_by_its_kind(delta: dict[str, object], new: str) -> None:
    assert told(choice(delta))[0] == new


def test_an_event_that_brings_nothing_is_shown() -> None:
    assert told(choice({"role": "assistant"}))[0].startswith('nothing new: {"')
    assert told({"error": {"code": 1}})[0] == "ends: error"
