"""`deltatape ls`: lists tapes, and their exchanges."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from deltatape.cli.options import FORMAT, TapeArgument, option
from deltatape.cli.tapes import say_unreadable
from deltatape.cli.terminal import Bar, list_width, say, show, write
from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError, TapeFormatError, UsageError
from deltatape.garbage import YOUNG_OBJECTS, collecting_seldom
from deltatape.model.exchange_row import ExchangeRow
from deltatape.model.tape_summary import LogEntry
from deltatape.objects.urls import url_of
from deltatape.render.exchange_rows import (
    ExchangesDocument,
    exchange_lines,
    trend_lines,
    trends_json,
)
from deltatape.render.lines import line
from deltatape.render.listing import TapeRow, tape_lines, tapes_json
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import (
    ListedTape,
    OnUnreadable,
    Unreadable,
    list_named,
    list_tapes,
    name_of,
)
from deltatape.store.names import is_tape_name
from deltatape.store.reader import Tape
from deltatape.store.shards import ShardedTape, open_recording, recording_of
from deltatape.tape.sealed import worst_finding
from deltatape.why.exchange_index import index_rows
from deltatape.why.overview import TapeOverview, overview
from deltatape.why.trends import Trends

_ONE_BYTES = 2 << 20
"""A larger tape is not analysed, which would take a second."""
_ALL_BYTES = 6 << 20
"""How much is analysed of all tapes, the newest first."""
_COUNTED_BYTES = 64 << 20
"""Exchanges are not counted in a larger tape."""


@click.command("ls")
@click.argument(
    "folders",
    cls=TapeArgument,
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[FOLDER | TAPE]...",
)
@FORMAT
@option(
    "--exchanges",
    is_flag=True,
    help="List the exchanges of every tape: model, times, tokens, worst finding, conversation.",
)
@option(
    "--trends",
    is_flag=True,
    help="Count findings and dead zones of all exchanges by day, provider and model.",
)
@option(
    "--full",
    is_flag=True,
    help="Analyse every tape, however large; else only the newest, as far as that takes no time.",
)
def command(
    *,
    folders: tuple[Path, ...],
    format: str,  # noqa: A002 - the option's name
    exchanges: bool,
    trends: bool,
    full: bool,
) -> int:
    """List tapes, the newest first; by default those in .deltatape and recordings.

    Shows each tape's size, number of exchanges, app, model, worst finding and age. With --exchanges
    or --trends, all tapes are analysed. Folders and tapes may be URLs of an object store:
    s3://BUCKET/PREFIX.
    """
    if exchanges or trends:
        if exchanges and trends:
            raise UsageError("--exchanges and --trends list different things; give one")
        unreadable: list[Unreadable] = []
        paths = _tapes(folders, unreadable.append)
        for folder in unreadable:
            say_unreadable(folder)
        code = _list_exchanges(paths, format, trends=trends)
        return DeltatapeError.exit_code if unreadable else code
    now_ns = SystemClock().wall_ns()
    tapes = list_named(folders, say_unreadable) if folders else list_tapes(None, say_unreadable)
    each = tuple(_recordings(tapes))
    rows = [
        _row(tape, now_ns, analysed=fits, full=full) for tape, fits in _budgeted(each, full=full)
    ]
    if format == "json":
        write(tapes_json(rows))
    else:
        show(tape_lines(rows, list_width()))
    return 0


def _tapes(named: Sequence[Path], on_unreadable: OnUnreadable) -> list[Path]:
    """Return the named tapes, and those in named folders; without names, all that `ls` lists."""
    found: list[ListedTape | Path] = (
        [] if named else [*_recordings(list_tapes(None, on_unreadable))]
    )
    for path in named:
        single = path.is_file() or _is_stored_tape(path)
        found += [path] if single else _recordings(list_named([path], on_unreadable))
    return [each.path if isinstance(each, ListedTape) else each for each in found]


def _is_stored_tape(path: Path) -> bool:
    return url_of(path) is not None and is_tape_name(path.name)


def _list_exchanges(paths: Sequence[Path], form: str, *, trends: bool) -> int:
    """List the exchanges of tapes, or what is wrong with them over time; return the exit code."""
    counted, written = Trends(), ExchangesDocument()
    shown, failed = 0, False
    with Bar("tapes", len(paths)) as bar, collecting_seldom(YOUNG_OBJECTS):
        for path in paths:
            try:
                rows = _rows_of(path)
            except DeltatapeError as problem:
                failed = True
                with bar.aside():
                    say(f"deltatape: {problem}")
                continue
            finally:
                bar.step()
            if trends:
                for row in rows:
                    counted.add(row)
                continue
            with bar.aside():
                if form == "json":
                    write(written.add(rows))
                else:
                    show(
                        [
                            *([line()] if shown else ()),
                            *exchange_lines(name_of(path), rows, list_width()),
                        ]
                    )
            shown += 1
    if trends:
        if form == "json":
            write(trends_json(counted))
        else:
            show(trend_lines(counted, list_width()))
    elif form == "json":
        write(written.end())
    elif not paths:
        show(tape_lines(()))
    return DeltatapeError.exit_code if failed else 0


def _rows_of(path: Path) -> list[ExchangeRow]:
    """Return the rows of a tape, by their numbers.

    Raises:
        DeltatapeError: it cannot be read.
    """
    tape = open_recording(path)
    if tape.is_sealed:
        from deltatape.store.rule_set import rule_set  # noqa: PLC0415 - few tapes are sealed
        from deltatape.store.sealed import sealed_rows  # noqa: PLC0415

        known = sealed_rows(path, rule_set(current_rules()))
        if known is not None:
            return [*known]
    alone = isinstance(tape, ShardedTape) and bool(tape.missing)
    rows = index_rows(tape, current_rules(), _logs(tape), alone=alone)
    latest = {row.exchange: row for row in rows}
    return [latest[number] for number in sorted(latest)]


def _sealed_overview(tape: Tape) -> TapeOverview | None:
    """Return what the index of a sealed tape says of it, if the same rules made it."""
    from deltatape.store.rule_set import rule_set  # noqa: PLC0415 - few tapes are sealed
    from deltatape.store.sealed import SealedTape  # noqa: PLC0415

    assert isinstance(tape, SealedTape)
    table = tape.sealed.table
    found = table.summary
    if found is None or table.rules != rule_set(current_rules()):
        return None
    worst = None
    if found.worst is not None:
        worst = {**found.worst, "tape": tape.path}
        against = worst.get("against")
        if isinstance(against, dict):
            worst["against"] = {**against, "tape": tape.path}
    return TapeOverview(
        exchanges=table.exchanges,
        apps=found.apps,
        models=found.models,
        findings=found.findings,
        worst=None if worst is None else worst_finding(worst),
        worst_object=worst,
    )


def _logs(tape: Tape) -> Iterator[LogEntry]:
    """Yield the app's output; reads the tape only when iterated."""
    yield from tape.logs


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


def _row(listed: ListedTape, now_ns: int, *, analysed: bool, full: bool) -> TapeRow:
    error, exchanges, seen, recording = "", None, None, False
    try:
        tape = open_recording(listed.path)
        recording = tape.recording
        if tape.is_sealed:
            seen = _sealed_overview(tape)
            analysed = full or tape.size <= _ONE_BYTES
        if seen is not None:
            exchanges = seen.exchanges
        elif analysed:
            lacks_shards = isinstance(tape, ShardedTape) and bool(tape.missing)
            seen = overview(tape, current_rules(), alone=lacks_shards)
            exchanges = seen.exchanges
        else:
            counted = tape.is_sealed or listed.size <= _COUNTED_BYTES
            exchanges = len(tape) if counted else None
    except TapeFormatError as problem:
        error = f"line {problem.line}: {problem.problem}" if problem.line else problem.problem
    except DeltatapeError as problem:  # moved away meanwhile, or not ours to read
        error = str(problem).removeprefix(f"{name_of(listed.path)}: ")
    return TapeRow(
        path=name_of(listed.path),
        bytes=listed.size,
        age_ns=now_ns - listed.modified_ns,
        exchanges=exchanges,
        recording=recording,
        overview=seen,
        error=error,
    )
