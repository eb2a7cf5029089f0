"""Write the files of a shrunk tape: the tape, a test for pytest, a test for a shell.

Strategy: the tape is written under a hidden name, redacted and searched for secrets as by
`deltatape keep`. If no secret is left, it gets its name and the tests are written.

Invariant: equal exchanges make equal tapes, to the byte. So the tape's id is derived from its
content, and the times are those of the exchanges.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape import __version__
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.redact.audit import ProblemKind
from deltatape.render.shrink import ShrinkKit, pytest_text, shell_text
from deltatape.store.audit import audit
from deltatape.store.names import SUFFIX
from deltatape.store.reader import open_tape
from deltatape.store.rewrite import PRIVATE, as_named, draft, write_new
from deltatape.tape.mask import Masker
from deltatape.tape.payload import Stop
from deltatape.tape.record import Header
from deltatape.tape.serialize import tape_lines
from deltatape.trials.shrink_memory import content_of

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = 26
_OF_TIME = 10
"""The length of the time in a ULID, in characters."""
_SHARED = 0o644
_RUN = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFiles:
    """The paths of the files to write."""

    tape: Path
    pytest: Path
    shell: Path


def files_of(output: Path) -> OutputFiles:
    """Return the files beside the tape `output`, named after it.

    Raises:
        UsageError: the name is invalid, or one of the files exists already.
    """
    if output.suffix != SUFFIX:
        raise UsageError(f"-o {output}: the file name must end in {SUFFIX}")
    word = "".join(each if each.isalnum() else "_" for each in output.stem)
    files = OutputFiles(
        tape=output,
        pytest=output.with_name(f"test_{word}.py"),
        shell=output.with_suffix(".sh"),
    )
    for path in (files.tape, files.pytest, files.shell):
        if os.path.lexists(path):
            raise UsageError(
                f"{path}: already exists and is not overwritten; choose other names with -o TAPE"
            )
    return files


def write_files(
    files: OutputFiles, exchanges: Sequence[Exchange], kit: ShrinkKit, mask_key: bytes = b""
) -> list[Path]:
    """Write them; return the paths, the tape first.

    Args:
        files: none of them is there.
        exchanges: the exchanges of the tape, at least one.
        kit: for the tests.
        mask_key: for the hashes of what is overwritten.

    Raises:
        UsageError: one cannot be written, or there is a secret on the tape.
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
        _write_clean(files.tape, lines, Masker(mask_key))
        write_new(files.pytest, _SHARED, [pytest_text(kit).encode()])
        written.append(files.pytest)
        if shell is not None:
            write_new(files.shell, _RUN, [shell.encode()])
            written.append(files.shell)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror or error}") from error
    return written


def _write_clean(path: Path, lines: Iterable[bytes], masker: Masker) -> None:
    """Write a tape without secrets."""
    raw = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        write_new(raw, PRIVATE, lines)
        done = draft(open_tape(raw), path.parent, masker, content=False)
        try:
            left = [one for one in audit(done.path).problems if one.kind is ProblemKind.SECRET]
            if left:
                raise UsageError(
                    f"{path}: not written; after redaction it still has a secret: {left[0].message}"
                )
            as_named(done.path, path)
        finally:
            done.discard()
    finally:
        raw.unlink(missing_ok=True)


def _ident(first: str, content: str) -> str:
    """Return a ULID of an exchange's time and of the tape's content."""
    time = first[:_OF_TIME] if len(first) == _ULID and {*first} <= {*_ALPHABET} else "0" * _OF_TIME
    value = int(content, 16)
    return time + "".join(_ALPHABET[value >> 5 * at & 31] for at in range(_ULID - _OF_TIME))
