from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deltatape.model.digest import MAX_CONTENT
from deltatape.model.finding import Confidence
from deltatape.model.turn import TextChange, TextDamage
from deltatape.rules.text_change import text_change

PIECES = ("The", " weather", " in", " Gent", " is", " fine", ",", " 13", " degrees", ".")
TEXT = "".join(PIECES)
FRENCH = ("Le ca", "fé est t", "rès bon", ", n'est-ce pas, cet été?")
WORDS = st.lists(
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=6), min_size=4, max_size=12
)
"""Fragments that go on inside words, all of them."""


def change(
    repeated: str, pieces: Sequence[str] = PIECES, torn: Sequence[int] = ()
) -> TextChange | None:
    return text_change("".join(pieces), [*accumulate(map(len, pieces))], repeated, torn)


def clause_and_confidence(
    repeated: str, pieces: Sequence[str] = PIECES
) -> tuple[str, Confidence] | None:
    """The beginning of the clause, and its confidence."""
    found = change(repeated, pieces)
    return None if found is None else (found.clause.partition(":")[0], found.confidence)


@pytest.mark.parametrize(
    "repeated",
    [
        TEXT,
        f"\n  {TEXT}\n\n",
        TEXT.replace(" ", "\n"),
        TEXT.replace(" ", "  "),
        TEXT.upper(),
        f"Assistant: {TEXT}",
        f"{TEXT} (13.5 s)",
        "Das Wetter in Gent ist schön, 13 Grad.",
        "Weather: 13 degrees",
        TEXT.replace("Gent", "[REDACTED]"),
        TEXT.replace("Gent", "****"),
        TEXT[:20],
        TEXT[:25] + "...",
        "13 degrees",
        TEXT.removesuffix("."),
        "",
        "  ",
        "X" * MAX_CONTENT,
    ],
)
def test_what_applications_do_to_a_text_is_not_a_change(repeated: str) -> None:
    assert change(repeated) is None


@pytest.mark.parametrize(
    ("repeated", "pieces"),
    [
        ("Hello there", ["<think>", "Hm.", "</think>", "\n\n", "Hello", " there"]),
        ("Hello there", ["<think>Hm.</think>", "Hello", " there"]),
        ("Hello there", ["**", "Hello", "**", " there"]),
        ("Hello there", ["\n", "Hello", " there", "\n\n"]),
        ("Hello there.", ["Hello", " there.", "\nTERMINATE"]),
        ("Hello there", ["Hello", " there", " END"]),
        ("Hello there", ["Hello", " [1]", " there"]),
        ("Hello there", ["Hello", " 🙂", " there"]),
        ("Hello there", ["🙂 ", "Hello", " there"]),
        ("Hello there", ["Hello", " there", "\nUser: and"]),
        ('{"a": 1}', ['{"a":1', ',"b"', ":2}"]),
        ('{"a": 1, "b": 2}', ['{"a":1', ',"b"', ":2}"]),
        ("hi", ["h"]),
        ("Plain cafe", ["Plain ", "café", " été"]),
        ("It is 13°C.", ["It is", " 13", " °C", "."]),
        ("0475123456", ["0475", " 12", " 34", " 56"]),
        ("Dear Annthanks", ["Dear Ann", " thanks"]),
        ("one two", ["one\n", "\ntwo"]),
        ("onetwothreefourfive", ["one\n", "two\n", "three\n", "four\n", "five"]),
        ("Mme Renee", ["Mme ", "Renée"]),
        ("a b c", ["a b", " x", " y", " c"]),
        ("one four", ["one", " two", " three", " four"]),
        ("He said no", ["He said", " no", "!"]),
        ("to be", ["to be", " or", " not"]),
        ("the end", ["This is", " not", " the end"]),
        ("Hello.. there", ["Hello", ".", " there"]),
        ("a, b", ["b", ", ", "a"]),
        ("Hi!, you", ["Hi", ",", "!", " you"]),
        ("Hi you", ["Hi", " ", "a", " you"]),
        ("xx, one two", ["x", ", one", " two"]),
    ],
)
def test_clean_ups_and_cuts_are_no_change(repeated: str, pieces: Sequence[str]) -> None:
    assert change(repeated, pieces) is None


@pytest.mark.parametrize(
    ("repeated", "pieces", "what", "confidence"),
    [
        (
            "lo world",
            ["Hel", "lo wor", "ld"],
            "without its first fragment, 'Hel'",
            "proven",
        ),
        ("lo", ["Hel", "lo"], "without its first fragment, 'Hel'", "proven"),
        (
            "345 km",
            ["12", "345", " km"],
            "without its first fragment, '12'",
            "proven",
        ),
        (
            "ld",
            ["Hel", "lo wor", "ld"],
            "without its first 2 fragments, 'Hello wor'",
            "likely",
        ),
        (TEXT[3:], PIECES, "without its first fragment, 'The'", "likely"),
        (TEXT[4:], PIECES, "without its first fragment, 'The'", "likely"),
        (
            "! How are you",
            ["Hi", "!", " How", " are you"],
            "without its first fragment, 'Hi'",
            "likely",
        ),
        (
            "I can",
            ["Sure.", " I", " can"],
            "without its first fragment, 'Sure.'",
            "possible",
        ),
        (
            "Hello wor",
            ["Hel", "lo wor", "ld"],
            "without its last fragment, 'ld'",
            "proven",
        ),
        (
            "Hello worl",
            ["Hel", "lo worl", "d"],
            "without its last fragment, 'd'",
            "possible",
        ),
        (
            "Hel",
            ["Hel", "lo wor", "ld"],
            "without its last 2 fragments, 'lo world'",
            "possible",
        ),
        ("How do you", ["How", " do you", " do?"], "", ""),
        (
            "How will you",
            ["How", " will you", " do?"],
            "without its last fragment, ' do?'",
            "likely",
        ),
        (
            "How are you?",
            ["How", " are you?", " Fine"],
            "without its last fragment, ' Fine'",
            "possible",
        ),
        (
            "Helld",
            ["Hel", "lo wor", "ld"],
            "without fragment 2 of 3, 'lo wor'",
            "likely",
        ),
        (
            "Hezed",
            ["He", "llo", " wor", "zed"],
            "without fragments 2 to 3 of 4, 'llo wor'",
            "likely",
        ),
        (
            "The in",
            ["The", " weather", " in"],
            "without fragment 2 of 3, ' weather'",
            "possible",
        ),
        (TEXT + TEXT, PIECES, "twice", "proven"),
        (f"{TEXT}\n\n{TEXT}", PIECES, "twice", "proven"),
        ("Hello Hello ", ["Hello "], "twice", "proven"),
        ("HelHellolo", ["Hel", "lo"], "with each of its 2 fragments duplicated", "proven"),
        ("HelHelloHello!", ["Hel", "lo", "!"], "as a series of snapshots", "proven"),
        ("Hello lo wor worldld", ["Hel", "lo wor", "ld"], "", ""),
        (
            "HelHello world",
            ["Hel", "lo wor", "ld"],
            "with fragment 1 of 3, 'Hel' duplicated",
            "proven",
        ),
        ("go far far", ["go", " far"], "with fragment 2 of 2, ' far' duplicated", "likely"),
        (
            "lo worHelld",
            ["Hel", "lo wor", "ld"],
            "with fragments 1 and 2 of 3 swapped",
            "proven",
        ),
        (
            "Helthtowns",
            ["Hel", "lo ", "th", "e ", "towns"],
            "without 2 of its 5 fragments ('lo ', 'e ')",
            "likely",
        ),
        ("aabbccddeeffgg xx", ["aa", "bb", "cc", "dd", "ee", "ff", "gg x", "x"], "", ""),
        (
            "HelHello world world it is",
            ["Hel", "lo", " world", " it is"],
            "with 2 of its 4 fragments duplicated ('Hel', ' world')",
            "proven",
        ),
        (
            "one two two three four four five",
            ["one", " two", " three", " four", " five"],
            "with 2 of its 5 fragments duplicated (' two', ' four')",
            "likely",
        ),
        (
            "The in is,",
            ["The", " weather", " in", " Gent", " is", " fine", ","],
            "without 3 of its 7 fragments (' weather', ' Gent', ' fine')",
            "likely",
        ),
        (
            "hello worldthis istext andmore",
            ["hello world", " this is", " text and", " more"],
            "with the white space of each fragment stripped",
            "proven",
        ),
        (
            "one twothree four-five",
            ["one two", " ", "three", " ", "four", "-five"],
            "",
            "",
        ),
        (
            "helloworldthisistext",
            ["hello", " world", " this", " is", " text"],
            "with the white space of each fragment stripped",
            "likely",
        ),
        (
            "a dogcat of minebird",
            ["a dog", " ", "cat of mine", "\t", "bird"],
            "with the white space of each fragment stripped",
            "likely",
        ),
    ],
)
def test_what_follows_the_fragments_is_reported(
    repeated: str, pieces: Sequence[str], what: str, confidence: str
) -> None:
    assert clause_and_confidence(repeated, pieces) == (
        (what, Confidence(confidence)) if what else None
    )


@pytest.mark.parametrize(
    ("repeated", "torn", "damage", "confidence"),
    [
        ("".join(FRENCH).encode().decode("latin-1"), (), "Latin-1", "proven"),
        ("".join(FRENCH).replace("é", "\ufffd\ufffd", 1), (), "U+FFFD", "proven"),
        ("".join(FRENCH).replace("é", "", 1), (), "without the characters 'é'", "possible"),
        ("".join(FRENCH).replace("é", "", 2), (), "without the characters 'é'", "likely"),
        ("".join(FRENCH).replace("é", "", 1), (1,), "without the characters 'é'", "proven"),
    ],
)
def test_characters_that_were_decoded_wrongly_are_reported(
    repeated: str, torn: Sequence[int], damage: str, confidence: str
) -> None:
    found = change(repeated, FRENCH, torn)
    assert found
    assert damage in found.clause
    assert (found.damage, found.confidence) == (TextDamage.ENCODING, Confidence(confidence))


CHINESE = [
    "各位",
    "同事",
    "\uff0c明天",
    "在",
    "大",
    "会议室",
    "开会",
    "\uff0c请",
    "准时",
    "到",
    "会议室",
    "。",
]


@pytest.mark.parametrize(
    ("repeated", "fragments"),
    [
        ("".join(FRENCH).replace("è", ""), FRENCH),
        ("".join(CHINESE).replace("在大会议室", ""), CHINESE),
        ("".join(CHINESE)[:12], CHINESE),
        ("".join(CHINESE).replace("大会议室", "室"), CHINESE),
        ("用Docker部署", ["用", " Docker", " 部", "署"]),
    ],
)
def test_an_edit_of_a_text_in_any_script_is_not_a_mistake_of_a_decoder(
    repeated: str, fragments: Sequence[str]
) -> None:
    found = change(repeated, fragments)
    assert found is None or found.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize(
    "repeated", ["See you on Monday", "Teh end", "Comiing soon, all", "The cat a mat"]
)
def test_a_corrected_letter_of_a_text_that_came_by_letters_is_possible_at_most(
    repeated: str,
) -> None:
    typed = {"See you on Monday": "See you on Mondayy", "Teh end": "The end"}
    typed["The cat a mat"] = "The cat on a mat"
    letters = list(typed.get(repeated, "Coming soon, all"))
    found = change(repeated, letters)
    assert found is None or found.confidence is Confidence.POSSIBLE


def test_windows_1252_is_told_from_latin_1() -> None:
    text = "Żółć: 13 €"
    found = change(text.encode().decode("cp1252", "replace"), [text])
    assert found
    assert "Windows-1252" in found.clause


def test_the_only_character_of_its_kind_is_proven_lost_where_a_read_cut_it() -> None:
    assert change("caf", ["ca", "fé"]) is None
    found = change("caf", ["ca", "fé"], torn=[1])
    assert found
    assert found.confidence is Confidence.PROVEN


def test_several_characters_that_were_cut_are_reported_together() -> None:
    whole = "".join(FRENCH)
    broken = whole.replace("é", "\ufffd\ufffd").replace("è", "\ufffd")
    found = change(broken, FRENCH)
    assert found
    assert "with 4 U+FFFD in place" in found.clause
    assert change("\ufffd\ufffd\ufffd", ["ééé"])


@pytest.mark.slow
def test_a_hostile_text_takes_no_longer_than_another() -> None:
    assert change("\ufffdé" * 4000 + "x", ["é" * 9000]) is None
    pieces = ["ab "] * 5000
    assert change("ab " * 4999 + "x", pieces) is None


@pytest.mark.parametrize(
    "repeated",
    [
        "Le caf\ufffd\ufffd est mauvais",
        "Le café est bon",
        "Un caf\ufffd",
        "Le ca\ufffd est très bon, n'est-ce pas, cet été?",
    ],
)
def test_another_text_is_no_matter_of_decoding(repeated: str) -> None:
    assert change(repeated, FRENCH) is None


def test_a_text_that_a_digest_does_not_hold_whole_tells_nothing() -> None:
    pieces = ["He", "llo " * (MAX_CONTENT // 4)]
    assert change("".join(pieces)[2:], pieces) is None


def test_proven_and_likely_name_what_fails() -> None:
    for repeated in ("lo world", "Helld", "Hello wor", "lo worHelld", "HelHello world"):
        found = change(repeated, ["Hel", "lo wor", "ld"])
        assert found
        assert found.excluded
        assert all(each.because for each in found.excluded)


@pytest.mark.slow
@given(WORDS, st.data())
def test_a_lost_fragment_inside_a_word_is_always_told(
    pieces: list[str], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(pieces) - 1))
    repeated = "".join(pieces[:place] + pieces[place + 1 :])
    found = change(repeated, pieces)
    assume(repeated * 2 != "".join(pieces))
    assert found
    assert found.damage is TextDamage.LOST


@given(WORDS, st.data())
def test_a_doubled_fragment_inside_a_word_is_always_told(
    pieces: list[str], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(pieces) - 1))
    repeated = "".join([*pieces[: place + 1], *pieces[place:]])
    found = change(repeated, pieces)
    assert found
    assert found.damage is TextDamage.DOUBLED


@given(st.lists(st.text(min_size=1, max_size=5), max_size=12), st.text(max_size=40))
def test_any_text_is_compared_without_raising(pieces: list[str], repeated: str) -> None:
    found = change(repeated, pieces)
    assert found is None or found.clause
    assert change("".join(pieces), pieces) is None
    assert change(f" {''.join(pieces)}\n", pieces) is None


@given(WORDS, st.integers(0, 11), st.integers(1, 12))
def test_a_cut_between_words_is_never_proven(words: list[str], first: int, last: int) -> None:
    found = change(" ".join(words[first:last]), [f" {word}" for word in words])
    assert found is None or found.confidence is not Confidence.PROVEN
