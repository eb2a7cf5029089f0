from dataclasses import replace

from deltatape.match.websocket import SocketScript, agreed_deflate, script_of
from deltatape.model.exchange import EndReason
from deltatape.model.websocket import Side
from helpers.websocket import (
    KEY,
    Deflater,
    binary,
    close,
    frame,
    ping,
    pong,
    socket,
    split,
    text,
)

CLIENT, SERVER = Side.CLIENT, Side.SERVER
COMPRESSED = ((b"Sec-WebSocket-Extensions", b"permessage-deflate"),)


def sent(script: SocketScript) -> list[list[bytes]]:
    return [[step.data for step in answer.steps] for answer in script.answers]


def test_what_the_server_sent_follows_the_message_that_it_followed() -> None:
    exchange = socket(
        (SERVER, text("welcome")),
        (CLIENT, text("a", mask=KEY)),
        (SERVER, text("1") + ping(b"?")),
        (CLIENT, pong(b"?", mask=KEY) + ping(b"!", mask=KEY)),
        (SERVER, pong(b"!") + text("2")[:2]),
        (SERVER, text("2")[2:]),
        (CLIENT, frame(1, b"b", fin=False, mask=KEY)),
        (CLIENT, frame(0, b"c", mask=KEY)),
        (SERVER, binary(b"\xff")),
        (CLIENT, close(mask=KEY)),
        (SERVER, close(1000, "bye")),
    )
    script = script_of(exchange, compressed=False)
    assert [each.request.body for each in script.asked] == [b"a", b"bc"]
    assert sent(script) == [
        [text("welcome")],
        [text("1"), ping(b"?"), text("2")],
        [binary(b"\xff")],
    ]
    assert [answer.asked_ns for answer in script.answers] == [2, 20, 80]
    assert [step.t_ns for step in script.answers[1].steps] == [30, 30, 60]
    assert script.closing == close(1000, "bye")
    assert script.ending is EndReason.COMPLETE


def test_a_close_frame_that_the_server_sent_first_comes_in_its_place() -> None:
    exchange = socket(
        (CLIENT, text("a", mask=KEY)),
        (SERVER, text("1") + close(1011)),
        (CLIENT, close(mask=KEY)),
    )
    script = script_of(exchange, compressed=False)
    assert sent(script) == [[], [text("1"), close(1011)]]
    assert script.closing == b""


def test_a_cut_frame_and_bytes_that_are_none_are_sent_as_they_came() -> None:
    cut = text("hello")[:4] + b""
    exchange = socket((SERVER, b"\x82\x7f" + b"\xff" * 9), reason=EndReason.UPSTREAM_RESET)
    script = script_of(replace(exchange, response=None), compressed=False)
    assert sent(script) == [[b"\x82\x7f" + b"\xff" * 9]]
    assert script.ending is EndReason.UPSTREAM_RESET
    exchange = replace(socket((SERVER, cut)), end=None)
    script = script_of(exchange, compressed=False)
    assert (sent(script), script.ending) == ([[cut]], None)


def test_compressed_messages_are_sent_as_they_were_to_a_client_that_agrees() -> None:
    deflater = Deflater()
    body = deflater.frame(b"once upon a time") + deflater.frame(b"once upon a time")
    exchange = socket((SERVER, body[:7]), (SERVER, body[7:]), headers=COMPRESSED)
    agreed = agreed_deflate(exchange)
    assert agreed is not None
    script = script_of(exchange, compressed=True)
    assert b"".join(sent(script)[0]) == body
    assert script.deflate == agreed


def test_a_client_that_does_not_agree_gets_compressed_messages_plain() -> None:
    deflater = Deflater()
    coded = deflater.payload(b"in two frames")
    body = deflater.frame(b"once") + ping() + frame(1, coded[:4], rsv=4, fin=False) + text("x")[:0]
    body += frame(0, coded[4:]) + text("plain")
    exchange = socket((SERVER, body), (SERVER, body), headers=COMPRESSED)
    script = script_of(exchange, compressed=False)
    assert script.deflate is None
    once = text("once") + ping() + text("in two frames") + text("plain")
    assert b"".join(sent(script)[0]).startswith(once)


def test_a_compressed_message_with_a_masked_credential_is_sent_in_stored_blocks() -> None:
    deflater = Deflater()
    first = deflater.frame(b"key 0123456789")
    second = deflater.frame(b"key 0123456789 again")
    exchange = socket((SERVER, first + second), headers=COMPRESSED)
    masked = exchange.frames[0]._replace(
        data=b"key **********", wire=None, masked=((4, 14, "ab12cd34"),)
    )
    exchange = replace(exchange, frames=(masked, exchange.frames[1]))
    (stored, as_it_was), *_ = sent(script_of(exchange, compressed=True))
    assert as_it_was == second
    (piece,) = split([stored])
    assert piece.head is not None
    assert piece.head.rsv == 4
    again = socket((SERVER, stored + second), headers=COMPRESSED)
    # What refers to the masked one finds asterisks in its place.
    assert [each.data for each in again.frames] == [b"key **********", b"key ********** again"]


def test_what_was_masked_in_a_message_of_the_client_is_known() -> None:
    exchange = socket((CLIENT, frame(1, b"ab", fin=False, mask=KEY) + frame(0, b"***", mask=KEY)))
    pieces = exchange.frames
    pieces = (pieces[0], pieces[1]._replace(masked=((0, 3, "ab12cd34"),)))
    (asked,) = script_of(replace(exchange, frames=pieces), compressed=False).asked
    assert (asked.request.body, asked.request.masked) == (b"ab***", ((2, 5, "ab12cd34"),))
