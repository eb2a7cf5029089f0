import json
import struct
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.wire.aws_eventstream import (
    HEADERS_LIMIT,
    PAYLOAD_LIMIT,
    PRELUDE_SIZE,
    EventStreamDecoder,
    encode_headers,
    encode_message,
    header_places,
    is_message,
    parse_headers,
    payload_span,
)
from helpers import eventstream
from helpers.framing import Framed, framed, noted
from helpers.splits import cut, cuttings, each_alone, random_cuts

START = eventstream.event("messageStart", {"role": "assistant"})
DELTA = eventstream.event("contentBlockDelta", {"delta": {"text": "…é"}})
STOP = eventstream.event("messageStop", {"stopReason": "end_turn"})
SMALL = eventstream.message({"a": "b"}, b"x")


def run(*pieces: bytes, limit: int = PAYLOAD_LIMIT) -> Framed:
    return framed(EventStreamDecoder(limit), pieces)


def prelude(size: int, headers: int) -> bytes:
    """A valid prelude with these lengths."""
    lengths = struct.pack(">II", size, headers)
    return lengths + struct.pack(">I", crc32(lengths))


def broken(message: bytes, at: int) -> bytes:
    """`message` with one byte changed."""
    return message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]


def test_every_message_is_an_event_however_the_bytes_are_cut() -> None:
    body = START + DELTA + STOP
    whole = run(body)
    assert [(event.number, event.type, json.loads(event.data)) for event in whole.events] == [
        (0, "messageStart", {"role": "assistant"}),
        (1, "contentBlockDelta", {"delta": {"text": "…é"}}),
        (2, "messageStop", {"stopReason": "end_turn"}),
    ]
    assert [body[slice(*event.place.span)] for event in whole.events] == [START, DELTA, STOP]
    assert (whole.anomalies, whole.pending) == ([], None)
    assert not any(event.exception for event in whole.events)
    for pieces in cuttings(body):
        assert run(*pieces) == whole


def test_short_messages_survive_every_pair_of_cuts() -> None:
    body = SMALL + SMALL
    whole = run(body)
    assert [(event.type, event.data) for event in whole.events] == [("message", "x")] * 2
    for pieces in cuttings(body, pairs=True):
        assert run(*pieces) == whole


def test_the_read_that_completes_a_message_gives_its_time_and_line() -> None:
    decoder = EventStreamDecoder()
    assert decoder.feed(START[:-1], 1, 10) == []
    (event,) = decoder.feed(START[-1:] + DELTA[:20], 2, 20)
    assert (event.t_ns, event.line) == (2, 20)
    assert decoder.feed(b"", 3, 30) == []


def test_exceptions_and_errors_are_marked_and_named() -> None:
    body = eventstream.exception("throttlingException", "slow down") + eventstream.error(
        "InternalError", "it broke"
    )
    first, second = run(body).events
    assert (first.type, first.exception) == ("throttlingException", True)
    assert json.loads(first.data) == {"message": "slow down"}
    assert (second.type, second.exception) == ("InternalError", True)
    assert json.loads(second.data) == {"message": "it broke"}


@pytest.mark.parametrize(
    ("headers", "payload", "expected"),
    [
        ({":message-type": "error"}, b"", ("error", "", True)),
        (
            {":message-type": "error", ":error-code": "E", ":error-message": "m"},
            b"p",
            ("E", "p", True),
        ),
        ({":message-type": "exception"}, b"{}", ("exception", "{}", True)),
        ({":message-type": "event"}, b"{}", ("message", "{}", False)),
        ({":message-type": "x", ":event-type": "e"}, b"", ("e", "", False)),
        ({":event-type": "", ":error-message": "m"}, b"", ("message", "", False)),
        ({}, b"", ("message", "", False)),
    ],
)
def test_the_type_is_what_the_headers_say(
    headers: dict[str, str], payload: bytes, expected: tuple[str, str, bool]
) -> None:
    (event,) = run(eventstream.message(headers, payload)).events
    assert (event.type, event.data, event.exception) == expected


def test_every_type_of_header_value_is_read() -> None:
    encoded = b"".join(
        [
            eventstream.header("yes", 0, b""),
            eventstream.header("no", 1, b""),
            eventstream.header("byte", 2, b"\xff"),
            eventstream.header("short", 3, b"\x01\x00"),
            eventstream.header("int", 4, b"\xff\xff\xff\xfe"),
            eventstream.header("long", 5, b"\x00" * 7 + b"\x07"),
            eventstream.header("bytes", 6, b"\x00\x02\xff\x00"),
            eventstream.header("string", 7, b"\x00\x03\xe2\x82\xac"),
            eventstream.header("time", 8, b"\x00" * 6 + b"\x03\xe8"),
            eventstream.header("uuid", 9, bytes(range(16))),
        ]
    )
    assert parse_headers(encoded) == {
        "yes": True,
        "no": False,
        "byte": -1,
        "short": 256,
        "int": -2,
        "long": 7,
        "bytes": b"\xff\x00",
        "string": "€",
        "time": 1000,
        "uuid": bytes(range(16)),
    }
    (event,) = run(eventstream.frame(encoded, b"{}")).events
    assert event.type == "message"


@pytest.mark.parametrize(
    "encoded",
    [
        b"\x05abc",
        b"\x01a",
        eventstream.header("a", 10, b""),
        eventstream.header("a", 4, b"\x00\x00"),
        eventstream.header("a", 7, b"\x00"),
        eventstream.header("a", 7, b"\x00\x05abcd"),
        eventstream.header("a", 7, b"\x00\x01\xff"),
        b"\x01\xff\x00",
        eventstream.header("a", 0, b"") * 2,
    ],
)
def test_headers_that_cannot_be_read_cost_their_message_only(encoded: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_headers(encoded)
    bad = eventstream.frame(encoded, b"{}")
    body = SMALL + bad + SMALL
    whole = run(body)
    assert (whole.data(), noted(body, whole)) == (["x", "x"], [("bad-message", bad)])
    assert run(*each_alone(body)) == whole


def test_a_wrong_checksum_takes_a_message_out_and_no_other() -> None:
    bad = broken(DELTA, len(DELTA) - 8)
    body = START + bad + STOP
    whole = run(body)
    assert [event.type for event in whole.events] == ["messageStart", "messageStop"]
    assert noted(body, whole) == [("bad-message", bad)]
    assert "contentBlockDelta" in whole.anomalies[0].detail
    for pieces in cuttings(body):
        assert run(*pieces) == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "junk",
    [
        broken(DELTA, 3),
        broken(DELTA, 9),
        b"upstream connect error, 502 Bad Gateway",
        b"\0" * 40,
        b"\0\0\0\x10\0\0\0\0" * 5,
        b"\x01\0\0\0\0\x02" * 9,
        prelude(40, 30),
        prelude(3, 0),
        DELTA[5:],
    ],
)
def test_after_bytes_that_are_no_message_the_next_prelude_is_found(junk: bytes) -> None:
    body = START + junk + STOP + junk
    whole = run(body)
    assert [event.type for event in whole.events] == ["messageStart", "messageStop"]
    assert noted(body, whole) == [("bad-message", junk)] * 2
    for pieces in cuttings(body):
        assert run(*pieces) == whole


def test_a_message_that_somebody_read_as_text_costs_only_itself() -> None:
    bad = DELTA.decode(errors="replace").encode()
    assert len(bad) > len(DELTA)
    body = START + bad + STOP
    whole = run(body)
    assert [event.type for event in whole.events] == ["messageStart", "messageStop"]
    assert b"".join(raw for _, raw in noted(body, whole)) == bad


@pytest.mark.parametrize("size", [1, 5, 11, 12, 13, len(DELTA) - 1])
def test_a_torn_last_message_is_reported_and_makes_no_event(size: int) -> None:
    body = START + DELTA[:size]
    whole = run(body)
    assert (len(whole.events), whole.pending) == (1, None)
    assert noted(body, whole) == [("unterminated-event", DELTA[:size])]
    assert whole.anomalies[0].event is None
    assert (f"of {len(DELTA)} bytes" in whole.anomalies[0].detail) is (size >= 12)
    for pieces in cuttings(body):
        assert run(*pieces) == whole


@pytest.mark.parametrize("tail", [b"\n", b"\r\n", b"{"])
def test_a_few_bytes_that_can_begin_no_message_are_none(tail: bytes) -> None:
    body = START + tail
    assert noted(body, run(body)) == [("bad-message", tail)]
    assert run(*each_alone(body)) == run(body)


def test_a_message_larger_than_clients_take_is_skipped() -> None:
    large = eventstream.message({"a": "b"}, b"x" * 50)
    body = SMALL + large + SMALL
    whole = run(body, limit=40)
    assert (whole.data(), noted(body, whole)) == (["x", "x"], [("too-large", large)])
    for pieces in cuttings(body):
        assert run(*pieces, limit=40) == whole
    torn = body[: len(SMALL) + 30]
    assert run(torn, limit=40).kinds() == ["too-large", "unterminated-event"]
    assert run(*each_alone(torn), limit=40) == run(torn, limit=40)


def test_nothing_is_held_of_what_is_skipped() -> None:
    decoder = EventStreamDecoder()
    decoder.feed(prelude(16 + HEADERS_LIMIT + 1, HEADERS_LIMIT + 1), 0, None)
    decoder.feed(b"x" * HEADERS_LIMIT, 0, None)
    assert not decoder._buffer
    decoder.feed(b"x" * 5, 0, None)
    assert [each.kind.value for each in decoder.anomalies] == ["too-large"]
    decoder.feed(b"y" * 100_000, 0, None)
    assert len(decoder._buffer) < 12


def test_a_payload_that_is_not_text_is_replaced_and_noted() -> None:
    body = START + eventstream.message({":event-type": "chunk"}, b"{\xff}")
    whole = run(body)
    assert whole.data()[1] == "{\ufffd}"
    assert [each.event for each in whole.anomalies] == [1]
    assert noted(body, whole) == [("invalid-utf-8", b"\xff")]


def test_many_different_headers_are_read_all_the_same() -> None:
    body = b"".join(eventstream.event(f"e{number}", number) for number in range(200))
    assert [event.type for event in run(body).events] == [f"e{number}" for number in range(200)]
    decoder = EventStreamDecoder()
    decoder.feed(body, 0, None)
    assert len(decoder._heads) < 100


def test_a_prelude_tells_a_message() -> None:
    assert is_message(START)
    assert is_message(prelude(16, 0))
    assert not is_message(START[:11])
    assert not is_message(b"\0" * 12)
    assert not is_message(prelude(15, 0))
    assert not is_message(broken(START, 2))


_NAMED = "00 00 00 3d 00 00 00 20 07 fd 83 96 0c %s 07 00 10 %s %s 8d 9c 08 b1"
BOTOCORES = [
    ({}, b"", bytes.fromhex("00 00 00 10 00 00 00 00 05 c2 48 eb 7d 98 c8 ff")),
    (
        {"content-type": "application/json"},
        b"{'foo':'bar'}",
        bytes.fromhex(
            _NAMED % (b"content-type".hex(), b"application/json".hex(), b"{'foo':'bar'}".hex())
        ),
    ),
]
"""Headers, payload and message, from the tests of Amazon's own clients."""


@pytest.mark.parametrize(("headers", "payload", "message"), BOTOCORES)
def test_a_message_is_written_as_amazon_writes_it(
    headers: dict[str, str], payload: bytes, message: bytes
) -> None:
    made = encode_message(encode_headers(headers), payload)
    assert made == message
    start, end = payload_span(made)
    assert made[start:end] == payload
    assert parse_headers(made[PRELUDE_SIZE:start]) == headers


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40)), st.binary(max_size=40))
def test_a_written_message_is_read_back(headers: dict[str, str], payload: bytes) -> None:
    encoded = encode_headers(headers)
    assert parse_headers(encoded) == headers
    places = list(header_places(encoded, 0, len(encoded)))
    assert [encoded[slice(*place.name)].decode() for place in places] == list(headers)
    assert [encoded[slice(*place.value)].decode() for place in places] == list(headers.values())
    assert is_message(encode_message(encoded, payload))


PARTS = st.sampled_from([START, DELTA, STOP, SMALL, broken(SMALL, 4), prelude(60, 0), b"\0\0"])


@pytest.mark.slow
@given(st.data())
def test_no_cutting_changes_what_any_bytes_decode_to(data: st.DataObject) -> None:
    parts = data.draw(st.lists(PARTS | st.binary(max_size=20), max_size=8))
    body = bytearray(b"".join(parts))
    for _ in range(data.draw(st.integers(0, 3)) if body else 0):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    whole = run(bytes(body))
    assert run(*each_alone(bytes(body))) == whole
    assert run(*cut(bytes(body), data.draw(random_cuts(len(body))))) == whole
    ends = [each.place.span for each in whole.events]
    assert all(one.end <= other.start for one, other in pairwise(ends))
