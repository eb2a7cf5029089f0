import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.why.timeline import news, timeline
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import TEXT, call, pasted

EMPTY = choice({"role": "assistant", "content": ""})


def runs(exchange: Exchange) -> list[str]:
    """Describe the runs of events of one kind, as the timeline does."""
    entries = timeline(analyse(exchange), ())
    return [each.what for each in entries if each.event is not None]


def runs_of(*chunks: object) -> list[str]:
    return runs(pasted(*chunks, done=False))


def news_of(*chunks: object) -> tuple[str, ...]:
    return news(analyse(pasted(*chunks)))


@pytest.mark.parametrize(
    ("chunk", "phrase"),
    [
        (TEXT, "text: 1 event"),
        (EMPTY, "1 event without content"),
        (choice({}, "stop"), "ends: stop"),
        ({"error": {"code": 1}}, "ends: error"),
        ("[DONE]", "[DONE]"),
        ("[1]", "1 event without content"),
        (choice({"reasoning": "Hm"}), "reasoning: 1 event"),
    ],
)
def test_an_event_is_told_by_what_it_brings(chunk: object, phrase: str) -> None:
    assert runs_of(chunk) == [phrase]


def test_a_terminal_event_is_told_as_such_if_it_is_json() -> None:
    body = b'data: {"type":"message_start"}\n\ndata: {"type":"message_stop"}\n\n'
    made = Exchange.from_body(body, content_type="text/event-stream", url="http://h/v1/messages")
    assert runs(made)[-1] == "the terminal event"
    assert news(analyse(made))[-1] == "the terminal event"


def test_neighbours_of_a_kind_are_told_together_and_empty_ones_go_with_them() -> None:
    assert runs_of(EMPTY, TEXT, EMPTY, TEXT, FINISH, EMPTY) == [
        "1 event without content",
        "text: 3 events",
        "ends: tool_calls",
        "1 event without content",
    ]


def test_the_arguments_of_a_call_are_told_by_its_index() -> None:
    assert runs_of(*call(), FINISH)[:2] == ["call 0 opens: get (c1)", "call 0 arguments: 2 events"]


def test_interleaved_calls_are_one_line_that_says_so() -> None:
    one, two = call("f", '{"a":1}', 0), call("g", '{"b":2}', 1)
    chunks = [one[0], two[0], one[1], two[1], one[2], two[2]]
    assert runs_of(*chunks)[2:] == ["call 0 and call 1 arguments, interleaved: 4 events"]


def test_a_call_that_comes_whole_and_without_identity_says_so() -> None:
    assert runs_of(calls(entry(0, arguments="{}"))) == [
        "call 0 opens: no name (no id), with 2 characters of arguments"
    ]


def test_a_call_is_told_fragment_by_fragment() -> None:
    assert news_of(TEXT, *call(), FINISH) == (
        "text: 'Hello'",
        "call 0 opens: get (c1)",
        """call 0 arguments: '{"a'""",
        "call 0 arguments: '\":1}'",
        "ends: tool_calls",
        "[DONE]",
    )


def test_an_event_may_bring_several_things() -> None:
    whole = calls(entry(0, name="get", arguments="{}"), entry(1, "c2", arguments="[]"))
    first, *_ = news_of(whole)
    assert first == (
        "call 0 opens: get (no id); call 0 arguments: '{}';"
        " call 1 opens: no name (c2); call 1 arguments: '[]'"
    )
    assert news_of(choice({"content": "bye"}, "stop"))[0] == "text: 'bye'; ends: stop"


def test_an_empty_piece_of_arguments_is_nothing_new() -> None:
    empty = calls(entry(0, arguments=""))
    assert news_of(call()[0], empty)[1].startswith("nothing new: ")


@pytest.mark.parametrize(
    ("delta", "new"),
    [
        ({"reasoning_content": "hm"}, "reasoning: 'hm'"),
        ({"refusal": "no"}, "refusal: 'no'"),
        ({"content": " \n"}, "text: ' \n'"),
    ],
)
def test_text_is_told_by_its_kind(delta: dict[str, object], new: str) -> None:
    assert news_of(choice(delta))[0] == new


def test_an_event_that_brings_nothing_is_shown() -> None:
    assert news_of(choice({"role": "assistant"}))[0].startswith('nothing new: {"')
    assert news_of({"error": {"code": 1}})[0] == "ends: error"
