from deltatape.wire.json_edit import at
from helpers import chat as shape
from helpers.mutated import ONE, TWO, WHOLE, WORDS, changed, chat, in_pieces, joined, told


def indexes(name: str, exchange: object = TWO) -> list[object]:
    """The indexes of all entries after a mutation."""
    return [at(one, "index") for one in told(changed(name, exchange))]  # type: ignore[arg-type]


def test_indexes_are_missing_null_or_begin_at_one() -> None:
    assert all("index" not in one for one in told(changed("index-missing", TWO)))  # type: ignore[operator]
    assert indexes("index-null") == [None] * 6
    assert indexes("index-not-zero-based") == [1, 1, 1, 2, 2, 2]
    assert indexes("index-not-zero-based", chat(shape.calls({"index": "0"}, {"index": 0}))) == [
        "0",
        1,
    ]


def test_whole_calls_share_index_zero() -> None:
    for name in ("index-all-zero", "index-all-zero-no-id", "index-chunk-local"):
        entries = told(changed(name, TWO))
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
    assert indexes("index-by-name") == [0] * 6
    different = chat(*in_pieces("{}"), *in_pieces("{}", index=1, name="put"))
    assert changed("index-by-name", different) is None


def test_interleaved_calls_cannot_share_one() -> None:
    first, second = in_pieces('{"a":1}'), in_pieces('{"a":2}', index=1)
    woven = chat(first[0], second[0], first[1], second[1])
    for name in ("index-by-name", "index-wrong-call", "bridge-identity-lost"):
        assert changed(name, woven) is None


def test_a_bridge_loses_the_index() -> None:
    assert indexes("bridge-identity-lost") == [0] * 6
    assert changed("bridge-identity-lost", WORDS) is None


def test_a_call_is_split_over_two_indexes() -> None:
    entries = told(changed("index-split-call", ONE))
    assert [(at(one, "index"), at(one, "id")) for one in entries] == [
        (0, "c0"),
        (0, None),
        (1, "c0"),
        (1, "c0"),
    ]
    assert changed("index-split-call", WHOLE) is None


def test_the_second_call_goes_on_under_the_first() -> None:
    entries = told(changed("index-wrong-call", TWO))
    assert [at(one, "index") for one in entries] == [0] * 6
    assert (at(entries[3], "id"), at(entries[3], "function", "name")) == (None, "")


def test_an_index_comes_twice_in_one_event() -> None:
    made = changed("index-dup-in-chunk", WHOLE)
    assert [at(one, "index") for one in told(made)] == [0, 0]
    assert joined(made) == '{"a":"x"}'
    assert changed("index-dup-in-chunk", WORDS) is None
