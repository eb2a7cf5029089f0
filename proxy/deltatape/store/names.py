"""Folders and file names of tapes.

A name may come from a request, so it is one plain path component. A tape is never opened twice
for writing: a taken name gets a number.
"""

import contextlib
import fcntl
import hashlib
import itertools
import os
import random
import re
import threading
from collections.abc import Container, Mapping
from pathlib import Path

from deltatape.clock import Clock
from deltatape.errors import UsageError

DEFAULT_FOLDER = ".deltatape"
SUFFIX = ".tape"
SEALED_SUFFIX = ".tape.zst"
RING = ".ring"
"""What ends the stem of a tape that the flight recorder may delete; see `ring`."""
_STEM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_SEGMENT = re.compile(r"\.ring(?:-[0-9]+)?")


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for data that outlives a run: `$XDG_STATE_HOME/deltatape`."""
    # "All paths must be absolute. If [...] relative, [...] ignore it" (XDG Base Directory 0.8)
    stated = Path(environment.get("XDG_STATE_HOME", ""))
    home = Path(environment.get("HOME", "/")) / ".local" / "state"
    return (stated if stated.is_absolute() else home) / "deltatape"


def folder_apart(folder: Path, environment: Mapping[str, str]) -> Path:
    """Return where the tapes of `folder` are that must not lie in it.

    Coding agents list the files of their folder for the model, so that a tape in there changes the
    prompt: the first run has none, the second one does. Hidden names and `.gitignore` help with
    some agents only, and with those only inside of a repository.
    """
    resolved = folder.resolve()
    name = re.sub(r"[^A-Za-z0-9._-]", "-", resolved.name).lstrip(".-")[:40] or "root"
    digest = hashlib.sha256(os.fsencode(resolved)).hexdigest()[:12]
    return state_folder(environment) / "tapes" / f"{name}-{digest}"


def is_tape_name(name: str) -> bool:
    """Check whether a file is called as tapes are, sealed ones included."""
    return name.endswith((SUFFIX, SEALED_SUFFIX))


def without_suffix(name: str) -> str:
    """Return the name of a tape, sealed or not, without its suffix."""
    return name.removesuffix(SEALED_SUFFIX).removesuffix(SUFFIX)


def tapes_in(folder: Path) -> list[Path]:
    """Return the tapes in a folder, by name; of one and the same, not the sealed form.

    Both are there while a tape is being sealed, or if the user kept its journal.
    """
    names = {path.name for path in folder.iterdir() if is_tape_name(path.name)}
    return [folder / name for name in sorted(names) if not has_journal(name, names)]


def has_journal(name: str, names: Container[str]) -> bool:
    """Check whether a tape is sealed, and its journal is there, too, among `names`."""
    return name.endswith(SEALED_SUFFIX) and f"{without_suffix(name)}{SUFFIX}" in names


def check_stem(stem: str) -> str:
    """Check that `stem` can be a tape's name without `.tape`.

    Raises:
        UsageError: it has other characters, begins with a dot, or is too long.
    """
    if not _STEM.fullmatch(stem.removesuffix(RING)):
        raise UsageError(
            f"{stem!a} cannot be the name of a tape: 1 to 64 letters, digits, '.', '_', '-' "
            "are accepted, the first not a dot"
        )
    return stem


def check_name(name: str) -> str:
    """Check that `name` can be the stem of a named tape.

    Raises:
        UsageError: it is no valid name, or a ring would delete the tape as one of its segments.
    """
    if _SEGMENT.search(check_stem(name)):
        raise UsageError(f"{name!a} cannot be the name of a tape: {RING} marks what may be deleted")
    return name


def prepare_folder(folder: Path) -> None:
    """Create `folder` for its owner only; keep `.deltatape` out of git.

    Raises:
        OSError: it cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.name == DEFAULT_FOLDER:
        # There already, or not writable: the tape's own file will say which.
        with contextlib.suppress(OSError), (folder / ".gitignore").open("x") as file:
            file.write("*\n")


def open_new(folder: Path, stem: str) -> tuple[int, Path]:
    """Return a new file `STEM.tape`, or `STEM-2.tape` and so on if that is taken, opened to append.

    Raises:
        OSError: no file can be created there.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    for count in itertools.count(2):
        path = folder / f"{stem}{SUFFIX}"
        with contextlib.suppress(FileExistsError):
            fd = os.open(path, flags, 0o600)
            if os.path.lexists(folder / f"{stem}{SEALED_SUFFIX}"):
                # That tape was finished and sealed: its name is as taken as it was before.
                os.close(fd)
                path.unlink()
                raise FileExistsError
            with contextlib.suppress(OSError):  # a file system without locks
                # Tells readers, for as long as the recorder lives, that it is still at it.
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd, path
        stem = f"{stem.removesuffix(f'-{count - 1}')}-{count}"
    raise AssertionError  # pragma: no cover - count() never ends


# Identifiers: ULIDs for tapes and exchanges (https://github.com/ulid/spec).
#
# Invariant: within a process every ULID sorts after the one before, also when the clock jumps back.

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_PAIRS = [one + other for one in _ALPHABET for other in _ALPHABET]
_PAIR_MASK = len(_PAIRS) - 1
_PAIR_PLACES = range(120, -1, -10)
_MAX = (1 << 128) - 1


class UlidSource:
    """Makes ULIDs, each greater than the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self, clock: Clock) -> str:
        """26 characters of Crockford's base 32: 48 bits of milliseconds, 80 random bits."""
        fresh = (clock.wall_ns() // 1_000_000) << _RANDOM_BITS
        # Nothing is secret about them. A process that is forked has random numbers of its own.
        fresh |= random.getrandbits(_RANDOM_BITS)
        with self._lock:
            if fresh >> _RANDOM_BITS <= self._last >> _RANDOM_BITS:
                fresh = self._last + 1
            self._last = fresh & _MAX
            value = self._last
        return "".join([_PAIRS[value >> at & _PAIR_MASK] for at in _PAIR_PLACES])


ulid = UlidSource().next
"""A new ULID of this process."""
