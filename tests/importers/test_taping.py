from dataclasses import replace

import pytest

from deltatape.diagnose.websocket import read_socket
from deltatape.importers.parts import (
    ImportedMessage,
    ImportedRequest,
    ImportedResponse,
    build_socket,
    elapsed_ns,
)
from deltatape.importers.taping import tape_lines
from deltatape.model.exchange import Exchange, Source
from deltatape.model.websocket import BINARY, CLOSE, TEXT, Side
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_header, decode_record
from helpers.imported import only
from helpers.tapes import HEADER, MASKER

IMPORT = replace(HEADER, source=Source.IMPORT)


def an_import(**described: bytes) -> Exchange:
    return only(b"data: \xff\n\ndata: 2\n\n", **described)


def read_back(lines: list[bytes]) -> Exchange:
    header = decode_header(lines[0])
    records = ((number, decode_record(line)) for number, line in enumerate(lines[1:], start=2))
    (exchange,) = assemble(records, tape="x", header=header)
    return exchange


def without_lines(exchange: Exchange) -> Exchange:
    assert exchange.response is not None
    return replace(
        exchange,
        request=replace(exchange.request, line=None),
        response=replace(exchange.response, line=None),
        reads=tuple(read._replace(line=None) for read in exchange.reads),
    )


def test_an_import_comes_back_from_its_tape() -> None:
    for described in (
        {},
        {
            "request": b'{"url": "https://host/x", "headers": {"A": "1"}, "body": {"a": 1}}',
            "response": b'{"headers": {"Transfer-Encoding": "chunked", "Content-Type": "x"}}',
        },
    ):
        exchange = an_import(**described)
        lines = tape_lines([exchange], header=IMPORT, idents=["01A"], masker=MASKER)
        expected = replace(exchange, id="01A", recorded_at=HEADER.recorded_at, stopped_ns=0)
        assert without_lines(read_back(lines)) == expected


def test_the_tape_of_an_import_claims_no_ending() -> None:
    lines = tape_lines([an_import()], header=IMPORT, idents=["01A"], masker=MASKER)
    codes = [decode_record(line).payload.code for line in lines[1:]]
    assert codes == ["request", "request-end", "response", "read", "note", "stop"]
    exchange = read_back(lines)
    assert (exchange.end, exchange.timed, exchange.cut) == (None, False, False)


def test_credentials_of_an_import_reach_no_tape() -> None:
    exchange = an_import(
        request=b'{"url": "https://u:fake@host/x?key=fake", "headers": {"Cookie": "fake"}}',
        response=b'{"headers": {"Set-Cookie": "fake"}}',
    )
    lines = tape_lines([exchange], header=IMPORT, idents=["01A"], masker=MASKER)
    assert b"fake" not in b"".join(lines)


def test_an_exchange_without_response_is_taped_without_one() -> None:
    exchange = replace(an_import(), response=None, reads=(), notes=())
    lines = tape_lines([exchange], header=IMPORT, idents=["01A"], masker=MASKER)
    assert [decode_record(line).payload.code for line in lines[1:]] == [
        "request",
        "request-end",
        "stop",
    ]


def test_the_messages_of_a_websocket_come_back_without_its_credentials() -> None:
    asked = ImportedRequest(method="GET", url="wss://host/x?key=fake-0000")
    agreed = ((b"Sec-WebSocket-Extensions", b"permessage-deflate"),)
    long = b"x" * (1 << 20)
    sent = [
        ImportedMessage(20, Side.CLIENT, TEXT, b"my key is fake-0000"),
        ImportedMessage(10, Side.SERVER, BINARY, long),
        ImportedMessage(30, Side.SERVER, CLOSE, b"\x03\xe8"),
    ]
    exchange = build_socket(
        *("x", asked, ImportedResponse(status=101, headers=agreed), sent),
        program="y",
        asked_ns=5,
        answered_ns=3,
    )
    lines = tape_lines([exchange], header=IMPORT, idents=["01A"], masker=MASKER)
    found = read_back(lines)
    socket = read_socket(found)
    assert socket.violations == ()
    assert [(each.side, each.opcode, each.data, each.t_end_ns) for each in socket.messages] == [
        (Side.CLIENT, TEXT, b"my key is *********", 20),
        (Side.SERVER, BINARY, long, 20),
        (Side.SERVER, CLOSE, b"\x03\xe8", 30),
    ]
    assert (found.request.t_ns, found.stopped_ns, found.cut) == (5, 30, False)


@pytest.mark.parametrize("time", [None, "1", float("nan"), 9, 1e300])
def test_a_time_that_makes_no_sense_is_unknown(time: object) -> None:
    assert elapsed_ns(10, time) == 0
