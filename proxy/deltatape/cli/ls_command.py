"""`deltatape ls`: the tapes there are."""

from pathlib import Path

import click

from deltatape.cli.options import FORMAT
from deltatape.cli.terminal import show, write
from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError
from deltatape.render.as_json import tapes_json
from deltatape.render.listing import TapeRow, tape_lines
from deltatape.store.listing import FOLDERS, Listed, list_tapes
from deltatape.store.reader import open_tape


@click.command("ls")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@FORMAT
def command(*, folders: tuple[Path, ...], format: str) -> int:  # noqa: A002 - the option's name
    """List tapes, the newest first; by default those in .deltatape and recordings."""
    now = SystemClock().wall_ns()
    rows = [_row(tape, now) for tape in list_tapes(folders or FOLDERS)]
    if format == "json":
        write(tapes_json(rows))
    else:
        show(tape_lines(rows))
    return 0


def _row(tape: Listed, now_ns: int) -> TapeRow:
    return TapeRow(
        path=str(tape.path),
        bytes=tape.size,
        age_ns=now_ns - tape.modified_ns,
        exchanges=_count(tape.path),
    )


def _count(path: Path) -> int | None:
    """How many exchanges are on a tape; None when it cannot be read: `check` says why."""
    try:
        return len(open_tape(path))
    except DeltatapeError:
        return None
