"""Checks whether a tape is still parsed as it was when it was recorded.

Strategy: two passes, one for what the recorder wrote down, one that reads each exchange again;
memory holds one exchange and a few numbers for each. A tape of which nothing was written down costs
a look at its lines, none of which is decoded.

Not compared: an exchange of which the recorder lost records, since it had read more than is there.
"""

import contextlib
from collections.abc import Iterator

from deltatape.diagnose.parsed_record import misread, parsed_as
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import TapeFormatError
from deltatape.model.app_names import AppNames
from deltatape.redact.audit import ProblemKind, TapeProblem
from deltatape.store.reader import Tape
from deltatape.store.rewrite import lines_of
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import ParsedAs

_CODE = f',"{ParsedAs.code}",'.encode()
"""How the code stands in a line as recorders write it."""


def misreadings(tape: Tape, app: AppNames) -> tuple[TapeProblem, ...]:
    """Return what is parsed differently now; empty if the tape has no `parsed` records.

    Args:
        tape: of which nobody needs to have looked for damage: what comes behind it is left out.
        app: what the application calls the events of its own endpoint.
    """
    written = dict(_written(tape))
    return tuple(_misread(tape, written, app)) if written else ()


def _written(tape: Tape) -> Iterator[tuple[int, tuple[int, ParsedAs]]]:
    """By exchange, the line that says how it was read, and what it says."""
    # What is damaged is told by who looks for that.
    with contextlib.suppress(TapeFormatError, MalformedError):
        for number, line in lines_of(tape):
            record = decode_record(line) if _CODE in line else None
            if record is not None and isinstance(record.payload, ParsedAs):
                yield record.exchange, (number, record.payload)


def _misread(
    tape: Tape, written: dict[int, tuple[int, ParsedAs]], app: AppNames
) -> Iterator[TapeProblem]:
    try:
        for exchange in tape:
            if exchange.number not in written or exchange.end is None or exchange.end.recorder:
                continue
            line, then = written[exchange.number]
            how = misread(then, parsed_as(analyse(exchange, app), then.tool))
            if how:
                message = f"is not read as when {then.tool} taped it: {how}"
                yield TapeProblem(
                    kind=ProblemKind.PARSED, line=line, exchange=exchange.number, message=message
                )
    except TapeFormatError:
        return
