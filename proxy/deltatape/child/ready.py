"""The ready file: says that the recorder listens, and where.

`{"version":1,"url":"http://127.0.0.1:8377","control":...,"tape":...,"pid":4711}`, written whole or
not at all, for its owner only, and removed at the end.

The file stays locked while its writer lives, which distinguishes it from one left by a dead
process, even where pids repeat (in a container every recorder may be 1). A file that deltatape did
not write is never overwritten: a typo in the option must not destroy a document.
"""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from deltatape.errors import UsageError

_MAX_BYTES = 65536
_KEYS = {"version", "url", "pid"}


class ReadyFile:
    """A ready file: `write` it once requests can come, `remove` it at the end.

    Args:
        path: the path of the file.
        of: the process whose file it may be, since its place is taken.

    Raises:
        UsageError: another living process uses the path, or another file is there.
    """

    def __init__(self, path: Path, *, of: int | None = None) -> None:
        _check(path, of)
        self._path = path
        self._of = of
        self._fd: int | None = None

    def write(self, document: Mapping[str, object]) -> None:
        """Write the file atomically; `document` is its content besides version and pid.

        Raises:
            UsageError: it cannot be written there, or no longer.
        """
        path = self._path
        _check(path, self._of)
        text = json.dumps({"version": 1, **document, "pid": os.getpid()}) + "\n"
        try:
            fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        except OSError as error:
            raise _unwritable(path, error) from None
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with os.fdopen(fd, "w", closefd=False) as file:
                file.write(text)
            Path(name).replace(path)
        except OSError as error:
            os.close(fd)
            Path(name).unlink(missing_ok=True)
            raise _unwritable(path, error) from None
        self._fd = fd

    def remove(self) -> None:
        """Remove the file if it is still ours. Harmless without `write`, and twice."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(fd), self._path.lstat()):
                self._path.unlink()
        os.close(fd)


def _check(path: Path, of: int | None) -> None:
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"--ready-file {path}: not a regular file; name a new file")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
            busy = _is_locked(file.fileno())
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"--ready-file {path}: {error.strerror}; name a new file") from None
    if data and not _is_ours(data):
        raise UsageError(f"--ready-file {path}: another file is there already; name a new file")
    if busy and json.loads(data)["pid"] != of:
        raise UsageError(
            f"--ready-file {path}: another running recorder uses it; name another file"
        )


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"--ready-file {path}: {error.strerror}; name a writable file")


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False


def _is_ours(data: bytes) -> bool:
    if len(data) > _MAX_BYTES:
        return False
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.keys() >= _KEYS
