import pytest

from deltatape.dialects._json import (
    EVIDENCE_LIMIT,
    as_array,
    as_object,
    get_array,
    get_index,
    get_object,
    get_str,
    shown,
)

HOLDER: dict[str, object] = {"text": "x", "number": 1, "list": [1], "object": {"a": 1}, "nil": None}


def test_readers_give_a_value_of_their_type_and_nothing_else() -> None:
    assert [get_str(HOLDER, key) for key in HOLDER] == ["x", None, None, None, None]
    assert [get_array(HOLDER, key) for key in HOLDER] == [(), (), [1], (), ()]
    assert [get_object(HOLDER, key) for key in HOLDER] == [None, None, None, {"a": 1}, None]
    assert (as_array({}), as_object([]), get_str({}, "text")) == (None, None, None)


@pytest.mark.parametrize(
    ("value", "index"),
    [
        *[(0, 0), (7, 7), ("0", 0), ("12", 12), (1.0, 1), (float("inf"), None), (1.5, None)],
        *[(-1, None), ("-1", None), ("", None), ("x", None), ("1" * 10, None)],
        *[("\u0661", None), (True, None), (None, None), ([], None)],
    ],
)
def test_an_index_has_several_spellings(value: object, index: int | None) -> None:
    assert get_index({"index": value}, "index") == index


def test_what_is_shown_is_short() -> None:
    assert shown({"a": "é"}) == '{"a": "é"}'
    assert len(shown("x" * 1000)) == EVIDENCE_LIMIT
