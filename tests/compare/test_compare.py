"""Two exchanges compared as wholes, and the hops of several."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.compare import VOLATILE, Kind, compare_exchanges, first_damage
from deltatape.compare.volatile import DEEPEST
from deltatape.diagnose.rebuild import analyse
from deltatape.mutate import MUTATORS, Seeded
from helpers.chat import FINISH, URL
from helpers.compared import analysed, call, chat, words
from helpers.mutated import RECORDINGS, recorded

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


@pytest.mark.parametrize("stem", STEMS)
def test_a_mutated_recording_differs_unless_only_times_or_ids_of_answers_do(stem: str) -> None:
    healthy = recorded(stem)
    for mutator in MUTATORS:
        mutated = mutator.mutate(healthy, Seeded(2))
        if mutated is None:
            continue
        comparison = compare_exchanges(analyse(healthy), analyse(mutated))
        same = mutated.body == healthy.body or mutator.name == "chunk-id-changes"
        assert comparison.equal == same, mutator.name
        assert all(call.cause is not None for call in comparison.calls), mutator.name


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(CHUNKS), max_size=14), st.lists(st.sampled_from(CHUNKS), max_size=14)
)
def test_every_event_of_both_sides_is_told_once(left: list[object], right: list[object]) -> None:
    sides = [chat(*each) for each in (left, right)]
    changes = compare_exchanges(sides[0], sides[1]).changes
    for side, numbers in (
        (sides[0], [number for change in changes for number in change.left]),
        (sides[1], [number for change in changes for number in change.right]),
    ):
        assert sorted(numbers) == [event.number for event in side.stream.events]
    for change in changes:
        assert change.kind is not Kind.EQUAL or len(change.left) == len(change.right)
    equal = [change for change in changes if change.kind is Kind.EQUAL]
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
