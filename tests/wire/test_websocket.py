import json
import subprocess
import zlib
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    FrameHead,
    FramePiece,
    Message,
    Side,
)
from deltatape.wire.websocket import (
    MAX_LENGTH,
    MOST_INFLATED,
    NO_CLOSE_FRAME,
    NO_CODE,
    STEP,
    Deflate,
    InflateError,
    MessageInflater,
    MessageReader,
    SplitPiece,
    apply_mask,
    closure_data,
    encode_head,
    is_wide,
    negotiated_deflate,
    read_closure,
    stored,
    whole_message_head,
)
from helpers.clients import PYTHON, Client, available
from helpers.splits import cut, cuttings, random_cuts
from helpers.websocket import (
    KEY,
    Deflater,
    binary,
    close,
    frame,
    joined,
    messages,
    ping,
    pong,
    rebuilt,
    split,
    text,
)

# The frames.


def whole_frame(head: FrameHead, data: bytes, *, more: bool = False) -> SplitPiece:
    return SplitPiece(head.opcode, head, 0, data, more=more)


def raw_bytes(data: bytes) -> SplitPiece:
    return SplitPiece(0, None, 0, data, raw=True)


def test_the_examples_of_the_rfc_are_read() -> None:
    hello = b"Hello"
    cases = {
        "810548656c6c6f": [whole_frame(FrameHead(TEXT, 5), hello)],
        "818537fa213d7f9f4d5158": [whole_frame(FrameHead(TEXT, 5, mask=KEY), hello)],
        "010348656c80026c6f": [
            whole_frame(FrameHead(TEXT, 3, fin=False), b"Hel"),
            whole_frame(FrameHead(CONTINUATION, 2), b"lo"),
        ],
        "890548656c6c6f": [whole_frame(FrameHead(PING, 5), hello)],
        "8a8537fa213d7f9f4d5158": [whole_frame(FrameHead(PONG, 5, mask=KEY), hello)],
        "827e0100" + "00" * 256: [whole_frame(FrameHead(BINARY, 256), bytes(256))],
        "827f0000000000010000" + "00" * 65536: [
            whole_frame(FrameHead(BINARY, 65536), bytes(65536))
        ],
    }
    for raw, expected in cases.items():
        assert split([bytes.fromhex(raw)]) == expected


def test_frames_are_the_same_however_the_bytes_are_cut() -> None:
    body = (
        text("Grüße", mask=KEY)
        + frame(TEXT, b"one ", fin=False)
        + ping(b"are you there?")
        + frame(CONTINUATION, b"two", fin=False, mask=KEY)
        + frame(CONTINUATION)
        + binary(bytes(130))
        + frame(BINARY, b"x" * 9, rsv=7, wide=8)
        + pong(mask=KEY)
        + close(1001, "bye")
    )
    whole = split([body])
    assert [piece.head and piece.head.opcode for piece in whole] == [1, 1, 9, 0, 0, 2, 2, 10, 8]
    assert rebuilt(whole) == body
    for pieces in cuttings(body):
        found = split(pieces)
        assert joined(found) == whole
        assert rebuilt(found) == body


def test_short_frames_survive_every_pair_of_cuts() -> None:
    body = text("ab", mask=KEY) + close(mask=KEY)
    whole = split([body])
    for pieces in cuttings(body, pairs=True):
        assert joined(split(pieces)) == whole


def test_a_cut_connection_keeps_what_came_of_a_frame() -> None:
    body = text("Hello, world", mask=KEY) + close(1000, "good", mask=KEY)
    for end in range(1, len(body)):
        for pieces in ([body[:end]], [body[at : at + 1] for at in range(end)]):
            found = split(pieces)
            assert rebuilt(found) == body[:end]
            whole = end == len(text("Hello, world", mask=KEY))
            assert (found[-1].more or found[-1].raw) is not whole


def test_what_follows_an_impossible_length_is_raw() -> None:
    impossible = bytes((0x82, 127)) + (MAX_LENGTH + 1).to_bytes(8, "big")
    body = text("a") + impossible + text("b")
    for pieces in cuttings(body):
        found = joined(split(pieces))
        assert found == [
            whole_frame(FrameHead(TEXT, 1), b"a"),
            raw_bytes(impossible + text("b")),
        ]
    longest = bytes((0x82, 127)) + MAX_LENGTH.to_bytes(8, "big")
    assert split([longest]) == [whole_frame(FrameHead(BINARY, MAX_LENGTH), b"", more=True)]


def test_nothing_comes_of_no_bytes() -> None:
    assert split([b""]) == split([]) == []
    impossible = bytes((0x82, 255)) + b"\xff" * 12
    assert split([impossible, b""]) == [raw_bytes(impossible)]


def test_a_control_frame_that_is_too_long_comes_as_it_is_read() -> None:
    body = frame(PING, bytes(200), mask=KEY) + text("x")
    for pieces in cuttings(body):
        found = split(pieces)
        assert rebuilt(found) == body
        assert joined(found)[0] == whole_frame(FrameHead(PING, 200, mask=KEY), bytes(200))


@given(st.binary(max_size=300), st.data())
def test_any_bytes_come_back(body: bytes, data: st.DataObject) -> None:
    found = split(cut(body, data.draw(random_cuts(len(body)))))
    assert rebuilt(found) == body
    assert joined(found) == split([body])


HEADS = st.builds(
    FrameHead,
    opcode=st.integers(0, 15),
    length=st.just(0),
    fin=st.booleans(),
    rsv=st.integers(0, 7),
    mask=st.sampled_from([b"", KEY, bytes(4)]),
    wide=st.sampled_from([0, 2, 8]),
)
FRAMES = st.lists(st.tuples(HEADS, st.binary(max_size=140)), max_size=6)


@pytest.mark.slow
@given(FRAMES, st.data())
def test_random_frames_come_back_with_their_heads(
    frames: list[tuple[FrameHead, bytes]], data: st.DataObject
) -> None:
    heads = [
        head._replace(length=len(payload), wide=head.wide * is_wide(len(payload), head.wide))
        for head, payload in frames
    ]
    body = b"".join(
        encode_head(head) + apply_mask(payload, head.mask)
        for head, (_, payload) in zip(heads, frames, strict=True)
    )
    found = joined(split(cut(body, data.draw(random_cuts(len(body))))))
    assert [(piece.head, piece.data) for piece in found] == [
        (head, payload) for head, (_, payload) in zip(heads, frames, strict=True)
    ]


def test_a_mask_is_turned_to_where_a_piece_begins() -> None:
    data = bytes(range(20))
    whole = apply_mask(data, KEY)
    assert apply_mask(whole, KEY) == data
    for at in range(len(data)):
        assert apply_mask(data[:at], KEY) + apply_mask(data[at:], KEY, at) == whole
    assert apply_mask(data, b"") == data


# The same by another implementation.

_ORACLE = """
import json, sys
from websockets.exceptions import ProtocolError
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame
from websockets.streams import StreamReader

found = []
for raw, masked, compressed in json.load(sys.stdin):
    reader = StreamReader()
    reader.feed_data(bytes.fromhex(raw))
    reader.feed_eof()
    extensions = [PerMessageDeflate(False, False, 15, 15)] if compressed else []
    frames, problem = [], ""
    try:
        while True:
            parser = Frame.parse(reader.read_exact, mask=masked, extensions=extensions)
            try:
                next(parser)
            except StopIteration as done:
                frame = done.value
                frames.append([int(frame.opcode), frame.fin, bytes(frame.data).hex()])
    except EOFError:
        problem = "" if not reader.buffer else "cut"
    except ProtocolError as error:
        problem = str(error)
    found.append([frames, problem])
print(json.dumps(found))
"""


def by_websockets(cases: list[tuple[bytes, bool, bool]]) -> list[tuple[list[list[object]], str]]:
    """What the package `websockets` makes of bytes, which are masked or not, compressed or not."""
    available(Client("websockets", (str(PYTHON),)))
    asked = json.dumps([(raw.hex(), *flags) for raw, *flags in cases])
    done = subprocess.run(
        [PYTHON, "-c", _ORACLE], input=asked, capture_output=True, text=True, check=True
    )
    return [(frames, problem) for frames, problem in json.loads(done.stdout)]


def test_another_implementation_reads_the_same_frames() -> None:
    sizes = (0, 1, 125, 126, 127, 65535, 65536, 70_001)
    deflater = Deflater()
    opcodes = (CONTINUATION, TEXT, BINARY)
    plain = b"".join(
        frame(opcode, b"\xe4\xf6" * (size // 2) + b"x" * (size % 2), fin=fin, mask=KEY)
        for size, opcode, fin in product(sizes, opcodes, (False, True))
    )
    control = b"".join(
        frame(opcode, bytes(size), mask=KEY)
        for opcode, size in product((CLOSE, PING, PONG), (0, 2, 125))
    )
    small = [b"once upon a time", b"once upon a time", b"", bytes(100_000), b"once upon"]
    compressed = b"".join(deflater.frame(data) + ping(b"p") for data in small)
    read = by_websockets([(plain + control, True, False), (compressed, False, True)])
    for body, (frames, problem) in zip((plain + control, compressed), read, strict=True):
        assert problem == ""
        inflater = MessageInflater(takeover=True)
        ours = []
        for _, head, _, data, *_ in split([body]):
            assert head is not None
            if head.rsv:
                steps = inflater.steps(data, last=True)
                data = b"".join(part for part, _ in steps)  # noqa: PLW2901 - as the other one does
            ours.append([head.opcode, head.fin, data.hex()])
        assert ours == frames


BROKEN = (
    (frame(3, mask=KEY), "invalid opcode"),
    (frame(11, mask=KEY), "invalid opcode"),
    (frame(TEXT, b"x"), "incorrect masking"),
    (frame(TEXT, b"x", rsv=4, mask=KEY), "reserved bits must be 0"),
    (frame(BINARY, b"x", rsv=3, mask=KEY), "reserved bits must be 0"),
    (frame(PING, bytes(126), mask=KEY), "control frame too long"),
    (frame(PING, b"x", fin=False, mask=KEY), "fragmented control frame"),
)


def test_what_another_implementation_refuses_is_told() -> None:
    read = by_websockets([(raw, True, False) for raw, _ in BROKEN])
    for (raw, refusal), (_, problem) in zip(BROKEN, read, strict=True):
        assert problem == refusal
        _, forbidden = messages(split([raw]), Side.CLIENT)
        assert forbidden


# Messages.


def kept(message: Message) -> tuple[int, bytes, int, bool]:
    return message.opcode, message.data, message.frames, message.complete


def test_fragments_make_a_message_and_control_frames_stand_between_them() -> None:
    body = (
        frame(TEXT, "Grü".encode()[:3], fin=False)
        + ping(b"?")
        + frame(CONTINUATION, "Grü".encode()[3:], fin=False)
        + pong(b"!")
        + frame(CONTINUATION, "ße".encode())
        + binary(b"\xff")
        + close(1000, "done")
    )
    for pieces in cuttings(body):
        found, forbidden = messages(split(pieces))
        assert [kept(message) for message in found] == [
            (PING, b"?", 1, True),
            (PONG, b"!", 1, True),
            (TEXT, "Grüße".encode(), 3, True),
            (BINARY, b"\xff", 1, True),
            (CLOSE, b"\x03\xe8done", 1, True),
        ]
        assert [message.number for message in found] == [0, 1, 2, 3, 4]
        assert forbidden == []


def test_a_message_has_the_times_of_its_first_and_last_bytes_and_the_last_line() -> None:
    reader = MessageReader(compressed=False)
    server, client = Side.SERVER, Side.CLIENT
    first = FrameHead(TEXT, 4, fin=False)
    assert reader.add(FramePiece(10, server, TEXT, first, 0, b"ab", more=True, line=3)) is None
    assert reader.add(FramePiece(20, server, TEXT, None, 2, b"cd", line=4)) is None
    only = FrameHead(TEXT, 1, mask=KEY)
    other = reader.add(FramePiece(25, client, TEXT, only, 0, b"x", line=5))
    assert other is not None
    last = FrameHead(CONTINUATION, 1)
    message = reader.add(FramePiece(30, server, CONTINUATION, last, 0, b"e", line=6))
    assert message is not None
    assert (message.t_ns, message.t_end_ns, message.line) == (10, 30, 6)
    assert (message.data, message.number, other.number) == (b"abcde", 1, 0)
    assert reader.violations == []


@pytest.mark.parametrize(
    ("body", "opcode", "data", "frames"),
    [
        (text("Hello")[:4], TEXT, b"He", 1),
        (frame(TEXT, b"one", fin=False), TEXT, b"one", 1),
        (
            frame(TEXT, b"one", fin=False) + frame(CONTINUATION, b"two", fin=False),
            TEXT,
            b"onetwo",
            2,
        ),
        (close(1000, "good")[:5], CLOSE, b"\x03\xe8g", 1),
    ],
)
def test_a_message_that_the_end_cuts_is_not_complete(
    body: bytes, opcode: int, data: bytes, frames: int
) -> None:
    (message,), forbidden = messages(split([body]))
    assert kept(message) == (opcode, data, frames, False)
    assert forbidden == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (frame(3), "a frame with the reserved opcode 3"),
        (frame(TEXT, rsv=1), "a frame with reserved bits: 001"),
        (frame(TEXT, rsv=4), "a frame with reserved bits: 100"),
        (frame(PING, fin=False), "a control frame in fragments"),
        (frame(PING, bytes(126)), "a control frame of 126 bytes"),
        (frame(CONTINUATION, b"x"), "a continuation of no message"),
        (frame(TEXT, fin=False) + text("x"), "a new message within another one"),
        (text("x", mask=KEY), "a masked frame"),
        (frame(BINARY, b"x", wide=2), "a length of 1 in 2 bytes"),
        (frame(TEXT, b"\xff"), "a text that is not UTF-8"),
        (close(999), "a close frame with the code 999"),
        (close(1005), "a close frame with the code 1005"),
        (close(2999), "a close frame with the code 2999"),
        (close(5000), "a close frame with the code 5000"),
        (frame(CLOSE, b"\x03"), "a close frame with the code cut in two"),
        (frame(CLOSE, b"\x03\xe8\xff"), "a close frame whose reason is not UTF-8"),
        (close() + text("x"), "a frame after the close frame"),
        (b"\x81\x7f" + b"\xff" * 8, "bytes that are no frame"),
    ],
)
def test_what_the_rfc_forbids_is_told(body: bytes, told: str) -> None:
    assert messages(split([body]))[1] == [told]


def test_what_the_rfc_allows_is_not_told() -> None:
    codes = (1000, 1001, 1003, 1007, 1014, 3000, 4999, None)
    for code in codes:
        assert messages(split([close(code)]))[1] == []
    assert messages(split([text("x", mask=KEY)]), Side.CLIENT)[1] == []
    assert messages(split([text("x")]), Side.CLIENT)[1] == ["a frame that is not masked"]
    assert messages(split([frame(TEXT, rsv=4)]), compressed=True)[1] == []
    fragment = frame(TEXT, fin=False) + frame(CONTINUATION, rsv=4)
    assert messages(split([fragment]), compressed=True)[1] == ["a frame with reserved bits: 100"]


def test_the_rest_of_a_frame_whose_beginning_the_tape_lacks_is_no_message() -> None:
    assert messages([SplitPiece(TEXT, None, 3, b"rest")]) == ([], [])


def test_a_closure_says_its_code_and_what_that_means() -> None:
    assert str(read_closure(b"\x03\xe8")) == "1000 normal closure"
    assert str(read_closure(b"\x03\xf3out of memory")) == "1011 internal error: out of memory"
    assert str(read_closure(b"\x0f\xa1")) == "4001"
    assert read_closure(b"") == (NO_CODE, "")
    assert str(read_closure(b"\x03")) == "without a code"


def test_a_closure_that_a_program_tells_of_is_the_payload_of_a_close_frame() -> None:
    assert closure_data(4001, "enough") == b"\x0f\xa1enough"
    assert closure_data(NO_CODE, "") == b""
    assert [closure_data(code, "") for code in (None, NO_CLOSE_FRAME, -1, 1 << 16)] == [None] * 4


def test_a_whole_message_is_a_frame_as_its_side_must_send_it() -> None:
    for side in Side:
        head = whole_message_head(side, TEXT, 300)
        assert messages(split([encode_head(head) + b"x" * 300]), side)[1] == []


# Compressed messages.


def inflated(inflater: MessageInflater, *pieces: bytes) -> bytes:
    """One message in pieces."""
    last = len(pieces) - 1
    steps = [
        step for at, piece in enumerate(pieces) for step in inflater.steps(piece, last=at == last)
    ]
    assert b"".join(coded for _, coded in steps) == b"".join(pieces)
    return b"".join(plain for plain, _ in steps)


def test_the_compressed_examples_of_the_rfc_are_read() -> None:
    for takeover in (False, True):
        for hello in ("f248cdc9c90700", "000500faff48656c6c6f00", "f348cdc9c9070000"):
            coded = bytes.fromhex(hello)
            for pieces in cuttings(coded, pairs=True):
                assert inflated(MessageInflater(takeover=takeover), *pieces) == b"Hello"
    shared = MessageInflater(takeover=True)
    for hello in ("f248cdc9c90700", "f200110000"):  # the second one refers to the first
        assert inflated(shared, bytes.fromhex(hello)) == b"Hello"


def test_a_message_refers_to_those_before_even_after_a_final_block() -> None:
    shared = MessageInflater(takeover=True)
    assert inflated(shared, bytes.fromhex("f348cdc9c9070000")) == b"Hello"
    assert inflated(shared, bytes.fromhex("f200110000")) == b"Hello"


def test_no_bytes_of_a_message_become_none() -> None:
    inflater = MessageInflater(takeover=True)
    assert list(inflater.steps(b"", last=False)) == []
    assert inflated(inflater, b"", b"\0") == b""


def test_a_message_alone_refers_to_nothing() -> None:
    alone = MessageInflater(takeover=False)
    assert inflated(alone, bytes.fromhex("f248cdc9c90700")) == b"Hello"
    with pytest.raises(InflateError):
        inflated(alone, bytes.fromhex("f200110000"))


@pytest.mark.slow
@given(st.lists(st.text(max_size=60), max_size=5), st.data())
def test_compressed_messages_are_read_however_they_are_cut(
    texts: list[str], data: st.DataObject
) -> None:
    deflater, inflater = Deflater(), MessageInflater(takeover=True)
    for each in texts:
        coded = deflater.payload(each.encode())
        pieces = cut(coded, data.draw(random_cuts(len(coded))))
        assert inflated(inflater, *pieces).decode() == each


def test_a_long_message_comes_in_steps() -> None:
    data = bytes(STEP + STEP // 2)
    steps = list(MessageInflater(takeover=True).steps(Deflater().payload(data), last=True))
    assert len(steps) > 1
    assert max(len(plain) for plain, _ in steps) <= STEP
    assert b"".join(plain for plain, _ in steps) == data


def test_a_bomb_and_a_broken_message_end_the_decompression() -> None:
    bomb = Deflater().payload(bytes(MOST_INFLATED + 1))
    with pytest.raises(InflateError, match=f"more than {MOST_INFLATED} bytes"):
        list(MessageInflater(takeover=True).steps(bomb, last=True))
    with pytest.raises(InflateError):
        list(MessageInflater(takeover=True).steps(b"\xff\xff\xff", last=True))


def test_the_end_of_a_message_may_bring_the_rest_of_it() -> None:
    encoder = zlib.compressobj(0, wbits=-zlib.MAX_WBITS)  # stored: the marker is data of a block
    coded = encoder.compress(b"a\0\0\xff\xff") + encoder.flush()
    inflater = MessageInflater(takeover=False)
    found = b"".join(part for part, _ in inflater.steps(coded[:-4], last=True))
    assert found == b"a\0\0\xff\xff"


def test_stored_blocks_leave_a_message_as_it_is_and_are_referred_to() -> None:
    data = b"once upon a time" * 5000
    shared, deflater = MessageInflater(takeover=True), Deflater()
    deflater.payload(b"once upon a time")
    for plain in (b"", data):
        assert inflated(shared, stored(plain)) == plain
    assert inflated(shared, deflater.payload(b"once upon a time")) == b"once upon a time"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), None),
        ((b"foo, x-webkit-deflate-frame",), None),
        ((b"permessage-deflate",), Deflate(client_takeover=True, server_takeover=True)),
        (
            (b"foo", b"Permessage-Deflate ; server_no_context_takeover; client_max_window_bits=9"),
            Deflate(client_takeover=True, server_takeover=False),
        ),
        (
            (b"permessage-deflate;client_no_context_takeover",),
            Deflate(client_takeover=False, server_takeover=True),
        ),
    ],
)
def test_the_handshake_says_how_messages_are_compressed(
    values: tuple[bytes, ...], expected: Deflate | None
) -> None:
    assert negotiated_deflate(values) == expected
