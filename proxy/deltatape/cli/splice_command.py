"""`deltatape splice`: joins tapes, or some of their exchanges."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from deltatape.cli.options import TapeArgument, output
from deltatape.cli.tapes import is_same_file, refuse_as_output
from deltatape.cli.terminal import say, write
from deltatape.clock import SystemClock
from deltatape.printable import count
from deltatape.store.listing import Location, locate
from deltatape.store.reader import open_tape
from deltatape.store.splice import SplicedTape, SpliceSource, splice

OUTPUT = output("The tape to make; it must not exist.", required=True)


@click.command("splice")
@click.argument("tapes", cls=TapeArgument, nargs=-1, required=True, metavar="TAPE[#N]...")
@OUTPUT
def command(*, tapes: tuple[str, ...], output: Path) -> int:
    """Join tapes, or single exchanges of them, to one tape.

    Exchanges are ordered by time and renumbered; their ids, bytes, boundaries, endings and
    wall-clock times stay. Of two equal copies of an exchange one is kept. Log lines and client
    connections are copied from whole tapes only. Prints the path of the new tape.
    """
    join([locate(text) for text in tapes], output)
    return 0


def join(places: Sequence[Location], path: Path) -> None:
    """Write the tape `path` from `places`, and print notes.

    Raises:
        UsageError: `path` is one of them or there already; they do not fit together.
        TapeFormatError: one is damaged.
    """
    sources = sources_of(places)
    for source in sources:
        refuse_as_output(path, source.tape)
    done = splice(sources, path, SystemClock())
    for tape in (source.tape for source in sources):
        if tape.torn:
            say(f"note: {tape.path}: left out a truncated last record of {tape.torn} bytes")
    _print_summary(done)
    write(f"{path}\n")
    say(f"next: deltatape show {shlex.quote(str(path))}")


def sources_of(places: Sequence[Location]) -> list[SpliceSource]:
    """Return each tape once, with its exchanges; naming a whole tape includes all.

    Raises:
        UsageError: there is no such tape.
        TapeFormatError: a file is no tape.
    """
    found: list[tuple[Path, set[int] | None]] = []
    for place in places:
        at = next(
            (at for at, (path, _) in enumerate(found) if is_same_file(path, place.path)), None
        )
        if at is None:
            found.append((place.path, None if place.exchange is None else {place.exchange}))
            continue
        path, numbers = found[at]
        whole = place.exchange is None or numbers is None
        found[at] = (path, None if whole else {*(numbers or ()), place.exchange or 0})
    return [
        SpliceSource(tape=open_tape(path), numbers=None if numbers is None else frozenset(numbers))
        for path, numbers in found
    ]


def _print_summary(done: SplicedTape) -> None:
    for first, other in done.duplicates:
        if other.number:
            say(
                f"note: {other.tape}#{other.number} is {first.tape}#{first.number}, byte for byte:"
                " taken once"
            )
        else:
            say(f"note: {other.tape} is a copy of {first.tape}: its log is taken once")
    say(f"{done.path}: {count(done.exchanges, 'exchange')}")
