"""Audits tapes as files, and checks whether they are still parsed as when they were recorded.

The second check takes two passes: one reads the `parsed` records, one parses each exchange again;
memory holds few exchanges, and a few numbers for each. Without `parsed` records nothing is decoded.
Exchanges with lost records are not compared, since the recorder had parsed more than is on the
tape.
"""

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

from deltatape.diagnose.check_tape import batches
from deltatape.diagnose.parsed_record import misread, parsed_as
from deltatape.diagnose.rebuild import analyse_all
from deltatape.errors import TapeFormatError
from deltatape.model.app_names import AppNames
from deltatape.model.exchange import Exchange
from deltatape.redact.audit import Auditor, AuditReport, ProblemKind, TapeProblem
from deltatape.store.reader import Tape, open_tape
from deltatape.store.rewrite import tape_lines
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import ParsedAs

_CODE = f',"{ParsedAs.code}",'.encode()
"""How the code stands in a line as recorders write it."""


def audit(path: Path) -> AuditReport:
    """Check the tape at `path` as a file.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        TapeFormatError: it is no tape, or of a version that this deltatape does not read.
    """
    tape = open_tape(path)
    lines = tape_lines(tape)
    auditor = Auditor(header=next(lines)[1])
    try:
        for number, line in lines:
            auditor.check(number, line)
    except TapeFormatError as error:
        auditor.damaged(error.line, error.problem)
    return auditor.report(recording=tape.recording)


def misreadings(tape: Tape, app: AppNames) -> Iterator[TapeProblem]:
    """Yield what is parsed differently now, up to the first damage.

    Args:
        tape: any.
        app: what the application calls the events of its own endpoint.
    """
    recorded = dict(_recorded(tape))
    for batch in batches(_comparable(tape, recorded)):
        for analysis in analyse_all(batch, app):
            number = analysis.exchange.number
            line, parsed = recorded[number]
            difference = misread(parsed, parsed_as(analysis, parsed.tool))
            if difference:
                message = f"is not read as when {parsed.tool} taped it: {difference}"
                yield TapeProblem(
                    kind=ProblemKind.PARSED, line=line, exchange=number, message=message
                )


def _comparable(tape: Tape, recorded: Collection[int]) -> Iterator[Exchange]:
    """Yield the whole ones of the `recorded` exchanges, up to the first damage."""
    # The audit reports damage.
    with contextlib.suppress(TapeFormatError):
        for exchange in tape if recorded else ():
            if exchange.number in recorded and exchange.end and not exchange.end.recorder:
                yield exchange


def _recorded(tape: Tape) -> Iterator[tuple[int, tuple[int, ParsedAs]]]:
    """Yield exchanges with the line of their `parsed` record, and that, up to the first damage."""
    with contextlib.suppress(TapeFormatError, MalformedError):
        for number, line in tape_lines(tape):
            record = decode_record(line) if _CODE in line else None
            if record is not None and isinstance(record.payload, ParsedAs):
                yield record.exchange, (number, record.payload)
