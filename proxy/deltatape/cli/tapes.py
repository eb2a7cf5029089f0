"""Resolves `TAPE`, `TAPE#N`, `FILE`, `FOLDER` and `-` on the command line."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deltatape.cli.terminal import read_stdin, say
from deltatape.errors import UsageError
from deltatape.model.case_files import BODY, FILES
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.tape_summary import ALONE, TapeContext
from deltatape.objects.urls import url_of
from deltatape.printable import count
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import OnUnreadable, Unreadable, list_tapes, locate, name_of
from deltatape.store.names import is_tape_name
from deltatape.store.reader import Tape
from deltatape.store.shards import ShardedTape, open_recording, recording_of
from deltatape.store.surroundings import is_large, surroundings

# Who reads a tape needs no importer.
if TYPE_CHECKING:
    from deltatape.importers.parts import ImportSource

MAX_FILE_BYTES = 256 * 1024 * 1024
NO_REQUEST = "it has no request; deltatape ls lists the other tapes"
_TAPE_START = b'{"deltatape"'


@dataclass(frozen=True, slots=True)
class NamedExchanges:
    """The exchanges that a command line names; `number` is the chosen one, if any."""

    name: str
    exchanges: tuple[Exchange, ...]
    number: int | None
    tape: Tape | None = None
    """None: it is a file that was imported."""
    context: TapeContext | None = None
    """What else is on the part of a large tape that was read; None: all of it was read."""

    @property
    def lacks_shards(self) -> bool:
        """Whether others of the conversations are missing: see `ShardedTape.missing`."""
        return isinstance(self.tape, ShardedTape) and bool(self.tape.missing)

    def beside(self) -> TapeContext:
        """Return what else is on the tape besides its exchanges.

        Raises:
            TapeFormatError: the tape is damaged.
        """
        if self.context is not None:
            return self.context
        if self.tape is None or self.lacks_shards:
            return ALONE
        return TapeContext(logs=self.tape.logs, clients=self.tape.clients)


def read_tape(text: str) -> tuple[Tape, tuple[Exchange, ...]]:
    """Return the exchanges that `TAPE` (all) or `TAPE#N` (one) names, by number.

    Raises:
        UsageError: there is no such tape or exchange.
        TapeFormatError: the tape is damaged.
    """
    place = locate(text)
    tape = _opened(place.path)
    return tape, _in_order(tape) if place.exchange is None else (tape[place.exchange],)


def exchanges_of(text: str) -> tuple[Exchange, ...]:
    """Return the same without the tape."""
    return read_tape(text)[1]


def provider_exchanges(tapes: Sequence[str]) -> tuple[Exchange, ...]:
    """Return the exchanges of the provider's side; see `read_tape`.

    Raises:
        UsageError: there is none.
    """
    once = each_recording_once(tapes)
    exchanges = tuple(
        each for tape in once for each in exchanges_of(tape) if each.tap is Tap.PROVIDER
    )
    if not exchanges:
        raise UsageError(f"{', '.join(tapes)}: no provider response to play")
    return exchanges


def with_stored(tapes: Iterable[str], volatile: Sequence[str]) -> tuple[str, ...]:
    """Return what is stored with tapes about what may differ in requests, and `volatile`.

    Says what is stored. Tapes that do not exist have nothing.

    Raises:
        TapeFormatError: a tape is damaged.
    """
    found: list[str] = []
    for text in each_recording_once(tapes):
        path = locate(text).path
        stored = open_recording(path).volatile if path.exists() else ()
        if stored:
            say(f"volatile, as stored with {path}: {', '.join(stored)}")
        found += stored
    return tuple(dict.fromkeys((*found, *volatile)))


def named(text: str, *, alone: bool = False, full: bool = False) -> NamedExchanges:
    """Read a tape, or import a file or stdin.

    Args:
        text: `TAPE[#N]`, `FILE`, a folder of a captured case or of tapes, `-`, or "" for the latest
            tape.
        alone: whether to read no other exchange than the named one.
        full: whether to read all of a large tape, too, for one exchange that is named. Otherwise,
            only those that surround it are read, and the user is told.

    Raises:
        UsageError: there is no such thing, or it cannot be read.
        TapeFormatError: the tape is damaged.
    """
    if text == "-":
        return _imported("(stdin)", _stdin(), None)
    folder = Path(text)
    if text and _is_folder(folder) and not _is_case(folder):
        unreadable: list[Unreadable] = []
        tapes = list_tapes((folder,), unreadable.append)
        if unreadable and not tapes:
            raise UsageError(unreadable[0].problem)
        for each in unreadable:
            say_unreadable(each)
        if tapes:
            newest = name_of(tapes[0].path)
            say(f"note: {text} is a folder; this is its latest tape, {newest}")
            return named(newest)
    place = locate(text)
    if not is_tape(place.path):
        return _imported(str(place.path), material(place.path), place.exchange)
    tape = _opened(place.path)
    if place.exchange is not None and alone:
        return NamedExchanges(tape.path, (tape[place.exchange],), place.exchange, tape)
    whole = full or isinstance(tape, ShardedTape)  # its surroundings are on several tapes
    if place.exchange is not None and not whole and is_large(tape):
        return _surrounded(tape.path, tape, place.exchange)
    exchanges = _in_order(tape)
    if place.exchange is not None and all(e.number != place.exchange for e in exchanges):
        tape[place.exchange]  # says which there are
    return NamedExchanges(tape.path, exchanges, place.exchange, tape)


def _imported(name: str, source: "ImportSource", number: int | None) -> NamedExchanges:
    from deltatape.importers import import_capture  # noqa: PLC0415 - see above

    exchanges = import_capture(source, current_rules().app).exchanges
    if number is not None and number > len(exchanges):
        raise UsageError(f"{name}#{number}: {name} has {count(len(exchanges), 'exchange')}")
    return NamedExchanges(name, exchanges, number)


def _surrounded(name: str, tape: Tape, number: int) -> NamedExchanges:
    near = surroundings(tape, number, current_rules().app)
    others = count(len(near.exchanges) - 1, "exchange")
    say(f"note: {name} is large: this is from #{number} and {others} around it; --full reads all")
    return NamedExchanges(name, near.exchanges, number, tape, near.context)


def latest() -> NamedExchanges:
    """Return the latest tape with an exchange; say so if a later one has none.

    Without any exchange on any tape: the latest one.

    Raises:
        UsageError: there is no tape.
        TapeFormatError: one that was looked at is damaged.
    """
    newest = named("")
    if newest.exchanges:
        return newest
    for tape in list_tapes()[1:]:
        found = named(str(tape.path))
        if found.exchanges:
            say(f"note: {newest.name}: it has no request; using {found.name}")
            return found
    return newest


def all_of(text: str, on_unreadable: OnUnreadable) -> tuple[str, ...]:
    """Return `text` itself, or every tape below a folder that is not a captured case.

    Args:
        text: as on the command line.
        on_unreadable: called for each folder whose tapes are missing from the result.

    Raises:
        UsageError: a folder with nothing to check below it.
    """
    path = Path(text)
    if text == "-" or not _is_folder(path) or _is_case(path):
        return (text,)
    unreadable: list[Unreadable] = []
    tapes = sorted(name_of(tape.path) for tape in list_tapes((path,), unreadable.append))
    for each in unreadable:
        on_unreadable(each)
    if not tapes and not unreadable:
        raise UsageError(f"{text}: holds no {BODY}, and there is no tape below")
    return tuple(tapes)


def say_unreadable(folder: Unreadable) -> None:
    """Say which folder's tapes are left out, and why."""
    say(f"deltatape: {folder.problem}")


def each_recording_once(names: Iterable[str]) -> Iterator[str]:
    """Leave out tapes that are read together with one before them."""
    seen = set()
    for name in names:
        recording = recording_of(name) if is_tape_name(name) else None
        if recording is None or recording not in seen:
            yield name
        seen.add(recording)


def _is_folder(path: Path) -> bool:
    """Check whether a path is a folder, or the URL of what may have tapes below."""
    if url_of(path) is not None:
        return not is_tape_name(locate(str(path)).path.name)
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long: whoever opens it says so
        return False


def _is_case(folder: Path) -> bool:
    """Check whether a folder is a captured case."""
    try:
        return (folder / BODY).exists()
    except OSError:  # such as a folder of another user: whoever lists it says so
        return False


def _opened(path: Path) -> Tape:
    tape = open_recording(path)
    if isinstance(tape, ShardedTape):
        say(f"note: {tape.note}")
    if tape.torn and not tape.recording:
        say(f"note: {path}: left out a truncated last record of {tape.torn} bytes")
    return tape


def _in_order(tape: Tape) -> tuple[Exchange, ...]:
    return tuple(sorted(tape.exchanges(), key=lambda exchange: exchange.number))


def is_tape(path: Path) -> bool:
    """Check whether a file is a tape, by its name or its content."""
    try:
        if is_tape_name(path.name) or not path.is_file():
            return not path.is_dir()
        return has_tape(path)
    except OSError:  # such as a name that is too long
        return True  # so that the reader says what is wrong


def has_tape(path: Path) -> bool:
    """Check whether the content of a file is a tape.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(len(_TAPE_START)) == _TAPE_START:
            return True
    from deltatape.store.sealed import is_sealed  # noqa: PLC0415 - not for what is a tape

    return is_sealed(path)


def material(
    path: Path, request: Path | None = None, response: Path | None = None
) -> "ImportSource":
    """Return a file, or the files of a captured case's folder, to import.

    Raises:
        UsageError: one of them cannot be read or is too large, or the body is empty and the only
            file.
    """
    from deltatape.importers.parts import ImportSource  # noqa: PLC0415 - see above

    paths = [path]
    if path.is_dir():
        paths = [path / name for name in FILES if (path / name).is_file()]
    made = ImportSource(
        name=str(path),
        files={each.name: read_file(each) for each in paths},
        request=read_file(request) if request else None,
        response=read_file(response) if response else None,
        request_name=str(request),
        response_name=str(response),
    )
    # A captured case, or what a user describes, may well have no body.
    if request is None and response is None and not path.is_dir():
        _refuse_nothing(made, "empty")
    return made


def refuse_as_output(path: Path, tape: Tape) -> None:
    """Refuse to write the tape that is read.

    Raises:
        UsageError: `path`, which `-o` names, is that tape.
    """
    if is_same_file(Path(tape.path), path):
        raise UsageError(f"-o {path}: is one of the tapes to be read; name another file")


def is_same_file(one: Path, other: Path) -> bool:
    """Check whether two names refer to one file."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def write_tape(path: Path, lines: Iterable[bytes]) -> None:
    """Write the new tape that `-o` names.

    Raises:
        UsageError: there is a file already, or it cannot be written.
    """
    from deltatape.store.rewrite import PRIVATE, write_new  # noqa: PLC0415 - and with it redaction

    try:
        write_new(path, PRIVATE, lines)
    except FileExistsError:
        raise UsageError(f"-o {path}: already exists; a tape is never overwritten") from None
    except OSError as error:
        raise UsageError(f"-o {path}: {error.strerror or error}") from error


def read_file(path: Path) -> bytes:
    """Read a file or a pipe, as of `<(...)`, up to a limit: a device may have no end.

    Raises:
        UsageError: it cannot be read, is a device, or is longer than `MAX_FILE_BYTES`.
    """
    try:
        if path.is_char_device() or path.is_block_device():
            raise UsageError(f"{path}: is a device; name a file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path}: more than {MAX_FILE_BYTES} bytes")
    return data


def _stdin() -> "ImportSource":
    if sys.stdin.isatty():
        sys.stderr.write("deltatape: reading standard input; end it with Ctrl-D\n")
    data = read_stdin(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"standard input: more than {MAX_FILE_BYTES} bytes")
    if data.startswith(_TAPE_START):
        raise UsageError("(stdin): is a tape; name its file instead")
    from deltatape.importers.parts import ImportSource  # noqa: PLC0415 - see above

    made = ImportSource(name="(stdin)", files={"(stdin)": data})
    _refuse_nothing(made, "nothing was read")
    return made


def _refuse_nothing(made: "ImportSource", problem: str) -> None:
    """Reject an empty pipe, which would look like an answer of 0 bytes."""
    if made.only == b"":
        from deltatape.importers import ACCEPTED  # noqa: PLC0415 - see above

        raise UsageError(f"{made.name}: {problem}; {ACCEPTED}")
