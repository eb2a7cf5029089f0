import json
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.match.body import (
    BLANK,
    NOT_JSON,
    agree,
    blanked,
    exact_form,
    fits,
    forms_of,
    json_value,
    may_be_filled,
    shown_value,
    stands_for,
)
from deltatape.match.request import MatchLevel, MatchQuery, RecordedMatch, RequestMatcher
from deltatape.match.volatile import VolatileRules
from deltatape.model.exchange import Exchange
from deltatape.redact.content import mask, vocabulary
from deltatape.redact.fillers import Fillers
from deltatape.secret_text.escaped_text import overwrite
from deltatape.store.reader import open_tape

TAPES = Path(__file__).parent.parent.parent / "recordings" / "incidents"


def test_how_json_is_written_does_not_count() -> None:
    one = forms_of(b'{"a": 1.0, "b": "\\u00e9"}', VolatileRules())
    assert one == forms_of('{"b":"é","a":1}'.encode(), VolatileRules())
    assert one != forms_of(b'{"a": 1.5, "b": "\\u00e9"}', VolatileRules())
    assert one is not None
    assert one.canonical == one.reduced


def test_volatile_fields_are_in_one_form_and_not_in_the_other() -> None:
    paths = VolatileRules(["a"])
    one, other = forms_of(b'{"a":1,"b":2}', paths), forms_of(b'{"a":3,"b":2}', paths)
    assert one is not None
    assert other is not None
    assert one.canonical != other.canonical
    assert one.reduced == other.reduced


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b"[" * 990 + b"]" * 990])
def test_what_cannot_be_read_is_not_json(body: bytes) -> None:
    assert json_value(body) is NOT_JSON
    assert forms_of(body, VolatileRules()) is None


def test_numbers_beyond_exact_ones_stay_as_they_are() -> None:
    assert json_value(b"[1e300, 1.0, -2.0, 0.5]") == [1e300, 1, -2, 0.5]
    assert isinstance(json_value(b"1e300"), float)
    assert isinstance(json_value(b"1.0"), int)


def multipart(boundary: str, text: str = "hello") -> bytes:
    """A body of one part."""
    return f"--{boundary}\r\nContent-Type: text/plain\r\n\r\n{text}\r\n--{boundary}--\r\n".encode()


def test_the_boundary_of_a_multipart_body_does_not_count() -> None:
    assert exact_form(multipart("0a1b2c")) == exact_form(multipart("ffeedd"))
    assert exact_form(multipart("0a1b2c")) != exact_form(multipart("0a1b2c", "other"))


@pytest.mark.parametrize("body", [b"", b"{}", b"--a\r\nb", b"--a", b"--a\r\n\r\n--b--\r\n"])
def test_other_bodies_are_the_bytes_that_they_are(body: bytes) -> None:
    assert exact_form(body) == body


def test_spans_become_blanks() -> None:
    assert blanked(b'{"a":"****"}', ((6, 10, ""),)) == f'{{"a":"{BLANK}"}}'.encode()
    assert blanked(b"{}", ()) == b"{}"


@pytest.mark.parametrize(
    ("between", "text"),
    [
        (("abc",), "abc"),
        (("", ""), ""),
        (("a", ""), "abc"),
        (("", "c"), "abc"),
        (("a", "b", "c"), "a-b-c"),
    ],
)
def test_pieces_fit_what_has_them_in_order(between: tuple[str, ...], text: str) -> None:
    assert fits(between, text)
    assert fits([piece.encode() for piece in between], text.encode())


@pytest.mark.parametrize(
    ("between", "text"),
    [
        (("abc",), "abcd"),
        (("ab", "bc"), "abc"),
        (("a", "b", "c"), "a-c"),
        (("a", "b", "b"), "a-b"),
        (("x", "c"), "abc"),
        (("a", "x"), "abc"),
    ],
)
def test_pieces_do_not_fit_what_lacks_one(between: tuple[str, ...], text: str) -> None:
    assert not fits(between, text)


def test_blanks_are_shown_as_asterisks() -> None:
    assert shown_value({"a": [f"x{BLANK}", 1, None]}) == {"a": ["x***", 1, None]}


@pytest.mark.parametrize(
    "text",
    [
        "What is the weather in Bern on 2026-11-22?",
        "a longer text\nwith true, false and null, and 3.14",
        "Grüße aus Zürich, 東京, 🎉 and Ωmega",
        'nested: {"city": "Bern", "days": 3, "note": "a\\nb\\u00e9"}',
        "A12 BCD " * 20,
        "«quoted» §1, a ª letter",
    ],
)
def test_fillers_stand_for_what_they_were_made_of(text: str) -> None:
    fillers = Fillers()
    filled = [fillers.masked(text.encode().decode("latin-1")) for text in (text, text[::-1], text)]
    recorded = filled[0].encode("latin-1").decode()
    assert recorded != text
    assert stands_for(recorded, text)
    assert agree([recorded, "same"], [text, "same"])
    assert not agree([recorded, "same"], [text, "other"])
    assert not agree([recorded], [f"{text}!"])


def test_numbered_fillers_stand_for_what_they_were_made_of() -> None:
    fillers = Fillers()
    for word in ("Weather in Bern", "Another in Rome", "Harbour of Oslo"):
        assert stands_for(fillers.masked(word), word) is (len(word) > 8)


def test_words_that_a_tool_defines_are_kept_among_fillers() -> None:
    recorded = '{"city": "xxxxxx", "xxxx": 11, "note": "xxxxxxxx\\n"}'
    received = '{"city": "Lisbon", "days": 42, "note": "whatever\\n"}'
    assert agree(recorded, received)
    assert not agree(recorded, received.replace("city", "town"))
    assert not agree(recorded, received.replace("\\n", "\\t"))
    assert not agree(recorded, received.replace("42", "4x"))
    assert not agree(recorded, received.replace(", ", "; "))
    assert not agree("xxxxxxxx!", "whatever?")


def test_fillers_of_wide_characters_and_escapes_stand_for_such() -> None:
    assert agree("\u2179\u2179 xxxxxxxx", "東京 whatever")
    assert agree("«\u2179 xxxxxxxx", "«東 whatever")
    assert not agree("東\u2179 xxxxxxxx", "京京 whatever")
    assert agree("\\u00d7 xxxxxxxx", "\\u00e9 whatever")


def test_short_fillers_count_beside_long_ones_only() -> None:
    assert not stands_for("xx", "no")
    assert not agree(["xx"], ["no"])
    assert agree(["xx", "xxxxxxxx"], ["no", "long one".replace(" ", "x")])
    assert not agree(["user", "xxxxxxxx"], ["tool", "whatever"])


def test_numbers_and_keys_of_arguments_may_be_fillers() -> None:
    recorded = {"xxxx": "xxxxxxxxx", "n": 11, "f": 1.1, "b": True, "none": None}
    received = {"city": "Stockholm", "n": 42, "f": 3.5, "b": True, "none": None}
    assert agree(recorded, received)
    assert not agree(recorded, {**received, "b": False})
    assert not agree(recorded, {**received, "n": "42"})
    assert not agree(recorded, {**received, "n": 421})
    assert not agree(recorded, {**received, "more": 1})
    assert not agree(recorded, {**received, "none": 0})


def test_what_was_not_overwritten_has_to_be_equal() -> None:
    assert agree({"a": [1, "b"]}, {"a": [1, "b"]})
    assert not agree([1], [True])
    assert not agree([1], [1, 2])
    assert not agree({"a": 1}, [1])
    assert not agree("hello you", "hello who")


def test_bodies_without_fillers_are_told_cheaply() -> None:
    assert may_be_filled(b'"xxxx"')
    assert may_be_filled(b"1111")
    assert not may_be_filled(json.dumps({"text": "nothing of the kind"}).encode())


def test_lone_surrogates_are_characters_like_others() -> None:
    assert not stands_for("xxxxxxxx\ud800", "whatever\ud801")
    assert stands_for("xxxxxxxx\ud800", "whatever\ud800")


def test_a_tape_whose_content_was_redacted_answers_the_same_requests() -> None:
    """All of an incident's requests, each by its own exchange."""
    tape = TAPES / "1-index-keyed-accumulation" / "fixed.tape"
    exchanges = sorted(open_tape(tape), key=lambda exchange: exchange.number)
    fillers = Fillers(vocabulary(exchanges[0].request.body))
    matcher = RequestMatcher([_filled(exchange, fillers) for exchange in exchanges])
    for position, exchange in enumerate(exchanges):
        request = exchange.request
        asking = MatchQuery(method=request.method, target=request.target_bytes, body=request.body)
        assert matcher.match(asking) == RecordedMatch(position=position, level=MatchLevel.MASKED)
        matcher.play(position, spent=True)


def _filled(exchange: Exchange, fillers: Fillers) -> Exchange:
    body = exchange.request.body
    filled = overwrite(body, mask(body, fillers))
    return replace(exchange, request=replace(exchange.request, body=filled))
