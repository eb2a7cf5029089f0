"""`deltatape ls`: lists tapes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from deltatape.cli.options import FORMAT, option
from deltatape.cli.terminal import list_width, show, write
from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError, TapeFormatError
from deltatape.render.listing import TapeRow, tape_lines, tapes_json
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import ListedTape, list_named, list_tapes
from deltatape.store.shards import ShardedTape, open_recording, recording_of
from deltatape.why.overview import overview

_ONE_BYTES = 2 << 20
"""A larger tape is not analysed, which would take a second."""
_ALL_BYTES = 6 << 20
"""How much is analysed of all tapes, the newest first."""
_COUNTED_BYTES = 64 << 20
"""Exchanges are not counted in a larger tape."""


@click.command("ls")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@FORMAT
@option(
    "--full",
    is_flag=True,
    help="Analyse every tape, however large; else only the newest, as far as that takes no time.",
)
def command(*, folders: tuple[Path, ...], format: str, full: bool) -> int:  # noqa: A002 - the option's name
    """List tapes, the newest first; by default those in .deltatape and recordings.

    Shows each tape's size, number of exchanges, app, model, worst finding and age.
    """
    now_ns = SystemClock().wall_ns()
    tapes = list_named(folders) if folders else list_tapes()
    each = tuple(_recordings(tapes))
    rows = [_row(tape, now_ns, analysed=fits) for tape, fits in _budgeted(each, full=full)]
    if format == "json":
        write(tapes_json(rows))
    else:
        show(tape_lines(rows, list_width()))
    return 0


def _recordings(tapes: Sequence[ListedTape]) -> Iterable[ListedTape]:
    """Return tapes that are read together as one, with the size of all of them."""
    found: dict[object, ListedTape] = {}
    for tape in tapes:
        recording = recording_of(tape.path) or tape.path
        newest = found.get(recording)
        found[recording] = replace(newest, size=newest.size + tape.size) if newest else tape
    return found.values()


def _budgeted(tapes: Sequence[ListedTape], *, full: bool) -> Iterator[tuple[ListedTape, bool]]:
    """Yield each tape, and whether there is time to analyse it."""
    left = _ALL_BYTES
    for tape in tapes:
        fits = tape.size <= min(left, _ONE_BYTES)
        left -= tape.size if fits else 0
        yield tape, full or fits


def _row(listed: ListedTape, now_ns: int, *, analysed: bool) -> TapeRow:
    error, exchanges, seen, recording = "", None, None, False
    try:
        tape = open_recording(listed.path)
        recording = tape.recording
        if analysed:
            lacks_shards = isinstance(tape, ShardedTape) and bool(tape.missing)
            seen = overview(tape, current_rules(), alone=lacks_shards)
            exchanges = seen.exchanges
        else:
            exchanges = len(tape) if listed.size <= _COUNTED_BYTES else None
    except TapeFormatError as problem:
        error = f"line {problem.line}: {problem.problem}" if problem.line else problem.problem
    except DeltatapeError as problem:  # moved away meanwhile, or not ours to read
        error = str(problem).removeprefix(f"{listed.path}: ")
    return TapeRow(
        path=str(listed.path),
        bytes=listed.size,
        age_ns=now_ns - listed.modified_ns,
        exchanges=exchanges,
        recording=recording,
        overview=seen,
        error=error,
    )
