"""Audits tapes as files, and checks whether they are still parsed as when they were recorded.

Strategy: one pass over the file. The audit checks each record and passes it on; exchanges are put
together from them, and the whole ones wait for their `parsed` record, which a recorder writes soon
after the end. Where it does not follow among the next exchanges, a second pass finds them. Memory
holds few exchanges, and a few numbers for each; what has no `parsed` record is not decoded.

Exchanges with lost records are not compared, since the recorder had parsed more than is on the
tape.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from deltatape.diagnose.parsed_record import misread, parsed_as
from deltatape.diagnose.rebuild import (
    TOGETHER,
    TOGETHER_BYTES,
    analyse_all,
    batches,
    body_bytes,
)
from deltatape.errors import TapeFormatError
from deltatape.model.app_names import AppNames
from deltatape.model.exchange import Exchange
from deltatape.redact.audit import Auditor, AuditReport, ProblemKind, TapeProblem
from deltatape.store.reader import Tape, open_tape
from deltatape.store.rewrite import tape_lines
from deltatape.store.sealed import SealedTape, verify
from deltatape.tape.assemble import Assembler
from deltatape.tape.payload import ParsedAs
from deltatape.tape.record import ReadRecord, Record

_CODE = f',"{ParsedAs.code}",'.encode()
"""The code in a line as recorders write it."""
_WAITING = 64
_WAITING_BYTES = 4_000_000
"""How many exchanges wait for their `parsed` record, and the most bytes of their bodies."""

_Recorded: TypeAlias = tuple[int, ParsedAs]
"""A `parsed` record and its line."""


def audit(path: Path, app: AppNames | None = None) -> AuditReport:
    """Check the tape at `path` as a file.

    Args:
        path: the path of the tape.
        app: what the application calls the events of its own endpoint; None: do not check what is
            parsed differently now.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        TapeFormatError: it is no tape, of a version that this deltatape does not read, or a damaged
            sealed one.
    """
    tape = open_tape(path)
    if isinstance(tape, SealedTape):
        verify(tape)
    lines = tape_lines(tape)
    auditor = Auditor(header=next(lines)[1])
    comparison = None if app is None else _Comparison(open_tape(path), app)
    try:
        if comparison is None:
            for _ in auditor.records(lines):
                pass
        else:
            comparison.read(auditor.records(lines))
    except TapeFormatError as error:
        auditor.damaged(error.line, error.problem)
    report = auditor.report(recording=tape.recording)
    return report if comparison is None else report.with_problems(comparison.problems())


class _Comparison:
    """Compares what is parsed of the exchanges now with their `parsed` records.

    Exchanges count up to the first damage; `parsed` records up to the first damaged one.
    """

    def __init__(self, tape: Tape, app: AppNames) -> None:
        self._tape = tape
        self._app = app
        self._waiting: dict[int, Exchange] = {}
        self._waiting_bytes = 0
        self._forgotten: set[int] = set()
        """Exchanges that waited in vain for too long."""
        self._recorded: dict[int, _Recorded] = {}
        """The `parsed` records of exchanges that have not ended, or are compared."""
        self._late: dict[int, _Recorded] = {}
        """The `parsed` records of exchanges that will be read again."""
        self._batch: list[Exchange] = []
        self._batch_bytes = 0
        self._found: dict[int, TapeProblem] = {}
        self._compared: set[int] = set()

    def read(self, lines: Iterable[tuple[int, bytes, Record | ReadRecord | None]]) -> None:
        """Read the lines of the tape and their records, None for damage."""
        tape = self._tape
        assembler = Assembler(
            tape=tape.path, header=tape.header, stopped_ns=tape.stopped_ns, watch=tape.watch
        )
        for exchange in assembler.feed(self._records(lines)):
            if exchange.end and not exchange.end.recorder:
                self._add(exchange)

    def problems(self) -> Iterator[TapeProblem]:
        """Yield what differs."""
        self._compare()
        yield from self._found.values()
        yield from _misread_again(self._tape, self._app, self._late)

    def _records(
        self, lines: Iterable[tuple[int, bytes, Record | ReadRecord | None]]
    ) -> Iterator[tuple[int, Record | ReadRecord]]:
        is_damaged = has_damaged_parsed = False
        for number, line, record in lines:
            if record is None:
                is_damaged = True
                has_damaged_parsed |= _CODE in line
                continue
            _, exchange, content = record
            if isinstance(content, ParsedAs):
                if not has_damaged_parsed and _CODE in line:
                    self._note(exchange, (number, content))
            elif not is_damaged:
                yield number, record

    def _note(self, number: int, recorded: _Recorded) -> None:
        """Note what the recorder parsed of an exchange; its last word counts."""
        exchange = self._waiting.pop(number, None)
        if exchange is not None:
            self._waiting_bytes -= body_bytes(exchange)
            self._recorded[number] = recorded
            self._enqueue(exchange)
        elif number in self._forgotten or number in self._compared:
            self._found.pop(number, None)
            self._late[number] = recorded
        else:
            self._recorded[number] = recorded

    def _add(self, exchange: Exchange) -> None:
        if exchange.number in self._recorded:
            self._enqueue(exchange)
            return
        self._waiting[exchange.number] = exchange
        self._waiting_bytes += body_bytes(exchange)
        while len(self._waiting) > _WAITING or self._waiting_bytes > _WAITING_BYTES:
            number = next(iter(self._waiting))
            self._waiting_bytes -= body_bytes(self._waiting.pop(number))
            self._forgotten.add(number)

    def _enqueue(self, exchange: Exchange) -> None:
        self._batch.append(exchange)
        self._batch_bytes += body_bytes(exchange)
        if len(self._batch) == TOGETHER or self._batch_bytes > TOGETHER_BYTES:
            self._compare()

    def _compare(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        for exchange in batch:
            self._compared.add(exchange.number)
        for problem in _misread(batch, self._app, self._recorded):
            self._found[problem.exchange] = problem
        for exchange in batch:
            del self._recorded[exchange.number]


def _misread_again(
    tape: Tape, app: AppNames, recorded: Mapping[int, _Recorded]
) -> Iterator[TapeProblem]:
    """Compare exchanges that have to be read again."""
    for batch in batches(_comparable(tape, recorded), body_bytes):
        yield from _misread(batch, app, recorded)


def _misread(
    exchanges: list[Exchange], app: AppNames, recorded: Mapping[int, _Recorded]
) -> Iterator[TapeProblem]:
    """Yield which of the exchanges are parsed differently now."""
    for analysis in analyse_all(exchanges, app):
        number = analysis.exchange.number
        line, parsed = recorded[number]
        difference = misread(parsed, parsed_as(analysis, parsed.tool))
        if difference:
            message = f"is not read as when {parsed.tool} taped it: {difference}"
            yield TapeProblem(kind=ProblemKind.PARSED, line=line, exchange=number, message=message)


def _comparable(tape: Tape, recorded: Collection[int]) -> Iterator[Exchange]:
    """Yield the whole ones of the `recorded` exchanges, up to the first damage."""
    # The audit reports damage.
    with contextlib.suppress(TapeFormatError):
        for exchange in tape if recorded else ():
            if exchange.number in recorded and exchange.end and not exchange.end.recorder:
                yield exchange
