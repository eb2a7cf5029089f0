"""Makes redacted copies of tapes.

Strategy: two passes over the file, one that plans and one that writes, so that memory holds no
tape; masking content needs a third pass before them, for the words of the tools. The copy is
written under a temporary name and renamed when it is complete and synced, so that no incomplete or
unredacted tape ever has the final name.
"""

import contextlib
import filecmp
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from deltatape.errors import UsageError
from deltatape.redact.fillers import Fillers
from deltatape.redact.plan import RedactionPlan, RedactionPlanner, TapeRewriter, words_of
from deltatape.store.names import SUFFIX, open_new
from deltatape.store.reader import MAX_LINE, Tape, lines_of
from deltatape.tape.encode import header_line
from deltatape.tape.mask import Masker

PRIVATE = 0o600
SHARED = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedCopy:
    """A redacted copy under a temporary name, and what was redacted."""

    path: Path
    plan: RedactionPlan
    torn: int
    """Bytes of a torn last record that were left out."""

    def discard(self) -> None:
        """Delete it if it still exists."""
        self.path.unlink(missing_ok=True)


def draft(
    tape: Tape,
    folder: Path,
    masker: Masker,
    *,
    content: bool,
    mode: int = PRIVATE,
    called: str = "",
) -> RedactedCopy:
    """Write a redacted copy of `tape` into `folder` under a temporary name.

    Args:
        tape: must not be in recording.
        folder: exists.
        masker: makes the hashes of what is overwritten.
        content: whether to replace prose by fillers, too.
        mode: the mode of the file.
        called: what the user calls the copy: `-o x.tape`; "" for the folder.

    Raises:
        UsageError: the tape is being recorded or was changed meanwhile; the copy cannot be written.
        TapeFormatError: the tape is damaged.
    """
    if tape.recording:
        raise UsageError(f"{tape.path}: is still being recorded; stop its recorder first")
    before = stamp(tape)
    fillers = Fillers(words_of(tape.records())) if content else None
    planner = RedactionPlanner(masker, fillers)
    for line, record in tape.records():
        planner.add(line, record)
    plan = planner.finish()
    path = folder / f".{Path(tape.path).name}.{os.urandom(4).hex()}.part"
    done = RedactedCopy(path=path, plan=plan, torn=tape.torn)
    try:
        write_new(
            path, mode, _rewritten(tape, TapeRewriter(plan, masker, fillers), content=content)
        )
        status = Path(tape.path).stat()
        # What counts is when it was recorded: a copy is not the latest tape.
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        if stamp(tape) != before:
            raise UsageError(f"{tape.path}: was changed while it was read; try again")  # noqa: TRY301
    except OSError as error:
        done.discard()
        raise UsageError(f"{called or folder}: {error.strerror or error}") from error
    except UsageError:
        done.discard()
        raise
    return done


def refuse_sealed(tape: Tape) -> None:
    """Refuse to change a sealed tape.

    Raises:
        UsageError: it is one.
    """
    if tape.is_sealed:
        raise UsageError(
            f"{tape.path}: is sealed, and does not change; `deltatape pack --unpack` gives a tape"
            " that can be changed"
        )


def write_new(path: Path, mode: int, lines: Iterable[bytes]) -> None:
    """Write and sync a new file."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def same_as(done: RedactedCopy, folder: Path, stem: str) -> Path | None:
    """Return the tape `STEM.tape`, `STEM-2.tape`, ... in `folder` that equals the draft."""
    name = re.compile(rf"{re.escape(stem)}(-[0-9]+)?{re.escape(SUFFIX)}")
    for path in sorted(folder.iterdir()):
        if name.fullmatch(path.name) and path.is_file():
            with contextlib.suppress(OSError):  # not ours to read
                if filecmp.cmp(path, done.path, shallow=False):
                    return path
    return None


def as_new(done: RedactedCopy, folder: Path, stem: str) -> Path:
    """Rename a draft to `STEM.tape`, `STEM-2.tape` and so on; return its path.

    Raises:
        OSError: it cannot be renamed.
    """
    fd, path = open_new(folder, stem)
    os.close(fd)
    return done.path.replace(path)


def as_named(draft: Path, path: Path) -> Path:
    """Rename `draft` to `path`, in the same folder.

    Raises:
        OSError: the file exists already, or it cannot be renamed.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
    return draft.replace(path)


def in_place_of(done: RedactedCopy, path: Path) -> None:
    """Replace the tape at `path` by a draft, keeping its mode.

    Raises:
        OSError: it fails.
    """
    done.path.chmod(path.stat().st_mode & 0o777)
    done.path.replace(path)


def store_volatile(tape: Tape, volatile: Sequence[str]) -> None:
    """Replace what is stored with a tape about requests of a replay; its records stay.

    Raises:
        UsageError: the tape is being recorded or was changed meanwhile, or cannot be written.
        TapeFormatError: it is damaged.
    """
    refuse_sealed(tape)
    if tape.recording:
        raise UsageError(f"{tape.path}: is still being recorded; stop its recorder first")
    before = stamp(tape)
    origin = Path(tape.path).resolve()
    part = origin.parent / f".{origin.name}.{os.urandom(4).hex()}.part"
    header = header_line(replace(tape.header, volatile=tuple(volatile)))
    try:
        status = origin.stat()
        lines = (header if number == 1 else line for number, line in tape_lines(tape))
        write_new(part, status.st_mode & 0o777, lines)
        os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
        if stamp(tape) != before:
            raise UsageError(f"{tape.path}: was changed while it was read; try again")
        part.replace(origin)
    except OSError as error:
        raise UsageError(f"{tape.path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def _rewritten(tape: Tape, rewriter: TapeRewriter, *, content: bool) -> Iterator[bytes]:
    # An expression repeats words of prompts, and does not fit the fillers.
    volatile = tuple(each for each in tape.header.volatile if not (content and "/" in each))
    for number, line in complete_lines(tape):
        if number == 1:
            same = volatile == tape.header.volatile
            yield line if same else header_line(replace(tape.header, volatile=volatile))
        else:
            yield from rewriter.lines(number, line)


def complete_lines(tape: Tape) -> Iterator[tuple[int, bytes]]:
    """Yield the header and the lines of all complete records, with their numbers."""
    for number, line in tape_lines(tape):
        if number == 1 or line.endswith(b"\n") or not tape.torn:
            yield number, line


def tape_lines(tape: Tape) -> Iterator[tuple[int, bytes]]:
    """Yield every line with its number, from the header on."""
    with tape.open() as file:
        header = file.readline(MAX_LINE)
    yield 1, header
    yield from lines_of(tape)


def stamp(tape: Tape) -> tuple[int, int, int]:
    """Return what changes when the file changes."""
    status = Path(tape.path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
