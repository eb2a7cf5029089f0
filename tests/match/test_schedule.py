from dataclasses import replace

import pytest

from deltatape.errors import UsageError
from deltatape.http1.body import ChunkedBody
from deltatape.match.schedule import ConnectionEnd, ReplayTempo, parse_speed, timetable
from deltatape.model.exchange import BROKEN_CHUNKS, CUT_LAST_CHUNK, EndReason, Framing, Note
from helpers.taped import MS, taped

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
READS = ((10, b"abcdef"), (30, b"gh"), (1030, b"ij"))


def test_steps_are_due_when_they_were_recorded() -> None:
    table = timetable(taped(READS, end_ms=1040), ReplayTempo(), head=HEAD, chunked=True)
    assert [step.due_ns // MS for step in table.steps] == [5, 10, 30, 1030, 1040]
    assert table.end_ns == 1040 * MS
    assert table.steps[0].data == HEAD
    assert table.ending is ConnectionEnd.COMPLETE


def test_speed_divides_and_the_idle_cap_shortens_waits() -> None:
    fast = timetable(taped(READS), ReplayTempo(factor=2.0), head=HEAD, chunked=True)
    assert fast.end_ns == 515 * MS
    instant = timetable(taped(READS), ReplayTempo(factor=0.0), head=HEAD, chunked=True)
    assert {step.due_ns for step in instant.steps} == {0}
    capped = timetable(taped(READS), ReplayTempo(idle_cap_ns=100 * MS), head=HEAD, chunked=True)
    assert capped.end_ns == 130 * MS


def test_times_that_run_backwards_do_not_wait() -> None:
    table = timetable(taped(((30, b"a"), (10, b"b"))), ReplayTempo(), head=HEAD, chunked=True)
    assert [step.due_ns // MS for step in table.steps] == [5, 30, 30]


@pytest.mark.parametrize(
    ("boundaries", "chunks"),
    [
        ([(6,), (2,), (2,)], [6, 2, 2]),
        ([(2, 6), (2,), (2,)], [2, 4, 2, 2]),
        ([(), (2,), (2,)], [8, 2]),
        ([(), (), (2,)], [10]),
        ([(3,), (1,), (2,)], [3, 4, 3]),
        ([(), (0, 2), (2,)], [6, 2, 2]),
        ([(), (), ()], [10]),
        ([(6, 99), (2, 2), (1, 2)], [6, 2, 1, 1]),
    ],
)
def test_chunks_end_where_they_were_recorded(
    boundaries: list[tuple[int, ...]], chunks: list[int]
) -> None:
    table = timetable(taped(READS, boundaries=boundaries), ReplayTempo(), head=b"", chunked=True)
    assert sizes(b"".join(step.data for step in table.steps)) == (chunks, b"abcdefghij", True)


def sizes(raw: bytes) -> tuple[list[int], bytes, bool]:
    body = ChunkedBody()
    scan = body.feed(raw)
    assert scan.ends is not None
    return (
        [b - a for a, b in zip((0, *scan.ends), scan.ends, strict=False)],
        scan.data,
        body.done,
    )


@pytest.mark.parametrize("reason", [EndReason.UPSTREAM_CLOSED, EndReason.CLIENT_CLOSED, None])
def test_an_unfinished_chunk_cannot_be_taken_for_whole(reason: EndReason | None) -> None:
    exchange = taped(((10, b"abc"),), boundaries=[()], reason=reason)
    table = timetable(exchange, ReplayTempo(), head=b"", chunked=True)
    body = ChunkedBody()
    assert body.feed(b"".join(step.data for step in table.steps)).data == b"abc"
    body.feed(b"\r\n0\r\n\r\n")
    assert body.problem


def test_a_tape_that_lost_reads_does_not_play_as_whole() -> None:
    whole = taped(READS, framing=Framing.LENGTH)
    torn = replace(whole, reads=whole.reads[1:])
    assert timetable(torn, ReplayTempo(), head=b"", chunked=True).ending is ConnectionEnd.HOLD


def test_informational_heads_come_at_their_times() -> None:
    early = [(2 * MS, b"HTTP/1.1 103 Early Hints\r\n\r\n")]
    table = timetable(taped(READS), ReplayTempo(), head=HEAD, chunked=True, informational=early)
    assert [(s.due_ns // MS, s.data) for s in table.steps[:2]] == [(2, early[0][1]), (5, HEAD)]


def test_what_came_together_is_one_step() -> None:
    at_once = taped(((5, b"abc"),), end_ms=6)
    (step,) = timetable(at_once, ReplayTempo(), head=HEAD, chunked=True).steps
    assert step.data == HEAD + b"3\r\nabc\r\n0\r\n\r\n"
    assert step.due_ns == 5 * MS
    apart = timetable(taped(((7, b"abc"),), end_ms=9), ReplayTempo(), head=HEAD, chunked=True)
    assert len(apart.steps) == 3
    (empty,) = timetable(taped(()), ReplayTempo(), head=HEAD, chunked=True).steps
    assert empty.data == HEAD + b"0\r\n\r\n"


def test_what_came_after_broken_chunks_goes_out_as_it_came() -> None:
    note = Note(t_ns=20 * MS, text=f"{BROKEN_CHUNKS}, bytes go on as they came: ...")
    exchange = replace(taped(((10, b"ab"), (30, b"zz\r\n")), end_ms=40), notes=(note,))
    steps = timetable(exchange, ReplayTempo(), head=HEAD, chunked=True).steps
    assert [step.data for step in steps[1:3]] == [b"2\r\nab\r\n", b"zz\r\n"]


def test_a_last_chunk_that_was_cut_is_cut_again() -> None:
    note = Note(t_ns=20 * MS, text=f"{CUT_LAST_CHUNK}, which some clients take for its end")
    cut = replace(taped(((10, b"ab"),), reason=EndReason.UPSTREAM_CLOSED, end_ms=40), notes=(note,))
    steps = timetable(cut, ReplayTempo(), head=HEAD, chunked=True).steps
    assert [step.data for step in steps[1:]] == [b"2\r\nab\r\n", b"0\r\n"]


def test_trailers_follow_the_last_chunk() -> None:
    late = taped(trailers=((b"X-T", b"1"),), end_ms=20)
    table = timetable(late, ReplayTempo(), head=b"", chunked=True)
    assert table.steps[-1].data == b"0\r\nX-T: 1\r\n\r\n"


def test_a_body_without_chunks_goes_out_bare() -> None:
    for framing in (Framing.LENGTH, Framing.CLOSE):
        table = timetable(taped(READS, framing=framing), ReplayTempo(), head=HEAD, chunked=True)
        assert b"".join(step.data for step in table.steps) == HEAD + b"abcdefghij"
    table = timetable(taped(READS), ReplayTempo(), head=HEAD, chunked=False)
    assert b"".join(step.data for step in table.steps) == HEAD + b"abcdefghij"


@pytest.mark.parametrize(
    ("reason", "framing", "ending"),
    [
        (EndReason.COMPLETE, Framing.CHUNKED, ConnectionEnd.COMPLETE),
        (EndReason.UPSTREAM_CLOSED, Framing.CHUNKED, ConnectionEnd.CLOSE),
        (EndReason.UPSTREAM_RESET, Framing.CHUNKED, ConnectionEnd.RESET),
        (EndReason.CLIENT_CLOSED, Framing.CHUNKED, ConnectionEnd.HOLD),
        (EndReason.STOPPED, Framing.CHUNKED, ConnectionEnd.HOLD),
        (EndReason.TIMEOUT, Framing.CHUNKED, ConnectionEnd.HOLD),
        (EndReason.TIMEOUT, None, ConnectionEnd.ANSWER),
        (EndReason.REFUSED, None, ConnectionEnd.ANSWER),
        (None, Framing.CHUNKED, ConnectionEnd.HOLD),
    ],
)
def test_each_ending_is_played_as_it_was(
    reason: EndReason | None, framing: Framing | None, ending: ConnectionEnd
) -> None:
    exchange = taped((), reason=reason, framing=framing)
    assert timetable(exchange, ReplayTempo(), head=b"", chunked=True).ending is ending


@pytest.mark.parametrize(
    ("text", "factor"), [("recorded", 1.0), ("instant", 0.0), ("2x", 2.0), ("0.5x", 0.5)]
)
def test_speeds(text: str, factor: float) -> None:
    assert parse_speed(text) == factor


@pytest.mark.parametrize("text", ["", "fast", "x", "0x", "-1x", "1e3x", "99999999x", "2"])
def test_what_is_no_speed_is_reported(text: str) -> None:
    with pytest.raises(UsageError, match="recorded, instant, or a factor"):
        parse_speed(text)
