import pytest

from deltatape.model.exchange import Exchange
from deltatape.wire.json_edit import at
from helpers import chat as shape
from helpers.mutated import (
    ONE,
    TWO,
    WHOLE,
    WORDS,
    call_entries,
    changed,
    chat,
    event_values,
    in_pieces,
    joined_arguments,
    of_type,
    recorded,
)

RESPONSES = recorded("openai-responses")
MESSAGES = recorded("anthropic-messages")
CONVERSE = recorded("bedrock-converse")
DELTA = "response.function_call_arguments.delta"


def column(name: str, exchange: Exchange, *path: str) -> list[object]:
    """What each entry of `tool_calls` says at `path` after a mutation."""
    return [at(entry, *path) for entry in call_entries(changed(name, exchange))]


def numbers(name: str) -> list[object]:
    """The sequence numbers after a mutation."""
    return [at(value, "sequence_number") for value in event_values(changed(name, RESPONSES))]


def test_indexes_are_missing_null_or_begin_at_one() -> None:
    assert all("index" not in one for one in call_entries(changed("index-missing", TWO)))  # type: ignore[operator]
    assert column("index-null", TWO, "index") == [None] * 6
    assert column("index-not-zero-based", TWO, "index") == [1, 1, 1, 2, 2, 2]
    mixed = chat(shape.calls({"index": "0"}, {"index": 0}))
    assert column("index-not-zero-based", mixed, "index") == ["0", 1]


def test_whole_calls_share_index_zero() -> None:
    for name in ("index-all-zero", "index-all-zero-no-id", "index-chunk-local"):
        entries = call_entries(changed(name, TWO))
        assert [at(one, "index") for one in entries] == [0, 0]
        texts = [at(one, "function", "arguments") for one in entries]
        assert texts == ['{"a":"x"}', '{"a":"y"}']
        assert (at(entries[0], "id") is None) == (name == "index-all-zero-no-id")


def test_one_call_has_no_other_to_be_mixed_up_with() -> None:
    for name in ("index-all-zero", "index-chunk-local", "index-by-name", "index-wrong-call"):
        assert changed(name, ONE) is None
        assert changed(name, WORDS) is None


def test_calls_in_one_event_have_places_of_their_own() -> None:
    both = chat(
        shape.calls(shape.entry(0, "a", name="f", arguments="{}"), shape.entry(1, "b", name="f"))
    )
    assert changed("index-chunk-local", both) is None


def test_calls_of_different_answers_are_not_parallel() -> None:
    one = shape.choice({"tool_calls": [shape.entry(0, "a", name="f", arguments="{}")]})
    other = shape.choice({"tool_calls": [shape.entry(0, "b", name="f", arguments="{}")]}, index=1)
    assert changed("index-all-zero", chat(one, other)) is None


def test_calls_of_one_tool_share_an_index() -> None:
    assert column("index-by-name", TWO, "index") == [0] * 6
    different = chat(*in_pieces("{}"), *in_pieces("{}", index=1, name="put"))
    assert changed("index-by-name", different) is None


def test_interleaved_calls_cannot_share_one() -> None:
    first, second = in_pieces('{"a":1}'), in_pieces('{"a":2}', index=1)
    woven = chat(first[0], second[0], first[1], second[1])
    for name in ("index-by-name", "index-wrong-call", "bridge-identity-lost"):
        assert changed(name, woven) is None


def test_a_bridge_loses_the_index() -> None:
    assert column("bridge-identity-lost", TWO, "index") == [0] * 6
    assert changed("bridge-identity-lost", WORDS) is None


def test_a_call_is_split_over_two_indexes() -> None:
    entries = call_entries(changed("index-split-call", ONE))
    assert [(at(one, "index"), at(one, "id")) for one in entries] == [
        (0, "c0"),
        (0, None),
        (1, "c0"),
        (1, "c0"),
    ]
    assert changed("index-split-call", WHOLE) is None


def test_the_second_call_goes_on_under_the_first() -> None:
    entries = call_entries(changed("index-wrong-call", TWO))
    assert [at(one, "index") for one in entries] == [0] * 6
    assert (at(entries[3], "id"), at(entries[3], "function", "name")) == (None, "")


def test_an_index_comes_twice_in_one_event() -> None:
    made = changed("index-dup-in-chunk", WHOLE)
    assert [at(one, "index") for one in call_entries(made)] == [0, 0]
    assert joined_arguments(made) == '{"a":"x"}'
    assert changed("index-dup-in-chunk", WORDS) is None


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("id-empty-cont", ["c0", "", "", ""]),
        ("id-null-cont", ["c0", None, None, None]),
        ("id-string-null", ["null", None, None, None]),
        ("id-missing", [None] * 4),
        ("id-repeated", ["c0"] * 4),
        ("id-changes", ["c0", "c0b", "c0b", "c0b"]),
    ],
)
def test_ids(name: str, ids: list[object]) -> None:
    assert column(name, ONE, "id") == ids
    assert joined_arguments(changed(name, ONE)) == joined_arguments(ONE)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("name-repeated", ["get"] * 4),
        ("name-split", ["g", "et", None, None]),
        ("name-late", [None, None, None, "get"]),
        ("name-empty-first", ["", "get", None, None]),
        ("name-polluted", ["get<|channel|>commentary", None, None, None]),
    ],
)
def test_names(name: str, names: list[object]) -> None:
    assert column(name, ONE, "function", "name") == names


def test_nulls_are_written_out() -> None:
    assert all("id" in one for one in call_entries(changed("id-null-cont", ONE)))  # type: ignore[operator]


def test_a_call_in_one_entry_has_nothing_to_repeat() -> None:
    for name in ("id-repeated", "name-split", "id-empty-cont"):
        assert changed(name, WHOLE) is None
    assert changed("name-polluted", WORDS) is None


def test_every_event_has_an_id_of_its_own() -> None:
    stream = chat({"id": "x", "choices": []}, {"id": "x", "choices": []}, {"id": "y"}, {"id": 1})
    ids = [at(value, "id") for value in event_values(changed("chunk-id-changes", stream))]
    assert ids == ["x-0", "x-1", "y", 1, None]


def test_the_id_of_an_item_rotates() -> None:
    deltas = of_type(changed("r-item-id-rotates", RESPONSES), DELTA)
    ids = [at(value, "item_id") for value in deltas]
    assert len(set(ids)) == len(ids)


def test_a_finished_item_has_its_id_elsewhere() -> None:
    done = of_type(changed("r-done-item-no-id", RESPONSES), "response.output_item.done")[1]
    assert (at(done, "item", "id"), at(done, "item", "item_id")) == (None, "fc_fake0001")
    bare = chat('{"type":"response.output_item.done","item":{"type":"function_call"}}')
    assert changed("r-done-item-no-id", bare) is None


def test_all_calls_have_one_output_index() -> None:
    deltas = of_type(changed("r-output-index-collides", RESPONSES), DELTA)
    assert {at(value, "output_index") for value in deltas} == {1}
    assert changed("r-output-index-collides", WORDS) is None


def test_a_delta_is_of_a_block_that_never_began() -> None:
    made = event_values(changed("a-delta-unknown-block", MESSAGES))
    assert sum(at(value, "index") == len(made) for value in made) == 1
    assert changed("a-delta-unknown-block", WORDS) is None


def test_text_comes_for_a_block_of_a_tool() -> None:
    made = event_values(changed("a-text-on-tool-block", MESSAGES))
    assert len(made) == len(event_values(MESSAGES)) + 1
    assert [value for value in made if at(value, "delta", "text") == " "]
    assert changed("a-text-on-tool-block", WORDS) is None


def test_arguments_come_at_the_end_only() -> None:
    assert not of_type(changed("r-done-only-args", RESPONSES), DELTA)
    assert numbers("r-done-only-args") == list(range(len(numbers("r-done-only-args"))))


def test_the_first_delta_is_empty() -> None:
    deltas = of_type(changed("r-empty-first-delta", RESPONSES), DELTA)
    assert at(deltas[0], "delta") == ""
    assert len(deltas) == len(of_type(RESPONSES, DELTA)) + 2
    assert numbers("r-empty-first-delta") == list(range(len(numbers("r-empty-first-delta"))))
    opened = (
        '{"type":"response.output_item.added","output_index":0,'
        '"item":{"type":"function_call","name":"f"}}'
    )
    assert changed("r-empty-first-delta", chat(opened)) is None


def test_deltas_are_ciphers() -> None:
    deltas = of_type(changed("r-cipher-delta", RESPONSES), DELTA)
    assert {len(str(at(value, "delta"))) for value in deltas} == {8}


def test_the_last_event_lists_nothing() -> None:
    (last,) = of_type(changed("r-completed-output-empty", RESPONSES), "response.completed")
    assert at(last, "response", "output") == []
    assert changed("r-completed-output-empty", chat('{"type":"response.completed"}')) is None


def test_nothing_says_that_a_call_is_done() -> None:
    made = changed("r-no-item-done", RESPONSES)
    assert len(of_type(made, "response.output_item.done")) == 1
    assert not of_type(made, "response.function_call_arguments.done")


def test_a_message_begins_twice() -> None:
    made = event_values(changed("a-dup-message-start", MESSAGES))
    assert made[0] == made[1]
    assert changed("a-dup-message-start", WORDS) is None


def test_a_message_does_not_end() -> None:
    assert not of_type(changed("a-no-message-stop", MESSAGES), "message_stop")
    left = event_values(changed("a-no-message-stop", CONVERSE))
    assert not [value for value in left if at(value, "stopReason")]
    assert changed("a-no-message-stop", WORDS) is None
    assert changed("a-no-message-stop", chat('{"type":"message_stop"}')) is None
