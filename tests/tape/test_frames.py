import hashlib
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.exchange import EndReason, Exchange, Framing, Headers
from deltatape.model.websocket import BINARY, CONTINUATION, TEXT, Message, Side
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_record
from deltatape.tape.encode import payload_record
from deltatape.tape.tap import PIECE, ExchangeTap
from deltatape.wire.websocket import MOST_INFLATED, MessageReader
from helpers.splits import cut, cuttings, random_cuts
from helpers.tapes import HEADER, Lines, taped
from helpers.websocket import (
    KEY,
    Deflater,
    binary,
    close,
    frame,
    ping,
    pong,
    rebuilt,
    text,
    upgraded,
)

SECRET = b"sk-fake-0123456789-abcdefghij"
COMPRESSED: Headers = ((b"Sec-WebSocket-Extensions", b"permessage-deflate"),)
CLIENT, SERVER = Side.CLIENT, Side.SERVER
Sent = tuple[Side, bytes]


def socket(
    sent: Sequence[Sent],
    headers: Headers = (),
    *,
    end: tuple[EndReason, str] | None = (EndReason.UPSTREAM_CLOSED, ""),
) -> tuple[Exchange, Lines]:
    """What is taped of a WebSocket on which these pieces are sent, at 10, 20, ..."""

    def feed(tap: ExchangeTap) -> None:
        upgraded(tap, headers, SECRET)
        for at, (side, data) in enumerate(sent, 1):
            tap.frames(10 * at, side, data)
        if end is not None:
            tap.end(10_000, end[0], detail=end[1])

    lines = taped(feed)
    records = [decode_record(line) for line in lines.all]
    for line, record in zip(lines.all, records, strict=True):
        assert payload_record(record.t_ns, record.exchange, record.payload) == line
    assert [record.t_ns for record in records] == sorted(record.t_ns for record in records)
    (exchange,) = assemble(enumerate(records, 2), tape="", header=HEADER)
    if exchange.end is not None and exchange.end.frames is not None:
        data = b"".join(piece.data for piece in exchange.frames)
        digest = hashlib.sha256(data).hexdigest()
        assert exchange.end.frames == (len(exchange.frames), len(data), digest)
    return exchange, lines


def sent_by(exchange: Exchange, side: Side) -> bytes:
    return rebuilt(piece for piece in exchange.frames if piece.side is side)


def messages(exchange: Exchange, *, compressed: bool = False) -> list[Message]:
    reader = MessageReader(compressed=compressed)
    found = [reader.add(piece) for piece in exchange.frames]
    assert reader.violations == []
    return [message for message in found if message is not None] + reader.end()


ASKED = text("Grüße", mask=KEY) + ping(b"?", mask=KEY) + close(1000, "done", mask=KEY)
ANSWERED = frame(TEXT, b"one ", fin=False) + pong(b"?") + frame(CONTINUATION, b"two") + close(1000)


def test_frames_of_both_sides_are_taped_however_they_were_cut() -> None:
    for pieces in cuttings(ANSWERED):
        sent = [(SERVER, piece) for piece in pieces]
        sent.insert(len(sent) // 2, (CLIENT, ASKED))
        exchange, _ = socket(sent)
        assert sent_by(exchange, CLIENT) == ASKED
        assert sent_by(exchange, SERVER) == ANSWERED
        told = {message.data for message in messages(exchange)}
        assert told == {"Grüße".encode(), b"?", b"\x03\xe8done", b"one two", b"\x03\xe8"}


def test_a_record_is_of_one_frame_and_of_one_read() -> None:
    exchange, lines = socket([(SERVER, text("a") + text("b")), (SERVER, text("cd")[:3])])
    taken = [(piece.t_ns, piece.data, piece.more) for piece in exchange.frames]
    assert taken == [(10, b"a", False), (10, b"b", False), (20, b"c", True)]
    told = [json.loads(line)[3] for line in lines.all if b'"frame"' in line]
    assert told == [
        {"side": "server", "opcode": 1, "data": "a"},
        {"side": "server", "opcode": 1, "data": "b"},
        {"side": "server", "opcode": 1, "length": 2, "more": True, "data": "c"},
    ]


def test_the_rest_of_a_frame_says_where_it_goes_on() -> None:
    body = frame(BINARY, bytes(5), fin=False, mask=KEY, rsv=1, wide=2)
    _, lines = socket([(CLIENT, body[:10]), (CLIENT, body[10:])])
    assert [json.loads(line)[3] for line in lines.all if b'"frame"' in line] == [
        {
            "side": "client",
            "opcode": 2,
            "fin": False,
            "rsv": 1,
            "mask": "37fa213d",
            "length": 5,
            "wide": 2,
            "more": True,
            "data": "\0\0",
        },
        {"side": "client", "opcode": 2, "at": 2, "data": "\0\0\0"},
    ]


@pytest.mark.parametrize("end", range(1, len(ASKED)))
def test_what_a_cut_left_of_a_frame_is_taped(end: int) -> None:
    exchange, _ = socket([(CLIENT, ASKED[:end])])
    assert sent_by(exchange, CLIENT) == ASKED[:end]


def test_a_long_frame_is_taped_in_several_records() -> None:
    body = binary(bytes(PIECE + PIECE // 2))
    exchange, lines = socket([(SERVER, body)])
    assert sent_by(exchange, SERVER) == body
    assert len(exchange.frames) == 2
    assert max(map(len, lines.all)) < 16 << 20


def test_bytes_that_are_no_frames_are_taped_as_they_came() -> None:
    body = bytes((0x82, 127)) + b"\xff" * 20
    exchange, _ = socket([(SERVER, body[:3]), (SERVER, body[3:]), (CLIENT, ASKED)])
    assert sent_by(exchange, SERVER) == body
    assert sent_by(exchange, CLIENT) == ASKED


# Compressed messages.


def test_compressed_messages_can_be_read_and_come_back() -> None:
    deflater, texts = Deflater(), [b'{"type":"a"}', b'{"type":"a"}', b"", b'{"type":"b"}']
    body = b"".join(deflater.frame(each, mask=KEY) + ping(mask=KEY) for each in texts)
    for pieces in cuttings(body):
        exchange, lines = socket([(CLIENT, piece) for piece in pieces], COMPRESSED)
        assert sent_by(exchange, CLIENT) == body
        told = [each.data for each in messages(exchange, compressed=True) if each.opcode == TEXT]
        assert told == texts
        assert '"data":"{\\"type\\":\\"b\\"}","wire":' in lines.text or len(pieces) > 1


def test_a_compressed_message_in_fragments_is_read() -> None:
    coded = Deflater().payload(b"once upon a time")
    body = frame(TEXT, coded[:5], fin=False, rsv=4) + frame(CONTINUATION, coded[5:])
    for pieces in cuttings(body):
        exchange, _ = socket([(SERVER, piece) for piece in pieces], COMPRESSED)
        assert sent_by(exchange, SERVER) == body
        assert [each.data for each in messages(exchange, compressed=True)] == [b"once upon a time"]


def test_a_fragment_of_no_message_is_not_taken_for_compressed() -> None:
    exchange, _ = socket([(SERVER, Deflater().frame(b"x") + frame(0, b"y", fin=False))], COMPRESSED)
    assert [(piece.data, piece.wire is None) for piece in exchange.frames] == [
        (b"x", False),
        (b"y", True),
    ]


def test_messages_are_compressed_only_where_both_sides_agreed() -> None:
    body = frame(TEXT, Deflater().payload(b"x"), rsv=4)
    exchange, _ = socket([(SERVER, body)])
    assert (exchange.frames[0].data, exchange.frames[0].wire) == (body[2:], None)
    uncompressed = text("x")
    exchange, _ = socket([(SERVER, uncompressed)], COMPRESSED)
    assert (exchange.frames[0].data, exchange.frames[0].wire) == (b"x", None)


def test_a_message_refers_to_those_before_unless_the_handshake_says_otherwise() -> None:
    alone = ((b"sec-websocket-extensions", b"permessage-deflate; server_no_context_takeover"),)
    # RFC 7692 section 7.2.3.2: the second one is made of the first.
    coded = [bytes.fromhex(each) for each in ("f248cdc9c90700", "f200110000")]
    body = b"".join(frame(TEXT, each, rsv=4) for each in coded)
    for headers, told in ((COMPRESSED, b"Hello"), (alone, b"")):
        exchange, _ = socket([(SERVER, body)], headers)
        assert sent_by(exchange, SERVER) == body
        assert [piece.data for piece in exchange.frames] == [b"Hello", told]


@pytest.mark.parametrize(
    "coded", [b"\xff\xff\xff", Deflater().payload(bytes(MOST_INFLATED + 1))], ids=["broken", "bomb"]
)
def test_what_cannot_be_decompressed_is_taped_as_it_came(coded: bytes) -> None:
    body = frame(TEXT, coded, rsv=4) + Deflater().frame(b"more") + text("plain")
    exchange, _ = socket([(SERVER, body), (CLIENT, Deflater().frame(b"ok", mask=KEY))], COMPRESSED)
    assert sent_by(exchange, SERVER) == body
    assert [piece.data for piece in exchange.frames] == [b"", b"", b"plain", b"ok"]
    (note,) = exchange.notes
    assert note.text.startswith("the server: its compressed messages from here on are not read")


# Credentials.


def spoken(exchange: Exchange) -> list[bytes]:
    """The data of each message; the masked parts are those that the tape tells."""
    for piece in exchange.frames:
        for start, end, _ in piece.masked:
            assert piece.data[start:end] == b"*" * (end - start)
    return [message.data for message in messages(exchange, compressed=True)]


@pytest.mark.slow
def test_a_credential_in_a_message_is_masked_wherever_it_is_cut() -> None:
    stars = b"my key: " + b"*" * len(SECRET) + b"!"
    plain = b"my key: " + SECRET + b"!"
    coded = Deflater().payload(plain)
    bodies = (
        text(plain.decode(), mask=KEY) + text("next", mask=KEY),
        frame(TEXT, coded, rsv=4, mask=KEY) + text("next", mask=KEY),
        frame(TEXT, plain[:20], fin=False, mask=KEY)
        + frame(CONTINUATION, plain[20:], mask=KEY)
        + text("next", mask=KEY),
    )
    for body in bodies:
        for pieces in cuttings(body):
            sent = [(CLIENT, piece) for piece in pieces]
            sent.insert(1, (SERVER, text("meanwhile")))
            exchange, lines = socket(sent, COMPRESSED)
            assert SECRET[:20] not in b"".join(lines.all)
            assert sorted(spoken(exchange)) == sorted([stars, b"meanwhile", b"next"])
            for piece in exchange.frames:
                assert not (piece.masked and piece.wire)


def test_a_credential_is_not_looked_for_across_messages() -> None:
    half = len(SECRET) // 2
    first, second = SECRET[:half].decode(), SECRET[half:].decode()
    exchange, _ = socket([(CLIENT, text(first, mask=KEY)), (CLIENT, text(second, mask=KEY))])
    # What ends a message and begins a credential may be a part of one.
    assert spoken(exchange) == [b"*" * half, second.encode()]


def test_a_credential_in_a_control_frame_or_in_no_frame_is_masked() -> None:
    ending = close(1008, "bad key " + SECRET.decode())
    exchange, lines = socket([(SERVER, ping(SECRET) + ending + b"\x82\xff" + SECRET)])
    assert SECRET not in b"".join(lines.all)
    assert exchange.frames[0].data == b"*" * len(SECRET)
    assert exchange.frames[1].data == b"\x03\xf0bad key " + b"*" * len(SECRET)
    assert SECRET not in exchange.frames[2].data


def test_a_piece_that_waits_keeps_its_time_and_its_place() -> None:
    start = frame(TEXT, b"x" + SECRET)[: 2 + 1 + 12]
    pieces = [(SERVER, start), (CLIENT, ping(b"1", mask=KEY)), (SERVER, SECRET[12:])]
    exchange, _ = socket(pieces)
    assert [(piece.t_ns, piece.side) for piece in exchange.frames] == [
        (10, SERVER),
        (20, CLIENT),
        (30, SERVER),
    ]
    assert exchange.frames[0].data == b"x" + b"*" * 12


def test_a_credential_in_a_control_frame_is_masked_while_a_message_waits() -> None:
    first = frame(TEXT, b"x" + SECRET[:12], fin=False)
    rest = frame(CONTINUATION, SECRET[12:])
    exchange, lines = socket([(SERVER, first), (SERVER, ping(SECRET)), (SERVER, rest)])
    assert SECRET[:12] not in b"".join(lines.all)
    stars = [b"x" + b"*" * 12, b"*" * len(SECRET), b"*" * (len(SECRET) - 12)]
    assert [piece.data for piece in exchange.frames] == stars


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Sent], list[bytes]]:
    """What both sides send, cut anywhere, and the messages in it, those of the client first."""
    words = st.sampled_from([SECRET, SECRET[:9], b"sk-", b"hello ", b"\n", "é".encode(), b"{}"])
    contents = st.lists(words, max_size=4).map(b"".join)
    sent: list[list[Sent]] = []
    told: list[bytes] = []
    for side, mask in ((CLIENT, KEY), (SERVER, b"")):
        deflater, body = Deflater(), b""
        for data, coded in draw(st.lists(st.tuples(contents, st.booleans()), max_size=4)):
            told.append(data)
            if coded:
                body += deflater.frame(data, mask=mask, opcode=BINARY)
            else:
                body += binary(data, mask=mask)
        cuts = draw(random_cuts(len(body)))
        sent.append([(side, piece) for piece in cut(body, cuts)])
    order = draw(st.permutations([0] * len(sent[0]) + [1] * len(sent[1])))
    streams = [iter(each) for each in sent]
    return [next(streams[which]) for which in order], told


@given(conversations())
def test_no_credential_reaches_the_tape_and_all_else_comes_back(
    conversation: tuple[list[Sent], list[bytes]],
) -> None:
    sent, told = conversation
    exchange, lines = socket(sent, COMPRESSED)
    assert SECRET not in b"".join(lines.all)
    found = messages(exchange, compressed=True)
    found.sort(key=lambda message: message.side is SERVER)
    assert [len(message.data) for message in found] == [len(data) for data in told]
    for message, data in zip(found, told, strict=True):
        assert SECRET not in message.data
        if SECRET[:8] not in data:
            assert message.data == data
    if not any(piece.masked for piece in exchange.frames):
        for side in Side:
            assert sent_by(exchange, side) == b"".join(data for by, data in sent if by is side)


# The end.


CLOSED = [(CLIENT, close(mask=KEY)), (SERVER, close())]


@pytest.mark.parametrize(
    ("sent", "end", "reason"),
    [
        (CLOSED, (EndReason.UPSTREAM_CLOSED, ""), EndReason.COMPLETE),
        (CLOSED, (EndReason.CLIENT_CLOSED, ""), EndReason.COMPLETE),
        (CLOSED, (EndReason.CLIENT_CLOSED, "reset"), EndReason.CLIENT_CLOSED),
        (CLOSED, (EndReason.UPSTREAM_RESET, ""), EndReason.UPSTREAM_RESET),
        (CLOSED, (EndReason.STOPPED, "x"), EndReason.STOPPED),
        (CLOSED[:1], (EndReason.UPSTREAM_CLOSED, ""), EndReason.UPSTREAM_CLOSED),
        (CLOSED[1:], (EndReason.CLIENT_CLOSED, ""), EndReason.CLIENT_CLOSED),
        ([], (EndReason.UPSTREAM_CLOSED, ""), EndReason.UPSTREAM_CLOSED),
        ([*CLOSED[:1], (SERVER, close()[:3])], (EndReason.UPSTREAM_CLOSED, ""), None),
    ],
)
def test_a_socket_is_complete_when_both_sides_had_said_so(
    sent: list[Sent], end: tuple[EndReason, str], reason: EndReason | None
) -> None:
    exchange, _ = socket(sent, end=end)
    assert exchange.end is not None
    assert exchange.end.reason is (reason or EndReason.UPSTREAM_CLOSED)
    assert exchange.end.detail == end[1]
    assert (exchange.end.bytes, exchange.body) == (0, b"")


def test_an_exchange_without_a_socket_has_no_frames() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.frames(5, CLIENT, ASKED)
        tap.response(6, status=200, reason=b"", http="1.1", framing=Framing.CLOSE, headers=())
        tap.frames(7, SERVER, ANSWERED)
        tap.end(8, EndReason.COMPLETE)

    lines = taped(feed)
    assert b'"frame"' not in b"".join(lines.all)
    assert b'"frames"' not in b"".join(lines.all)


def test_without_messages_only_control_frames_are_taped() -> None:
    def feed(tap: ExchangeTap) -> None:
        upgraded(tap)
        tap.frames(5, CLIENT, text("hi", mask=KEY) + ping(b"?", mask=KEY), messages=False)
        tap.end(6, EndReason.STOPPED)

    frames = [line for line in taped(feed).all if b'"frame"' in line]
    assert [json.loads(line)[3]["data"] for line in frames] == ["?"]


def test_nothing_is_taped_after_the_end() -> None:
    def feed(tap: ExchangeTap) -> None:
        upgraded(tap)
        tap.frames(5, SERVER, text("x")[:2])
        tap.end(6, EndReason.STOPPED)
        tap.end(7, EndReason.COMPLETE)
        tap.frames(8, SERVER, b"x")

    codes = [json.loads(line)[2] for line in taped(feed).all]
    assert codes == ["request", "request-end", "response", "frame", "end"]
