from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    result,
    system,
    user,
)

ONE = (asks(USER), CALL_REPLY)
MORE = user("And tomorrow?")


def c004_findings(tape: list[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "C004"]


def refused(tape: list[Digest]) -> list[Digest]:
    return [*tape[:-1], replace(tape[-1], status=400, failed=True)]


def test_a_result_without_its_call_is_proven_where_the_tape_delivered_the_call() -> None:
    (finding,) = c004_findings(digests(ONE, (asks(USER, result("c1")), [])))
    assert (finding.exchange, finding.line) == (2, 200)
    assert finding.message == (
        "the request has the result of call 0 (get, c1) of #1, but no assistant message in it"
        " has that call"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.APP)
    assert finding.confidence is Confidence.PROVEN
    assert finding.evidence == "result for 'c1'"


def test_both_places_are_reported() -> None:
    (finding,) = c004_findings(digests(ONE, (asks(USER, result("c1")), [])))
    against = finding.against
    assert against is not None
    assert (against.tape, against.exchange, against.line) == ("x.tape", 1, 104)
    assert against.span is not None
    assert (against.request_span, against.evidence) == (None, '{"a":1}')


def test_an_assistant_message_without_the_call_does_not_own_the_result() -> None:
    (finding,) = c004_findings(digests(ONE, (asks(USER, assistant(text="Hi"), result("c1")), [])))
    assert finding.confidence is Confidence.PROVEN


def test_a_result_is_reported_once_however_often_it_is_sent() -> None:
    tape = digests(
        ONE,
        (asks(USER, result("c1")), [*call(index=1), FINISH]),
        (asks(USER, result("c1"), result("c2")), []),
        (asks(MORE, MORE, result("c1"), result("c2")), []),
    )
    assert [(finding.exchange, finding.evidence) for finding in c004_findings(tape)] == [
        (2, "result for 'c1'"),
        (3, "result for 'c2'"),
    ]


def test_a_call_that_the_tape_did_not_deliver_makes_it_possible_only() -> None:
    lone = digests((asks(USER, result("c7")), []))
    (finding,) = c004_findings(lone)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert "of the call 'c7', which no assistant message in it has" in finding.message
    assert finding.against is None
    (finding,) = c004_findings(refused(lone))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert finding.message.endswith("; the provider rejected it (400)")


def test_a_history_that_was_cut_in_front_is_reported_only_if_it_was_refused() -> None:
    cut = digests(
        ONE, (asks(USER, CALL_MESSAGE, result("c1")), []), (asks(MORE, result("c1"), MORE), [])
    )
    assert not c004_findings(cut)
    (finding,) = c004_findings(refused(cut))
    assert "the history was cut off between the two" in finding.message
    assert finding.hint == "when a history is shortened, drop a call and its result together"
    assert finding.confidence is Confidence.LIKELY
    assert not c004_findings(digests((asks(result("c1"), result("c2"), USER), [])))


def test_a_history_that_the_provider_keeps_owns_its_calls() -> None:
    tape = digests(ONE, (asks(USER, result("c1")), []))
    assert not c004_findings([tape[0], replace(tape[1], previous="resp_1")])


def test_a_right_history_and_results_that_name_no_call_are_silent() -> None:
    nameless: dict[str, object] = {"role": "function", "name": "get", "content": "ok"}
    assert not c004_findings(digests(ONE, (asks(USER, CALL_MESSAGE, result("c1")), [])))
    assert not c004_findings(digests(ONE, (asks(USER, nameless), [])))


def test_a_second_result_to_a_call_that_was_delivered_once() -> None:
    twice: tuple[dict[str, object], list[object]] = (
        asks(USER, CALL_MESSAGE, result("c1"), result("c1")),
        [],
    )
    (finding,) = c004_findings(digests(ONE, twice))
    assert finding.message == (
        "the request has a second result of call 0 (get, c1) of #1, which was delivered once"
    )
    assert finding.hint.startswith("run a call once")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    (finding,) = c004_findings(refused(digests(ONE, twice)))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert len(c004_findings(digests(ONE, twice, twice))) == 1


def test_results_of_calls_that_share_an_id_or_use_it_again_are_no_second_ones() -> None:
    both = assistant(("c1", "get", '{"a":1}'), ("c1", "get", '{"a":1}'))
    shared = [*call(), *call(index=1), FINISH]
    tape = digests((asks(USER), shared), (asks(USER, both, result("c1"), result("c1")), []))
    said = replace(tape[0].calls[1], ids=("c1",), id="c1")
    assert not c004_findings([replace(tape[0], calls=(tape[0].calls[0], said)), tape[1]])
    again = [CALL_MESSAGE, result("c1"), CALL_MESSAGE, result("c1")]
    assert not c004_findings(digests(ONE, (asks(USER, *again), [])))
    assert not c004_findings(digests((asks(USER, CALL_MESSAGE, result("c1"), result("c1")), [])))


def test_a_call_of_another_conversation_proves_nothing() -> None:
    random = [calls(entry(0, "call_9fA3kQz1b", name="get", arguments="{}")), FINISH]
    other = (asks(MORE), random)
    (finding,) = c004_findings(digests(other, (asks(USER, result("call_9fA3kQz1b")), [])))
    assert (finding.confidence, finding.excluded) == (Confidence.POSSIBLE, ())
    assert "of call 0 (get, call_9fA3kQz1b) of #1" in finding.message
    (finding,) = c004_findings(digests((asks(MORE), ONE[1]), (asks(USER, result("c1")), [])))
    assert "the call 'c1', which no assistant message in it has" in finding.message


def test_a_call_that_came_after_the_request_had_left_is_not_its() -> None:
    first, second = digests(ONE, (asks(USER, result("c1")), []))
    (finding,) = c004_findings([first, replace(second, t_ns=1)])
    assert finding.confidence is Confidence.POSSIBLE


def test_after_a_handoff_another_agent_may_see_the_result_only() -> None:
    other: dict[str, object] = system("You forecast.")
    tool = {"type": "function", "function": {"name": "other", "parameters": {}}}
    tape = digests(ONE, (asks(other, USER, result("c1"), tools=[tool]), []))
    (finding,) = c004_findings(tape)
    assert finding.confidence is Confidence.POSSIBLE


TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
BOTH = assistant(("c1", "get", '{"a":1}'), ("c2", "put", '{"b":2}'))


def c005_findings(tape: list[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "C005"]


def test_one_of_two_results_is_missing() -> None:
    (finding,) = c005_findings(
        digests((asks(USER), TWO), (asks(USER, BOTH, result("c1")), TEXT_REPLY))
    )
    assert finding.message == (
        "the history continues after call 1 (put, c2) of #1 without its result; this"
        " provider accepted it"
    )
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.APP)
    assert (finding.confidence, finding.evidence) == (Confidence.POSSIBLE, '{"b":2}')
    assert finding.against is not None
    assert finding.against.exchange == 1
    assert finding.against.request_span is not None


def test_it_is_an_error_if_the_provider_refused_the_request() -> None:
    tape = digests((asks(USER), TWO), (asks(USER, BOTH, MORE), []))
    found = c005_findings([tape[0], replace(tape[1], status=400)])
    assert [finding.severity for finding in found] == [Severity.ERROR] * 2
    assert [finding.confidence for finding in found] == [Confidence.LIKELY] * 2
    about = replace(tape[1], status=400, error="tool_call_ids without response messages: c1, c2")
    found = c005_findings([tape[0], about])
    assert [finding.confidence for finding in found] == [Confidence.PROVEN] * 2
    assert found[0].excluded[0].because == "it rejected the request with 400"
    assert all("; the provider rejected the request (400)" in each.message for each in found)


def test_without_an_answer_nothing_is_said_about_it() -> None:
    tape = digests((asks(USER, BOTH, result("c1")), []))
    (finding,) = c005_findings([replace(tape[0], status=None)])
    assert finding.message == "the history continues after a call (put, c2) without its result"
    assert finding.against is None


def test_a_call_is_reported_once_and_early_ones_are_found_too() -> None:
    tape = digests(
        (asks(USER, BOTH, result("c1"), assistant(text="Hi"), MORE), TEXT_REPLY),
        (asks(USER, BOTH, result("c1"), assistant(text="Hi"), MORE, assistant(text="H"), MORE), []),
        (asks(BOTH, result("c1"), MORE), []),
    )
    assert [finding.exchange for finding in c005_findings(tape)] == [1]


@pytest.mark.parametrize(
    "history",
    [
        [USER, BOTH],
        [USER, BOTH, result("c2"), result("c1")],
        [USER, BOTH, {"role": "tool", "content": "ok"}, MORE],
        [USER, assistant(("c1", "get", "{}"), ("c1", "get", "{}")), result("c1")],
        [USER, assistant((None, "get", "{}"), (None, "get", "")), result("get"), result("get")],
        [USER, assistant(("c1", "get", "{}")), result("get")],
        [USER, assistant(("c1", "get", "{}")), assistant(text="Hi")],
    ],
)
def test_histories_with_nothing_missing(history: list[dict[str, object]]) -> None:
    assert not c005_findings(digests((asks(*history), [])))


def test_where_calls_have_no_ids_each_result_answers_one() -> None:
    twice = assistant((None, "get", "{}"), (None, "get", '{"a":1}'))
    (finding,) = c005_findings(digests((asks(USER, twice, result("get"), MORE), [])))
    assert finding.evidence == '{"a":1}'


def test_a_result_that_comes_late_was_missing_before() -> None:
    tape = digests(
        (asks(USER, BOTH, result("c1"), MORE), TEXT_REPLY),
        (asks(USER, BOTH, result("c1"), MORE, result("c2"), MORE), []),
    )
    assert [finding.exchange for finding in c005_findings(tape)] == [1]


CALL = ("c1", "get", '{"a":1}')


def named(
    text: str, repeated: tuple[str | None, str | None, str] = CALL, *, known: bool = True
) -> list[Finding]:
    history = [assistant(repeated)] if known else [USER]
    tape = digests((asks(USER), CALL_REPLY), (asks(USER, *history, result("c1", text)), []))
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
        ("<coroutine object get at 0x7f5c1c0a2b40>", "a coroutine that was not awaited"),
        (
            "<Task pending name='Task-2' coro=<get() running at app.py:3>>",
            "a task that was not awaited",
        ),
        ("<Future pending>", "a task that was not awaited"),
        ("<_asyncio.Future pending>", "a task that was not awaited"),
        ("<generator object get at 0x7f5c1c0a2b40>", "a generator that was not consumed"),
        (
            "<async_generator object get at 0x7f5c1c0a2b40>",
            "a generator that was not consumed",
        ),
        ("<function get at 0x7f5c1c0a2b40>", "a function that was not called"),
        ("<bound method Weather.get of <Weather>>", "a function that was not called"),
        ("<__main__.Weather object at 0x7f5c1c0a2b40>", "an object without a text representation"),
        ("<map object at 0x7f5c1c0a2b40>", "an object without a text representation"),
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
    first, second = digests((asks(USER), CALL_REPLY), (asks(result("c1", "[object Object]")), []))
    first, second = replace(first, reply_id="r1"), replace(second, previous="r1")
    (finding,) = (each for each in check_conversation([first, second]) if each.code == "C017")
    assert "the result of get is" in finding.message
    assert finding.confidence is Confidence.LIKELY
    other = replace(first, calls=(replace(first.calls[0], ids=("c9",)),))
    (finding,) = (each for each in check_conversation([other, second]) if each.code == "C017")
    assert finding.confidence is Confidence.POSSIBLE


def test_it_is_reported_once() -> None:
    history = [USER, assistant(CALL), result("c1", "[object Object]")]
    more: dict[str, object] = user("Well?")
    tape = digests(
        (asks(USER), CALL_REPLY),
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
