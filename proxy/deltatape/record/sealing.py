"""The process that seals finished tapes: `python -m deltatape.record.sealing FOLDER`.

It reads the thresholds of the rules from standard input, as one line of JSON, and ends when the
input ends. It prints a line for each tape that cannot be sealed.

Strategy: search the folder at short intervals. A tape is finished when no recorder holds its lock.
The ring (`store.ring`) may rename a tape while it is sealed, together with the sealed form, or
delete it; then the sealed form is deleted, too. So the journal is only removed if it is still
there, and under its lock.
"""

import contextlib
import json
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep  # noqa: TID251 - it reads no clock

from deltatape.errors import DeltatapeError
from deltatape.live.messages import Begin
from deltatape.model.rule_settings import Settings
from deltatape.store.names import SUFFIX
from deltatape.store.packing import Sealed, seal
from deltatape.store.ring import held, is_finished

LOOK_S = 1.0
"""How often the folder is searched."""
_NICENESS = 15
_TRIES = 50
_TRY_S = 0.1
"""How often, and after which time each, to try for the lock of a tape that is being renamed."""

_Stamp = tuple[int, int, int]


class Sealing:
    """Seals the finished tapes of a folder, one after the other.

    Args:
        folder: where they are; folders below are left alone.
        settings: the thresholds of the rules.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._refused: set[_Stamp] = set()
        """Tapes that cannot be sealed, as they were then."""

    def work(self) -> Iterator[str]:
        """Seal what is finished by now; yield why a tape cannot be."""
        for path in self._finished():
            try:
                settle(seal(path, settings=self._settings))
            except DeltatapeError as error:
                stamp = _stamp(path)
                if stamp is not None:  # else it was pinned, or deleted, meanwhile
                    self._refused.add(stamp)
                    yield f"{error}; it stays as it is"

    def _finished(self) -> Iterator[Path]:
        """Yield the finished tapes, the oldest first."""
        found: list[Path] = []
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            found += [
                Path(entry.path)
                for entry in entries
                if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False)
            ]
        stamps = {path: stamp for path in found if (stamp := _stamp(path)) is not None}
        for path in sorted(stamps, key=lambda path: stamps[path][2]):
            if stamps[path] not in self._refused and is_finished(path):
                yield path


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def settle(sealed: Sealed) -> None:
    """Delete the journal of a sealed tape; if that was deleted meanwhile, delete the sealed form.

    Raises:
        UsageError: the journal was changed meanwhile, or cannot be deleted.
    """
    for _ in range(_TRIES):
        with held(sealed.journal) as free:
            if free:
                sealed.remove_journal()
                return
        if not os.path.lexists(sealed.journal):
            sealed.path.unlink(missing_ok=True)
            return
        sleep(_TRY_S)


def main() -> None:
    """Seal until the standard input ends."""
    os.nice(_NICENESS)
    begin = sys.stdin.buffer.readline()
    sealing = Sealing(Path(sys.argv[1]), Begin(settings=json.loads(begin)).rules())
    while True:
        for problem in sealing.work():
            sys.stdout.write(f"{problem}\n")
            sys.stdout.flush()
        if select.select([sys.stdin], [], [], LOOK_S)[0]:
            return


if __name__ == "__main__":
    main()
