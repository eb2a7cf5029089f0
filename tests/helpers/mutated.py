"""Exchanges to mutate and to vary, the results, and bodies under content-codings."""

import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import Exchange, Read
from deltatape.mutate import MUTATORS, SeededChoices
from deltatape.mutate._draft import MutableExchange
from deltatape.store.reader import open_tape
from deltatape.vary._base import Variation
from deltatape.vary.coded_bodies import coded
from deltatape.vary.variation import VARIATIONS
from deltatape.wire.json_edit import at, listed
from deltatape.wire.json_value import parse
from helpers.chat import FINISH, URL, calls, choice, entry, request, sse
from helpers.defects import as_recorded
from helpers.taped import taped

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings" / "dialects"
STEMS = sorted(path.stem for path in RECORDINGS.glob("*.tape"))
NEEDS = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
START = choice({"role": "assistant", "content": None})


@cache
def recorded(stem: str) -> Exchange:
    """The exchange of a recording."""
    (exchange,) = open_tape(RECORDINGS / f"{stem}.tape")
    return exchange


def chat(*chunks: object, done: bool = True, schema: object = NEEDS) -> Exchange:
    """A chat completion of `chunks`, as recorded; its request offers `get` and `put`."""
    body = sse(*chunks, done=done)
    asked = request(get=schema, put=schema)
    return as_recorded(
        Exchange.from_body(body, content_type="text/event-stream", url=URL, request=asked)
    )


def in_pieces(*pieces: str, index: int = 0, name: str = "get") -> list[dict[str, object]]:
    """The chunks of a call: it is opened, then its arguments come."""
    opened = calls(entry(index, f"c{index}", name=name, arguments=""))
    return [opened, *(calls(entry(index, arguments=piece)) for piece in pieces)]


ONE = chat(START, *in_pieces('{"a"', ':"b c"', "}"), FINISH)
"""One call in three fragments."""
TWO = chat(
    START,
    *in_pieces('{"a":', '"x"}'),
    *in_pieces('{"a":', '"y"}', index=1),
    FINISH,
)
"""Two calls of one tool, one after the other."""
WHOLE = chat(START, calls(entry(0, "c0", name="get", arguments='{"a":"x"}')), FINISH)
"""One call in one entry."""
WORDS = chat(choice({"content": "Hello"}), choice({}, "stop"))
"""No call."""
TWO_EVENTS = ((10, b"data: 1\n\n"), (20, b"data: 2\n\n"))


def changed(name: str, exchange: Exchange, seed: int = 1) -> Exchange | None:
    """`exchange` with the mutation `name`."""
    (mutator,) = (each for each in MUTATORS if each.name == name)
    return mutator.mutate(exchange, SeededChoices(seed))


def event_values(exchange: Exchange | None) -> list[object]:
    """The values of the events' data; text where it is not JSON."""
    assert exchange is not None
    return [
        event.data if (parsed := parse(event.data)).error else parsed.value
        for event in decode(exchange).events
    ]


def call_entries(exchange: Exchange | None) -> list[object]:
    """All entries of `tool_calls`, in order."""
    return [
        one
        for value in event_values(exchange)
        for choice_ in listed(value, "choices")
        for one in listed(choice_, "delta", "tool_calls")
    ]


def joined_arguments(exchange: Exchange | None) -> str:
    """All pieces of arguments of a chat completion, joined."""
    pieces = [at(one, "function", "arguments") for one in call_entries(exchange)]
    return "".join(piece for piece in pieces if isinstance(piece, str))


def of_type(exchange: Exchange | None, kind: str) -> list[object]:
    """The values of the events that say they are of this type."""
    return [value for value in event_values(exchange) if at(value, "type") == kind]


def imported(body: bytes, media: str = "text/event-stream") -> Exchange:
    """An imported body."""
    return Exchange.from_body(body, content_type=media, url=URL)


def draft_of(source: Exchange | bytes) -> MutableExchange:
    """The draft of an exchange, or of an imported body."""
    found = MutableExchange.of(imported(source) if isinstance(source, bytes) else source)
    assert found is not None
    return found


def reads(*pieces: bytes) -> tuple[Read, ...]:
    """Reads of `pieces`, a second apart."""
    return tuple(
        Read(t_ns=place * 10**9, data=piece, boundaries=(len(piece),), line=None)
        for place, piece in enumerate(pieces)
    )


def named(name: str) -> Variation:
    """The variation of this name."""
    (found,) = (each for each in VARIATIONS if each.name == name)
    return found


def varied(name: str, exchange: Exchange, seed: int = 1) -> Exchange | None:
    """`exchange` with the variation `name`."""
    return named(name).make(exchange, SeededChoices(seed))


def made(name: str, exchange: Exchange, seed: int = 1) -> Exchange:
    """The same, where it has a place."""
    found = varied(name, exchange, seed)
    assert found is not None
    return found


def pieces(exchange: Exchange) -> list[bytes]:
    """The bytes of each read."""
    return [read.data for read in exchange.reads]


def gzipped(exchange: Exchange) -> Exchange:
    """The exchange, its body under gzip, flushed at every read."""
    found = coded(exchange, ("gzip",))
    assert found is not None
    return found


def with_fields(exchange: Exchange, *fields: tuple[bytes, bytes]) -> Exchange:
    """The exchange with more fields in its request's head."""
    request = exchange.request
    return replace(exchange, request=replace(request, headers=(*request.headers, *fields)))


def broken_gzip() -> Exchange:
    """An exchange whose coded body is cut, so that it cannot be decoded."""
    headers = ((b"Content-Encoding", b"gzip"),)
    return taped([(10, gzip.compress(b"data: 1\n\n")[:-9])], headers=headers)
