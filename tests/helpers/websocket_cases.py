"""The WebSockets of the conformance table: what a client and a provider send each other on one.

In the order of the RFC, as other test suites of WebSockets have it: payloads, pings, reserved bits
and opcodes, fragments, UTF-8, closing, size, compression; then handshakes, reads and cuts.
"""

from collections.abc import Iterator
from typing import NamedTuple

from deltatape.model.websocket import BINARY, CLOSE, CONTINUATION, PING, TEXT, Side
from helpers.conformance import Came, Case, Do, Step
from helpers.websocket import (
    DEFLATE,
    HANDSHAKE,
    KEY,
    SWITCHED,
    Deflater,
    close,
    frame,
    ping,
    pong,
    text,
)

_ASK = (HANDSHAKE % (b"/v1/realtime", b"")).replace(b"127.0.0.1", b"HOST")
_OFFER = (HANDSHAKE % (b"/v1/realtime", DEFLATE)).replace(b"127.0.0.1", b"HOST")
_AGREED = SWITCHED % b""
_COMPRESSED = SWITCHED % DEFLATE
_END = b"\r\n\r\n"
_AWAITED = 64
"""How much of the end of what was sent is awaited."""
_MB = 1 << 20
CLIENT, SERVER = Side.CLIENT, Side.SERVER


class Does(NamedTuple):
    """What a side does next, once the other one has got all before."""

    side: Side
    step: Step


def socket(
    name: str, *does: Does, ask: bytes = _ASK, agreed: bytes = _AGREED, replay: str = ""
) -> Case:
    """A WebSocket on which one thing follows another."""
    steps: dict[Side, list[Step]] = {CLIENT: [ask, Came(_END)], SERVER: [Came(_END), agreed]}
    for side, step in does:
        steps[side].append(step)
        other = steps[SERVER if side is CLIENT else CLIENT]
        if isinstance(step, bytes):
            other.append(Came(step[-_AWAITED:]))
        elif step is Do.FIN and side is CLIENT:
            other.append(Do.GONE)
    return Case(
        name=name, client=tuple(steps[CLIENT]), upstream=tuple(steps[SERVER]), replay=replay
    )


def says(*sent: bytes) -> tuple[Does, ...]:
    """What the provider sends."""
    return tuple(Does(SERVER, each) for each in sent)


def asks(*sent: bytes) -> tuple[Does, ...]:
    """What the client sends."""
    return tuple(Does(CLIENT, each) for each in sent)


_BYE = (*asks(close(mask=KEY)), *says(close()))


_PINGS = "answers pings"
"""Why a replay differs where a provider leaves a ping unanswered."""
_OFFERED = "without compression for this client"


def both(name: str, *frames: tuple[int, bytes, bool, int], replay: str = "") -> Iterator[Case]:
    """Frames, by opcode, payload, FIN and reserved bits, up and down."""
    up = b"".join(frame(op, data, fin=fin, rsv=rsv, mask=KEY) for op, data, fin, rsv in frames)
    down = b"".join(frame(op, data, fin=fin, rsv=rsv) for op, data, fin, rsv in frames)
    yield socket(f"{name} / up", *asks(up), *says(text("answer")), *_BYE, replay=replay)
    yield socket(f"{name} / down", *asks(text("question", mask=KEY)), *says(down), *_BYE)


def _whole(opcode: int, data: bytes = b"", rsv: int = 0) -> tuple[int, bytes, bool, int]:
    return opcode, data, True, rsv


def _begins(opcode: int, data: bytes, rsv: int = 0) -> tuple[int, bytes, bool, int]:
    return opcode, data, False, rsv


def _payloads() -> Iterator[Case]:
    for size in (0, 1, 125, 126, 127, 65_535, 65_536):
        end = b"end"[:size]  # so that all of it is awaited
        yield from both(f"text of {size} bytes", _whole(TEXT, b"x" * (size - len(end)) + end))
        data = b"\xfe" * (size - len(end)) + end
        yield from both(f"binary of {size} bytes", _whole(BINARY, data))
    yield from both("binary of every byte", _whole(BINARY, bytes(range(256))))
    yield from both("text of 1 MB", _whole(TEXT, b"{x}\n" * (_MB // 4) + b"end"))
    yield from both("binary of 1 MB", _whole(BINARY, bytes(range(256)) * (_MB // 256) + b"end"))
    parts = [_begins(CONTINUATION, b"x" * 65_536)] * 15
    yield from both(
        "1 MB in 16 fragments", _begins(TEXT, b"x" * 65_536), *parts, _whole(CONTINUATION, b"x")
    )
    yield socket(
        "length in more bytes than it needs",
        *asks(frame(TEXT, b"x", wide=8, mask=KEY)),
        *says(frame(TEXT, b"y" * 200, wide=8)),
        *_BYE,
    )


def _controls() -> Iterator[Case]:
    for name, data in (("", b""), (" of 125 bytes", b"\xff" * 125)):
        yield socket(f"ping{name} / up", *asks(ping(data, mask=KEY)), *says(pong(data)), *_BYE)
        yield socket(f"ping{name} / down", *says(ping(data)), *asks(pong(data, mask=KEY)), *_BYE)
    many = [b"%d" % number for number in range(10)]
    yield socket(
        "ten pings",
        *asks(b"".join(ping(each, mask=KEY) for each in many)),
        *says(b"".join(map(pong, many))),
        *_BYE,
    )
    yield socket("unasked pong / up", *asks(pong(b"x", mask=KEY)), *says(text("answer")), *_BYE)
    long, last = _whole(PING, b"x" * 126), _whole(TEXT, b"z")
    yield from both("ping of 126 bytes", long, last, replay=_PINGS)
    torn = _begins(PING, b"x"), _whole(CONTINUATION, b"y")
    yield from both("ping in fragments", *torn, last, replay=_PINGS)


def _reserved() -> Iterator[Case]:
    for rsv in (1, 2, 4, 7):
        yield from both(f"reserved bits {rsv:03b}", _whole(TEXT, b"x", rsv))
    for opcode in (3, 7, 11, 15):
        yield from both(f"opcode {opcode}", _whole(opcode, b"x"), _whole(TEXT, b"y"))


def _fragments() -> Iterator[Case]:
    first, last = _begins(TEXT, b"one "), _whole(CONTINUATION, b"two")
    yield from both("two fragments", first, last)
    yield from both("empty fragments", _begins(TEXT, b""), _begins(CONTINUATION, b""), last)
    one, two = frame(TEXT, b"one ", fin=False), frame(CONTINUATION, b"two")
    yield socket("a ping between fragments / down", *says(one + ping(b"?") + two), *_BYE)
    one, two = (frame(TEXT, b"one ", fin=False, mask=KEY), frame(CONTINUATION, b"two", mask=KEY))
    asked = asks(one + ping(b"?", mask=KEY) + two)
    yield socket("a ping between fragments / up", *asked, *says(pong(b"?"), text("x")), *_BYE)
    yield from both("a message in fragments of a byte", *_bytewise(b"bytes"))
    yield from both("a continuation of nothing", last, _whole(TEXT, b"x"))
    yield from both("a message within another", first, _whole(TEXT, b"x"), last)
    yield socket(
        "fragments that come late",
        *(Does(SERVER, step) for step in (frame(TEXT, b"one ", fin=False), Do.SEEN)),
        *says(ping(b"?")),
        *asks(pong(b"?", mask=KEY)),
        *says(frame(CONTINUATION, b"two")),
        *_BYE,
    )


def _bytewise(data: bytes) -> Iterator[tuple[int, bytes, bool, int]]:
    for at in range(len(data)):
        yield CONTINUATION if at else TEXT, data[at : at + 1], at == len(data) - 1, 0


def _utf8() -> Iterator[Case]:
    letters = "Grüße 😀".encode()
    yield from both("UTF-8", _whole(TEXT, letters))
    yield from both(
        "a character in two fragments",
        _begins(TEXT, letters[:3]),
        _whole(CONTINUATION, letters[3:]),
    )
    yield from both("a text that is not UTF-8", _whole(TEXT, b"\xce\xba\xe1\xed\xa0\x80"))


def _closing() -> Iterator[Case]:
    for name, code, reason in (
        ("without a code", None, ""),
        ("1000", 1000, ""),
        ("1001 with a reason", 1001, "going home"),
        ("4999 with the longest reason", 4999, "x" * 123),
        ("the forbidden 1005", 1005, ""),
        ("the unknown 2999", 2999, ""),
    ):
        up, down = close(code, reason, mask=KEY), close(code, reason)
        talk = (*asks(text("question", mask=KEY)), *says(text("answer")))
        yield socket(f"close {name} / up", *talk, *asks(up), *says(down), Does(SERVER, Do.FIN))
        yield socket(f"close {name} / down", *talk, *says(down), *asks(up), Does(SERVER, Do.FIN))
    yield socket("close with one byte", *asks(frame(CLOSE, b"\x03", mask=KEY)), *says(close(1002)))
    yield socket(
        "close answered with another code", *asks(close(mask=KEY)), *says(close(1011, "x"))
    )
    yield socket(
        "a message after the close frame",
        *says(close() + text("late")),
        *asks(close(mask=KEY) + text("late", mask=KEY)),
        Does(SERVER, Do.FIN),
    )


def _deflated() -> Iterator[Case]:
    def compressed(name: str, *does: Does) -> Case:
        return socket(name, *does, *_BYE, ask=_OFFER, agreed=_COMPRESSED)

    letters = b'{"type":"response.create"} ' * 20
    up, down = Deflater(), Deflater()
    yield compressed(
        "compressed", *asks(up.frame(letters, mask=KEY)), *says(down.frame(letters[::-1]))
    )
    up, down = Deflater(), Deflater()
    thrice = range(3)
    yield compressed(
        "compressed, with reference to earlier messages",
        *(
            does
            for _ in thrice
            for does in (*asks(up.frame(letters, mask=KEY)), *says(down.frame(letters)))
        ),
    )
    coded = Deflater().payload(letters)
    yield compressed(
        "compressed, in fragments with a ping between",
        *asks(
            frame(TEXT, coded[:9], fin=False, rsv=4, mask=KEY)
            + ping(mask=KEY)
            + frame(CONTINUATION, coded[9:], mask=KEY)
        ),
        *says(pong()),
        *says(frame(TEXT, coded[:9], fin=False, rsv=4) + frame(CONTINUATION, coded[9:])),
    )
    yield compressed(
        "compressed and not, on one connection",
        *asks(Deflater().frame(letters, mask=KEY) + text("plain", mask=KEY)),
        *says(Deflater().frame(letters) + text("plain")),
    )
    yield compressed(
        "compressed to 1 MB",
        *asks(Deflater().frame(bytes(_MB) + b"end", opcode=BINARY, mask=KEY)),
        *says(Deflater().frame(bytes(_MB) + b"end", opcode=BINARY)),
    )
    yield compressed(
        "not DEFLATE", *asks(frame(TEXT, b"\xff\xff\xff", rsv=4, mask=KEY)), *says(text("answer"))
    )


def _handshakes() -> Iterator[Case]:
    yield socket("refused, 426", ask=_ASK, agreed=_refusal(b"426 Upgrade Required"))
    yield socket("refused, 401", ask=_ASK, agreed=_refusal(b"401 Unauthorized"))
    yield socket("answered with 200", ask=_ASK, agreed=_refusal(b"200 OK"))
    talk = (*asks(text("question", mask=KEY)), *says(text("answer")), *_BYE)
    wrong = _AGREED.replace(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", b"AAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    yield socket("wrong Sec-WebSocket-Accept", *talk, agreed=wrong)
    bare = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    yield socket("no Sec-WebSocket-Accept", *talk, agreed=bare)
    fields = b"Sec-WebSocket-Protocol: realtime, other\r\n"
    named = (HANDSHAKE % (b"/v1/realtime", fields)).replace(b"127.0.0.1", b"HOST")
    chosen = SWITCHED % b"Sec-WebSocket-Protocol: realtime\r\n"
    yield socket("subprotocol", *talk, ask=named, agreed=chosen)
    unasked = "compression that was not asked for"
    yield socket(unasked, *talk, agreed=_COMPRESSED, replay=_OFFERED)


def _refusal(status: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: 2\r\n\r\nno" % status


def _reads_and_cuts() -> Iterator[Case]:
    question, answer = text("question", mask=KEY), text("answer")
    yield socket(
        "frames behind the handshake", *asks(question), *says(answer), agreed=_AGREED + text("hi")
    )
    yield socket(
        "frames before the handshake is answered", *says(answer), *_BYE, ask=_ASK + question
    )
    slow = [Does(SERVER, step) for byte in answer for step in (bytes([byte]), Do.SEEN)]
    yield socket("byte by byte", *asks(question), *slow, Does(CLIENT, Came(answer)), *_BYE)
    for end in (Do.FIN, Do.RST):
        how = end.name
        yield socket(f"{how} after a message", *asks(question), *says(answer), Does(SERVER, end))
        yield socket(f"{how} in mid-frame", *asks(question), *says(answer[:-2]), Does(SERVER, end))
        yield socket(f"{how} in a head", *asks(question), *says(answer[:1]), Does(SERVER, end))
        yield socket(
            f"{how} between fragments",
            *asks(question),
            *says(frame(TEXT, b"one ", fin=False)),
            Does(SERVER, end),
        )
    yield socket(
        "the client ends in mid-frame",
        *asks(question),
        *says(answer),
        *asks(question[:-2]),
        Does(CLIENT, Do.FIN),
        Does(SERVER, Do.FIN),
    )
    impossible = b"\x81\x7f" + b"\xff" * 8 + b"what follows is no frame"
    yield socket("an impossible length", *asks(question), *says(impossible), Does(SERVER, Do.FIN))


SOCKETS = (
    *_payloads(),
    *_controls(),
    *_reserved(),
    *_fragments(),
    *_utf8(),
    *_closing(),
    *_deflated(),
    *_handshakes(),
    *_reads_and_cuts(),
)
