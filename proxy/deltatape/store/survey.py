"""What is on tapes that are to become one: the first of two passes over each.

Strategy: every line is decoded, so that damage shows before anything is written; of an exchange
only its id, where it begins and a hash of its lines are kept. The hash is over the lines as they
are but for number and time, the latter counted from the exchange's first record: two copies of an
exchange on different tapes have the same.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from deltatape.errors import TapeFormatError, UsageError
from deltatape.model.watch import Watch
from deltatape.store.reader import Tape
from deltatape.store.rewrite import lines_of, stamp
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.heads import RequestHead
from deltatape.tape.moved import Front, front
from deltatape.tape.payload import Stop
from deltatape.tape.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A tape that is to be taken, whole or in part."""

    tape: Tape
    numbers: frozenset[int] | None = None
    """The exchanges that are meant; None: the whole tape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An exchange that is to be taken; number 0: what is on the tape beside its exchanges."""

    tape: str
    number: int
    id: str
    """"" if its `request` is missing; that of the tape for number 0."""
    lines: bytes
    """A hash of all its lines, `watched` left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A tape, and what of it is to be taken."""

    given: Given
    exchanges: tuple[Seen, ...]
    last_ns: int
    """The time of the latest record that is taken, as the tape counts."""
    watch: Watch
    """How long the tape was watched, as it counts itself."""
    stamp: tuple[int, int, int]
    """Of the file: it must not change before it is copied."""


@dataclass(slots=True)
class _Growing:
    """An exchange of which more may come."""

    first_ns: int
    id: str = ""
    hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def take(self, record: Record, parts: Front) -> None:
        """Another record of it, and its line taken apart."""
        if isinstance(record.payload, RequestHead) and record.exchange:
            self.id = self.id or record.payload.id
            if record.payload.watched is not None:
                parts = parts.saying({k: v for k, v in parts.payload.items() if k != "watched"})
        self.hash.update(b"%d," % (parts.t_ns - self.first_ns) + parts.rest)


def survey(given: Given) -> Survey:
    """What is to be taken of a tape.

    Raises:
        UsageError: it is being recorded, or does not have an exchange that is asked for.
        TapeFormatError: it is damaged.
    """
    tape, wanted = given.tape, given.numbers
    if tape.recording:
        raise UsageError(f"{tape.path}: is still being recorded; stop its recorder first")
    before = stamp(tape)
    growing: dict[int, _Growing] = {}
    last_ns = 0
    for record, parts in _records(tape):
        number = record.exchange
        if wanted is None or number in wanted:
            last_ns = max(last_ns, record.t_ns)
            if number not in growing:
                growing[number] = _Growing(record.t_ns, id="" if number else tape.header.id)
            growing[number].take(record, parts)
    for number in sorted(wanted or ()):
        if number not in growing:
            tape[number]  # says which there are
    return Survey(
        given=given,
        exchanges=tuple(_seen(tape, number, growing[number]) for number in growing),
        last_ns=last_ns,
        watch=tape.watch,
        stamp=before,
    )


def taken(given: Given, without: frozenset[int]) -> Iterator[Front]:
    """The records of a tape that go to another one, in order, `stop` left out.

    Args:
        given: the tape, which has been surveyed.
        without: exchanges that are not taken.

    Raises:
        TapeFormatError: the tape is no longer what it was.
    """
    wanted = given.numbers
    for number, line in _whole(given.tape):
        try:
            parts = front(line)
        except ValueError as error:  # the file was changed meanwhile
            raise TapeFormatError(given.tape.path, number, str(error)) from error
        exchange = parts.exchange
        if exchange in without or (wanted is not None and exchange not in wanted):
            continue
        if exchange or parts.code != Stop.code:
            yield parts


def doubles(surveys: Sequence[Survey]) -> Iterator[tuple[Seen, Seen]]:
    """What is there twice: the first one, and one that equals it; copies of tapes among them.

    Raises:
        UsageError: two have the same id and are not equal.
    """
    known: dict[str, Seen] = {}
    for each in (each for one in surveys for each in one.exchanges if each.id):
        first = known.setdefault(each.id, each)
        if first is each:
            continue
        if first.lines != each.lines:
            raise UsageError(
                f"{_name(first)} and {_name(each)} are the same {_what(each)} ({each.id}) with"
                " different content; name only one of them"
            )
        yield first, each


def _what(seen: Seen) -> str:
    return "exchange" if seen.number else "tape"


def _name(seen: Seen) -> str:
    return f"{seen.tape}#{seen.number}" if seen.number else seen.tape


def _records(tape: Tape) -> Iterator[tuple[Record, Front]]:
    for number, line in _whole(tape):
        try:
            yield decode_record(line), front(line)
        except MalformedError as error:
            raise TapeFormatError(tape.path, number, str(error)) from error


def _whole(tape: Tape) -> Iterator[tuple[int, bytes]]:
    """The lines of all records, with their numbers; without a torn last one."""
    for number, line in lines_of(tape):
        if number > 1 and (line.endswith(b"\n") or not tape.torn):
            yield number, line


def _seen(tape: Tape, number: int, of: _Growing) -> Seen:
    return Seen(tape=tape.path, number=number, id=of.id, lines=of.hash.digest())
