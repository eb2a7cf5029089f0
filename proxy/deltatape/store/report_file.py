"""Writes reports for other programs, as ordinary files of the user.

Whether a report can be written is checked before the work, which may take long. An existing file is
only replaced if it is a report, too: it might be a tape.
"""

import contextlib
import os
from pathlib import Path

from deltatape.errors import UsageError

_XML = b"<?xml"


def check_report(option: str, path: Path) -> None:
    """Check that an XML report can be written to `path`.

    Raises:
        UsageError: it cannot; the message begins with the option.
    """
    if path.is_file():
        _refuse_foreign(option, path)
    elif not path.exists():
        check_folder(option, path.parent, made=False)
    if path.exists() and not may_be_written(path):
        raise UsageError(f"{option} {path}: must not be written; name another file")


def check_folder(option: str, folder: Path, *, made: bool) -> None:
    """Check that files can be created in a folder.

    Args:
        option: that named it.
        folder: the folder.
        made: whether it will be made, and what it is in.

    Raises:
        UsageError: they cannot; the message begins with the option.
    """
    found = folder
    while made and not found.exists() and found != found.parent:
        found = found.parent
    if not found.is_dir():
        raise UsageError(f"{option}: {found} is no folder; name one that is there")
    if not may_be_written(found):
        raise UsageError(f"{option}: {found} must not be written to; name another folder")


def write_report(option: str, path: Path, text: str) -> None:
    """Write a report.

    Raises:
        UsageError: it cannot be written; the message begins with the option.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}") from error


def may_be_written(path: Path) -> bool:
    """Return whether this user may write to a file, or create files in a folder."""
    mode = os.W_OK | os.X_OK if path.is_dir() else os.W_OK
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _refuse_foreign(option: str, path: Path) -> None:
    try:
        with path.open("rb") as file:
            beginning = file.read(len(_XML))
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}") from error
    if beginning not in (b"", _XML):
        raise UsageError(f"{option} {path}: is there already, and no report; name another file")


# Files with what a tape says, for their owner's eyes.

_BEGINNING = 30
"""Characters by which a page is known again."""


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path`, readable by its owner only.

    An existing file is replaced only if it begins as `text` does, that is if it was written by this
    function.

    Raises:
        UsageError: there is another file; it cannot be written.
    """
    if _is_foreign(path, text[:_BEGINNING].encode()):
        raise UsageError(f"{path}: is there already, and no such page; name another file")
    if path.is_dir():
        raise UsageError(f"{path}: Is a directory; name a file to write")
    draft = path.with_name(f".{path.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; name a file to write") from error
    finally:
        with contextlib.suppress(OSError):  # renamed, or never made
            draft.unlink()


def _is_foreign(path: Path, beginning: bytes) -> bool:
    """Check for something that must not be replaced: a tape, a link, a folder, a pipe."""
    if path.is_symlink() or path.is_fifo():  # opening a pipe would wait for a writer
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(beginning)) != beginning
    except OSError:  # what is not there, or cannot be read, writing will tell
        return False
