import gzip
import random

import pytest

from deltatape.model.exchange import EndReason, Exchange, Framing, MaskedCredential, Tap
from deltatape.tape.assemble import Assembler, assemble
from deltatape.tape.decode import decode_lines, decode_record
from deltatape.tape.mask import Masker
from deltatape.tape.tap import ExchangeTap
from helpers.readings import parsed_exchange
from helpers.tapes import HEADER, Lines, every_record, start, taped, whole_tape


def exchanges(lines: list[bytes]) -> list[Exchange]:
    numbered = ((number, decode_record(line)) for number, line in enumerate(lines, start=2))
    return list(assemble(numbered, tape="x.tape", header=HEADER))


def read_back(lines: Lines) -> Exchange:
    (exchange,) = exchanges(lines.all)
    return exchange


def read_back_lines(*lines: bytes) -> Exchange:
    (exchange,) = exchanges(list(lines))
    return exchange


def test_an_exchange_is_what_its_records_say() -> None:
    first, second = exchanges(whole_tape().splitlines(keepends=True)[1:])
    assert (first.tape, first.number, first.id) == ("x.tape", 1, "01JD3ZQ8T0000000000000001A")
    assert (first.source, first.recorded_at) == (HEADER.source, HEADER.recorded_at)
    request = first.request
    assert (request.method, request.http, request.body) == ("POST", "1.1", b'{"a":1}')
    assert request.target_bytes == b"/v1/chat/completions?key=********"
    assert request.headers[0] == (b"Host", b"api.example.com")
    assert isinstance(request.headers[1][1], MaskedCredential)
    assert (request.t_ns, request.t_end_ns, request.line) == (0, 20, 4)
    assert first.sent is not None
    assert (first.sent.t_ns, first.sent.connect_ns, first.sent.tls_ns) == (30, 5, 6)
    assert [head.status for head in first.informational] == [103]
    assert first.response is not None
    assert (first.response.status, first.response.framing) == (200, Framing.CHUNKED)
    assert first.trailers[0] == (b"X-Sum", b"1")
    assert [(mark.t_ns, mark.bytes) for mark in first.delivered] == [(100, 22)]
    assert first.idle_ns == (110,)
    assert [note.text for note in first.notes] == ["a remark"]
    assert first.end is not None
    assert (first.end.reason, first.end.bytes) == (EndReason.UPSTREAM_RESET, 28)
    assert (first.end.detail, first.end.recorder) == ("connection reset", {"lost_records": 1})
    assert second.end is None
    assert second.request.body == b"\x00\xff"


def test_every_read_has_its_line_and_the_ends_of_its_chunks() -> None:
    first, second = exchanges(whole_tape().splitlines(keepends=True)[1:])
    assert [(read.line, read.data, read.boundaries) for read in first.reads] == [
        (16, b"data: 1\n\n", (9,)),
        (18, b"data: 2\n\ndata", (9,)),
        (21, b": 3\n\n\xff", (0, 6)),
    ]
    assert [read.boundaries for read in second.reads] == [None]


def test_only_exchanges_that_come_out_after_the_stop_know_of_it_unless_it_is_given() -> None:
    lines = whole_tape().splitlines(keepends=True)[1:]
    assert [exchange.stopped_ns for exchange in exchanges(lines)] == [None, 160]
    numbered = ((0, decode_record(line)) for line in lines)
    known = assemble(numbered, tape="", header=HEADER, stopped_ns=160)
    assert [exchange.stopped_ns for exchange in known] == [160, 160]


def test_exchanges_without_an_end_can_be_had_one_by_one() -> None:
    lines = whole_tape().splitlines(keepends=True)[1:]
    assembler = Assembler(tape="x.tape", header=HEADER)
    before: set[int] = set()
    for number, line in enumerate(lines, start=2):
        for ended in assembler.feed([(number, decode_record(line))]):
            assert ended.number in before
            assert ended.number not in assembler.open
        before = {*assembler.open}
    assert before == {2}
    assert [assembler.exchange(2)] == [*assembler.unfinished()]


def test_an_exchange_is_handed_out_when_it_ends() -> None:
    lines = iter(whole_tape().splitlines(keepends=True)[1:])
    numbered = ((0, decode_record(line)) for line in lines)
    first = next(assemble(numbered, tape="", header=HEADER))
    assert first.end is not None
    assert b'"idle"' in next(lines)


def test_a_tape_cut_anywhere_still_gives_its_exchanges() -> None:
    lines = Lines()
    every_record(lines.put)
    for count in range(len(lines.all) + 1):
        found = exchanges(lines.all[:count])
        assert len(found) <= 2
        for exchange in found:
            assert whole_tape_body(exchange.number).startswith(exchange.body)


def whole_tape_body(number: int) -> bytes:
    lines = whole_tape().splitlines(keepends=True)[1:]
    return next(one.body for one in exchanges(lines) if one.number == number)


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_records_is_survived(seed: int) -> None:
    lines = whole_tape().splitlines(keepends=True)[1:]
    random.Random(seed).shuffle(lines)
    assert {exchange.number for exchange in exchanges(lines)} == {1, 2}


def test_a_request_that_is_not_on_the_tape_has_no_method() -> None:
    exchange = read_back(taped(lambda tap: tap.read(7, b"abc", None)))
    assert (exchange.request.method, exchange.request.target, exchange.request.line) == (
        "",
        (),
        None,
    )
    assert (exchange.id, exchange.request.t_ns, exchange.body) == ("", 7, b"abc")


def test_what_comes_twice_counts_once() -> None:
    def feed(tap: ExchangeTap) -> None:
        start(tap, Framing.LENGTH)
        start(tap, Framing.CLOSE)

    exchange = read_back(taped(feed))
    assert exchange.response is not None
    assert exchange.response.framing is Framing.LENGTH
    assert exchange.request.line == 2


def test_what_comes_after_the_end_is_ignored() -> None:
    ended = taped(lambda tap: tap.end(1, EndReason.COMPLETE))
    late = taped(lambda tap: tap.read(2, b"late", None))
    (exchange,) = exchanges(ended.all + late.all)
    assert exchange.body == b""


def test_unknown_codes_neither_make_nor_change_an_exchange() -> None:
    assert (
        exchanges(
            [b'[1,1,"from-the-future",{}]\n', b'[1,0,"log",{"stream":"stdout","line":"x"}]\n']
        )
        == []
    )


def test_what_a_recorder_read_neither_makes_nor_changes_an_exchange() -> None:
    *lines, parsed = parsed_exchange()
    assert exchanges([*lines, parsed]) == exchanges(lines)
    assert exchanges([parsed]) == []
    assert exchanges([*lines[:-1], parsed]) == exchanges(lines[:-1])


def test_masked_bytes_are_told_of_the_piece_that_follows() -> None:
    exchange = read_back_lines(
        b'[1,1,"request-body","ab"]',
        b'[2,1,"masked",{"spans":[[1,3,"00000001"]]}]',
        b'[2,1,"request-body","x**x"]',
        b'[3,1,"masked",{"spans":[[0,1,"00000002"],[2,3,"00000003"]]}]',
        b'[3,1,"boundaries",[]]',
        b'[3,1,"read","*x*"]',
        b'[4,1,"read","***"]',
    )
    assert exchange.masked
    assert exchange.request.body == b"abx**x"
    assert exchange.request.masked == ((3, 5, "00000001"),)
    assert [read.masked for read in exchange.reads] == [
        ((0, 1, "00000002"), (2, 3, "00000003")),
        (),
    ]


def test_masked_bytes_of_a_piece_that_was_lost_are_not_those_of_another() -> None:
    exchange = read_back_lines(
        b'[1,1,"masked",{"spans":[[0,1,"00000001"],[5,9,"00000002"]]}]',
        b'[2,1,"read","*x"]',
    )
    assert [read.masked for read in exchange.reads] == [((0, 1, "00000001"),)]


def test_an_exchange_knows_on_which_side_of_the_application_it_was_taken() -> None:
    assert read_back(taped(start)).tap is Tap.PROVIDER
    head = taped(start).all[0].replace(b"}]\n", b',"tap":"app"}]\n')
    assert read_back_lines(head.strip()).tap is Tap.APP


def test_reads_that_were_read_the_short_way_make_the_same_exchanges() -> None:
    lines = whole_tape().splitlines(keepends=True)[1:]
    short = decode_lines(enumerate(lines), lambda _, line: [decode_record(line)])
    usual = ((number, decode_record(line)) for number, line in enumerate(lines))
    assert list(assemble(short, tape="", header=HEADER)) == list(
        assemble(usual, tape="", header=HEADER)
    )


def test_an_exchange_may_begin_with_a_read() -> None:
    (exchange,) = assemble([(2, (5, 1, b"a"))], tape="", header=HEADER)
    assert (exchange.body, exchange.reads[0].line, exchange.request.t_ns) == (b"a", 2, 5)


@pytest.mark.parametrize(("reason", "stopped_ns"), [("", None), (',"reason":"interrupted"', 700)])
def test_the_request_of_a_copy_tells_how_long_its_tape_was_watched(
    reason: str, stopped_ns: int | None
) -> None:
    copied = read_back_lines(
        b'[5,1,"request",{"id":"A","method":"POST","target":"/","upstream":"https://host",'
        b'"http":"1.1","headers":[],"watched":{"until_ns":700%s}}]\n' % reason.encode(),
        b'[9000,0,"stop",{"reason":"child-exit"}]\n',
    )
    assert copied.watch is not None
    assert (copied.watch.until_ns, copied.stopped_ns) == (700, stopped_ns)
    assert not copied.open


def test_what_is_hidden_in_a_request_stays_with_it() -> None:
    lines = Lines()
    masker = Masker(b"k" * 32)
    masker.learn(b"sk-fake-000000")
    tap = ExchangeTap(1, lines.put, masker)
    coded = ((b"Content-Encoding", b"gzip"),)
    tap.request(0, id="1", method="POST", target=b"/", upstream="", http="1.1", headers=coded)
    body = gzip.compress(b'{"key": "sk-fake-000000", "more": "text"}')
    tap.request_body(1, body[:20])
    tap.request_body(2, body[20:])
    tap.request_end(3)
    request = read_back(lines).request
    assert request.body == body
    assert request.content == b'{"key": "**************", "more": "text"}'
    assert [span[:2] for span in request.content_masked] == [(9, 23)]


def test_of_what_comes_once_the_first_counts() -> None:
    exchange = read_back_lines(
        b'[1,1,"request-end",{}]',
        b'[2,1,"request-end",{}]',
        b'[3,1,"sent",{"connect_ns":1,"tls_ns":2,"reused":false}]',
        b'[4,1,"sent",{"connect_ns":0,"tls_ns":0,"reused":true}]',
        b'[5,1,"trailers",{"headers":[["X","1"]]}]',
        b'[6,1,"trailers",{"headers":[["X","2"]]}]',
    )
    assert exchange.request.t_end_ns == 1
    assert exchange.sent is not None
    assert (exchange.sent.t_ns, exchange.sent.connect_ns) == (3, 1)
    assert exchange.trailers == ((b"X", b"1"),)


def test_chunk_ends_of_a_read_that_was_lost_are_not_those_of_another() -> None:
    exchange = read_back_lines(
        b'[1,1,"boundaries",[0,2,9]]',
        b'[2,1,"read","abc"]',
        b'[3,1,"boundaries",[]]',
        b'[3,1,"read","abc"]',
    )
    assert [read.boundaries for read in exchange.reads] == [(0, 2), ()]


def test_what_is_of_the_tape_makes_no_exchange() -> None:
    assert (
        exchanges(
            [
                b'[1,1,"stop",{"reason":"x"}]\n',
                b'[1,2,"log",{"stream":"stdout","line":"x"}]\n',
                b'[1,3,"client",{"connection":1,"state":"opened"}]\n',
            ]
        )
        == []
    )
