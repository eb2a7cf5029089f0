from dataclasses import replace

from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientReading, ClientTrial, Suspect
from deltatape.render.lines import plain
from deltatape.render.suspects import how, outcome, suspect_lines, tried_lines
from helpers.accused import LATE, SINGLE, THROWN, suspect, tried

CALL = RepeatedCall(id="c1", name="get", arguments='{"a":1}')


def text(*suspects: Suspect) -> str:
    return plain(suspect_lines(suspects, 2))


def test_nobody_is_suspected() -> None:
    assert suspect_lines((), 2) == []


def test_the_first_is_told_in_full_and_the_others_by_name() -> None:
    assert text(suspect(throws=THROWN), suspect("other", exact=False)) == (
        "  single-current-call  reproduces exactly what the app did (key=single)\n"
        "  it keeps one call where the stream has two\n"
        "  or other, which come near: deltatape why NAME\n"
    )


def test_what_the_verdict_has_said_is_not_said_again() -> None:
    told = plain(suspect_lines([suspect()], 0, said=f"The app behaves so: it {suspect().says}."))
    assert told == "single-current-call  reproduces exactly what the app did (key=single)\n"


def test_of_many_others_five_are_named() -> None:
    told = text(suspect(), *(suspect(f"s{number}") for number in range(7)))
    assert "or s0, s1, s2, s3, s4, and 2 more, which would do the same: deltatape why" in told


def test_how_well_a_suspect_explains_it() -> None:
    two = replace(suspect(exact=False), mistakes=(SINGLE, LATE))
    assert how(two) == "comes close to it (key=single, emit=late)"


def test_what_a_client_makes_of_a_response() -> None:
    nameless = RepeatedCall(id=None, name=None, arguments="")
    assert outcome(tried("x", CALL, nameless)) == 'get (c1) {"a":1}; no name (no bytes)'
    assert outcome(tried("x")) == "no call"
    assert outcome(tried("x", throws="KeyError: 'index'")) == "throws KeyError: 'index'"
    assert outcome(tried("x", *[CALL] * 6)).endswith("; and 2 more calls")


def test_clients_are_rows() -> None:
    right = ClientTrial(name="right-one", made=ClientReading(calls=(CALL,)), differs=False)
    rows = (right, tried("wrong-one"), tried("absent", problem="npm is not installed"))
    assert plain(tried_lines(rows, 0)) == (
        "wrong-one  WRONG      no call\n"
        "absent     not tried  npm is not installed\n"
        "right: right-one\n"
    )


def test_where_all_clients_are_wrong_none_is_right() -> None:
    assert "right" not in plain(tried_lines([tried("a")], 0))


def test_one_that_explains_missing_calls_alone_says_no_more() -> None:
    drop = replace(suspect(), drop=True)
    assert how(drop) == "loses the same calls (key=single)"


def test_a_line_that_is_too_long_is_two() -> None:
    lines = plain(suspect_lines([suspect("a-name-that-is-long")], 0, 60)).splitlines()
    assert lines[:2] == ["a-name-that-is-long", "reproduces exactly what the app did (key=single)"]
