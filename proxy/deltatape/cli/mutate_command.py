"""`deltatape mutate`: make a tape with an injected defect, fault or variation."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TypeAlias

import click

from deltatape import __version__
from deltatape.cli.options import TapeArgument, WholeNumber, option
from deltatape.cli.tapes import write_tape
from deltatape.cli.terminal import list_width, say, write
from deltatape.clock import SystemClock
from deltatape.errors import UsageError, did_you_mean
from deltatape.model.exchange import Exchange, Source
from deltatape.mutate import MUTATORS, MutationChoices, SeededChoices
from deltatape.printable import count
from deltatape.store.listing import locate
from deltatape.store.names import SUFFIX, ulid
from deltatape.store.reader import open_tape
from deltatape.tape.payload import Stop
from deltatape.tape.record import Header
from deltatape.tape.serialize import tape_lines
from deltatape.vary.fault import FAULTS, parse_fault
from deltatape.vary.variation import HARMLESS, HOSTILE

ALL = "all"

_Change: TypeAlias = Callable[[Exchange, MutationChoices], Exchange | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """Something that `--as` can name."""

    name: str
    family: str
    summary: str
    make: _Change


_FAMILIES = {
    "defects": "Defects that providers, gateways and servers have shown.",
    "harmless": "Harmless variations: the response has the same content.",
    "hostile": "Hostile variations: the response is broken or an error.",
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
@click.argument("tape", cls=TapeArgument, required=False, metavar="TAPE[#N]")
@option(
    "--as",
    "names",
    multiple=True,
    envvar="DELTATAPE_MUTATE_AS",
    metavar="NAME",
    help="What to inject: a name from --list, a fault as in replay --fault, or all. Several names"
    " are injected one after the other into one tape.",
)
@option(
    "--seed",
    default=1,
    type=WholeNumber(0, 2**31),
    help="Seed of the random choices; the same seed gives the same tape.",
)
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="The new tape; with --as all, a folder for one NAME.tape each.",
)
@option(
    "--list",
    "listed",
    is_flag=True,
    envvar="DELTATAPE_MUTATE_LIST",
    help="List the names and exit.",
)
def command(
    *,
    tape: str | None,
    names: tuple[str, ...],
    seed: int,
    output: Path | None,
    listed: bool,
) -> int:
    """Inject a defect, a fault or a variation into a tape; all else stays byte for byte.

    Changes every exchange of TAPE to which it applies, or only exchange N of TAPE#N. The other
    exchanges are copied unchanged, log lines are not copied. The last record of the new tape names
    what was injected.

    Exit code: 1 if it applies to no exchange.
    """
    if listed:
        write(_listing(list_width()))
        return 0
    if tape is None or not names or output is None:
        raise UsageError(
            "mutate: a tape, --as NAME and -o OUT are required; --list shows the names"
        )
    source = _source_tape(tape)
    if ALL not in names:
        return _write_one(source, names, seed, output)
    if len(names) > 1:
        raise UsageError("--as all: cannot be combined with other names")
    return _write_all(source, seed, output)


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
    lines.append(fill(f"Faults, as in replay --fault: {', '.join(FAULTS)}.", columns))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceTape:
    """A tape whose exchanges are changed."""

    text: str
    source: Source
    volatile: tuple[str, ...]
    exchanges: tuple[Exchange, ...]
    only: int | None
    """The number of the one that is meant; None: any."""

    def changed(self, make: _Change, seed: int) -> "_SourceTape | None":
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


def _source_tape(text: str) -> _SourceTape:
    place = locate(text)
    tape = open_tape(place.path)
    exchanges = tuple(tape)
    if not exchanges:
        raise UsageError(f"{text}: the tape has no exchange")
    if place.exchange is not None and all(one.number != place.exchange for one in exchanges):
        raise UsageError(
            f"{text}: no such exchange; the tape has {count(len(exchanges), 'exchange')}"
        )
    return _SourceTape(
        text=text,
        source=tape.header.source,
        volatile=tape.volatile,
        exchanges=exchanges,
        only=place.exchange,
    )


def _change_named(name: str) -> _Change:
    for change in changes():
        if change.name == name:
            return change.make
    if name.partition(",")[0].partition("=")[0] in FAULTS:
        return _fault_change(name)
    near = did_you_mean(name, (*(change.name for change in changes()), *FAULTS))
    raise UsageError(
        f"--as {name!r}: neither a name from --list nor a fault such as cut,at=in-text.{near}"
    )


def _fault_change(text: str) -> _Change:
    """Return a function that applies a fault to its exchange, or to all."""
    try:
        fault = parse_fault(text)
    except UsageError as error:
        raise UsageError(f"--as {str(error).removeprefix('--fault ')}") from None
    if fault.times is not None:
        raise UsageError(f"--as {text!r}: times= works only with replay; a tape is changed once")

    def make(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
        if fault.exchange not in (None, exchange.number):
            return None
        return fault.applied(exchange, chance)

    return make


def _write_one(source: _SourceTape, names: Sequence[str], seed: int, path: Path) -> int:
    """Write one tape with everything that is named."""
    made = source
    for name in names:
        changed = made.changed(_change_named(name), seed)
        if changed is None:
            say(f"{name}: applies to no exchange of {source.text}; no tape was written")
            return 1
        made = changed
    _write(path, made, names)
    return 0


def _write_all(source: _SourceTape, seed: int, folder: Path) -> int:
    """Write a tape per applicable name into a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"-o {folder}: {error.strerror}; --as all needs a folder") from error
    every = [*changes()]
    _refuse_tapes_of_before(folder, every)
    made = 0
    for change in every:
        changed = source.changed(change.make, seed)
        if changed is not None:
            _write(folder / f"{change.name}{SUFFIX}", changed, (change.name,))
            made += 1
    say(f"{made} of {len(every)} apply to {source.text}")
    return 0 if made else 1


def _refuse_tapes_of_before(folder: Path, every: Sequence[FaultSpec]) -> None:
    """Refuse a folder with tapes of these names before the first one is written."""
    for change in every:
        path = folder / f"{change.name}{SUFFIX}"
        if os.path.lexists(path):
            raise UsageError(
                f"-o {folder}: has {path.name} already, as from a run that was interrupted; name"
                " another folder, or delete this one"
            )


def _write(path: Path, source: _SourceTape, names: Sequence[str]) -> None:
    clock = SystemClock()
    header = Header(
        id=ulid(clock),
        tool=f"deltatape {__version__}",
        recorded_at=source.exchanges[0].recorded_at,
        source=source.source,
        volatile=source.volatile,
    )
    stop = Stop(reason=f"mutated: {', '.join(names)}", exit_code=None)
    write_tape(path, tape_lines(header, source.exchanges, stop))
    write(f"{path}\n")
