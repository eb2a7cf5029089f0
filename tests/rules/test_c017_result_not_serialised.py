from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import USER, asks, assistant, call, digests, result

CALL = ("c1", "get", '{"a":1}')


def named(
    text: str, repeated: tuple[str | None, str | None, str] = CALL, *, known: bool = True
) -> list[Finding]:
    history = [assistant(repeated)] if known else [USER]
    tape = digests((asks(USER), [*call(), FINISH]), (asks(USER, *history, result("c1", text)), []))
    return [each for each in check_conversation(tape) if each.code == "C017"]


def test_an_object_turned_into_text_says_whose_result_it_is() -> None:
    (finding,) = named(" [object Object]\n")
    assert finding.message == "the result of get is '[object Object]': an object turned into text"
    assert (finding.exchange, finding.severity) == (2, Severity.ERROR)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert finding.excluded


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[object Promise]", "an object turned into text"),
        ("[object Object],[object Object]", "an object turned into text"),
        ('"[object Object]"', "an object turned into text"),
        ('{"result": "[object Object]"}', "an object turned into text"),
        ("Promise { <pending> }", "a promise that nobody awaited"),
        ("<coroutine object get at 0x7f5c1c0a2b40>", "a coroutine that nobody awaited"),
        (
            "<Task pending name='Task-2' coro=<get() running at app.py:3>>",
            "a task that nobody awaited",
        ),
        ("<Future pending>", "a task that nobody awaited"),
        ("<_asyncio.Future pending>", "a task that nobody awaited"),
        ("<generator object get at 0x7f5c1c0a2b40>", "a generator that nobody has run through"),
        (
            "<async_generator object get at 0x7f5c1c0a2b40>",
            "a generator that nobody has run through",
        ),
        ("<function get at 0x7f5c1c0a2b40>", "a function that nobody called"),
        ("<bound method Weather.get of <Weather>>", "a function that nobody called"),
        ("<__main__.Weather object at 0x7f5c1c0a2b40>", "an object without a text of its own"),
        ("<map object at 0x7f5c1c0a2b40>", "an object without a text of its own"),
        ("<Response [200]>", "a response instead of its body"),
        ("#<Weather:0x000071b0 @town=1>", "an object turned into text"),
        ("com.example.Weather@1b6d3586", "an object turned into text"),
        (
            "System.Collections.Generic.List`1[System.String]",
            "a .NET object turned into text",
        ),
    ],
)  # fmt: skip
def test_the_names_of_objects(text: str, what: str) -> None:
    (finding,) = named(text)
    assert finding.message.endswith(what)


@pytest.mark.parametrize(
    "text",
    [
        "13 °C",
        "",
        "null",
        "None",
        "The page shows [object Object] in its title",
        "Traceback: <coroutine object get at 0x7f5c1c0a2b40> was never awaited",
        "<html><body>13</body></html>",
        "<b>bold</b>",
        "[object]",
        "ann@example.com",
        '{"a": "[object Object]", "b": 1}',
        '{"a": 1}',
        "{broken",
        "[object Object]" * 40,
        '{"a": "' + "x" * 500 + '"}',
    ],
)
def test_other_results(text: str) -> None:
    assert not named(text)


@pytest.mark.parametrize("text", ["undefined", "NaN"])
def test_a_tool_without_a_result_is_a_fact(text: str) -> None:
    (finding,) = named(text)
    assert (finding.blame, finding.severity) == (None, Severity.INFO)


@pytest.mark.parametrize(
    "repeated",
    [
        ("c1", "run_python", "{}"),
        ("c1", "Bash", '{"command":"node a.js"}'),
        ("c1", "read_file", '{"path":"a.txt"}'),
        ("c1", "compute", '{"expression":"print(object())"}'),
        ("c1", "echo", '{"text":"[object Object]"}'),
    ],
)
def test_what_a_program_or_a_file_says_is_a_fact(repeated: tuple[str, str, str]) -> None:
    (finding,) = named("[object Object]", repeated)
    assert (finding.blame, finding.severity) == (None, Severity.INFO)


def test_a_result_of_an_unknown_call_is_possible_at_most() -> None:
    (finding,) = named("[object Object]", known=False)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)
    assert "the result of c1 is" in finding.message
    tape = digests((asks(result("c1", "[object Object]")), []))
    assert [each.code for each in check_conversation(tape) if each.code == "C017"] == ["C017"]


def test_of_a_stored_reply_the_delivered_call_counts() -> None:
    first, second = digests(
        (asks(USER), [*call(), FINISH]), (asks(result("c1", "[object Object]")), [])
    )
    first, second = replace(first, reply_id="r1"), replace(second, previous="r1")
    (finding,) = (each for each in check_conversation([first, second]) if each.code == "C017")
    assert "the result of get is" in finding.message
    assert finding.confidence is Confidence.LIKELY
    other = replace(first, calls=(replace(first.calls[0], ids=("c9",)),))
    (finding,) = (each for each in check_conversation([other, second]) if each.code == "C017")
    assert finding.confidence is Confidence.POSSIBLE


def test_it_is_told_once() -> None:
    history = [USER, assistant(CALL), result("c1", "[object Object]")]
    more: dict[str, object] = {"role": "user", "content": "Well?"}
    tape = digests(
        (asks(USER), [*call(), FINISH]),
        (asks(*history), []),
        (asks(*history, assistant(text="Hm"), more), []),
    )
    found = [each for each in check_conversation(tape) if each.code == "C017"]
    assert [each.exchange for each in found] == [2]


def test_a_call_without_a_name_and_another_message_in_between() -> None:
    (finding,) = named("[object Object]", ("c1", None, "{}"))
    assert "the result of c1 is" in finding.message
    other = result("c2", "[object Object]")
    tape = digests((asks(USER, assistant(CALL, ("c2", "put", "{}")), result("c1"), other), []))
    found = [each for each in check_conversation(tape) if each.code == "C017"]
    assert [each.confidence for each in found] == [Confidence.LIKELY]
