"""The files that a shrunk tape consists of: the tape, a test for pytest, a test for a shell.

Invariant: equal exchanges make equal tapes, to the byte. So the tape's id follows from what is on
it, and the times are those of the exchanges.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape import __version__
from deltatape.errors import UsageError
from deltatape.harness.shrink_memory import content_of
from deltatape.model.exchange import Exchange
from deltatape.render.shrink_kit import ShrinkKit, pytest_text, shell_text
from deltatape.store.names import SUFFIX
from deltatape.store.rewrite import PRIVATE, write_new
from deltatape.tape.payload import Stop
from deltatape.tape.record import Header
from deltatape.tape.written import tape_lines

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = 26
_OF_TIME = 10
"""Characters of a ULID that say when it was made."""
_SHARED = 0o644
_RUN = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where they go."""

    tape: Path
    pytest: Path
    shell: Path


def files_of(output: Path) -> Files:
    """The files beside the tape `output`, named after it.

    Raises:
        UsageError: the name is none for a tape, or one of them is there already.
    """
    if output.suffix != SUFFIX:
        raise UsageError(f"-o {output}: the name of a tape ends in {SUFFIX}")
    word = "".join(each if each.isalnum() else "_" for each in output.stem)
    files = Files(
        tape=output,
        pytest=output.with_name(f"test_{word}.py"),
        shell=output.with_suffix(".sh"),
    )
    for path in (files.tape, files.pytest, files.shell):
        if os.path.lexists(path):
            raise UsageError(f"{path}: is there already and stays; -o TAPE names other files")
    return files


def write_files(files: Files, exchanges: Sequence[Exchange], kit: ShrinkKit) -> list[Path]:
    """Write them; those that were written, the tape first.

    Args:
        files: none of them is there.
        exchanges: of the tape, at least one.
        kit: for the tests.

    Raises:
        UsageError: one cannot be written.
    """
    content = content_of(exchanges)
    first = exchanges[0]
    header = Header(
        id=_ident(first.id, content),
        tool=f"deltatape {__version__}",
        recorded_at=first.recorded_at,
        source=first.source,
    )
    shell = shell_text(kit)
    written = [files.tape]
    try:
        files.tape.parent.mkdir(parents=True, exist_ok=True)
        lines = tape_lines(header, exchanges, Stop(reason="shrunk", exit_code=None))
        write_new(files.tape, PRIVATE, lines)
        write_new(files.pytest, _SHARED, [pytest_text(kit).encode()])
        written.append(files.pytest)
        if shell is not None:
            write_new(files.shell, _RUN, [shell.encode()])
            written.append(files.shell)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror or error}") from error
    return written


def _ident(first: str, content: str) -> str:
    """A ULID of the time of an exchange's, and of the tape's content."""
    time = first[:_OF_TIME] if len(first) == _ULID and {*first} <= {*_ALPHABET} else "0" * _OF_TIME
    value = int(content, 16)
    return time + "".join(_ALPHABET[value >> 5 * at & 31] for at in range(_ULID - _OF_TIME))
