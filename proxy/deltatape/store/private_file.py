"""Files with what a tape says, for their owner's eyes."""

import os
from pathlib import Path

from deltatape.errors import UsageError

_BEGINNING = 30
"""Characters by which a page is known again."""


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path`, which only its owner can read.

    A file that is there is replaced if it begins as `text` does, that is if it was written so.

    Raises:
        UsageError: there is another file; it cannot be written.
    """
    if _is_foreign(path, text[:_BEGINNING].encode()):
        raise UsageError(f"{path}: is there already, and no such page; name another file")
    draft = path.with_name(f".{path.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; name a file to write") from error


def _is_foreign(path: Path, beginning: bytes) -> bool:
    """Whether there is something that may not be replaced: a tape, a link, a folder."""
    if path.is_symlink():
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(beginning)) != beginning
    except OSError:  # what is not there, or cannot be read, writing will tell
        return False
