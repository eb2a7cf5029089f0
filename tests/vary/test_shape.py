import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import DeliveryProgress, EndReason, Exchange, Framing, Read
from deltatape.vary.shape import (
    at_tempo,
    delayed,
    event_end,
    rechunked,
    recut,
    refitted,
    split,
    truncated,
)
from helpers.mutated import STEMS, TWO_EVENTS, imported, pieces, recorded
from helpers.taped import MS, taped

SIZED = ((b"Content-Length", b"18"), (b"X", b"18"))


def lengths(exchange: Exchange) -> list[object]:
    assert exchange.response
    return [value for _, value in exchange.response.headers]


def bounds(exchange: Exchange) -> list[object]:
    return [read.boundaries for read in exchange.reads]


def test_the_end_fits_other_reads_and_comes_as_long_after_the_last() -> None:
    before = taped(TWO_EVENTS, end_ms=25)
    after = refitted(before, before.reads[:1])
    assert after.end
    assert (after.end.t_ns, after.end.bytes) == (15 * MS, 9)
    assert after.end.sha256 == hashlib.sha256(b"data: 1\n\n").hexdigest()
    assert refitted(before, (), t_ns=3).end == replace(
        after.end, t_ns=3, bytes=0, sha256=hashlib.sha256().hexdigest()
    )


def test_what_had_no_end_gets_one_if_there_is_a_reason() -> None:
    before = replace(taped(TWO_EVENTS), end=None)
    assert refitted(before, before.reads).end is None
    after = refitted(before, before.reads, reason=EndReason.UPSTREAM_RESET)
    assert after.end
    assert (after.end.reason, after.end.t_ns) == (EndReason.UPSTREAM_RESET, 20 * MS)


def test_what_a_client_had_taken_is_not_told_of_other_reads() -> None:
    before = replace(taped(TWO_EVENTS), delivered=(DeliveryProgress(t_ns=1, bytes=9),))
    assert refitted(before, before.reads).delivered == ()


def test_a_cut_body_is_announced_longer_than_it_is() -> None:
    before = taped(TWO_EVENTS, framing=Framing.LENGTH, headers=SIZED)
    assert lengths(truncated(before, 5, EndReason.UPSTREAM_CLOSED)) == [b"18", b"18"]
    assert lengths(truncated(before, 5, EndReason.COMPLETE)) == [b"5", b"18"]
    odd = taped(TWO_EVENTS, framing=Framing.LENGTH, headers=((b"content-length", b"many"),))
    assert lengths(truncated(odd, 5, EndReason.UPSTREAM_CLOSED)) == [b"6"]
    none = taped((), framing=Framing.NONE, headers=SIZED)
    assert lengths(truncated(none, 0, EndReason.UPSTREAM_CLOSED)) == [b"18", b"18"]


def test_a_cut_takes_what_is_behind_it() -> None:
    before = taped(TWO_EVENTS, trailers=((b"X", b"1"),))
    after = truncated(before, 12, EndReason.UPSTREAM_CLOSED)
    assert pieces(after) == [b"data: 1\n\n", b"dat"]
    assert bounds(after) == [(9,), ()]
    assert after.trailers == ()
    assert after.end
    assert after.end.t_ns == 20 * MS
    assert truncated(before, 9, EndReason.UPSTREAM_CLOSED).reads == before.reads[:1]


def test_nothing_is_left_of_a_body_that_is_cut_at_its_beginning() -> None:
    after = truncated(taped(TWO_EVENTS), 0, EndReason.UPSTREAM_RESET)
    assert after.reads == ()
    assert after.end
    assert after.end.t_ns == 5 * MS  # when the head came
    bare = truncated(taped((), framing=None), 0, EndReason.UPSTREAM_RESET)
    assert bare.end
    assert bare.end.t_ns == 0


def test_a_read_is_split_with_its_chunks_and_masks() -> None:
    read = Read(t_ns=1, data=b"abcdef", boundaries=(0, 3, 6), line=9, masked=((2, 5, "h"),))
    assert split(read, 3) == (
        Read(t_ns=1, data=b"abc", boundaries=(0, 3), line=9, masked=((2, 3, "h"),)),
        Read(t_ns=1, data=b"def", boundaries=(3,), line=9, masked=((0, 2, "h"),)),
    )
    bare = split(read._replace(boundaries=None, masked=()), 6)
    assert bare[1] == Read(t_ns=1, data=b"", boundaries=None, line=9)


def test_pieces_of_one_read_come_a_moment_after_each_other() -> None:
    after = recut(taped(TWO_EVENTS), (3, 6, 9))
    assert pieces(after) == [b"dat", b"a: ", b"1\n\n", b"data: 2\n\n"]
    assert [read.t_ns / MS for read in after.reads] == [10, 10.1, 10.2, 20]
    assert bounds(after) == [(3,), (3,), (3,), (9,)]


def test_a_piece_comes_when_its_last_byte_came() -> None:
    after = recut(taped(TWO_EVENTS, framing=Framing.CLOSE), (-1, 12, 18, 99))
    assert [(read.t_ns // MS, read.data) for read in after.reads] == [
        (20, b"data: 1\n\ndat"),
        (20, b"a: 2\n\n"),
    ]
    assert bounds(after) == [None, None]


@pytest.mark.slow
def test_many_pieces_are_less_apart_than_a_second_in_all() -> None:
    after = recut(taped([(10, b"x" * 40_000)]), range(40_000))
    assert 0.9e9 < after.reads[-1].t_ns - after.reads[0].t_ns < 1e9


def test_masked_bytes_stay_masked_in_pieces() -> None:
    (read,) = taped([(10, b"abcdef")]).reads
    before = replace(taped([(10, b"abcdef")]), reads=(read._replace(masked=((2, 5, "h"),)),))
    assert [read.masked for read in recut(before, (3,)).reads] == [((2, 3, "h"),), ((0, 2, "h"),)]


def test_a_body_that_is_empty_cannot_be_cut() -> None:
    assert recut(taped(()), (0, 1)).reads == ()


@given(st.sampled_from(STEMS), st.lists(st.integers(0, 9000), max_size=20))
def test_a_body_stays_the_same_however_it_is_cut(stem: str, cuts: list[int]) -> None:
    before = recorded(stem)
    after = recut(before, cuts)
    assert after.body == before.body
    assert after.end
    assert before.end
    assert (after.end.bytes, after.end.sha256) == (before.end.bytes, before.end.sha256)
    assert all(read.data for read in after.reads)
    times = [read.t_ns for read in after.reads]
    assert times == sorted(times)


def test_chunks_can_end_anywhere() -> None:
    assert bounds(rechunked(taped(TWO_EVENTS), (4, 9, 18))) == [(4, 9), (9,)]
    assert bounds(rechunked(taped(TWO_EVENTS), (18,))) == [(), (9,)]


def test_bytes_after_the_place_of_a_pause_come_later() -> None:
    after = delayed(taped(TWO_EVENTS, end_ms=30), 12, 1000 * MS)
    assert [(read.t_ns // MS, read.data) for read in after.reads] == [
        (10, b"data: 1\n\n"),
        (20, b"dat"),
        (1020, b"a: 2\n\n"),
    ]
    assert after.end
    assert after.end.t_ns == 1030 * MS
    border = delayed(taped(TWO_EVENTS), 9, MS)
    assert [read.t_ns // MS for read in border.reads] == [10, 21]
    last = delayed(imported(b"data: 1\n\n"), 9, MS)
    assert (last.end, last.reads[0].t_ns) == (None, 0)


def test_an_event_ends_behind_its_line_feed() -> None:
    assert event_end(b"a\r\n\r\n", 4) == 5
    assert event_end(b"a\n\n", 3) == 3


def test_as_time_passed_nothing_changes() -> None:
    exchange = taped(TWO_EVENTS)
    assert at_tempo(exchange, ReplayTempo()) is exchange


def test_all_times_pass_faster_from_the_end_of_the_request_on() -> None:
    before = taped(TWO_EVENTS, end_ms=50)
    assert before.response
    early = replace(before.response, status=103, t_ns=3 * MS)
    before = replace(
        before,
        informational=(early,),
        idle_ns=(1,),
        delivered=(DeliveryProgress(t_ns=1, bytes=1),),
        request=replace(before.request, t_end_ns=1 * MS),
    )
    after = at_tempo(before, ReplayTempo(factor=2.0))
    assert after.response
    assert after.end
    assert [head.t_ns for head in after.informational] == [2 * MS]
    assert after.response.t_ns == 3 * MS
    assert [read.t_ns / MS for read in after.reads] == [5.5, 10.5]
    assert after.end.t_ns == 25.5 * MS
    assert (after.idle_ns, after.delivered) == ((), ())


def test_without_waiting_all_comes_at_once() -> None:
    after = at_tempo(taped(TWO_EVENTS), ReplayTempo(factor=0.0))
    assert after.end
    assert {after.end.t_ns, *(read.t_ns for read in after.reads)} == {0}


def test_what_has_no_head_or_no_end_gets_none() -> None:
    bare = at_tempo(taped((), framing=None), ReplayTempo(factor=0.0))
    assert bare.response is None
    assert at_tempo(imported(b"x"), ReplayTempo(factor=0.0)).end is None


def test_a_long_silence_has_the_idle_records_of_a_recorder_that_lives() -> None:
    slow = taped([(10, b"a"), (20, b"b")])
    after = at_tempo(slow, ReplayTempo(factor=0.001))
    (first, second) = (read.t_ns for read in after.reads)
    assert second - first == 10_000 * MS
    assert first + 5_000 * MS in after.idle_ns
