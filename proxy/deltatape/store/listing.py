"""Lists tapes, and resolves `TAPE#N`."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from deltatape.errors import UsageError
from deltatape.objects.urls import url_of
from deltatape.store.names import (
    DEFAULT_FOLDER,
    folder_apart,
    has_journal,
    is_tape_name,
    without_suffix,
)

RECORDINGS = Path("recordings")

_PLACE = re.compile(r"(.*)#([0-9]{1,18})", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTape:
    """A tape in a folder."""

    path: Path
    size: int
    """In bytes."""
    modified_ns: int
    """When it was last written to, since 1970-01-01T00:00:00Z."""


class Unreadable(NamedTuple):
    """A folder, or a file in it, that cannot be looked at; there may be tapes."""

    path: Path
    reason: str

    @property
    def problem(self) -> str:
        """Return what to tell the user."""
        return f"{self.path}: {self.reason}"


OnUnreadable = Callable[[Unreadable], object]


def unheeded(_: Unreadable) -> None:
    """Ignore what cannot be looked at."""


def error_handler(on_unreadable: OnUnreadable) -> Callable[[OSError], None]:
    """Return what `os.walk` calls with errors; what is gone, or no folder, is none."""

    def handle(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            path = Path(os.fsdecode(error.filename))
            on_unreadable(Unreadable(path, error.strerror or str(error)))

    return handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A tape, and an exchange on it if one was named."""

    path: Path
    exchange: int | None


def recorded_folders() -> tuple[Path, ...]:
    """Return where `deltatape record` puts the tapes of the working directory."""
    apart = folder_apart(Path.cwd(), os.environ)
    return (Path(DEFAULT_FOLDER), *((apart,) if apart.is_dir() else ()))


def tape_folders() -> tuple[Path, ...]:
    """Return where tapes are looked for when none is named."""
    return (*recorded_folders(), RECORDINGS)


def list_tapes(
    folders: Sequence[Path] | None = None, on_unreadable: OnUnreadable = unheeded
) -> tuple[ListedTape, ...]:
    """Return the tapes in `folders` and all folders below, newest first; a missing folder has none.

    A folder may be the URL of a store, too.

    A copy has the time of its original and comes after it: `x.tape` before `x-redacted.tape`.

    Args:
        folders: None for `tape_folders`.
        on_unreadable: called for each folder whose tapes are missing from the result.
    """
    folders = tape_folders() if folders is None else folders
    return _newest_first(tape for folder in folders for tape in _tapes_below(folder, on_unreadable))


def _newest_first(tapes: Iterable[ListedTape]) -> tuple[ListedTape, ...]:
    return tuple(
        sorted(tapes, key=lambda tape: (-tape.modified_ns, without_suffix(str(tape.path))))
    )


def _tapes_below(folder: Path, on_unreadable: OnUnreadable = unheeded) -> Iterator[ListedTape]:
    if (url := url_of(folder)) is not None:
        from deltatape.store.stored import stored_tapes  # noqa: PLC0415 - few are in a store

        for path, size, modified_ns in stored_tapes(url):
            if is_tape_name(path.name):
                yield ListedTape(path=path, size=size, modified_ns=modified_ns)
        return
    failed = error_handler(on_unreadable)
    for parent, _, names in os.walk(folder, onerror=failed):
        known = {name for name in names if is_tape_name(name)}
        for name in known:
            if has_journal(name, known):
                continue
            path = Path(parent, name)
            try:
                status = path.lstat()
            except OSError as error:  # such as one that was moved away meanwhile
                failed(error)
                continue
            # A link may lead anywhere; who wants its target can name it.
            if stat.S_ISREG(status.st_mode):
                yield ListedTape(path=path, size=status.st_size, modified_ns=status.st_mtime_ns)


def list_named(
    paths: Sequence[Path], on_unreadable: OnUnreadable = unheeded
) -> tuple[ListedTape, ...]:
    """Like `list_tapes`, but all folders must exist, and tapes can be named themselves.

    A tape that is named twice, such as with its folder, is listed once.

    Raises:
        UsageError: one is missing.
    """
    return _newest_first(
        {each.path: each for path in paths for each in _tapes_at(path, on_unreadable)}.values()
    )


def _tapes_at(path: Path, on_unreadable: OnUnreadable) -> Iterable[ListedTape]:
    """Return the tape at `path`, or those in the folder there."""
    if (url := url_of(path)) is not None:
        if not is_tape_name(path.name):
            return _tapes_below(path, on_unreadable)  # prefixes of keys need not exist
        from deltatape.store.stored import stored_tape  # noqa: PLC0415 - few are in a store

        _, size, modified_ns = stored_tape(url)
        return (ListedTape(path=path, size=size, modified_ns=modified_ns),)
    if path.is_dir():
        return _tapes_below(path, on_unreadable)
    try:
        status = path.stat()
    except FileNotFoundError:
        locate_whole(str(path))
        raise UsageError(f"{path}: there is no such tape or folder") from None
    return (ListedTape(path=path, size=status.st_size, modified_ns=status.st_mtime_ns),)


def check_folder(path: Path) -> None:
    """Check that a path is a folder.

    Raises:
        UsageError: it is missing, or not a folder.
    """
    if not path.is_dir():
        what = "is a file; name a folder" if path.exists() else "there is no such folder"
        raise UsageError(f"{path}: {what}")


def name_of(path: Path) -> str:
    """Return what a user calls a tape: its path, or its URL."""
    return url_of(path) or str(path)


def locate(text: str, folders: Sequence[Path] | None = None) -> Location:
    """Resolve `TAPE`, `TAPE#N`, `#N` (of the latest tape) or "" (the latest tape).

    Raises:
        UsageError: the text after `#` is not a number above 0, or no tape is named and `folders`
            (else `tape_folders`) have none, or cannot be read.
    """
    match = _PLACE.fullmatch(text)
    # A file may have a number sign in its name.
    name, number = (match[1], int(match[2])) if match and not _is_file(text) else (text, None)
    if number == 0:
        raise UsageError(f"{text}: exchanges are counted from 1")
    if name:
        _refuse_wrong_number(text, name)
        return Location(path=Path(name), exchange=number)
    folders = tape_folders() if folders is None else folders
    unreadable: list[Unreadable] = []
    tapes = list_tapes(folders, unreadable.append)
    if not tapes and unreadable:
        raise UsageError(unreadable[0].problem)
    if not tapes:
        places = " or ".join(str(folder) for folder in folders)
        raise UsageError(f"no tape in {places}; make one with `deltatape record` or name a file")
    return Location(path=tapes[0].path, exchange=number)


def locate_whole(text: str, folders: Sequence[Path] | None = None) -> Path:
    """Resolve the same without an exchange.

    Raises:
        UsageError: an exchange is named; see also `locate`.
    """
    place = locate(text, folders)
    if place.exchange is not None:
        raise UsageError(f"{text}: names one exchange, but a whole tape is needed; omit #N")
    return place.path


def _refuse_wrong_number(text: str, name: str) -> None:
    """Reject `TAPE#x`, which would otherwise be reported as a missing file.

    Args:
        text: what the user named.
        name: the file of it, if a number follows.
    """
    if _is_file(name):
        return
    for sign in reversed([*re.finditer("#", name)]):
        tape, rest = text[: sign.start()], text[sign.end() :]
        if tape and os.sep not in rest and _is_file(tape):
            raise UsageError(
                f"{text}: {rest!r} is no number of an exchange; one from 1 is accepted, such as"
                f" {tape}#1"
            )


def _is_file(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:  # too long, or through a folder that is none of ours
        return False
