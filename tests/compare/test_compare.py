"""Two exchanges compared as wholes, and the hops of several."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.compare import (
    VOLATILE,
    ChangeKind,
    SpacingDifference,
    compare_exchanges,
    first_damage,
)
from deltatape.compare.comparable_events import DEEPEST
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.mutate import MUTATORS, SeededChoices
from helpers.chat import FINISH, URL
from helpers.compared import analysed, call, chat, words
from helpers.mutated import RECORDINGS, changed, recorded

CHUNKS = [
    *words("a", "b", "ab", "", "ba"),
    *call("{", "}", "{}"),
    *call("{", "}", index=1),
    FINISH,
    "no json",
    "[1]",
    {"choices": [], "usage": {}},
]
STEMS = sorted(path.stem for path in RECORDINGS.glob("*.tape"))


@pytest.mark.parametrize("stem", STEMS)
def test_every_recording_equals_itself(stem: str) -> None:
    analysis = analyse(recorded(stem))
    comparison = compare_exchanges(analysis, analysis)
    assert comparison.equal
    assert comparison.by_event


@pytest.mark.exhaustive
@pytest.mark.parametrize("stem", STEMS)
def test_a_mutated_recording_differs_unless_only_times_or_ids_of_answers_do(stem: str) -> None:
    healthy = recorded(stem)
    for mutator in MUTATORS:
        mutated = mutator.mutate(healthy, SeededChoices(2))
        if mutated is None:
            continue
        comparison = compare_exchanges(analyse(healthy), analyse(mutated))
        same = mutated.body == healthy.body or mutator.name == "chunk-id-changes"
        assert comparison.equal == same, mutator.name
        assert all(call.cause is not None for call in comparison.calls), mutator.name


@given(
    st.lists(st.sampled_from(CHUNKS), max_size=14), st.lists(st.sampled_from(CHUNKS), max_size=14)
)
def test_every_event_of_both_sides_is_reported_once(
    left: list[object], right: list[object]
) -> None:
    sides = [chat(*each) for each in (left, right)]
    changes = compare_exchanges(sides[0], sides[1]).changes
    for side, numbers in (
        (sides[0], [number for change in changes for number in change.left]),
        (sides[1], [number for change in changes for number in change.right]),
    ):
        assert sorted(numbers) == [event.number for event in side.stream.events]
    for change in changes:
        assert change.kind is not ChangeKind.EQUAL or len(change.left) == len(change.right)
    equal = [change for change in changes if change.kind is ChangeKind.EQUAL]
    for at in ("left", "right"):
        order = [number for change in equal for number in getattr(change, at)]
        assert order == sorted(order)


def test_a_document_and_a_stream_are_compared_by_what_they_bring() -> None:
    message = {"role": "assistant", "content": "Hi"}
    document = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    body = json.dumps({"object": "chat.completion", **document}).encode()
    whole = analysed(body, URL, "application/json")
    comparison = compare_exchanges(whole, whole)
    assert (comparison.by_event, comparison.equal) == (True, True)
    stream = chat(
        *words("H", "i"), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    )
    comparison = compare_exchanges(whole, stream)
    assert (comparison.by_event, comparison.equal) == (False, True)


def test_all_fields_are_compared_where_nothing_is_ignored() -> None:
    one, other = (chat({"id": name, "created": 1, "choices": []}) for name in "ab")
    assert compare_exchanges(one, other).equal
    assert not compare_exchanges(one, other, ()).equal
    assert compare_exchanges(one, other, ("id",)).volatile == (("id", 1),)
    assert "id" in VOLATILE


def test_the_most_frequent_ignored_field_comes_first() -> None:
    left = chat(*({"id": "a", "created": at, "choices": []} for at in range(3)))
    right = chat(*({"id": "b", "created": max(at, 1), "choices": []} for at in range(3)))
    assert compare_exchanges(left, right).volatile == (("id", 3), ("created", 1))


def test_the_first_hop_that_damaged_a_call_is_found() -> None:
    whole = chat(*words("a"), *call('{"a":1}'), FINISH)
    worded = chat(*words("b"), *call('{"a":1}'), FINISH)
    broken = chat(*words("b"), *call('{"a":'), FINISH)
    hops = [
        compare_exchanges(one, other)
        for one, other in ((whole, worded), (worded, broken), (broken, broken))
    ]
    assert first_damage(hops) == 1
    assert first_damage(hops[:1]) is None
    more = chat(*words("a"), *call('{"a":1}'), *call("{}", index=1, name="put"), FINISH)
    added = compare_exchanges(whole, more)
    assert (len(added.calls), first_damage([added])) == (1, None)
    assert first_damage(()) is None


def test_an_empty_answer_is_compared_event_by_event() -> None:
    nothing = analysed(b"")
    comparison = compare_exchanges(chat(*call("{}"), FINISH), nothing)
    assert comparison.by_event
    assert [each.damage.value for each in comparison.calls] == ["lost"]
    assert not compare_exchanges(nothing, nothing).changes


@pytest.mark.parametrize("depth", [90, 300, 510, 900])
def test_values_inside_each_other_without_end_are_compared_all_the_same(depth: int) -> None:
    one, other = (f'{{"index":{"[" * depth}{value}{"]" * depth},"choices":[]}}' for value in (1, 2))
    assert {change.kind for change in compare_exchanges(chat(one), chat(other)).changes} == {
        "altered" if depth > DEEPEST else "re-indexed",
        "equal",
    }
    left, right = (chat(*call("[" * depth + value + "]" * depth), FINISH) for value in "12")
    (damaged,) = compare_exchanges(left, right).calls
    assert damaged.damage.value == "arguments"


PLAIN = b'data: {"type":"a","x":1}\n\ndata: {"type":"b"}\n\n'


def framed(left: Analysis, right: Analysis) -> list[tuple[str, int, str, str]]:
    comparison = compare_exchanges(left, right)
    assert {change.kind for change in comparison.changes} <= {ChangeKind.EQUAL}
    return [(each.what.value, each.count, each.left, each.right) for each in comparison.framing]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PLAIN, []),
        (PLAIN.replace(b"\n", b"\r\n"), [("line-ends", 2, "LF", "CR LF")]),
        (PLAIN.replace(b"data: ", b"data:"), [("fields", 2)]),
        (PLAIN.replace(b'"x":1', b'"x": 1'), [("json", 1, 'pe":"a","x":1}', 'pe":"a","x": 1}')]),
        (
            PLAIN.replace(b'"type":"a","x":1', b'"x":1,"type":"a"'),
            [("json", 1, "keys in one order", "keys in another")],
        ),
        (
            PLAIN.replace(b"data", b"event: a\ndata", 1),
            [("event-line", 1, "no event line", "event: a")],
        ),
        (PLAIN.replace(b"data", b"id: 7\ndata", 1), [("id-line", 1, "id: ", "id: 7")]),
        (
            PLAIN.replace(b"data", b"retry: 9\ndata", 1),
            [("retry-line", 1, "retry: None", "retry: 9")],
        ),
        (b": ping\n\n" + PLAIN, [("comments", 1, "0 comments", "1 comment, first: ping")]),
        (PLAIN + b"data: x\n", [("pending", 1, "nothing", "x")]),
    ],
)
def test_each_sort_of_difference_is_reported_once(
    body: bytes, expected: list[tuple[object, ...]]
) -> None:
    found = framed(analysed(PLAIN), analysed(body))
    assert [each[: len(wanted)] for each, wanted in zip(found, expected, strict=True)] == expected


def test_lines_and_an_array_are_other_formats() -> None:
    values = [{"type": "a"}, {"type": "b"}]
    lines = analysed(
        "".join(f"{json.dumps(each)}\n" for each in values).encode(), URL, "application/x-ndjson"
    )
    array = analysed(json.dumps(values).encode(), URL, "application/json")
    assert framed(lines, array)[0] == ("format", 1, "ndjson", "json-array")


def test_a_gateway_that_pads_nothing_is_reported_with_the_first_events() -> None:
    healthy = recorded("anthropic-messages")
    bare = changed("sse-no-event-line", healthy)
    assert bare is not None
    comparison = compare_exchanges(analyse(healthy), analyse(bare))
    (found,) = comparison.framing
    assert (found.what, found.event) == (SpacingDifference.EVENT_LINE, (0, 0))
    assert found.count == len(comparison.left.stream.events)
    assert not comparison.equal


def test_other_ids_of_answers_are_no_other_spelling() -> None:
    one, other = ({"id": name, "choices": []} for name in "ab")
    comparison = compare_exchanges(chat(one), chat(other))
    assert comparison.equal
    assert comparison.volatile == (("id", 1),)


def test_the_same_bytes_are_no_difference_whatever_they_are() -> None:
    assert framed(chat(*words("a"), "no json"), chat(*words("a"), "no json")) == []
    spaced = analysed(b"data:  [DONE]\n\n"), analysed(b"data:  [DONE]\r\n\r\n")
    assert framed(*spaced) == [("line-ends", 1, "LF", "CR LF")]


WHOLE = chat(*call("{}"), FINISH)


def test_any_difference_makes_two_exchanges_unequal() -> None:
    same = compare_exchanges(WHOLE, WHOLE)
    less = compare_exchanges(WHOLE, chat(*call("{}")))
    lost = compare_exchanges(WHOLE, chat(FINISH))
    framed = compare_exchanges(analysed(b"data: {}\n\n"), analysed(b"data:{}\n\n"))
    assert same.equal
    assert not less.equal
    assert not framed.equal
    for part in (
        replace(same, changes=less.changes),
        replace(same, reply=less.reply),
        replace(same, calls=lost.calls),
        replace(same, framing=framed.framing),
    ):
        assert not part.equal
    assert replace(same, volatile=(("id", 1),)).equal
