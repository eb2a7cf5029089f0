"""Conversations to make tapes of: those of recordings, and of the corpus where it is.

A conversation is held as lines of a tape, cut at the places where copies differ: a number replaces
the first letters of the user's text, so that no copy continues another; the ids of requests,
responses and calls get new ends, so that no two copies share one; hashes of bodies change
accordingly. Lengths stay the same, so that Content-Length, spans and boundaries of chunks stay
valid. A conversation that cannot be changed in this way is left out.
"""

import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpus import BY_EVENT, CORPUS, CorpusCase, corpus_cases
from generated import ROOT

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Source
from deltatape.tape.assemble import assemble
from deltatape.tape.decode import decode_lines, decode_record
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap

CAPTURED, HEALTHY, DEFECTIVE = "captured", "healthy", "defective"
"""Kinds of conversations: streams of the corpus; recordings in order; recordings of defects."""

MOST = 200_000
"""Bytes of the tapes that are taken."""
_MS = 1_000_000
_FIRST_NS, _APART_NS, _BETWEEN_NS = 400 * _MS, 20 * _MS, 2_000 * _MS
"""Times for streams of the corpus: to the response, between events, between requests."""
_RECORD = re.compile(rb'\[([0-9]+),([0-9]+),("([a-z-]+)".*)', re.DOTALL)
_SAID = re.compile(r"[A-Za-z][A-Za-z0-9 ,.']{8,31}")
"""A piece of the user's text that escaping never changes, so that it is on the tape unaltered."""
_IDS = re.compile(rb'\\"(?:[a-z_]+_)?[iI]d\\": ?\\"([A-Za-z0-9_-]{12,120})\\"')
_EXCHANGE_ID = re.compile(rb'"request",\{"id":"([0-9A-Z]{26})"')
_HASH = re.compile(rb'"end",.*"sha256":"([0-9a-f]{64})"')
_LEFT_OUT = frozenset({b"client", b"log", b"stop", b"parsed"})
"""Records of the tape, and what a recorder found, which is of the ids that are replaced."""
_REQUEST, _BODY, _READ, _END = b"request", b"request-body", b"read", b"end"
_FRAME, _BASE64 = b"frame", b'{"b64":'
_DIGITS, _ENDING = 9, 8
"""Characters that differ between copies: of what the user says, and of an id."""
_VARIED = 4
"""Different characters in the end of an id that nobody counted up."""

Pieces = Sequence[bytes]
"""A text, cut at the places where copies differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record: its time, its exchange (from 1), and the rest of its line."""

    t_ns: int
    exchange: int
    rest: Pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The lines of a conversation, and the places where copies differ.

    Attributes:
        name: of the recording or the stream.
        kind: one of the constants above.
        lines: in order.
        exchanges: how many.
        cuts: numbers of exchanges after which another recorder can continue: no exchange is open.
        said: what the user says.
        ids: of responses and calls.
        requests: the ids of exchanges.
        bodies: of responses, by their hashes.
    """

    name: str
    kind: str
    lines: Sequence[Line]
    exchanges: int
    cuts: Sequence[int]
    said: Sequence[bytes]
    ids: Sequence[bytes]
    requests: Sequence[bytes]
    bodies: Mapping[bytes, Pieces]

    @property
    def length_ns(self) -> int:
        """Its duration."""
        return self.lines[-1].t_ns

    def values(self, choose: random.Random, ids: Iterator[bytes]) -> Mapping[bytes, bytes]:
        """Return the values of a copy at the places where copies differ.

        Args:
            choose: decides.
            ids: of exchanges.
        """
        copy = b"%09d" % choose.randrange(10**_DIGITS)
        found = {said: copy + said[_DIGITS:] for said in self.said}
        for one in self.ids:
            found[one] = one[:-_ENDING] + b"%08x" % choose.getrandbits(32)
        found.update(zip(self.requests, ids, strict=False))
        for old, body in self.bodies.items():
            found[old] = hashlib.sha256(filled(body, found)).hexdigest().encode()
        return found


def filled(pieces: Pieces, values: Mapping[bytes, bytes]) -> bytes:
    """Return the text of a copy, with its values."""
    get = values.get
    return b"".join([get(piece, piece) for piece in pieces])


def conversations(tapes: Sequence[Path] = ()) -> Sequence[Conversation]:
    """Return the conversations of `tapes`; of all recordings and the corpus if there are none."""
    if tapes:
        found = [(path.stem, HEALTHY, _lines(path.read_bytes())) for path in tapes]
    else:
        found = [*_recorded(), *_captured()]
    made = (conversation(*each) for each in found)
    return [each for each in made if each is not None]


def _recorded() -> Iterator[tuple[str, str, Sequence[bytes]]]:
    for path in sorted((ROOT / "recordings").rglob("*.tape")):
        folder = path.relative_to(ROOT / "recordings").parts[0]
        if folder == "conformance" or path.stat().st_size > MOST:
            continue
        healthy = {
            "faults": path.stem.endswith("-healthy"),
            "incidents": False,
            "rules": path.name.startswith("silent"),
        }
        kind = HEALTHY if healthy.get(folder, True) else DEFECTIVE
        name = str(path.relative_to(ROOT / "recordings"))
        yield name, kind, _lines(path.read_bytes())


def _lines(tape: bytes) -> Sequence[bytes]:
    return tape.splitlines(keepends=True)[1:]


def _captured() -> Iterator[tuple[str, str, Sequence[bytes]]]:
    """Yield the streams of the corpus; streams that continue each other as one conversation."""
    cases = dict(corpus_cases())
    pairs = json.loads((CORPUS / "echo_pairs.json").read_text()) if cases else []
    following = {first: then for first, then in pairs if first in cases and then in cases}
    for name in sorted(cases.keys() - set(following.values())):
        chain = [name]
        while chain[-1] in following and following[chain[-1]] not in chain:
            chain.append(following[chain[-1]])
        yield name, CAPTURED, _taped([cases[each] for each in chain])


def _taped(cases: Sequence[CorpusCase]) -> Sequence[bytes]:
    lines: list[bytes] = []
    masker, at_ns = Masker(bytes(32)), 0
    for number, case in enumerate(cases, 1):
        tap = ExchangeTap(number, lambda _, line: lines.append(line), masker)
        ended_ns = case.tape(tap, number, BY_EVENT, at_ns, first_ns=_FIRST_NS, apart_ns=_APART_NS)
        at_ns = ended_ns + _BETWEEN_NS
    return lines


def conversation(name: str, kind: str, lines: Sequence[bytes]) -> Conversation | None:
    """Return the conversation of a tape's lines; None if no copies can be made of it."""
    records = [each for each in map(_record, lines) if each is not None]
    exchanges = sorted({each.exchange for each in records})
    if exchanges != list(range(1, len(exchanges) + 1)) or any(
        {_REQUEST, _END} - codes or _FRAME in codes for codes in _codes(records)
    ):
        return None
    said = _said(lines)
    if said is None:
        return None
    text = b"".join(each.rest for each in records)
    # Base64 hides ids, and with others the checksums in it would be wrong.
    plain = _BASE64 not in text
    ids = sorted({each for each in _IDS.findall(text) if plain and _is_unique(each)})
    requests = [each[1] for each in (_EXCHANGE_ID.match(one.rest) for one in records) if each]
    bodies = dict(_bodies(records, {*said, *ids})) if plain else {}
    everywhere, in_requests = (
        _cutter([*said, *ids, *requests, *bodies]),
        _cutter([*said, *requests]),
    )
    return Conversation(
        name=name,
        kind=kind,
        lines=[
            Line(
                t_ns=each.t_ns,
                exchange=each.exchange,
                rest=(everywhere if plain else in_requests)(each.rest)
                if plain or each.code in (_REQUEST, _BODY)
                else (each.rest,),
            )
            for each in records
        ],
        exchanges=len(exchanges),
        cuts=_cuts(records),
        said=said,
        ids=ids,
        requests=requests,
        bodies=bodies,
    )


class _Record(NamedTuple):
    t_ns: int
    exchange: int
    code: bytes
    rest: bytes


def _record(line: bytes) -> _Record | None:
    found = _RECORD.fullmatch(line)
    if found is None or found[2] == b"0" or found[4] in _LEFT_OUT:
        return None
    return _Record(int(found[1]), int(found[2]), found[4], found[3])


def _codes(records: Iterable[_Record]) -> Iterable[AbstractSet[bytes]]:
    """Return the codes of the records of each exchange."""
    found = defaultdict(set)
    for each in records:
        found[each.exchange].add(each.code)
    return found.values()


def _said(lines: Sequence[bytes]) -> Sequence[bytes] | None:
    """Return what the user says at first in each history; None if one would stay as it is."""
    found: set[bytes] = set()
    for exchange in _exchanges(lines):
        asked = analyse(exchange).request
        said = next((each.text for each in asked.history if each.role == "user"), "")
        match = _SAID.search(said)
        if match is not None and match[0].encode() in exchange.request.body:
            found.add(match[0].encode())
        elif asked.history and not (asked.previous and not said):
            return None
    return sorted(found)


def _exchanges(lines: Sequence[bytes]) -> Iterator[Exchange]:
    header = Header(id="0" * 26, tool="", recorded_at="", source=Source.GATEWAY)
    records = decode_lines(enumerate(lines, 2), lambda _, line: [decode_record(line)])
    return assemble(records, tape="", header=header)


def _bodies(
    records: Sequence[_Record], values: AbstractSet[bytes]
) -> Iterator[tuple[bytes, Pieces]]:
    """Yield the hash and the pieces of each response that contains one of `values`."""
    cut = _cutter(values)
    bodies: dict[int, list[bytes]] = defaultdict(list)
    for each in records:
        if each.code == _READ:
            _, data = json.loads(b"[" + each.rest)
            # Read by read, as the lines are: what two reads share is no value in either.
            bodies[each.exchange] += cut(str(data).encode())
        elif each.code == _END and (known := _HASH.match(each.rest)):
            pieces = bodies.pop(each.exchange, [])
            if not values.isdisjoint(pieces):
                yield known[1], pieces


def _is_unique(one: bytes) -> bool:
    """Check whether an id looks unique."""
    ending = set(one[-_ENDING:])
    return len(ending) >= _VARIED and not ending.isdisjoint(b"0123456789")


def _cutter(values: Iterable[bytes]) -> Callable[[bytes], Pieces]:
    longest_first = sorted(set(values), key=len, reverse=True)
    if not longest_first:
        return lambda text: (text,)
    pattern = re.compile(b"(" + b"|".join(map(re.escape, longest_first)) + b")")
    return lambda text: tuple(pattern.split(text))


def _cuts(records: Sequence[_Record]) -> Sequence[int]:
    """Return the numbers of exchanges after which none is open."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, each in enumerate(records):
        first.setdefault(each.exchange, place)
        last[each.exchange] = place
    return [
        number
        for number in range(1, len(first))
        if max(last[each] for each in range(1, number + 1))
        < min(first[each] for each in range(number + 1, len(first) + 1))
    ]
