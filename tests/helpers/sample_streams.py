"""Invented streams, one per dialect or variant, and the tape that a gateway would make of each.

`tests/sample_streams/NAME.yaml` holds a stream as data: the request, and the events of the
response, one a line. All of them answer the same question with the same text and two calls.

A tape is timed and cut up as on a healthy line: most pieces come in a read of their own, some
together with the one before, some cut in two, within a character where there is one to cut.
Everything is fixed, ids and times included: the same code makes the same bytes.

Source: recordings/README.md for the tape; each stream names the source of its dialect.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters
from urllib.parse import urlsplit

import yaml

from deltatape.model import websocket
from deltatape.model.exchange import EndReason, Framing, Headers, Source
from deltatape.model.websocket import FrameHead, Side
from deltatape.tape import encode
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap
from deltatape.wire.websocket import apply_mask, encode_head
from helpers import eventstream

FOLDER = Path(__file__).resolve().parent.parent / "sample_streams"
MS = 1_000_000
SSE = "text/event-stream"
TEXT = "I will look up both. 🌦"
CALLS = (
    ("get_weather", {"city": "Gent", "unit": "celsius"}),
    ("get_forecast", {"city": "São Tomé", "days": 3}),
)
"""Name and arguments of each call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleStream:
    """One exchange in a dialect."""

    upstream: str
    target: str
    credential: tuple[str, str]
    request: dict[str, object]
    pieces: Sequence[bytes]
    """The response's body as the provider writes it; each is one HTTP chunk."""
    headers: Mapping[str, str]
    """Of the response; the first one is its Content-Type."""


def json_text(value: object) -> str:
    """`value` as JSON without spaces, characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sample_stream(name: str) -> SampleStream:
    """Read `tests/sample_streams/NAME.yaml`."""
    data = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    url = urlsplit(data["url"])
    upstream = f"{url.scheme}://{url.netloc}"
    frame, events = data["frame"], data["events"].splitlines()
    return SampleStream(
        upstream=upstream,
        target=data["url"].removeprefix(upstream),
        credential=tuple(data["credential"]),
        request=json.loads(data["request"]),
        pieces=list(_FRAMES[frame](events) if frame in _FRAMES else _framed(frame, events)),
        headers=data["headers"],
    )


def _framed(template: str, events: Sequence[str]) -> Iterator[bytes]:
    """Fill in `{data}` and, where the template has it, `{type}`: the first word of the event."""
    for event in events:
        kind, data = event.split(" ", 1) if "{type}" in template else ("", event)
        yield template.replace("{type}", kind).replace("{data}", data).encode()


def _json_array(events: Sequence[str]) -> Iterator[bytes]:
    for number, event in enumerate(events):
        text = json.dumps(json.loads(event), ensure_ascii=False, indent=2)
        start = ",\r\n" if number else "["
        yield f"{start}{text}\n".encode()
    yield b"]"


def _aws_events(events: Sequence[str]) -> Iterator[bytes]:
    for number, event in enumerate(events):
        kind, _, data = event.partition(" ")
        yield _aws_message(number, kind, json.loads(data))


def _aws_chunks(events: Sequence[str]) -> Iterator[bytes]:
    for number, event in enumerate(events):
        yield _aws_message(number, "chunk", {"bytes": base64.b64encode(event.encode()).decode()})


def _aws_message(number: int, kind: str, payload: dict[str, object]) -> bytes:
    """A message of Bedrock, padded to hide the length of its text."""
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    padded = {**payload, "p": ascii_letters[: 4 + number * 11 % 37]}
    return eventstream.message(headers, json_text(padded).encode())


_FRAMES: dict[str, Callable[[Sequence[str]], Iterator[bytes]]] = {
    "json-array": _json_array,
    "aws-events": _aws_events,
    "aws-chunks": _aws_chunks,
}
"""How events are framed where no template can tell."""


def sample_tape(stream: SampleStream, number: int) -> bytes:
    """The tape of one sample stream; `number` makes its ids unique."""
    header = Header(
        id=f"01KAWT5C8000000000DA{number:06}",
        tool="deltatape 0.1.0",
        recorded_at="2026-11-22T04:30:00.000000000Z",
        source=Source.GATEWAY,
    )
    lines = [encode.header_line(header)]

    def put(_: int, line: bytes) -> None:
        lines.append(line)

    masker = Masker(b"k" * 32)
    tape, exchange = TapeTap(put, masker), ExchangeTap(1, put, masker)
    tape.note(0, "an invented stream, made by scripts/tape-dialects")
    tape.client(1 * MS, connection=1, state=ClientState.OPENED)
    _record_request(exchange, stream, number)
    content_type, *others = stream.headers.items()
    exchange.response(
        268_334_000,
        status=200,
        reason=b"OK",
        http="1.1",
        framing=Framing.CHUNKED,
        headers=_encoded(content_type, ("Transfer-Encoding", "chunked"), *others),
    )
    end_ns = 0
    for t_ns, data, ends in reads(stream.pieces):
        exchange.read(t_ns, data, ends)
        end_ns = t_ns + 61_007
    exchange.end(end_ns, EndReason.COMPLETE)
    tape.client(end_ns + 2 * MS, connection=1, state=ClientState.CLOSED)
    tape.stop(end_ns + 9 * MS, "interrupted", None)
    return b"".join(lines)


def sample_socket_tape(name: str, number: int) -> bytes:
    """The tape of `tests/sample_streams/NAME.yaml` where that is a WebSocket, a frame a message."""
    data = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    url = urlsplit(data["url"])
    upstream = f"{url.scheme}://{url.netloc}"
    lines = [
        encode.header_line(
            Header(
                id=f"01KAWT5C8000000000DA{number:06}",
                tool="deltatape 0.1.0",
                recorded_at="2026-11-22T04:30:00.000000000Z",
                source=Source.GATEWAY,
            )
        )
    ]

    def put(_: int, line: bytes) -> None:
        lines.append(line)

    masker = Masker(b"k" * 32)
    tape, exchange = TapeTap(put, masker), ExchangeTap(1, put, masker)
    tape.note(0, "an invented session, made by scripts/tape-dialects")
    tape.client(1 * MS, connection=1, state=ClientState.OPENED)
    upgrade = (("Upgrade", "websocket"), ("Connection", "Upgrade"))
    exchange.request(
        1_310_000,
        id=f"01KAWT5C9000000000DE{number:06}",
        method="GET",
        target=data["url"].removeprefix(upstream).encode(),
        upstream=upstream,
        http="1.1",
        headers=_encoded(("Host", url.netloc), *upgrade, tuple(data["credential"])),
    )
    exchange.request_end(1_325_000)
    exchange.sent(39_020_000, connect_ns=14_400_000, tls_ns=22_100_000, reused=False)
    exchange.response(
        268_334_000,
        status=101,
        reason=b"Switching Protocols",
        http="1.1",
        framing=Framing.NONE,
        headers=_encoded(*upgrade),
    )
    t_ns = 310_222_000
    for place, line in enumerate(data["messages"].splitlines()):
        sender, _, text = line.partition(" ")
        t_ns += (11 + place * 7 % 23) * MS + place * 1_013
        side, key = (Side.CLIENT, b"fake") if sender == ">" else (Side.SERVER, b"")
        payload = text.encode()
        head = encode_head(FrameHead(websocket.TEXT, len(payload), mask=key))
        exchange.frames(t_ns, side, head + apply_mask(payload, key))
    for side, key in ((Side.CLIENT, b"fake"), (Side.SERVER, b"")):
        t_ns += 3 * MS
        payload = (1000).to_bytes(2, "big")
        head = encode_head(FrameHead(websocket.CLOSE, len(payload), mask=key))
        exchange.frames(t_ns, side, head + apply_mask(payload, key))
    exchange.end(t_ns + 61_007, EndReason.COMPLETE)
    tape.client(t_ns + 2 * MS, connection=1, state=ClientState.CLOSED)
    tape.stop(t_ns + 9 * MS, "interrupted", None)
    return b"".join(lines)


def _record_request(exchange: ExchangeTap, stream: SampleStream, number: int) -> None:
    body = json_text(stream.request).encode()
    exchange.request(
        1_310_000,
        id=f"01KAWT5C9000000000DE{number:06}",
        method="POST",
        target=stream.target.encode(),
        upstream=stream.upstream,
        http="1.1",
        headers=_encoded(
            ("Host", stream.upstream.partition("://")[2]),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            stream.credential,
        ),
    )
    exchange.request_body(1_322_000, body)
    exchange.request_end(1_325_000)
    exchange.sent(39_020_000, connect_ns=14_400_000, tls_ns=22_100_000, reused=False)


def _encoded(*headers: tuple[str, str]) -> Headers:
    return tuple((name.encode(), value.encode()) for name, value in headers)


def reads(pieces: Sequence[bytes]) -> list[tuple[int, bytes, tuple[int, ...]]]:
    """Time, bytes and ends of HTTP chunks of each read in which `pieces` came."""
    found: list[tuple[int, bytes, tuple[int, ...]]] = []
    t_ns = 310_222_000
    for number, piece in enumerate(pieces):
        t_ns += (11 + number * 7 % 23) * MS + number * 1_013
        if number % 5 == 4:
            before_ns, data, ends = found.pop()
            data += piece
            found.append((before_ns, data, (*ends, len(data))))
            continue
        if number % 3 != 1:
            found.append((t_ns, piece, (len(piece),)))
            continue
        # Cut within the first character beyond ASCII, else after two thirds.
        at = next((at + 1 for at, byte in enumerate(piece) if byte >= 0xC3), len(piece) * 2 // 3)
        at = min(at, len(piece) - 1)
        found += [(t_ns, piece[:at], ()), (t_ns + 402_311, piece[at:], (len(piece) - at,))]
    return found
