import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.secret_text.escaped_text import (
    LayeredView,
    Overwrite,
    joined,
    overwrite,
    plain,
    unescaped,
)


def whole(text: str) -> LayeredView:
    return LayeredView(text).on(unescaped(text, [(0, len(text))]))


def changed(text: str, edits: list[Overwrite]) -> str:
    return overwrite(text.encode("latin-1"), edits).decode("latin-1")


def test_escapes_are_undone_and_broken_ones_stay() -> None:
    text = r"a\n\"\/\\\u0041\u00e9\ud83d\ude00\q\u12" + "\\"
    expected = 'a\n"/\\A\xc3\xa9\xf0\x9f\x98\x80' + r"\q\u12" + "\\"
    assert whole(text).text == expected


def test_spans_are_joined_where_they_touch() -> None:
    assert joined([(5, 7), (1, 4), (2, 3), (4, 5), (9, 9)]) == ((1, 7), (9, 9))


def test_half_a_surrogate_pair_stays_apart() -> None:
    assert whole(r"\ud83dx").text.encode("latin-1").decode("utf-8", "surrogatepass") == "\ud83dx"


def test_a_change_goes_down_to_the_hex_digits_of_an_escape() -> None:
    text = r"x\u0041\ny"
    view = whole(text)
    assert view.text == "xA\ny"
    assert changed(text, view.down([Overwrite(0, "****")])) == r"*\u002a\n*"


def test_a_change_of_a_pair_needs_another_pair() -> None:
    text = r"\ud83d\ude00"
    filler = "\U0001d465".encode().decode("latin-1")
    assert changed(text, whole(text).down([Overwrite(0, filler)])) == r"\ud835\udc65"
    assert whole(text).down([Overwrite(0, "****")]) == []
    assert whole(text).down([Overwrite(0, "\xff\xff\xff\xff")]) == []
    assert whole(text).down([Overwrite(1, "*")]) == []


def test_changes_go_down_through_several_layers() -> None:
    inner = json.dumps({"k": "a\né"})
    text = json.dumps({"arguments": inner})
    view = whole(text)
    view = view.on(unescaped(view.text, [(0, len(view.text))]))
    at = view.text.index("a\n\xc3\xa9")
    edits = view.down([Overwrite(at, "x\n\xc3\x97")])
    assert json.loads(json.loads(changed(text, edits))["arguments"]) == {"k": "x\n\xd7"}


def test_slices_are_put_together_in_the_order_given() -> None:
    layer = plain("abcdef", [(4, 6), (0, 2)], glue="|")
    assert layer.text == "ef|ab|"
    assert list(layer.below(Overwrite(1, "XYZ"))) == [Overwrite(5, "X"), Overwrite(0, "Z")]
    assert list(layer.below(Overwrite(2, "X"))) == []


@pytest.mark.parametrize(
    ("span", "lifted"), [((0, 1), (0, 1)), ((1, 3), (1, 2)), ((2, 5), (1, 4)), ((3, 9), (2, 5))]
)
def test_a_span_is_lifted_with_the_escapes_that_it_touches(
    span: tuple[int, int], lifted: tuple[int, int]
) -> None:
    text = r"a\nbc\u0041d"
    assert unescaped(text, [(0, len(text))]).lifted(*span) == lifted


@given(st.text(max_size=20), st.booleans(), st.integers(0, 3))
def test_stars_keep_lengths_and_json(text: str, ascii_only: bool, depth: int) -> None:  # noqa: FBT001 - drawn
    value: object = text
    for _ in range(depth):
        value = json.dumps(value, ensure_ascii=ascii_only)
    source = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    raw = source.decode("latin-1")
    view = LayeredView(raw)
    for _ in range(depth + 1):
        view = view.on(unescaped(view.text, [(0, len(view.text))]))
    kept = ' "\\'
    stars = "".join("*" if " " < c < "\x7f" and c not in kept else c for c in view.text)
    after = changed(raw, view.down([Overwrite(0, stars)])).encode("latin-1")
    assert len(after) == len(source)
    value = json.loads(after)
    for _ in range(depth):
        value = json.loads(str(value))
    assert isinstance(value, str)
