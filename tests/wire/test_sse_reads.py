"""Many reads that are fed to the decoder of server-sent events at once."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.stream import Anomaly, Comment, Event
from deltatape.wire.framer import UNIT_LIMIT
from deltatape.wire.sse import SseDecoder
from helpers.splits import cut, cuttings, each_alone, random_cuts

LINES = (
    b"event: e",
    b"data: a",
    b"",
    b"data: b",
    b"",
    b": c",
    b"data: \xff",
    b"x",
    b"",
    b"data: d",
    b"",
    b"data: e",
)
PARTS = (
    b"data: x",
    b"data: x\n\n",
    b"data: \xc3\xa9\n\n",
    b"event: e\r\ndata: x\r\n\r\n",
    b"id: 1",
    b":c",
    b"\n",
    b"\r",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff",
)
STREAMS = st.lists(st.sampled_from(PARTS) | st.binary(max_size=4), max_size=30).map(b"".join)


def made(
    pieces: list[bytes], limit: int, *, at_once: bool
) -> tuple[list[Event], list[Comment], list[Anomaly], Event | None]:
    """What a decoder makes of `pieces`, of which each has its own time and line."""
    decoder = SseDecoder(limit)
    events: list[Event] = []
    if at_once:
        ends = enumerate(accumulate(map(len, pieces)))
        events = decoder.feed_reads(
            b"".join(pieces), [(end, 10 + at, 100 + at) for at, end in ends]
        )
    else:
        for at, piece in enumerate(pieces):
            events += decoder.feed(piece, 10 + at, 100 + at)
    pending = decoder.end()
    return events, decoder.comments, decoder.anomalies, pending


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("first", [b"", b"\xef", b"\xef\xbb\xbf"])
def test_everything_has_the_time_and_line_of_the_read_that_completed_it(
    first: bytes, end: bytes
) -> None:
    for pieces in cuttings(first + end.join(LINES), pairs=True):
        with_empty = [one for piece in pieces for one in (b"", piece, b"")]
        for each in (pieces, with_empty):
            assert made(each, 16, at_once=True) == made(each, 16, at_once=False)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_reads_at_once_are_what_they_are_one_by_one(data: st.DataObject) -> None:
    body = data.draw(STREAMS)
    limit = data.draw(st.sampled_from([10, UNIT_LIMIT]))
    for pieces in (each_alone(body), cut(body, data.draw(random_cuts(len(body))))):
        pieces.append(b"")
        assert made(pieces, limit, at_once=True) == made(pieces, limit, at_once=False)


@settings(max_examples=60, deadline=None)
@given(STREAMS, st.integers(0, 60))
def test_reads_may_come_in_several_groups(body: bytes, at: int) -> None:
    decoder = SseDecoder()
    events: list[Event] = []
    for half in (body[:at], body[at:]):
        reads = [(end, len(events), None) for end in range(1, len(half) + 1)]
        events += decoder.feed_reads(half, reads or [(0, 0, None)])
    alone = SseDecoder()
    expected = [one for byte in each_alone(body) for one in alone.feed(byte, 0, None)]
    spans = [(one.data, one.type, one.place.span) for one in events]
    assert spans == [(one.data, one.type, one.place.span) for one in expected]
