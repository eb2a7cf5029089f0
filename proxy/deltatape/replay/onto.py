"""Puts what was recorded while a tape was played onto that tape, whole or not at all.

Strategy: recorded into a hidden folder beside the tape, spliced with it into another hidden file,
which then takes the tape's place. Whatever is killed or fails, the tape is there as it was, and
what was recorded in the folder. Runs that end on one tape at the same time do so in turn.

What would make a test fail for ever stays away from the tape: requests that the provider never
answered, that were cut because the run was over, or whose key was refused.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from deltatape.clock import Clock
from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Exchange, Source
from deltatape.store.names import SUFFIX
from deltatape.store.reader import open_tape
from deltatape.store.splice import Given, splice

_NEW = ".new"
_TRIES, _PAUSE_S = 500, 0.02
_KEY_REFUSED = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of what was recorded.

    Attributes:
        kept: the exchanges, as they are on the tape now.
        left_out: those that are not on it, each with the reason.
    """

    kept: tuple[Exchange, ...] = ()
    left_out: tuple[tuple[Exchange, str], ...] = ()


class Beside:
    """The place beside `tape` where a recording is made that is to go onto it."""

    def __init__(self, tape: Path) -> None:
        """Find out whether the tape can be added to.

        Args:
            tape: need not exist yet; where it is a link, the file is meant.

        Raises:
            UsageError: it cannot.
            TapeFormatError: it is damaged.
        """
        self._tape = tape = Path(os.path.realpath(tape)) if tape.is_symlink() else tape
        self._lock: int | None = None
        if tape.exists():
            found = open_tape(tape)
            if found.recording:
                raise UsageError(f"{tape}: is being recorded; stop its recorder first")
            if found.header.source is Source.IMPORT:
                raise UsageError(
                    f"{tape}: is an import, without times or endings, so nothing can be recorded"
                    " onto it; name a tape that was recorded, or a new one"
                )

    def make(self) -> Path:
        """A new folder for it, only for its owner.

        Raises:
            UsageError: there can be none.
        """
        parent = self._tape.parent
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder = tempfile.mkdtemp(prefix=f".{self._tape.stem}.", suffix=_NEW, dir=parent)
            self._lock = _locked(folder)
            return Path(folder)
        except OSError as error:
            raise UsageError(
                f"{parent}: {error.strerror or error}; --mode auto records beside the tape, so its"
                " folder has to be writable; --mode replay records nothing"
            ) from None

    def leftovers(self) -> tuple[Path, ...]:
        """Folders that killed runs have left, with what is on no tape; empty ones are removed."""
        prefix = f".{self._tape.stem}."
        found: list[Path] = []
        for folder in sorted(self._tape.parent.glob(f".*{_NEW}")):
            if not folder.name.startswith(prefix) or not folder.is_dir() or not _is_left(folder):
                continue
            if any(folder.glob(f"*{SUFFIX}")):
                found.append(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return tuple(found)

    def take(self, folder: Path, clock: Clock, cut_ns: Mapping[str, int] | None = None) -> Recorded:
        """Put the recordings in `folder` onto the tape, and remove the folder.

        Args:
            folder: as `make` made it.
            clock: for the spliced tape.
            cut_ns: for tapes in `folder`, by name: when the application was ended, if it was.

        Raises:
            UsageError: it could not be done; the message names the folder, which stays.
        """
        tapes = [open_tape(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
        given: list[Given] = []
        kept: set[str] = set()
        left_out: list[tuple[Exchange, str]] = []
        for tape in tapes:
            until = (cut_ns or {}).get(Path(tape.path).name)
            bad = [(each, why) for each in tape.exchanges() if (why := _problem(each, until))]
            worse = {each.number for each, _ in bad}
            good = [each for each in tape.exchanges() if each.number not in worse]
            left_out += bad
            kept |= {exchange.id for exchange in good}
            if good:
                numbers = frozenset(exchange.number for exchange in good) if bad else None
                given.append(Given(tape=tape, numbers=numbers))
        try:
            with _in_turn(self._tape.parent):
                self._put(given, folder, clock)
                now = self._again(kept)
        except UsageError as error:
            raise UsageError(f"{error}; what was recorded is in {folder}") from None
        finally:
            self._unlock()
        shutil.rmtree(folder, ignore_errors=True)
        return Recorded(kept=now, left_out=tuple(left_out))

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _put(self, given: list[Given], folder: Path, clock: Clock) -> None:
        tape = self._tape
        if not given:
            return
        if not tape.exists():
            splice(given, tape, clock)
            return
        output = folder / f"{tape.name}.spliced"
        splice([Given(tape=open_tape(tape)), *given], output, clock)
        try:
            output.chmod(tape.stat().st_mode & 0o777)
            os.utime(output)  # it is the latest tape now
            output.replace(tape)
        except OSError as error:
            raise UsageError(f"{tape}: {error.strerror or error}") from None

    def _again(self, idents: set[str]) -> tuple[Exchange, ...]:
        if not idents:
            return ()
        found = (each for each in open_tape(self._tape).exchanges() if each.id in idents)
        return tuple(sorted(found, key=lambda exchange: exchange.number))


@contextlib.contextmanager
def _in_turn(folder: Path) -> Iterator[None]:
    """Nobody else puts anything onto a tape in `folder` meanwhile, if its file system has locks.

    Who holds the folder for longer is no run of ours, but may be what has started it, as flock(1):
    then it goes on, and `splice` tells whether the tape was changed.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                threading.Event().wait(_PAUSE_S)
                continue
            except OSError:
                pass
            break
        yield
    finally:
        os.close(descriptor)


def _locked(folder: str | Path) -> int:
    """A descriptor that keeps a folder ours for as long as this process lives.

    Raises:
        OSError: it is another's.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_left(folder: Path) -> bool:
    """Whether the process that made a folder is gone."""
    with contextlib.suppress(OSError):
        os.close(_locked(folder))
        return True
    return False


def _problem(exchange: Exchange, cut_ns: int | None) -> str:
    """Why it would make a bad recording; "": it would not."""
    end, response = exchange.end, exchange.response
    if end is None or end.reason is EndReason.STOPPED:
        return "it went on when the run ended"
    if end.reason is EndReason.CLIENT_CLOSED and cut_ns is not None and end.t_ns >= cut_ns:
        return "the application was ended before it was over"
    if response is None:
        return end.detail or "the provider did not answer"
    if end.recorder:
        return "not all of it could be taped"
    if response.status in _KEY_REFUSED:
        return f"the provider refused the key ({response.status})"
    return ""
