import base64
import html
import json
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.secret_text.search import each_without_secrets, secret_strings, without_secrets
from helpers.leaks import SPELLINGS
from helpers.secret_tapes import KEY, STARS

READ: dict[str, Callable[[str], str]] = {
    "plain": str,
    "\\u": lambda text: str(json.loads(f'"{text}"')),
    "entities": html.unescape,
    "percent": unquote,
    "percent twice": lambda text: unquote(unquote(text)),
    "base64": lambda text: base64.b64decode(text).decode(),
    "hex": lambda text: bytes.fromhex(text).decode(),
}
PIECES = [
    *(spell(KEY) for spell in SPELLINGS.values()),
    "%",
    "%2",
    "&#",
    "&amp;",
    "\\",
    "\\u00",
    "é",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_overwritten_in_its_own_spelling(spelling: str) -> None:
    spelled = SPELLINGS[spelling](KEY)
    done = without_secrets(f"it is {spelled}, ok")
    hidden = done.removeprefix("it is ").removesuffix(", ok")
    assert len(hidden) == len(spelled)
    assert READ[spelling](hidden) == STARS


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"/v1/{KEY.encode().hex()}/models", f"/v1/{b'*'.hex() * len(KEY)}/models"),
        (KEY.encode().hex().upper() + "f", b"*".hex() * len(KEY) + "f"),
        (
            f"x{base64.urlsafe_b64encode(b'~~?' + KEY.encode()).decode()}",
            f"x{base64.urlsafe_b64encode(b'~~?' + STARS.encode()).decode()}",
        ),
        (
            base64.b64encode(base64.b64encode(KEY.encode())).decode(),
            base64.b64encode(base64.b64encode(STARS.encode())).decode(),
        ),
        ("&#x73;&#107;-fakefakefake0000", "&#x2a;&#042;*****************"),
        ("&quot;" + KEY + "&quot;", "&quot;" + STARS + "&quot;"),
        ("https%3A%2F%2Fu%3Afake%40h", "https%3A%2F%2F*%2A****%40h"),
        ("https://u:p&#233;&#xe9;&amp;@h", "https://***&#042;&#x2a;&amp;@h"),
        ("short", "short"),
        ("aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ", "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ"),
        ("deadbeef" * 8, "deadbeef" * 8),
        (f"{'a ' * 300}{KEY}", f"{'a ' * 300}{STARS}"),
    ],
)  # fmt: skip
def test_only_the_secret_of_an_encoded_text_changes(before: str, after: str) -> None:
    assert without_secrets(before) == after


@pytest.mark.parametrize(("times", "is_hidden"), [(15, True), (16, False)])
def test_escapes_of_escapes_are_undone_sixteen_times(times: int, *, is_hidden: bool) -> None:
    deep = f"%{'25' * times}73{KEY[1:]}"
    assert (without_secrets(deep) != deep) is is_hidden


TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=6).map("".join)


@pytest.mark.slow
@settings(max_examples=200)
@given(TEXTS)
def test_whatever_the_text_its_length_in_bytes_stays_and_nothing_is_left(text: str) -> None:
    done = without_secrets(text)
    assert len(done.encode("utf-8", "surrogatepass")) == len(text.encode("utf-8", "surrogatepass"))
    assert without_secrets(done) == done


@settings(max_examples=200)
@given(st.lists(TEXTS, max_size=6))
def test_texts_that_are_searched_together_change_as_each_does_alone(texts: list[str]) -> None:
    assert each_without_secrets(texts) == [without_secrets(text) for text in texts]


def test_the_secrets_of_a_json_value_are_found_in_each_string_that_is_looked_at() -> None:
    value = {"a": [{"b": ("x", f"key {KEY}")}, KEY, 1, None], "c": "a text"}
    assert secret_strings(value) == {f"key {KEY}": f"key {STARS}", KEY: STARS}
    assert secret_strings(value, 1) == {}
    assert secret_strings(value["c"]) == {}
