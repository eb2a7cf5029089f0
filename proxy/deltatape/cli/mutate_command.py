"""`deltatape mutate`: makes tapes with a defect, a fault or a variation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TypeAlias

import click

from deltatape import __version__
from deltatape.cli.options import option
from deltatape.cli.terminal import list_width, say, write
from deltatape.clock import SystemClock
from deltatape.errors import UsageError, did_you_mean
from deltatape.model.exchange import Exchange, Source
from deltatape.mutate import MUTATORS, MutationChoices, SeededChoices
from deltatape.printable import count
from deltatape.store.listing import locate
from deltatape.store.names import SUFFIX, ulid
from deltatape.store.reader import open_tape
from deltatape.store.rewrite import PRIVATE, write_new
from deltatape.tape.payload import Stop
from deltatape.tape.record import Header
from deltatape.tape.serialize import tape_lines
from deltatape.vary.fault import FAULTS, parse_fault
from deltatape.vary.variation import HARMLESS, HOSTILE

ALL = "all"

_Make: TypeAlias = Callable[[Exchange, MutationChoices], Exchange | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """Something that `--as` can name."""

    name: str
    family: str
    summary: str
    make: _Make


_FAMILIES = {
    "defects": "Defects that were seen in the wild.",
    "harmless": "Harmless variations: the reply says the same.",
    "hostile": "Hostile variations: the reply fails.",
}


def changes() -> Iterator[FaultSpec]:
    """Yield everything that `--as` can name, by family."""
    for mutator in MUTATORS:
        yield FaultSpec(
            name=mutator.name, family="defects", summary=mutator.summary, make=mutator.mutate
        )
    for variation in (*HARMLESS, *HOSTILE):
        if all(variation.name != mutator.name for mutator in MUTATORS):
            family = "harmless" if variation.harmless else "hostile"
            yield FaultSpec(
                name=variation.name, family=family, summary=variation.summary, make=variation.make
            )


@click.command("mutate")
@click.argument("tape", required=False, metavar="TAPE[#N]")
@option(
    "--as",
    "names",
    multiple=True,
    envvar="DELTATAPE_MUTATE_AS",
    metavar="NAME",
    help="What to put in: a name of --list, a fault as of replay --fault, or all. Several: all on"
    " one tape, one after the other.",
)
@option(
    "--seed",
    default=1,
    type=click.IntRange(0, 2**31),
    help="Chooses where there is a choice; the same makes the same.",
)
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="The tape to make, which must not exist; with --as all the folder for NAME.tape of each.",
)
@option(
    "--list",
    "listed",
    is_flag=True,
    envvar="DELTATAPE_MUTATE_LIST",
    help="List the names, and make nothing.",
)
def command(
    *,
    tape: str | None,
    names: tuple[str, ...],
    seed: int,
    output: Path | None,
    listed: bool,
) -> int:
    """Put a defect, a fault or a variation into a tape; all else stays byte for byte.

    Every exchange of TAPE that has a place for it is changed, of TAPE#N only that one; the others
    come along as they are, log lines do not. Where the new tape stops it says what was put in.
    Exit code 1 if no exchange has a place.
    """
    if listed:
        write(_listing(list_width()))
        return 0
    if tape is None or not names or output is None:
        raise UsageError("mutate: a tape, --as NAME and -o OUT are needed; --list shows the names")
    taken = _taken(tape)
    if ALL not in names:
        return _together(taken, names, seed, output)
    if len(names) > 1:
        raise UsageError("--as all: is every name there is; it goes with no other")
    return _each(taken, seed, output)


def _listing(columns: int) -> str:
    """Format the names by family in `columns` columns."""
    found = [*changes()]
    wide = max(len(each.name) for each in found)
    lines: list[str] = []
    for family, title in _FAMILIES.items():
        lines += [title, ""]
        for each in found:
            if each.family == family:
                start = f"  {each.name:{wide}}  "
                lines.append(
                    fill(start + each.summary, columns, subsequent_indent=" " * len(start))
                )
        lines.append("")
    lines.append(fill(f"Faults, as replay --fault takes them: {', '.join(FAULTS)}.", columns))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """A tape whose exchanges are changed."""

    text: str
    source: Source
    exchanges: tuple[Exchange, ...]
    only: int | None
    """The number of the one that is meant; None: any."""

    def changed(self, make: _Make, seed: int) -> "_Taken | None":
        """Change every exchange that has a place for it; return None if none has."""
        found = [
            make(one, SeededChoices((seed << 32) + one.number))
            if self.only in (None, one.number)
            else None
            for one in self.exchanges
        ]
        pairs = zip(found, self.exchanges, strict=True)
        made = tuple(new or old for new, old in pairs)
        return replace(self, exchanges=made) if any(found) else None


def _taken(text: str) -> _Taken:
    place = locate(text)
    tape = open_tape(place.path)
    exchanges = tuple(tape)
    if not exchanges:
        raise UsageError(f"{text}: has no exchange")
    if place.exchange is not None and all(one.number != place.exchange for one in exchanges):
        raise UsageError(f"{text}: has {count(len(exchanges), 'exchange')}, not that one")
    return _Taken(text=text, source=tape.header.source, exchanges=exchanges, only=place.exchange)


def _named(name: str) -> _Make:
    for change in changes():
        if change.name == name:
            return change.make
    if name.partition(",")[0].partition("=")[0] in FAULTS:
        return _faulty(name)
    near = did_you_mean(name, (*(change.name for change in changes()), *FAULTS))
    raise UsageError(
        f"--as {name!r}: neither a name of --list, nor a fault such as cut,at=in-text.{near}"
    )


def _faulty(text: str) -> _Make:
    """Return a function that applies a fault to its exchange, or to all."""
    try:
        fault = parse_fault(text)
    except UsageError as error:
        raise UsageError(f"--as {str(error).removeprefix('--fault ')}") from None
    if fault.times is not None:
        raise UsageError(f"--as {text!r}: times= is for replay; a tape is changed once")

    def make(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
        if fault.exchange not in (None, exchange.number):
            return None
        return fault.applied(exchange, chance)

    return make


def _together(taken: _Taken, names: Sequence[str], seed: int, path: Path) -> int:
    """Write one tape with everything that is named."""
    made = taken
    for name in names:
        changed = made.changed(_named(name), seed)
        if changed is None:
            say(f"{name}: no exchange of {taken.text} has a place for it; nothing was made")
            return 1
        made = changed
    _write(path, made, names)
    return 0


def _each(taken: _Taken, seed: int, folder: Path) -> int:
    """Write a tape per applicable name into a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"-o {folder}: {error.strerror}; a folder is made there") from error
    every = [*changes()]
    made = 0
    for change in every:
        changed = taken.changed(change.make, seed)
        if changed is not None:
            _write(folder / f"{change.name}{SUFFIX}", changed, (change.name,))
            made += 1
    say(f"{made} of {len(every)} have a place in {taken.text}")
    return 0 if made else 1


def _write(path: Path, taken: _Taken, names: Sequence[str]) -> None:
    clock = SystemClock()
    header = Header(
        id=ulid(clock),
        tool=f"deltatape {__version__}",
        recorded_at=taken.exchanges[0].recorded_at,
        source=taken.source,
    )
    stop = Stop(reason=f"mutated: {', '.join(names)}", exit_code=None)
    try:
        write_new(path, PRIVATE, tape_lines(header, taken.exchanges, stop))
    except FileExistsError:
        raise UsageError(f"-o {path}: exists already; a tape is never overwritten") from None
    except OSError as error:
        raise UsageError(f"-o {path}: {error.strerror or error}") from error
    write(f"{path}\n")
