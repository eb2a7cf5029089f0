"""Invented streams, one per dialect, and the tape that a gateway would have made of each.

A stream is a list of pieces: what the provider sends with one write, as one HTTP chunk. Of those a
tape is made that a healthy line could have given: most pieces come in a read of their own, some
together with the one before, some cut in two, within a character where there is one to cut.
Everything is fixed, ids and times included: the same code makes the same bytes.

Source: recordings/README.md for the tape; what the dialects send is told where they are.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deltatape.model.exchange import EndReason, Framing, Headers, Source
from deltatape.tape import encode
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap

MS = 1_000_000
SSE = "text/event-stream"
QUESTION = "What is the weather in Gent now, and in São Tomé over the next three days?"
TEXT = ("I will ", "look up ", "both. 🌦")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the model may call, and its call: `pieces` are the arguments as they stream."""

    name: str
    description: str
    properties: dict[str, dict[str, str]]
    pieces: tuple[str, ...]

    @property
    def schema(self) -> dict[str, object]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.properties),
        }

    @property
    def arguments(self) -> str:
        """The arguments of the call, as text."""
        return "".join(self.pieces)

    @property
    def value(self) -> object:
        """The arguments of the call, parsed."""
        return json.loads(self.arguments)


STRING = {"type": "string"}
WEATHER = Tool(
    name="get_weather",
    description="The weather in a city right now.",
    properties={"city": STRING, "unit": STRING},
    pieces=('{"', "city", '":"', "Gent", '","unit', '":"cel', 'sius"}'),
)
FORECAST = Tool(
    name="get_forecast",
    description="The weather in a city over the next days.",
    properties={"city": STRING, "days": {"type": "integer"}},
    pieces=('{"city', '":"São', " To", 'mé","', 'days":', "3}"),
)
TOOLS = (WEATHER, FORECAST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One exchange in a dialect.

    Args:
        name: of the dialect or its variant, and of the tape.
        request: the body, a JSON object.
        pieces: the response's body, as the provider writes it.
    """

    name: str
    upstream: str
    target: str
    request: dict[str, object]
    pieces: Sequence[bytes]
    content_type: str = SSE
    headers: tuple[tuple[str, str], ...] = ()
    credential: tuple[str, str] = ("Authorization", "Bearer fake-000000")


def text_of(value: object) -> str:
    """`value` as JSON without spaces, characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sse(value: object, event: str = "") -> bytes:
    """A server-sent event with `value` as its data; no event line where `event` is empty."""
    line = f"event: {event}\n" if event else ""
    return f"{line}data: {text_of(value)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def tape_of(spoken: Spoken, number: int) -> bytes:
    """The whole tape; `number` makes its ids its own."""
    lines = [encode.header_line(_header(number))]

    def put(_: int, line: bytes) -> None:
        lines.append(line)

    masker = Masker(b"k" * 32)
    tape, exchange = TapeTap(put, masker), ExchangeTap(1, put, masker)
    tape.note(0, "an invented stream, made by scripts/tape-dialects")
    tape.client(1 * MS, connection=1, state=ClientState.OPENED)
    _ask(exchange, spoken, number)
    end_ns = 0
    for t_ns, data, ends in reads(spoken.pieces):
        exchange.read(t_ns, data, ends)
        end_ns = t_ns + 61_007
    exchange.end(end_ns, EndReason.COMPLETE)
    tape.client(end_ns + 2 * MS, connection=1, state=ClientState.CLOSED)
    tape.stop(end_ns + 9 * MS, "interrupted", None)
    return b"".join(lines)


def _header(number: int) -> Header:
    return Header(
        id=f"01KAWT5C8000000000DA{number:06}",
        tool="deltatape 0.1.0",
        recorded_at="2026-11-22T04:30:00.000000000Z",
        source=Source.GATEWAY,
    )


def _ask(exchange: ExchangeTap, spoken: Spoken, number: int) -> None:
    body = text_of(spoken.request).encode()
    exchange.request(
        1_310_000,
        id=f"01KAWT5C9000000000DE{number:06}",
        method="POST",
        target=spoken.target.encode(),
        upstream=spoken.upstream,
        http="1.1",
        headers=_encoded(
            ("Host", spoken.upstream.partition("://")[2]),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            spoken.credential,
        ),
    )
    exchange.request_body(1_322_000, body)
    exchange.request_end(1_325_000)
    exchange.sent(39_020_000, connect_ns=14_400_000, tls_ns=22_100_000, reused=False)
    exchange.response(
        268_334_000,
        status=200,
        reason=b"OK",
        http="1.1",
        framing=Framing.CHUNKED,
        headers=_encoded(
            ("Content-Type", spoken.content_type),
            ("Transfer-Encoding", "chunked"),
            *spoken.headers,
        ),
    )


def _encoded(*fields: tuple[str, str]) -> Headers:
    return tuple((name.encode(), value.encode()) for name, value in fields)


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
        at_ns = t_ns
        for part in _halves(piece) if number % 3 == 1 else (piece,):
            found.append((at_ns, part, (len(part),)))
            at_ns += 402_311
        if number % 3 == 1:
            found[-2] = (*found[-2][:2], ())
    return found


def _halves(piece: bytes) -> Iterator[bytes]:
    """`piece` cut within its first character beyond ASCII, else after two thirds."""
    at = next((at + 1 for at, byte in enumerate(piece) if byte >= 0xC3), len(piece) * 2 // 3)
    at = min(at, len(piece) - 1)
    yield piece[:at]
    yield piece[at:]
