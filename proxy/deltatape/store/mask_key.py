"""The user's own key for the hashes of masked credentials.

The key is on no tape, so that hashes cannot be tested against a list of credentials, but equal
hashes on a user's tapes show equal credentials.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from deltatape.store.names import state_folder

_BYTES = 32


def mask_key(environment: Mapping[str, str], alarm: Callable[[str], None]) -> bytes:
    """Return the key in `$XDG_STATE_HOME/deltatape/mask.key`, 32 bytes, created if missing.

    If the file cannot be read or created, return a key for this process alone and call `alarm`.

    Args:
        environment: where XDG_STATE_HOME and HOME are looked up.
        alarm: gets one line.
    """
    path = state_folder(environment) / "mask.key"
    try:
        return _kept_key(path)
    except OSError as error:
        alarm(
            f"{path}: {error.strerror or error}; the hashes of masked credentials on this run's "
            "tapes cannot be compared with those of other runs"
        )
        return os.urandom(_BYTES)


def _kept_key(path: Path) -> bytes:
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Under a name of its own first: no other process may ever read half a key.
    draft = path.with_name(f"mask.key.{os.getpid()}.{os.urandom(4).hex()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(os.urandom(_BYTES))
        # Another process may be first: then its key is the user's.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    return _read(path)


def _read(path: Path) -> bytes:
    key = path.read_bytes()
    if len(key) != _BYTES:
        raise OSError(f"holds {len(key)} bytes instead of {_BYTES}; delete it to have it made anew")
    return key
