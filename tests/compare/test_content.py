"""Streams of different dialects, compared by what they bring."""

from dataclasses import replace

import pytest

from deltatape.compare import CallDamage, ChangeKind, Comparison, compare_exchanges
from deltatape.compare.content import argument_differences, pairs_of, reply_differences
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from helpers.chat import FINISH, calls, choice, entry
from helpers.compared import anthropic_stream, call, chat, unlike, words
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
    return anthropic_stream(START, *frames, *ended(reason))


MESSAGE = message(*text("I ", "am"), *tool('{\\"a\\": ', "1}"))


def told(comparison: Comparison) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    return [
        (change.kind.value, change.part, change.left, change.right)
        for change in comparison.changes
        if change.kind is not ChangeKind.EQUAL
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
    assert (lost.cause.kind, lost.cause.left, lost.cause.right) == (
        ChangeKind.DROPPED,
        (5, 6, 7),
        (),
    )
    more = chat(*words("I am"), *call('{"a":1}'), *call("{}", index=1, name="put"), FINISH)
    (added,) = compare_exchanges(MESSAGE, more).calls
    assert added.cause is not None
    assert (added.cause.kind, added.cause.right, added.cause.part) == (
        ChangeKind.INSERTED,
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
    assert (
        compare_exchanges(anthropic_stream(START), chat(choice({}, "stop"))).changes[-1].part
        != "finish"
    )


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


def whole(
    arguments: str = "{}", index: int = 0, name: str | None = "get", ident: str = ""
) -> object:
    return calls(entry(index, ident or None, name=name, arguments=arguments))


def place(side: ToolCall | None) -> int | None:
    return None if side is None else side.index


def damages(left: Analysis, right: Analysis) -> list[tuple[str, int | None, int | None]]:
    return [
        (each.damage.value, place(each.left), place(each.right))
        for each in compare_exchanges(left, right).calls
    ]


def test_calls_are_paired_by_id_whatever_their_order() -> None:
    left = chat(whole("{}", 0, "get", "a"), whole("{}", 1, "put", "b"), FINISH)
    right = chat(whole("{}", 0, "put", "b"), whole("{}", 1, "get", "a"), FINISH)
    pairs = pairs_of(left.reply.tool_calls, right.reply.tool_calls)
    assert [(one and one.name, other and other.name) for one, other in pairs] == [
        ("get", "get"),
        ("put", "put"),
    ]
    assert damages(left, right) == []


def test_without_ids_they_are_paired_by_what_they_say_then_by_name_then_by_place() -> None:
    left = chat(whole('{"a":1}'), whole('{"a":2}', 1), whole('{"b":3}', 2, "put"), FINISH)
    right = chat(whole('{"a":2}'), whole('{"a":9}', 1), whole('{"b":3}', 2, "del"), FINISH)
    assert damages(left, right) == [("arguments", 0, 1), ("identity", 2, 2)]


def test_calls_are_lost_and_added() -> None:
    one = chat(*call("{}"), FINISH)
    two = chat(*call("{}"), *call('{"a":1}', index=1, name="put"), FINISH)
    assert damages(two, one) == [("lost", 1, None)]
    assert damages(one, two) == [("added", None, 1)]
    assert damages(chat(FINISH), one) == [("added", None, 0)]


def test_the_first_event_that_brings_it_about_is_named() -> None:
    left = chat(*words("a"), *call('{"a":', '"x"', "}"), FINISH)
    right = chat(*words("b"), *call('{"a":', '"y"', "}"), FINISH)
    (change,) = compare_exchanges(left, right).calls
    assert change.damage is CallDamage.ARGUMENTS
    assert [(each.path, each.recorded, each.received) for each in change.differences] == [
        ("$.a", '"x"', '"y"')
    ]
    assert change.cause is not None
    assert (change.cause.left, change.cause.right) == ((3,), (3,))


def test_where_no_event_of_the_call_changed_the_first_change_is_named() -> None:
    left = chat(*call('{"a":1}'), FINISH)
    right = chat({"choices": []}, *call('{"a":1}'), FINISH)
    changed = replace(right.reply.choices[0].tool_calls[0], name="other")
    first = replace(right.reply.choices[0], tool_calls=(changed,))
    odd = replace(right, reply=replace(right.reply, choices=(first,)))
    (change,) = compare_exchanges(left, odd).calls
    assert change.cause is not None
    assert (change.cause.kind, change.cause.right) == ("inserted", (0,))
    same = replace(left, reply=odd.reply)
    (change,) = compare_exchanges(left, same).calls
    assert change.cause is None


def test_a_lost_id_is_damage_and_one_where_there_was_none_is_not() -> None:
    with_id, without = chat(whole("{}", 0, "get", "a"), FINISH), chat(whole("{}"), FINISH)
    assert damages(with_id, without) == [("identity", 0, 0)]
    assert damages(without, with_id) == []
    assert damages(with_id, chat(whole("{}", 0, "get", "b"), FINISH)) == [("identity", 0, 0)]


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        ('{"a":1}', '{ "a": 1 }', []),
        ('{"a":1}', '{"a":2}', ["$.a"]),
        ('{"a":1}', '{"a":', ["(arguments)"]),
        ("", "{}", ["(arguments)"]),
        ('{"a":1,"b":[1]}', '{"b":[1],"a":1}', []),
        ('{"a":[1.0,{"b":2}]}', '{"a":[1,{"b":2.0}]}', []),
        ('{"a":1.5}', '{"a":1}', ["$.a"]),
        ('{"a":1e999}', '{"a":1}', ["$.a"]),
        ('{"a":12345678901234567890}', '{"a":12345678901234567000.0}', ["$.a"]),
    ],
)
def test_arguments_are_compared_by_what_they_mean(one: str, other: str, where: list[str]) -> None:
    sides = [chat(whole(each), FINISH).reply.tool_calls[0] for each in (one, other)]
    assert [each.path for each in argument_differences(*sides)] == where


def test_no_bytes_are_an_empty_object_where_nothing_is_needed() -> None:
    empty, braces, full = (
        chat(whole(each), FINISH).reply.tool_calls[0] for each in ("", " { } ", '{"a":1}')
    )
    needless = replace(empty, status=CallStatus.EMPTY_OK)
    assert argument_differences(needless, braces) == argument_differences(braces, needless) == ()
    assert argument_differences(needless, full)
    assert argument_differences(full, needless)


def test_free_text_is_compared_as_it_is() -> None:
    one, other = (
        replace(chat(whole(each), FINISH).reply.tool_calls[0], kind=CallKind.CUSTOM)
        for each in ('{"a":1}', '{ "a": 1 }')
    )
    assert [each.path for each in argument_differences(one, other)] == ["(arguments)"]


def test_replies_are_compared_choice_by_choice() -> None:
    left = chat(choice({"content": "a"}), choice({"content": "x"}, index=1), choice({}, "stop"))
    right = chat(choice({"content": "b"}), choice({"content": "x"}, "stop", index=2), done=False)
    found = [each.path for each in reply_differences(left.reply, right.reply, alike=True)]
    assert found == [
        "choice 0 text",
        "choice 0 finish reason",
        "choice 1 text",
        "choice 1 reasoning",
        "choice 1 refusal",
        "choice 2 text",
        "choice 2 reasoning",
        "choice 2 refusal",
        "choice 2 finish reason",
        "ended as it should",
    ]
    assert [each.path for each in reply_differences(left.reply, right.reply, alike=False)] == [
        "ended as it should"
    ]


def test_calls_of_choices_that_are_missing_are_lost() -> None:
    more = chat(
        *call("{}"),
        choice({"tool_calls": [entry(0, "d", name="x", arguments="{}")]}, index=1),
        FINISH,
    )
    (change,) = compare_exchanges(more, chat(*call("{}"), FINISH)).calls
    assert (change.damage, change.choice) == (CallDamage.LOST, 1)
