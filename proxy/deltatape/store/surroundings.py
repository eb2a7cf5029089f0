"""Reads an exchange of a large tape with its surroundings, and not the rest of the tape.

Explaining an exchange takes its conversation, and what happened meanwhile. Both are near it:
conversations are minutes long, tapes may be days. A tape has no index, which could be stale; its
bytes are searched, which is fast, and lines are parsed only where they are needed.

Strategy, three passes:
1. from the beginning to the end of the exchange, for its lines;
2. over the part of the tape around it, for what only exchanges of its conversation have: what the
   user said first and last, ids of calls, of the reply and of the stored one before it;
3. over the same part, for the lines of these exchanges and of the neighbours.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate, chain
from operator import attrgetter

from deltatape.diagnose.rebuild import analyse
from deltatape.model.app_names import AppNames
from deltatape.model.exchange import Exchange
from deltatape.model.tape_summary import TapeContext
from deltatape.store.reader import (
    FoundExchange,
    Place,
    Tape,
    changes_of,
    entries_of,
    line_blocks,
)
from deltatape.tape.assemble import Assembler
from deltatape.tape.record import ReadRecord, Record

LARGE = 16 << 20
"""Bytes of a tape that is read as a whole in a few seconds."""
_REACH = 16 << 20
"""Bytes before and after the exchange in which its conversation is looked for."""
_NEIGHBOURS = 64
"""Exchanges before and after it that are read in any case."""
_ALIKE = 32
"""Exchanges before and after it that are read because they have a certain text."""
_TOGETHER = 8 << 20
"""Bytes of all bodies that are read."""
_SHORTEST = 8
"""Characters of a text that few others have."""
_LONGEST = 80
_PLAIN = re.compile(r"[\w .,:;?!()-]+")
"""Characters that JSON encoders never escape, except those outside ASCII."""
_NUMBER = re.compile(rb"\[[0-9]+,([0-9]{1,19}),")

_Numbered = tuple[int, Record | ReadRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """An exchange with its neighbours and its conversation, in the order of their numbers."""

    exchanges: tuple[Exchange, ...]
    context: TapeContext
    """What else the tape contains at that time."""


def is_large(tape: Tape) -> bool:
    """Check whether reading all of a tape takes long."""
    return tape.size > LARGE


def surroundings(tape: Tape, number: int, app: AppNames) -> Surroundings:
    """Read the exchange `number` and what surrounds it.

    Args:
        tape: the tape that it is on.
        number: the number of the exchange.
        app: what the application calls the events of its own endpoint.

    Raises:
        UsageError: the tape has no such exchange.
        TapeFormatError: the tape is damaged at one of the lines that are read.
    """
    found = tape.find(number)
    alike = _alike(tape, found, _marks(found.exchange, app))
    wanted = {0, *alike, *range(max(1, number - _NEIGHBOURS), number + _NEIGHBOURS + 1)} - {number}
    own: list[_Numbered] = []
    assembler = Assembler(
        tape=tape.path, header=tape.header, stopped_ns=tape.stopped_ns, watch=tape.watch
    )
    read: list[Exchange] = []
    for place, data in _around(tape, found):
        records = [*tape.records_in(wanted, place, data)]
        own += [each for each in records if each[1][1] == 0]
        read += assembler.feed(records)
    # Without its beginning an exchange would look like one whose first records were lost.
    others = [each for each in chain(read, assembler.unfinished()) if each.request.line]
    others.sort(key=lambda each: (each.number not in alike, abs(each.number - number)))
    few = sum(size <= _TOGETHER for size in accumulate(map(_size, others)))
    return Surroundings(
        exchanges=tuple(sorted([found.exchange, *others[:few]], key=lambda each: each.number)),
        context=TapeContext(logs=tuple(entries_of(own)), clients=tuple(changes_of(own))),
    )


def _size(exchange: Exchange) -> int:
    return len(exchange.request.body) + sum(len(read.data) for read in exchange.reads)


def _around(tape: Tape, found: FoundExchange) -> Iterator[tuple[Place, bytes]]:
    """Yield the lines that begin near an exchange, in blocks.

    Which those are does not depend on the blocks: a sealed tape has others than its journal.
    """
    exchange, places = found.exchange, found.places
    lines = [exchange.request.line, *(read.line for read in exchange.reads[-1:])]
    known = [line for line in (*lines, exchange.end and exchange.end.line) if line]
    low, high = places[found.start].at, places[found.end].at
    if known:
        low, high = _at(tape, places, min(known)), _at(tape, places, max(known))
    low, high = low - _REACH, high + _REACH
    first = max(0, bisect_right(places, low, key=attrgetter("at")) - 1)
    for (at, line), data in line_blocks(tape, places[first]):
        if at > high:
            return
        begin = data.find(b"\n", low - at - 1) + 1 or len(data) if at < low else 0
        end = data.find(b"\n", high - at) + 1 or len(data)
        if begin < end:
            yield Place(at + begin, line + data.count(b"\n", 0, begin)), data[begin:end]


def _at(tape: Tape, places: Sequence[Place], line: int) -> int:
    """Return at which byte a line of the tape begins."""
    near = places[bisect_right(places, line, key=attrgetter("line")) - 1]
    for (at, first), data in line_blocks(tape, near):
        if line < first + data.count(b"\n"):
            return at + sum(map(len, BytesIO(data).readlines()[: line - first]))
    return near.at


def _marks(exchange: Exchange, app: AppNames) -> frozenset[bytes]:
    """Return what other exchanges of the conversation have on the tape, and few others."""
    analysis = analyse(exchange, app)
    asked, reply = analysis.request, analysis.reply
    texts: tuple[Sequence[str | None], ...] = (
        [message.text for message in asked.history if message.role == "user"],
        [call.id for message in asked.history for call in message.calls],
        [message.call_id for message in asked.history],
        [call.id for call in reply.tool_calls],
        [reply.id, asked.previous],
    )
    ends = {text for each in texts for text in (*each[:1], *each[-1:]) if text}
    return frozenset(mark for text in ends for mark in _spellings(text))


def _spellings(text: str) -> Iterator[bytes]:
    """Yield the spellings that the longest plain part of a text can have on the tape."""
    plain = max(_PLAIN.findall(text), key=len, default="")[:_LONGEST]
    if len(plain) >= _SHORTEST:
        yield plain.encode()
        yield json.dumps(plain)[1:-1].replace("\\", "\\\\").encode()


def _alike(tape: Tape, found: FoundExchange, marks: frozenset[bytes]) -> frozenset[int]:
    """Return the exchanges nearest to the found one that have one of `marks`."""
    number = found.exchange.number
    having: dict[bytes, set[int]] = {mark: set() for mark in marks}
    for _, data in _around(tape, found):
        for mark, numbers in having.items():
            at = data.find(mark)
            while at >= 0:
                line = _NUMBER.match(data, data.rfind(b"\n", 0, at) + 1)
                numbers.add(int(line[1]) if line else 0)
                end = data.find(b"\n", at)
                at = data.find(mark, end) if end >= 0 else -1
    nearest: set[int] = set()
    for numbers in having.values():
        nearest.update(sorted(other for other in numbers if other < number)[-_ALIKE:])
        nearest.update(sorted(other for other in numbers if other > number)[:_ALIKE])
    return frozenset(nearest)
