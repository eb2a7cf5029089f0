from itertools import groupby

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.why.event_kinds import Kinds, news
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import TEXT, call, pasted

EMPTY = choice({"role": "assistant", "content": ""})


def told(*chunks: object) -> list[str]:
    analysis = analyse(pasted(*chunks, done=False))
    kinds = Kinds(analysis)
    groups = groupby(kinds.of_all(analysis.stream.events), key=lambda pair: pair[0])
    return [kinds.tell(kind, [event for _, event in group]) for kind, group in groups]


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
    assert told(chunk) == [phrase]


def test_a_terminal_event_is_told_as_such_if_it_is_json() -> None:
    body = b'data: {"type":"message_start"}\n\ndata: {"type":"message_stop"}\n\n'
    made = Exchange.from_body(body, content_type="text/event-stream", url="http://h/v1/messages")
    analysis = analyse(made)
    *_, (kind, event) = Kinds(analysis).of_all(analysis.stream.events)
    assert Kinds(analysis).tell(kind, [event]) == "the terminal event"
    assert news(analysis)[-1] == "the terminal event"


def test_neighbours_of_a_kind_are_told_together_and_empty_ones_go_with_them() -> None:
    assert told(EMPTY, TEXT, EMPTY, TEXT, FINISH, EMPTY) == [
        "1 event without content",
        "text: 3 events",
        "ends: tool_calls",
        "1 event without content",
    ]


def test_the_arguments_of_a_call_are_told_by_its_index() -> None:
    assert told(*call(), FINISH)[:2] == ["call 0 opens: get (c1)", "call 0 arguments: 2 events"]


def test_interleaved_calls_are_one_line_that_says_so() -> None:
    one, two = call("f", '{"a":1}', 0), call("g", '{"b":2}', 1)
    chunks = [one[0], two[0], one[1], two[1], one[2], two[2]]
    assert told(*chunks)[2:] == ["call 0 and call 1 arguments, interleaved: 4 events"]


def test_a_call_that_comes_whole_and_without_identity_says_so() -> None:
    assert told(calls(entry(0, arguments="{}"))) == [
        "call 0 opens: no name (no id), with 2 characters of arguments"
    ]
