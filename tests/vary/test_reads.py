import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Framing
from deltatape.vary.coded_bodies import plain
from deltatape.vary.reads import (
    RECORDED,
    Cutting,
    PieceUnit,
    cut_plain,
    ends_of,
    parse_reads,
    random_cuts,
)
from helpers.mutated import (
    STEMS,
    TWO_EVENTS,
    broken_gzip,
    gzipped,
    imported,
    made,
    pieces,
    recorded,
    varied,
)
from helpers.taped import taped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recorded", RECORDED),
        ("event", Cutting(pieces=PieceUnit.EVENT)),
        ("every-byte", Cutting(pieces=PieceUnit.BYTES, number=1)),
        ("bytes:20", Cutting(pieces=PieceUnit.BYTES, number=20)),
        ("random:0", Cutting(pieces=PieceUnit.RANDOM)),
    ],
)
def test_every_way_to_cut_can_be_named(text: str, expected: Cutting) -> None:
    assert parse_reads(text) == expected


@pytest.mark.parametrize(
    "text", ["", "events", "bytes:0", "bytes:", "bytes:99999999999", "random", "every-byte:2"]
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--reads .*invalid; use recorded, event"):
        parse_reads(text)


@pytest.mark.parametrize("text", ["recorded", "event", "every-byte", "bytes:7", "random:3"])
@pytest.mark.parametrize("stem", STEMS)
def test_the_body_stays(stem: str, text: str) -> None:
    before = recorded(stem)
    assert parse_reads(text).cut(before).body == before.body


def test_recorded_reads_stay_as_they_are() -> None:
    exchange = recorded("openai-chat")
    assert RECORDED.cut(exchange) is exchange


def test_pieces_have_the_size_that_is_asked_for() -> None:
    cut = parse_reads("bytes:7").cut(taped(TWO_EVENTS))
    assert pieces(cut) == [b"data: 1", b"\n\ndata:", b" 2\n\n"]
    assert {len(piece) for piece in pieces(parse_reads("every-byte").cut(taped(TWO_EVENTS)))} == {1}


@pytest.mark.parametrize("stem", STEMS)
def test_each_event_comes_in_a_read_of_its_own(stem: str) -> None:
    cut = parse_reads("event").cut(recorded(stem))
    events = decode(cut).events
    assert len(cut.reads) in (len(events), len(events) + 1)  # an array has a closing bracket


def test_an_event_keeps_its_line_end() -> None:
    body = b"data: 1\r\n\r\ndata: 2\r\n\r\n: the end\r\n\r\n"
    cut = parse_reads("event").cut(imported(body))
    assert pieces(cut) == [b"data: 1\r\n\r\n", b"data: 2\r\n\r\n", b": the end\r\n\r\n"]


def test_events_of_a_coded_body_are_cut_before_it_is_coded() -> None:
    cut = parse_reads("event").cut(gzipped(taped([(10, b"data: 1\n\ndata: 2\n\n")])))
    bare = plain(cut)
    assert bare
    assert pieces(bare) == [b"data: 1\n\n", b"data: 2\n\n"]
    broken = broken_gzip()
    assert parse_reads("event").cut(broken) is broken


@given(st.integers(0, 5000), st.integers(0, 2**63))
def test_random_pieces_are_the_same_for_a_seed(size: int, seed: int) -> None:
    cuts = [*random_cuts(size, seed)]
    assert cuts == [*random_cuts(size, seed)]
    assert cuts == sorted(set(cuts))
    assert (cuts[-1] if cuts else 0) >= size


WORDS = 'data: {"a":"é\\"\\u00e9"}\n\n'.encode()


def cut(name: str, body: bytes) -> list[bytes]:
    return pieces(made(name, imported(body)))


def test_every_byte_comes_alone() -> None:
    assert {len(piece) for piece in cut("every-byte", WORDS)} == {1}
    assert varied("every-byte", imported(b"x")) is None


def test_all_comes_in_one_read() -> None:
    assert pieces(made("coalesced", taped(TWO_EVENTS))) == [b"data: 1\n\ndata: 2\n\n"]
    assert varied("coalesced", imported(b"x")) is None


def test_an_event_is_a_read() -> None:
    assert cut("event-reads", b"data: 1\n\ndata: 2\n\n") == [b"data: 1\n\n", b"data: 2\n\n"]
    assert varied("event-reads", broken_gzip()) is None


def test_random_pieces_differ_by_seed() -> None:
    exchange = recorded("openai-chat")
    assert pieces(made("random-reads", exchange, 1)) != pieces(made("random-reads", exchange, 2))
    assert varied("random-reads", imported(b"x")) is None


def test_characters_and_escapes_are_cut_inside() -> None:
    assert cut("split-utf8", WORDS) == [b'data: {"a":"\xc3', b'\xa9\\"\\u00e9"}\n\n']
    assert cut("split-escape", WORDS) == [
        'data: {"a":"é\\'.encode(),
        b'"\\',
        b'u00e9"}\n\n',
    ]
    assert varied("split-utf8", taped(TWO_EVENTS)) is None


def test_lines_are_cut_between_their_parts() -> None:
    assert cut("split-blank-line", b"data: 1\r\n\r\n") == [b"data: 1\r\n", b"\r\n"]
    assert cut("split-field", b"event: a\ndata:1\n\n") == [b"eve", b"nt: a\nda", b"ta:1\n\n"]
    assert varied("split-field", imported(b'{"a":1}', "application/json")) is None


def test_events_are_cut_and_come_with_the_next_one() -> None:
    first, middle, last = pieces(made("split-event", taped(TWO_EVENTS)))
    assert b"data: 1\n\n".startswith(first)
    assert b"data: 2\n\n".endswith(last)
    assert b"\n\n" in middle or middle.startswith(b"\n")
    assert varied("split-event", imported(b"")) is None


def test_messages_are_cut_in_their_lengths_and_checksums() -> None:
    exchange = recorded("bedrock-converse")
    cuts = pieces(made("split-message", exchange))
    assert cuts[0] == exchange.body[:2]
    assert cuts[-1] == exchange.body[-2:]
    assert varied("split-message", taped(TWO_EVENTS)) is None


def test_chunks_are_others_than_reads() -> None:
    assert [read.boundaries for read in made("one-chunk", taped(TWO_EVENTS)).reads] == [(), (9,)]
    astride = made("chunks-astride", taped(((10, b"data: 1\n\ndata: 2\n"), (20, b"\n"))))
    assert [read.boundaries for read in astride.reads] == [(8,), (1,)]


@pytest.mark.parametrize("name", ["one-chunk", "chunks-astride"])
def test_what_does_not_come_whole_in_chunks_keeps_them(name: str) -> None:
    assert varied(name, taped(TWO_EVENTS, framing=Framing.CLOSE)) is None
    assert varied(name, taped(TWO_EVENTS, reason=EndReason.UPSTREAM_CLOSED)) is None
    assert varied(name, taped(TWO_EVENTS, reason=None)) is None
    assert varied(name, taped(())) is None
    assert varied("one-chunk", taped()) is None


@pytest.mark.parametrize("stem", STEMS)
def test_a_cut_body_is_the_same(stem: str) -> None:
    before = recorded(stem)
    after = cut_plain(before, (5, 6, 7))
    assert after
    assert after.body == before.body
    assert pieces(after)[1:3] == [before.body[5:6], before.body[6:7]]
    assert cut_plain(before, (0, len(before.body))) is None


def test_a_body_that_cannot_be_decoded_is_not_cut_where_it_is_plain() -> None:
    assert cut_plain(broken_gzip(), (1,)) is None
    for name in ("split-utf8", "split-escape", "split-event", "split-message", "split-field"):
        assert varied(name, broken_gzip()) is None


def test_a_framing_that_is_not_looked_for_has_no_places() -> None:
    assert [*ends_of(taped(TWO_EVENTS), re.compile(b"a"))] == []
