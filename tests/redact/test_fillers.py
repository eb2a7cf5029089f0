import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.redact.fillers import Fillers


def masked(text: str, fillers: Fillers | None = None) -> str:
    done = (fillers or Fillers()).masked(text.encode("utf-8", "surrogatepass").decode("latin-1"))
    return done.encode("latin-1").decode("utf-8", "surrogatepass")


def test_letters_and_digits_give_way_and_all_else_stays() -> None:
    assert masked("Weather in Bern, on 2026-11-22?\n") == "xxxxxxx xx xxxx, xx 1111-11-11?\n"


def test_other_letters_give_way_to_letters_of_their_length() -> None:
    assert masked("Zürich 東京 😀 ©") == "x\xd7xxxx \u2179\u2179 \U0001d465 ©"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (r"\n\u0041\u00e9", r"\n\u0078\u00d7"),
        (r"\\u00e9", r"\\u00d7"),
        (r"\ud83d\ude00", r"\ud835\udc65"),
        (r"\ud83d \u002e \u000a", r"\ud83d \u002e \u000a"),
        (r"\u0031", r"\u0031"),
        ("\\", "\\"),
        ("true and null", "true xxx null"),
        ("truth", "xxxxx"),
    ],
)
def test_escapes_stay_escapes_and_literals_literals(text: str, after: str) -> None:
    assert masked(text) == after


def test_json_is_masked_string_by_string_and_stays_json() -> None:
    text = '{"city":"Bern","n":-12.50e+3,"ok":true,"no":null,"x":"a\\"b"}'
    assert masked(text, Fillers(frozenset({"city", "ok", "n"}))) == (
        '{"city":"xxxx","n":-11.11e+3,"ok":true,"xx":null,"x":"x\\"x"}'
    )


def test_a_prefix_of_json_is_masked_as_far_as_it_goes() -> None:
    fillers = Fillers(frozenset({"city"}))
    assert masked('{"city": "Be', fillers) == '{"city": "xx'
    assert masked('[Note] {bare \\"', fillers) == "[xxxx] {xxxa \\" + '"'


def test_strings_that_differ_still_differ() -> None:
    fillers = Fillers()
    texts = ["Bern", "Rome", "Oslo", "Bern", "Rome."]
    assert [masked(text, fillers) for text in texts] == ["xxxx", "xxxa", "xxxb", "xxxx", "xxxx."]
    assert masked("[12, 34, 12]", fillers) == "[11, 12, 11]"


def test_more_strings_than_letters_can_tell_are_the_same() -> None:
    fillers = Fillers()
    found = [masked(f'"{digit}"', fillers) for digit in "0123456789"]
    assert len(set(found)) == 9
    assert found[9] == found[0]


def test_the_same_string_has_the_same_filler_however_it_is_escaped() -> None:
    fillers = Fillers()
    masked("Zu\u0308rich", fillers)
    plain, escaped = masked("Zürich!", fillers), masked(r"Z\u00fcrich!", fillers)
    assert json.loads(f'"{escaped}"') == plain
    assert masked(" Zürich!\n", fillers).strip() == plain


def test_a_filler_is_never_a_word_that_is_kept() -> None:
    fillers = Fillers(frozenset({"x", "a"}))
    assert masked('["n", "x", "m"]', fillers) == '["b", "x", "c"]'
    everything = Fillers(frozenset("123456789"))
    assert masked('["0"]', everything) == '["1"]'


@given(st.lists(st.text(alphabet='ab1 "\\{}[]:,nuté😀\n', max_size=12), max_size=6))
def test_lengths_stay_and_twice_is_once(texts: list[str]) -> None:
    first, second = Fillers(frozenset({"a"})), Fillers(frozenset({"a"}))
    once = [masked(text, first) for text in texts]
    assert [len(text.encode()) for text in once] == [len(text.encode()) for text in texts]
    assert [masked(text, second) for text in once] == once


@pytest.mark.slow
def test_the_cost_is_linear_for_hostile_text() -> None:
    for piece in ('"\\', "\\", "\\u0041", '"', "1", "a "):
        assert masked(piece * (100_000 // len(piece)))
