"""Files with what a tape says, for their owner's eyes."""

import os
from pathlib import Path

from deltatape.errors import UsageError


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path`, which only its owner can read; a file that is there is replaced.

    Raises:
        UsageError: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; name a file to write") from error
