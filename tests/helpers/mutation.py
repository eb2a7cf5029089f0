"""Randomly damaged bodies: their bytes, or the values of the JSON inside."""

import json
import random
from collections.abc import Callable, Iterator, Sequence

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Event, Format
from deltatape.wire.json_value import parse
from helpers.eventstream import message

DEEP = 600
LONG = 5_000
HOSTILE: tuple[object, ...] = (
    *(None, True, 0, -1, 1.5, 10**30, "", "x", "null", "{}", '{"a":', "\ud83d", "\0", "0"),
    *([], {}, [[]], [None], [{}], {"": None}, {"type": []}, {"error": {}}, {"error": "x"}),
    {"index": -1, "id": 5, "name": [], "arguments": {}, "function": "f", "delta": 3},
    "[" * DEEP,
    "$" + ".a" * DEEP,
    "x" * LONG,
)
"""Values of unexpected types."""


def spoilt_bytes(body: bytes, chance: random.Random) -> bytes:
    """`body` with a few bytes changed, dropped, doubled, moved, or cut off."""
    data = bytearray(body)
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.choices(range(len(data) + 1), k=2))
        to = min(to, at + 40)
        change = chance.randrange(6)
        if change == 0:
            data[at:to] = chance.randbytes(to - at)
        elif change == 1:
            del data[at:to]
        elif change == 2:
            data[at:at] = data[at:to]
        elif change == 3:
            data += data[at:to]
        elif change == 4:
            data[at:at] = chance.choice(
                [b'"', b"{", b"]", b"\n", b"\r", b"\xff", b"\0", b"[" * LONG]
            )
        else:
            del data[max(at, len(data) // 2) :]
    return bytes(data)


def spoilt_values(exchange: Exchange, chance: random.Random) -> bytes:
    """The body of `exchange`, framed as before, with hostile values in the JSON of its events."""
    stream = decode(exchange)
    events = [*stream.events]
    for _ in range(chance.randint(1, 3)):
        if events:
            at = chance.randrange(len(events))
            change = chance.choice([_drop, _double, _swap, _spoil, _spoil, _spoil])
            change(events, at, chance)
    return b"".join(_framed(stream.format, events))


Change = Callable[[list[Event], int, random.Random], None]


def _drop(events: list[Event], at: int, _: random.Random) -> None:
    del events[at]


def _double(events: list[Event], at: int, _: random.Random) -> None:
    events.insert(at, events[at])


def _swap(events: list[Event], at: int, chance: random.Random) -> None:
    other = chance.randrange(len(events))
    events[at], events[other] = events[other], events[at]


def _spoil(events: list[Event], at: int, chance: random.Random) -> None:
    event = events[at]
    parsed = parse(event.data)
    value = parsed.value if parsed.error is None else event.data
    hostile = json.dumps(_with(value, chance))
    kind = chance.choice([event.type] * 5 + ["", "error", "message"])
    events[at] = event._replace(type=kind, data=hostile, id="", retry=None, exception=False)


def _with(value: object, chance: random.Random) -> object:
    """`value` with a hostile one at a random place in it."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice([*value])
        return {**value, key: _with(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], _with(value[at], chance), *value[at + 1 :]]
    return chance.choice(HOSTILE)


def _framed(form: Format, events: Sequence[Event]) -> Iterator[bytes]:
    if form is Format.SSE:
        for event in events:
            name = b"" if event.type == "message" else b"event: %b\n" % event.type.encode()
            yield name + b"data: %b\n\n" % event.data.replace("\n", "\ndata: ").encode()
    elif form is Format.EVENTSTREAM:
        for event in events:
            kind = "exception" if event.exception else "event"
            yield message({":message-type": kind, f":{kind}-type": event.type}, event.data.encode())
    elif form is Format.JSON_ARRAY:
        yield b"[" + b",\r\n".join(event.data.encode() for event in events) + b"]"
    else:
        yield b"".join(event.data.encode() + b"\n" for event in events)
