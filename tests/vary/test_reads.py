import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.errors import UsageError
from deltatape.vary.coded_bodies import plain
from deltatape.vary.reads import RECORDED, Cutting, PieceUnit, parse_reads, random_cuts
from helpers.mutated import pasted
from helpers.taped import taped
from helpers.varied import STEMS, TWO, broken_gzip, gzipped, of, pieces


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
    before = of(stem)
    assert parse_reads(text).cut(before).body == before.body


def test_recorded_reads_stay_as_they_are() -> None:
    exchange = of("openai-chat")
    assert RECORDED.cut(exchange) is exchange


def test_pieces_have_the_size_that_is_asked_for() -> None:
    cut = parse_reads("bytes:7").cut(taped(TWO))
    assert pieces(cut) == [b"data: 1", b"\n\ndata:", b" 2\n\n"]
    assert {len(piece) for piece in pieces(parse_reads("every-byte").cut(taped(TWO)))} == {1}


@pytest.mark.parametrize("stem", STEMS)
def test_each_event_comes_in_a_read_of_its_own(stem: str) -> None:
    cut = parse_reads("event").cut(of(stem))
    events = decode(cut).events
    assert len(cut.reads) in (len(events), len(events) + 1)  # an array has a closing bracket


def test_an_event_keeps_its_line_end() -> None:
    body = b"data: 1\r\n\r\ndata: 2\r\n\r\n: the end\r\n\r\n"
    cut = parse_reads("event").cut(pasted(body))
    assert pieces(cut) == [b"data: 1\r\n\r\n", b"data: 2\r\n\r\n", b": the end\r\n\r\n"]


def test_events_of_a_coded_body_are_cut_before_it_is_coded() -> None:
    cut = parse_reads("event").cut(gzipped(taped([(10, b"data: 1\n\ndata: 2\n\n")])))
    bare = plain(cut)
    assert bare
    assert pieces(bare) == [b"data: 1\n\n", b"data: 2\n\n"]
    broken = broken_gzip()
    assert parse_reads("event").cut(broken) is broken


@given(st.integers(0, 5000), st.integers(0, 2**63))
@settings(max_examples=60, deadline=None)
def test_random_pieces_are_the_same_for_a_seed(size: int, seed: int) -> None:
    cuts = [*random_cuts(size, seed)]
    assert cuts == [*random_cuts(size, seed)]
    assert cuts == sorted(set(cuts))
    assert (cuts[-1] if cuts else 0) >= size
