"""What is not compared, and what is identity."""

import pytest

from deltatape.compare.volatile import (
    DEEPEST,
    VOLATILE,
    FieldFilter,
    canonical,
    identities,
    is_deep,
)
from deltatape.errors import UsageError

CHUNK = {
    "id": "chatcmpl-1",
    "created": 5,
    "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "id": "c1"}]}}],
}


def test_ids_and_times_of_an_answer_are_left_out_and_told() -> None:
    forms = FieldFilter(VOLATILE).forms(CHUNK)
    assert forms.value == {"choices": CHUNK["choices"]}
    assert forms.ignored == {"created": "5", "id": '"chatcmpl-1"'}


def test_the_id_of_a_part_or_a_call_is_compared() -> None:
    part = {"type": "text-delta", "id": "t1", "delta": "a"}
    assert FieldFilter(VOLATILE).forms(part).value == part
    start = {"type": "message-start", "id": "m1"}
    assert FieldFilter(VOLATILE).forms(start).value == {"type": "message-start"}


def test_paths_go_through_arrays_and_objects() -> None:
    forms = FieldFilter(["choices.delta.tool_calls.id", "choices.index"]).forms(CHUNK)
    assert forms.value == {**CHUNK, "choices": [{"delta": {"tool_calls": [{"index": 1}]}}]}


@pytest.mark.parametrize("path", ["choices.*.index", "$.choices[0].index", "choices[*].index"])
def test_places_in_arrays_do_not_count(path: str) -> None:
    forms = FieldFilter([path]).forms(CHUNK)
    assert forms.ignored == {"choices.index": "0"}


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="invalid path"):
        FieldFilter(["a..b"])


def test_nothing_is_ignored_when_nothing_is_to_be() -> None:
    forms = FieldFilter(()).forms(CHUNK)
    assert (forms.value, forms.ignored) == (CHUNK, {})
    assert FieldFilter(["id"]).forms({"id": 1, "type": "x"}).value == {"id": 1, "type": "x"}


def test_what_is_no_object_is_compared_as_it_is() -> None:
    for value in ([{"created": 1}], "created", None, 5):
        assert FieldFilter(VOLATILE).forms(value).value == value


def test_without_identity_the_same_delta_of_two_calls_is_equal() -> None:
    ignoring = FieldFilter(VOLATILE)
    one = ignoring.forms({"type": "d", "index": 0, "delta": [{"item_id": "a", "text": "x"}]})
    other = ignoring.forms({"type": "d", "index": 1, "delta": [{"text": "x"}]})
    assert one.whole != other.whole
    assert one.nameless == other.nameless


def test_the_order_of_keys_does_not_count() -> None:
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})


def test_identities_are_told_with_their_paths() -> None:
    assert sorted(identities(CHUNK)) == [
        ("choices.delta.tool_calls.id", '"c1"'),
        ("choices.delta.tool_calls.index", "1"),
        ("choices.index", "0"),
        ("id", '"chatcmpl-1"'),
    ]
    assert list(identities("x")) == []


def test_depth_is_that_of_arrays_and_objects() -> None:
    value: object = 1
    for at in range(DEEPEST):
        value = [value] if at % 2 else {"a": value}
    assert not is_deep(value)
    assert is_deep([value])
    assert not is_deep("x")
