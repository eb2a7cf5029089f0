import pytest

from deltatape.wire.json_edit import at
from helpers.mutated import ONE, WHOLE, WORDS, changed, chat, joined, said, told


def column(name: str, *path: str) -> list[object]:
    """What each entry says at `path` after a mutation."""
    return [at(one, *path) for one in told(changed(name, ONE))]


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
    assert column(name, "id") == ids
    assert joined(changed(name, ONE)) == joined(ONE)


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
    assert column(name, "function", "name") == names


def test_nulls_are_written_out() -> None:
    assert all("id" in one for one in told(changed("id-null-cont", ONE)))  # type: ignore[operator]


def test_a_call_in_one_entry_has_nothing_to_repeat() -> None:
    for name in ("id-repeated", "name-split", "id-empty-cont"):
        assert changed(name, WHOLE) is None
    assert changed("name-polluted", WORDS) is None


def test_every_event_has_an_id_of_its_own() -> None:
    stream = chat({"id": "x", "choices": []}, {"id": "x", "choices": []}, {"id": "y"}, {"id": 1})
    ids = [at(value, "id") for value in said(changed("chunk-id-changes", stream))]
    assert ids == ["x-0", "x-1", "y", 1, None]
