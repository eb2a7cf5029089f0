"""Streams of different dialects, compared by what they bring."""

import pytest

from deltatape.compare import Comparison, Kind, compare_exchanges
from deltatape.diagnose.rebuild import Analysis, analyse
from helpers.chat import FINISH, choice
from helpers.compared import call, chat, said, unlike, words
from helpers.mutated import changed, recorded

START = 'event: message_start\ndata: {"type":"message_start","message":{"content":[]}}'
STOP = 'event: message_stop\ndata: {"type":"message_stop"}'


def block(index: int, start: str, *deltas: str) -> list[str]:
    head = f'data: {{"type":"content_block_start","index":{index},"content_block":{start}}}'
    tail = f'data: {{"type":"content_block_stop","index":{index}}}'
    middle = [
        f'data: {{"type":"content_block_delta","index":{index},"delta":{delta}}}'
        for delta in deltas
    ]
    return [head, *middle, tail]


def text(*pieces: str) -> list[str]:
    deltas = [f'{{"type":"text_delta","text":"{piece}"}}' for piece in pieces]
    return block(0, '{"type":"text","text":""}', *deltas)


def tool(*pieces: str, index: int = 1, name: str = "get") -> list[str]:
    start = f'{{"type":"tool_use","id":"toolu_{index}","name":"{name}","input":{{}}}}'
    return block(
        index, start, *(f'{{"type":"input_json_delta","partial_json":"{each}"}}' for each in pieces)
    )


def ended(reason: str = "tool_use") -> list[str]:
    return [f'data: {{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}', STOP]


def message(*frames: str, reason: str = "tool_use") -> Analysis:
    return said(START, *frames, *ended(reason))


MESSAGE = message(*text("I ", "am"), *tool('{\\"a\\": ', "1}"))


def told(comparison: Comparison) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    return [
        (change.kind.value, change.part, change.left, change.right)
        for change in comparison.changes
        if change.kind is not Kind.EQUAL
    ]


def test_a_true_translation_has_only_other_ids() -> None:
    comparison = compare_exchanges(MESSAGE, chat(*words("I am"), *call('{"a":1}'), FINISH))
    assert not comparison.by_event
    assert told(comparison) == [("altered", "call 0", (5,), (1,))]
    assert comparison.calls == ()
    assert not comparison.equal


@pytest.mark.parametrize("stem", ["openai-responses", "gemini"])
def test_healthy_recordings_of_one_answer_are_equal(stem: str) -> None:
    one, other = analyse(recorded("openai-chat")), analyse(recorded(stem))
    assert compare_exchanges(one, other).equal


def test_an_altered_argument_is_named_with_the_events_that_brought_it() -> None:
    comparison = compare_exchanges(MESSAGE, chat(*words("I am"), *call('{"a": 7', "}"), FINISH))
    (damaged,) = comparison.calls
    assert damaged.cause is not None
    assert (damaged.cause.left, damaged.cause.right) == ((7,), (2,))
    assert [each.path for each in damaged.differences] == ["$.a"]


def test_a_lost_and_an_added_call_are_named_with_their_events() -> None:
    without = chat(*words("I am"), choice({}, "stop"))
    (lost,) = compare_exchanges(MESSAGE, without).calls
    assert lost.cause is not None
    assert (lost.cause.kind, lost.cause.left, lost.cause.right) == (Kind.DROPPED, (5, 6, 7), ())
    more = chat(*words("I am"), *call('{"a":1}'), *call("{}", index=1, name="put"), FINISH)
    (added,) = compare_exchanges(MESSAGE, more).calls
    assert added.cause is not None
    assert (added.cause.kind, added.cause.right, added.cause.part) == (
        Kind.INSERTED,
        (3, 4),
        "call 1",
    )


def test_another_name_is_damage() -> None:
    (change,) = compare_exchanges(
        MESSAGE, chat(*words("I am"), *call('{"a":1}', name="x"), FINISH)
    ).calls
    assert (change.damage.value, [each.path for each in change.differences]) == (
        "identity",
        ["name"],
    )


def test_text_is_compared_as_a_whole() -> None:
    def of(*texts: str) -> Analysis:
        return chat(*words(*texts), choice({}, "stop"))

    plain = message(*text("I ", "am"), reason="end_turn")
    assert compare_exchanges(plain, of("I am")).equal
    assert told(compare_exchanges(plain, of("I ", "was"))) == [("altered", "text", (3,), (1,))]
    assert told(compare_exchanges(plain, of("I"))) == [("altered", "text", (2,), (0,))]
    assert told(compare_exchanges(plain, chat(choice({}, "stop")))) == [
        ("dropped", "text", (2,), ())
    ]
    empty = message(reason="end_turn")
    assert told(compare_exchanges(empty, of("I"))) == [("inserted", "text", (), (0,))]


def test_reasoning_is_compared_where_both_sides_have_some() -> None:
    thinking = block(
        0, '{"type":"thinking","thinking":""}', '{"type":"thinking_delta","thinking":"hm"}'
    )
    left = message(*thinking, reason="end_turn")
    assert compare_exchanges(left, chat(choice({}, "stop"))).equal
    right = chat(choice({"reasoning_content": "hn"}), choice({}, "stop"))
    assert told(compare_exchanges(left, right)) == [("altered", "reasoning", (2,), (0,))]


def test_the_end_is_compared_by_its_meaning() -> None:
    def ends(one: str, other: str) -> list[tuple[str, str]]:
        comparison = compare_exchanges(message(reason=one), chat(choice({"content": ""}, other)))
        return [
            (each.part, change.received)
            for each in comparison.changes
            for change in each.differences
        ]

    assert ends("end_turn", "stop") == []
    assert ends("max_tokens", "stop") == [("finish", '"stop"')]
    assert ends("end_turn", "strange") == [("finish", '"strange"')]
    assert compare_exchanges(said(START), chat(choice({}, "stop"))).changes[-1].part != "finish"


def test_a_choice_that_is_missing_has_nothing() -> None:
    two = chat(*words("I am"), *call('{"a":1}'), choice({"content": "x"}, index=1), FINISH)
    comparison = compare_exchanges(MESSAGE, two)
    assert ("inserted", "text", (), (3,)) in told(comparison)
    back = compare_exchanges(two, MESSAGE)
    assert ("dropped", "text", (3,), ()) in told(back)


def test_what_a_mutator_did_before_the_translation_is_seen_behind_it() -> None:
    healthy = recorded("openai-chat")
    mutated = changed("args-missing-tail", healthy)
    assert mutated is not None
    responses = analyse(recorded("openai-responses"))
    (damaged,) = compare_exchanges(responses, analyse(mutated)).calls
    assert damaged.damage.value == "arguments"
    assert unlike(compare_exchanges(responses, analyse(mutated))) == [("altered", (26,), (17,))]
