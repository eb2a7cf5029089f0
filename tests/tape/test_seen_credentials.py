import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.exchange import MaskedSpan
from deltatape.tape import seen_credentials
from deltatape.tape.seen_credentials import (
    GIANT,
    LONG,
    LONGEST,
    SeenCredentials,
    blanked,
    fewer_spellings,
    merged,
    spellings,
)
from helpers.spelling import credentials, spelled

KEY = b"sk-fake-000000"


def named(credential: bytes) -> str:
    return credential.decode("latin-1")


def known(*credentials: bytes) -> SeenCredentials:
    found = SeenCredentials(named)
    for credential in credentials:
        found.see((credential,))
    return found


def many(*credentials: bytes) -> SeenCredentials:
    """So many that they are not looked for one by one."""
    return known(*(b"other-%03d-fake" % number for number in range(20)), *credentials)


def throng(*credentials: bytes) -> SeenCredentials:
    """So many that they are not looked for one by one in large data, either."""
    return known(*(b"other-%03d-fake" % number for number in range(100)), *credentials)


either = pytest.mark.parametrize("those", [known, many, throng])
Made = Callable[..., SeenCredentials]


@either
@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc", b"abcd", b"x" * 41, b"x" * 5001])
@pytest.mark.parametrize("after", [b"", b"\n", b"more\n"])
def test_a_credential_is_found_wherever_it_stands(those: Made, before: bytes, after: bytes) -> None:
    found = those(KEY)
    data = before + KEY + after
    assert not found.clean(data)
    assert found.find(data) == ((len(before), len(before) + len(KEY), named(KEY)),)
    assert blanked(data, found.find(data)) == before + b"*" * len(KEY) + after


@either
@pytest.mark.parametrize(
    "data", [b"", b"a", b"data: {}\n\n", KEY[:-1] + b"\n", b"x" * 5000 + b"\n"]
)
def test_what_holds_no_credential_is_left_alone(those: Made, data: bytes) -> None:
    found = those(KEY)
    assert found.find(data) == ()
    assert found.tail(data) == (0, "")
    assert found.spans(data) == ()


@either
def test_a_piece_that_ends_a_line_is_told_clean_at_once(those: Made) -> None:
    assert those(KEY).clean(b"data: {}\n\n")
    assert those().clean(b"data: {}\n\n")


@either
def test_spellings_are_found_as_the_credential_they_are(those: Made) -> None:
    found = those(b"fake/fake+fake")
    data = rb'{"a":"fake\/fake+fake","b":"fake%2Ffake%2Bfake"}'
    assert [(data[start:end], name) for start, end, name in found.find(data)] == [
        (rb"fake\/fake+fake", "fake/fake+fake"),
        (b"fake%2Ffake%2Bfake", "fake/fake+fake"),
    ]


@either
def test_overlapping_credentials_are_masked_as_one(those: Made) -> None:
    found = those(b"fakefake", b"fake1234-more", b"fakefake1234-more-yet", b"aaaaaaaa")
    assert found.find(b"fakefake1234-more\n") == ((0, 17, "fakefake"),)
    assert found.find(b"fakefake1234-more-yet\n") == ((0, 21, "fakefake1234-more-yet"),)
    assert found.find(b"a" * 11 + b"\n") == ((0, 11, "aaaaaaaa"),)
    assert found.find(b"fakefakeaaaaaaaa\n") == ((0, 8, "fakefake"), (8, 16, "aaaaaaaa"))


@either
@pytest.mark.parametrize("length", range(1, len(KEY)))
def test_the_end_of_data_may_begin_a_credential(those: Made, length: int) -> None:
    found = those(KEY)
    data = b"data: " + KEY[:length]
    assert not found.clean(data)
    assert found.tail(data) == (length, named(KEY))
    cut = ((6, 6 + length, named(KEY)),) if length >= 8 else ()
    assert found.spans(data) == cut


@either
def test_a_whole_credential_at_the_end_begins_only_others(those: Made) -> None:
    assert those(KEY).tail(b"x" + KEY) == (0, "")
    assert those(KEY, b"000000-fake").tail(b"x" + KEY) == (6, "000000-fake")
    assert those(KEY, KEY + b"-more").tail(b"x" + KEY) == (len(KEY), named(KEY) + "-more")


@pytest.mark.parametrize("credential", [b"", b"fake123", b"*" * 20, b"x" * (LONGEST + 1)])
def test_words_masks_and_giants_are_not_looked_for(credential: bytes) -> None:
    found = known(credential)
    found.learn(credential)
    assert found.clean(credential + b"\n")


def test_credentials_not_seen_for_longest_are_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seen_credentials, "MOST", 3)
    found = known(b"fake/one", b"fake/two", b"fake/three")
    found.see((b"fake/one",))
    found.learn(b"kept-fake")
    found.learn(b"kept-fake")
    found.see((b"kept-fake", b"fake/four"))
    assert found.find(b"fake/two fake%2Ftwo\n") == ()
    assert found.tail(b"fake/tw") == (0, "")
    for known_still in (b"fake/one", b"fake/three", rb"fake\/four", b"kept-fake"):
        assert not found.clean(known_still + b"\n")
    found.see((b"fake/five",))
    assert found.find(b"fake/three\n") == ()
    assert not found.clean(b"kept-fake\n")


@pytest.mark.slow
@given(
    st.lists(
        st.lists(st.text("ab/", min_size=8, max_size=9).map(str.encode), max_size=90), max_size=4
    )
)
@settings(max_examples=40)
def test_it_does_not_matter_in_which_portions_credentials_are_seen(
    portions: list[list[bytes]],
) -> None:
    whole, single = SeenCredentials(named), SeenCredentials(named)
    every = [credential for portion in portions for credential in portion]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seen_credentials, "MOST", 100)
        for portion in portions:
            whole.see(portion)
        for credential in every:
            single.see((credential,))
    data = b" ".join(every).replace(b"/", rb"\/") + b"\n"
    assert whole.find(data) == single.find(data)
    assert whole.tail(data[:-2]) == single.tail(data[:-2])


def _calls_to_see(number: int, length: int) -> int:
    """How many calls of functions it takes to see so many fresh cookies of so many bytes."""
    cookies = [(b"fake+%d=" % each * length)[:length] for each in range(100, 100 + number)]
    found = SeenCredentials(named)
    made = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal made
        del frame, arg
        made += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        found.see(cookies)
    finally:
        sys.setprofile(None)
    assert all(found.find(cookie + b"\n") for cookie in cookies)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("number", "length"), [(40, 200), (80, 700), (8, 1000)])
def test_a_head_full_of_fresh_cookies_costs_in_proportion(number: int, length: int) -> None:
    # Twice as many, or as long, take at most twice as much, and some for what is made once.
    once = _calls_to_see(number, length)
    assert _calls_to_see(2 * number, length) < 2.2 * once
    assert _calls_to_see(number, 2 * length) < 2.2 * once


def test_of_many_the_oldest_are_forgotten_one_by_one_as_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seen_credentials, "MOST", 100)
    every = [b"fake-%04d" % number for number in range(150)]
    data = b" ".join(every) + b"\n"
    single = known(*every)
    whole = SeenCredentials(named)
    whole.see(every)
    assert [data[start:end] for start, end, _ in single.find(data)] == every[50:]
    assert single.find(data) == whole.find(data)


def test_what_is_remembered_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_credentials, "_MOST_BYTES", 40)
    found = known(b"fake-one-" + b"1" * 10, b"fake-two-" + b"2" * 10, b"fake-six-" + b"6" * 10)
    assert found.clean(b"fake-one-1111111111\n")
    assert not found.clean(b"fake-six-6666666666\n")


def test_a_spelling_that_two_credentials_share_outlives_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seen_credentials, "MOST", 2)
    found = known(b"fake/fake", b"fake%2Ffake", b"other-fake")
    assert found.find(b"fake/fake\n") == ()
    assert found.find(b"fake%2Ffake\n")


def test_thousands_of_credentials_that_begin_alike_are_told_apart() -> None:
    found = known(*(b"eyJhbGciOiJub25lIn0.fake%05d" % number for number in range(1000)))
    data = b"x eyJhbGciOiJub25lIn0.fake00500 eyJhbGciOiJub25lIn0.fake\n"
    assert [data[start:end] for start, end, _ in found.find(data)] == [
        b"eyJhbGciOiJub25lIn0.fake00500"
    ]
    assert found.find(b"!!! eyJhbGci\n") == ()


def test_spans_that_meet_stay_apart() -> None:
    assert merged([(4, 6, "b"), (0, 4, "a"), (5, 5, "c"), (6, 6, "d")]) == (
        (0, 4, "a"),
        (4, 6, "b"),
        (6, 6, "d"),
    )


FEW = st.lists(st.text("ab", min_size=8, max_size=12).map(str.encode), min_size=1, max_size=4)
MANY = st.lists(st.text("ab", min_size=8, max_size=11).map(str.encode), min_size=9, max_size=40)


def everywhere(data: bytes, credentials: list[bytes]) -> tuple[MaskedSpan, ...]:
    return merged(
        (start, start + len(one), "")
        for one in credentials
        for start in range(len(data))
        if data.startswith(one, start)
    )


@pytest.mark.slow
@given(FEW | MANY, st.text("ab ", max_size=80).map(str.encode))
def test_no_occurrence_is_missed_and_none_invented(credentials: list[bytes], data: bytes) -> None:
    found = known(*credentials)
    expected = everywhere(data, credentials)
    assert [span[:2] for span in found.find(data)] == [span[:2] for span in expected]
    if data and found.clean(data):
        assert expected == ()
        assert found.tail(data) == (0, "")
    begun = [
        n for n in range(1, 13) for one in credentials if n < len(one) and data.endswith(one[:n])
    ]
    assert found.tail(data)[0] == max(begun, default=0)


@pytest.mark.parametrize("credential", [b"sk-fake-000000", b"fake.fake_fake", b""])
def test_a_plain_credential_has_one_spelling(credential: bytes) -> None:
    assert spellings(credential) == (credential,)


@pytest.mark.parametrize(
    ("credential", "expected"),
    [
        (b"fake/fake", rb"fake\/fake"),
        (b"fake/fake", rb"fake\\/fake"),
        (b"fake/fake", b"fake%2Ffake"),
        (b"fake/fake", b"fake%2ffake"),
        (b"fake+fake", rb"fake\u002bfake"),
        (b"fake+fake", rb"fake\u002Bfake"),
        (b"fake=fake", rb"fake\u003dfake"),
        (b"fake&fake", rb"fake\u0026fake"),
        (b'fake"fake', rb"fake\"fake"),
        (b'fake"fake', rb"fake\u0022fake"),
        (b'fake"fake', rb"fake\\\"fake"),
        (b"fake\\fake", rb"fake\\fake"),
        (b"fake fake", b"fake+fake"),
        (b"fake fake", b"fake%20fake"),
        ("fakeñfake".encode(), rb"fake\u00f1fake"),
        ("fakeñfake".encode(), rb"fake\u00F1fake"),
        ("fakeñfake".encode("latin-1"), "fakeñfake".encode()),
        ("fakeñfake".encode("latin-1"), rb"fake\u00f1fake"),
        ("fakeñfake".encode("latin-1"), b"fake%F1fake"),
    ],
)
def test_what_encoders_make_of_a_credential_is_known(credential: bytes, expected: bytes) -> None:
    found = spellings(credential)
    assert found[0] == credential
    assert expected in found
    assert len(set(found)) == len(found)


@given(credentials)
def test_every_usual_spelling_is_known(credential: str) -> None:
    found = spellings(credential.encode())
    assert {one.encode() for one in spelled(credential)} <= set(found)


def test_long_credentials_have_fewer_spellings_where_they_come_by_the_dozen() -> None:
    short, long, giant = (b"fake+/=%".ljust(length, b"0") for length in (LONG, LONG + 1, GIANT + 1))
    assert fewer_spellings(short) == spellings(short)
    assert set(fewer_spellings(long)) == {
        long,
        long.replace(b"/", rb"\/"),
        long.replace(b"/", rb"\\/"),
        b"fake%2B%2F%3D%25".ljust(LONG + 9, b"0"),
        b"fake%2b%2f%3d%25".ljust(LONG + 9, b"0"),
    }
    assert fewer_spellings(giant) == (giant,)


def test_a_credential_that_was_seen_is_kept_for_good_once_it_is_learnt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seen_credentials, "MOST", 1)
    found = known(b"fake/one")
    found.learn(b"fake/one")
    found.see((b"fake/two",))
    found.see((b"fake/three",))
    assert not found.clean(b"fake/one\n")
    assert found.find(b"fake/two\n") == ()
