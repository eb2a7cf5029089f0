from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.model.exchange import (
    DeliveryProgress,
    EndReason,
    Exchange,
    Framing,
    Note,
    RequestSent,
    ResponseHead,
)
from deltatape.model.tape_summary import TapeSummary
from deltatape.model.websocket import Side
from deltatape.store.audit import audit
from deltatape.store.reader import open_tape
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_record
from deltatape.tape.payload import Stop
from deltatape.tape.serialize import tape_lines
from deltatape.tape.tap import PIECE, ExchangeTap
from helpers.taped import MS, taped
from helpers.tapes import HEADER, write_tape
from helpers.tapes import taped as taped_lines
from helpers.websocket import KEY, Deflater, binary, ping, text, upgraded

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
STOP = Stop(reason="shrunk", exit_code=None)


def bare(exchange: Exchange) -> Exchange:
    """An exchange without what depends on the file that it stands in."""
    return replace(
        exchange,
        tape="",
        number=0,
        stopped_ns=None,
        watch=None,
        request=replace(exchange.request, line=None),
        response=exchange.response and replace(exchange.response, line=None),
        reads=tuple(read._replace(line=None) for read in exchange.reads),
        frames=tuple(piece._replace(line=None) for piece in exchange.frames),
        informational=tuple(replace(head, line=None) for head in exchange.informational),
        end=exchange.end and replace(exchange.end, line=None),
    )


def written(folder: Path, exchanges: Sequence[Exchange]) -> list[Exchange]:
    """What is read back."""
    path = write_tape(folder, b"".join(tape_lines(HEADER, exchanges, STOP)), "written.tape")
    assert not audit(Path(path)).problems
    return sorted(open_tape(Path(path)), key=lambda one: one.number)


@pytest.mark.parametrize("folder", ["dialects", "incidents"])
def test_recordings_come_back_as_they_were(tmp_path: Path, folder: str) -> None:
    for path in sorted((RECORDINGS / folder).glob("*.tape")):
        tape = open_tape(path)
        exchanges = sorted(tape, key=lambda one: one.number)
        lines = b"".join(tape_lines(tape.header, exchanges, STOP))
        again = sorted(open_tape(Path(write_tape(tmp_path, lines))), key=lambda one: one.number)
        assert list(map(bare, again)) == list(map(bare, exchanges))


def test_all_that_an_exchange_may_have_comes_back(tmp_path: Path) -> None:
    base = taped(
        [(10, b"data: 1\n\nda"), (20, b"ta: \xff\n\n")],
        boundaries=((9,), (0, 7)),
        trailers=((b"X-Sum", b"1"),),
        informational=(
            ResponseHead(
                status=103, reason=b"Early", http="1.1", framing=Framing.NONE, headers=(),
                t_ns=MS, line=None,
            ),
        ),
    )  # fmt: skip
    full = replace(
        base,
        request=replace(base.request, body=b"key sk-fake", masked=((4, 11, "0011aabb"),)),
        reads=(base.reads[0]._replace(masked=((6, 7, "0011aabb"),)), base.reads[1]),
        sent=RequestSent(t_ns=MS, connect_ns=1, tls_ns=2, reused=False),
        delivered=(DeliveryProgress(t_ns=15 * MS, bytes=11),),
        idle_ns=(12 * MS,),
        notes=(Note(t_ns=12 * MS, text="hm"),),
    )
    assert list(map(bare, written(tmp_path, [full]))) == [bare(full)]


def test_what_is_hidden_under_a_content_coding_comes_back(tmp_path: Path) -> None:
    base = taped([(10, b"coded")])
    hidden = replace(base, reads=(base.reads[0]._replace(hidden=((0, 7, "0011aabb"),)),))
    path = write_tape(tmp_path, b"".join(tape_lines(HEADER, [hidden], STOP)), "written.tape")
    assert list(map(bare, open_tape(Path(path)))) == [bare(hidden)]


def test_exchanges_that_overlap_are_merged_by_time(tmp_path: Path) -> None:
    one = taped([(10, b"a"), (30, b"b")])
    other = taped([(20, b"c")], number=7)
    lines = list(tape_lines(HEADER, [one, other], STOP))
    times = [int(line[1:].split(b",")[0]) for line in lines[1:]]
    assert times == sorted(times)
    assert [bare(each) for each in written(tmp_path, [one, other])] == [bare(one), bare(other)]


def test_what_is_out_of_order_is_put_right(tmp_path: Path) -> None:
    late = taped([(50, b"a"), (20, b"b")], end_ms=1)
    late = replace(late, request=replace(late.request, t_ns=9 * MS, t_end_ns=None))
    (found,) = written(tmp_path, [late])
    assert [read.t_ns for read in found.reads] == [50 * MS, 50 * MS]
    assert found.end is not None
    assert found.end.t_ns == 50 * MS
    assert found.request.t_end_ns is None


def test_an_exchange_without_an_end_says_how_long_it_was_watched(tmp_path: Path) -> None:
    crashed = taped([(10, b"a")], reason=None)
    crashed = replace(crashed, watch=TapeSummary(until_ns=99 * MS))
    (found,) = written(tmp_path, [crashed])
    assert found.end is None
    assert found.watch == TapeSummary(until_ns=99 * MS)
    answerless = taped([], framing=None, reason=EndReason.REFUSED, detail="refused")
    (found,) = written(tmp_path, [answerless])
    assert bare(found) == bare(answerless)


def test_long_pieces_become_several_records(tmp_path: Path) -> None:
    size = PIECE + 10
    long = taped([(10, b"x" * size)], body=b"y" * size, boundaries=((PIECE, size),))
    long = replace(
        long,
        reads=(long.reads[0]._replace(masked=((PIECE - 1, PIECE + 1, "0011aabb"),)),),
    )
    (found,) = written(tmp_path, [long])
    assert found.request.body == long.request.body
    assert [len(read.data) for read in found.reads] == [PIECE, 10]
    assert [read.boundaries for read in found.reads] == [(PIECE,), (10,)]
    assert [read.masked for read in found.reads] == [
        ((PIECE - 1, PIECE, "0011aabb"),),
        ((0, 1, "0011aabb"),),
    ]


def test_a_body_without_chunks_has_no_boundaries(tmp_path: Path) -> None:
    plain = taped([(10, b"a"), (20, b"b")], framing=Framing.LENGTH)
    assert [bare(each) for each in written(tmp_path, [plain])] == [bare(plain)]


def test_trailers_come_back_also_without_a_body(tmp_path: Path) -> None:
    short = replace(taped([]), trailers=((b"a", b"b"),))
    (found,) = written(tmp_path, [short])
    assert found.trailers == ((b"a", b"b"),)


def test_what_is_hidden_in_a_request_comes_back(tmp_path: Path) -> None:
    base = taped(body=b"x" * (PIECE + 1))
    hidden = replace(base.request, hidden=((0, 7, "0011aabb"), (9, 16, "0011aabb")))
    lines = tape_lines(HEADER, [replace(base, request=hidden)], STOP)
    (found,) = open_tape(Path(write_tape(tmp_path, b"".join(lines), "written.tape")))
    assert found.request.hidden == hidden.hidden
    assert found.request.body == hidden.body


def test_the_frames_of_a_socket_come_back(tmp_path: Path) -> None:
    def feed(tap: ExchangeTap) -> None:
        upgraded(tap, ((b"sec-websocket-extensions", b"permessage-deflate"),), b"sk-fake-0123456")
        tap.frames(10, Side.CLIENT, Deflater().frame(b"{}", mask=KEY) + ping(b"p", mask=KEY)[:4])
        tap.frames(20, Side.SERVER, text("key sk-fake-0123456!") + binary(bytes(300))[:9])
        tap.frames(30, Side.SERVER, bytes(7))
        tap.end(40, EndReason.UPSTREAM_RESET)

    records = map(decode_record, taped_lines(feed).all)
    (exchange,) = assemble(enumerate(records), tape="", header=HEADER)
    assert len(exchange.frames) == 5
    assert any(piece.masked for piece in exchange.frames)
    assert [bare(one) for one in written(tmp_path, [exchange])] == [bare(exchange)]
