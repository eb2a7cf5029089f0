import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.printable import MAX_EVIDENCE, count, escape, escape_each, excerpt
from helpers.secret_tapes import KEY, STARS

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \\n {}", "plain \\n {}"),
        ("a\nb\r\t", "a\\nb\\r\\t"),
        ("\x1b[2J\x9b1m\x7f", "\\x1b[2J\\x9b1m\\x7f"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("é 漢 😀", "é 漢 😀"),
    ],
)
def test_what_a_terminal_could_act_on_is_shown_instead(text: str, shown: str) -> None:
    assert escape(text) == shown


@given(st.text(max_size=300))
def test_no_hidden_character_survives_and_evidence_stays_short(text: str) -> None:
    for shown in (escape(text), excerpt(text)):
        assert not {unicodedata.category(character) for character in shown} & HIDDEN
    assert len(excerpt(text)) <= MAX_EVIDENCE
    assert escape(escape(text)) == escape(text)


def test_a_cut_never_splits_an_escape_and_is_marked() -> None:
    assert excerpt("ab\x1bcd", 7) == "ab..."
    assert excerpt("abcd", 4) == "abcd"
    assert excerpt("abcdefgh", 7) == "abcd..."
    assert excerpt("\x1b" * 3, 12) == "\\x1b" * 3
    assert excerpt("\x1b" * 4, 12) == "\\x1b\\x1b..."


def test_one_is_singular() -> None:
    assert [count(number, "event") for number in (0, 1, 2)] == ["0 events", "1 event", "2 events"]


def test_what_looks_like_a_secret_is_not_shown_also_where_the_text_is_cut() -> None:
    assert escape(f"it is {KEY}\n") == f"it is {STARS}\\n"
    assert escape_each(["\x1b", f"it is {KEY}", "東"]) == ["\\x1b", f"it is {STARS}", "東"]
    assert excerpt(f"it is {KEY}", 12) == "it is ***..."
