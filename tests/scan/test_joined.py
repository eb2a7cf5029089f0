from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.check_tape import shape
from deltatape.diagnose.digest import digests_of, in_order
from deltatape.diagnose.rebuild import analyse
from deltatape.model.digest import Digest
from deltatape.model.finding import Finding
from deltatape.scan.digest_codec import root_of
from deltatape.scan.joined import Joined, TapeDigest, joined
from deltatape.store.reader import open_tape
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    digests,
    result,
    user,
)

RECORDINGS = Path(__file__).parent.parent.parent / "recordings"
HOUR_NS = 3600 * 10**9
LOST = assistant(text="Hello")
MORE = user("And tomorrow?")

LOSING: list[Digest] = digests(
    (asks(USER), CALL_REPLY),
    (asks(USER, LOST, MORE), TEXT_REPLY),
)
"""The second request repeats the first reply without its call."""


def _split(made: Sequence[Digest], *tapes: str, alone: bool = False) -> list[TapeDigest]:
    """Digests of one tape as those of others, which began an hour before and after."""
    began = {tape: at * HOUR_NS for at, tape in enumerate(sorted(set(tapes)))}
    numbers = {tape: count(1) for tape in began}
    return [
        TapeDigest(
            tape=tape,
            began_ns=began[tape],
            alone=alone,
            digest=_earlier(replace(each, tape=tape, exchange=next(numbers[tape])), began[tape]),
        )
        for each, tape in zip(made, tapes, strict=True)
    ]


def _earlier(digest: Digest, by_ns: int) -> Digest:
    assert digest.t_ns is not None
    assert digest.end_ns is not None
    assert digest.said_ns is not None
    calls = tuple(replace(call, t_ns=(call.t_ns or 0) - by_ns) for call in digest.calls)
    return replace(
        digest,
        t_ns=digest.t_ns - by_ns,
        end_ns=digest.end_ns - by_ns,
        said_ns=digest.said_ns - by_ns,
        calls=calls,
        watch=None,
    )


def _found(made: Joined) -> list[tuple[str, int, str]]:
    return [(tape, each.finding.exchange, each.finding.code) for tape, each in made.new]


def test_a_call_lost_from_one_tape_to_another_is_found() -> None:
    made = joined(_split(LOSING, "A", "B"))
    assert _found(made) == [("B", 1, "C001")]
    assert made.withdrawn == ()


def test_the_message_names_the_tape_of_the_reply() -> None:
    ((tape, counted),) = joined(_split(LOSING, "A", "B")).new
    assert (tape, counted.finding.tape, counted.about) == ("B", "B", 1)
    assert "#1 of A" in counted.finding.message


def test_what_one_tape_shows_is_not_new() -> None:
    assert _found(joined(_split(LOSING, "A", "A"))) == []


def test_what_a_tape_shows_that_was_not_compared_is_new() -> None:
    ((tape, counted),) = joined(_split(LOSING, "A", "A", alone=True)).new
    assert (tape, counted.finding.exchange, counted.about) == ("A", 2, 1)
    assert "#1" in counted.finding.message
    assert "of A" not in counted.finding.message


@pytest.mark.parametrize("tapes", ["AAAA", "ABAB", "AABB", "ABCA", "ABBB"])
def test_joining_and_the_tapes_find_together_what_one_tape_shows(tapes: str) -> None:
    made = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, LOST, MORE), CALL_REPLY),
        (asks(USER, LOST, MORE, CALL_MESSAGE, result("c1")), CALL_REPLY),
        (asks(USER, LOST, MORE, CALL_MESSAGE, result("c1"), LOST, user("x")), TEXT_REPLY),
    )
    whole = check_conversation([replace(each, watch=None) for each in made])
    split = _split(made, *tapes)
    shown = joined(split)
    places = [(each.tape, each.digest.exchange) for each in split]
    single = [
        (tape, each.exchange, each.code)
        for tape in sorted(set(tapes))
        for each in check_conversation([one.digest for one in split if one.tape == tape])
    ]
    taken = [(tape, each.finding.exchange, each.finding.code) for tape, each in shown.withdrawn]
    for each in taken:
        single.remove(each)
    expected = [(*places[each.exchange - 1], each.code) for each in whole]
    assert sorted([*single, *_found(shown)]) == sorted(expected)


def test_a_fingerprint_is_that_of_the_same_finding_on_one_tape() -> None:
    (whole,) = check_conversation(LOSING)
    ((_, counted),) = joined(_split(LOSING, "A", "B")).new
    assert shape(counted.original.message) == shape(whole.message)


def test_a_finding_that_another_tape_refutes_is_withdrawn() -> None:
    """By itself, B does not show who sent the id first."""
    made = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, CALL_MESSAGE, result("c1")), CALL_REPLY),
    )
    shown = joined(_split(made, "A", "B"))
    ((_, taken),) = shown.withdrawn
    ((_, given),) = [each for each in shown.new if each[1].finding.code == "T026"]
    assert taken.finding.code == "T026"
    assert "no reply on the tape delivered" in taken.finding.message
    assert "of #1 has the id of call 0 (get, c1) of #1 of A" in given.finding.message


def test_calls_are_answered_where_the_conversation_goes_on() -> None:
    made = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, CALL_MESSAGE, result("c1")), TEXT_REPLY),
    )
    assert joined(_split(made, "A", "B")).answered == (("A", 1),)
    assert joined(_split(made, "A", "A")).answered == ()


def test_calls_are_answered_where_their_stored_reply_is_continued() -> None:
    first, second = digests((asks(USER), CALL_REPLY), (asks(MORE), TEXT_REPLY))
    stored = [replace(first, reply_id="r1"), replace(second, previous="r1", history=())]
    stored[1] = replace(stored[1], prefixes=stored[1].prefixes[:1])
    assert joined(_split(stored, "A", "B")).answered == (("A", 1),)


def test_tapes_without_times_come_one_after_the_other() -> None:
    without = [
        each._replace(began_ns=None, digest=replace(each.digest, t_ns=None))
        for each in _split(LOSING, "A", "B")
    ]
    assert _found(joined(without)) == [("B", 1, "C001")]


def test_a_copy_of_a_tape_repeats_nothing() -> None:
    made = _split(LOSING, "A", "A")
    copy = [each._replace(tape="B") for each in made]
    assert joined([*made, *copy]) == joined(made)


def test_requests_of_one_exchange_are_compared_in_their_order() -> None:
    """As on a WebSocket."""
    first, second = _split(LOSING, "A", "B")
    both = second._replace(digest=replace(second.digest, line=900))
    again = both._replace(digest=replace(both.digest, line=901))
    found = joined([first, both, again]).new
    assert {(tape, each.finding.exchange) for tape, each in found} == {("B", 1)}


def test_a_failure_is_answered_where_the_request_was_sent_again() -> None:
    made = digests((asks(USER), []), (asks(USER), TEXT_REPLY), (asks(MORE), []), (asks(MORE), []))
    failed = [replace(each, failed=not each.text, status=500) for each in made]
    assert joined(_split(failed, "A", "B", "A", "B")).retried == (("A", 1, "#1 of B"),)
    assert joined(_split(failed, "A", "A", "A", "B")).retried == ()


def test_long_conversations_are_compared_in_parts() -> None:
    many = [each for place in range(20) for each in _copies(place)]
    found = _found(joined(many, near=4))
    assert len(found) == 20
    assert {code for _, _, code in found} == {"C001"}


def _copies(place: int) -> list[TapeDigest]:
    """The two exchanges, as a conversation of its own."""
    ids = {"prefixes": str(place)}
    return [
        each._replace(
            digest=replace(
                each.digest,
                exchange=2 * place + at + 1,
                prefixes=tuple(ids["prefixes"] + one for one in each.digest.prefixes),
                t_ns=(each.digest.t_ns or 0) + place * HOUR_NS,
                end_ns=(each.digest.end_ns or 0) + place * HOUR_NS,
                said_ns=None,
                calls=tuple(
                    replace(call, t_ns=(call.t_ns or 0) + place * HOUR_NS)
                    for call in each.digest.calls
                ),
            )
        )
        for at, each in enumerate(_split(LOSING, "A", "B"))
    ]


def test_a_number_that_is_no_exchange_stays_in_a_message() -> None:
    strange = assistant(("c1", "get", '{"a":"#1999999999"}'))
    made = digests((asks(USER), CALL_REPLY), (asks(USER, strange, result("c1")), TEXT_REPLY))
    ((_, counted),) = joined(_split(made, "A", "B")).new
    assert "#1999999999" in counted.finding.message or "#1 of A" in counted.finding.message


OTHER_BEGINNINGS = frozenset({"C014", "C021"})
"""What relates conversations that begin differently: only tapes by themselves show it."""
TOOL_SERVERS = frozenset({"C023", "C024", "C025", "C026"})
"""What the tape of the tool server shows, too."""
CASES = [
    path
    for folder in ("rules", "faults", "incidents")
    for path in sorted((RECORDINGS / folder).rglob("*.tape"))
    if path.name != "result-in-another-history.tape"  # the conversations begin differently
]


@cache
def _digested(path: Path) -> tuple[list[int], list[Digest]]:
    """The numbers of the exchanges, and their digests."""
    exchanges = sorted(open_tape(str(path)).exchanges(), key=lambda each: each.number)
    made = in_order(digests_of(each) for each in map(analyse, exchanges))
    return [each.number for each in exchanges], [replace(each, watch=None) for each in made]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["AB", "AABB", "half"])
def test_tapes_that_were_cut_in_two_show_together_what_they_showed(pattern: str) -> None:
    withdrawn = 0
    for path in CASES:
        numbers, made = _digested(path)
        order = pattern if pattern != "half" else "A" * (len(numbers) // 2) + "B" * len(numbers)
        parts = dict(zip(numbers, order * len(numbers), strict=False))
        whole = _counted((parts[each.exchange], each) for each in check_conversation(made))
        cut = [TapeDigest(parts[each.exchange], 0, alone=False, digest=each) for each in made]
        shown = _counted(
            (part, each)
            for part in "AB"
            for each in check_conversation([one.digest for one in cut if one.tape == part])
        )
        roots: dict[str | None, list[TapeDigest]] = {}
        for each in cut:
            roots.setdefault(root_of(each.digest), []).append(each)
        for root, own in roots.items():
            if root is not None and len({each.tape for each in own}) > 1:
                found = joined(own)
                withdrawn += len(found.withdrawn)
                shown -= _counted((tape, each.finding) for tape, each in found.withdrawn)
                shown += _counted((tape, each.finding) for tape, each in found.new)
        assert shown == whole, path
    assert withdrawn


def _counted(found: Iterable[tuple[str, Finding]]) -> Counter[tuple[str, int, str]]:
    left_out = OTHER_BEGINNINGS | TOOL_SERVERS
    return Counter(
        (part, each.exchange, each.code) for part, each in found if each.code not in left_out
    )
