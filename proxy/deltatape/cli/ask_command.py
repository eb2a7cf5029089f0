"""`deltatape ask`: answers questions about a dataset."""

import csv
import io
import os
import re
from datetime import date, datetime, timedelta  # noqa: TID251 - they read no clock
from decimal import Decimal
from itertools import chain, islice
from math import isfinite
from pathlib import Path

import click

from deltatape.ask.chart import bars, chart_lines, chart_svg
from deltatape.ask.copies import local_dataset
from deltatape.ask.dataset import Answer, Dataset, Only, SqlError
from deltatape.ask.prepared import question, questions
from deltatape.cli.options import FILE, TapeArgument, WholeNumber, option, refuse_useless
from deltatape.cli.terminal import list_width, say, show, width, write
from deltatape.errors import UsageError
from deltatape.printable import count, escape
from deltatape.render.json_document import VERSION, inert_json, inert_line
from deltatape.render.lines import BOLD, DIM, LEAST, Cell, Line, StyledText, line, table

_SHOWN = 100
"""Rows that are printed for people without --limit."""
_DRAWN = 40
_MAX_CELL = 200
_LONG = frozenset({"VARCHAR", "VARCHAR[]"})
"""Types of columns that a narrow page shortens."""
_REFERENCE = re.compile(r"^(?:tape|exchange)$|_in$")
"""Columns that it does not: what they name can be opened."""


def day(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    """Parse a day such as 2026-11-21; a click callback."""
    if value is None:
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: invalid day; use 2026-11-21", ctx=ctx, param=param
        ) from None


@click.command("ask")
@click.argument("dataset", cls=TapeArgument)
@click.argument("name", required=False, metavar="[QUESTION]")
@option("--sql", metavar="SELECT", help="Ask this instead of a prepared question.")
@option("--since", metavar="DAY", callback=day, help="Only exchanges from this day on, in UTC.")
@option("--until", metavar="DAY", callback=day, help="Only exchanges up to this day, in UTC.")
@option("--provider", help="Only exchanges with this provider.")
@option("--model", help="Only exchanges with this model.")
@option("--limit", type=WholeNumber(min=1), metavar="ROWS", help="Show so many rows at most.")
@option(
    "--format",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    help="Text for people, JSON or CSV for programs.",
)
@option("--plot", is_flag=True, help="Draw bars on the terminal instead of a table.")
@option("--svg", type=FILE, metavar="FILE", help="Draw the bars to an SVG file.")
@option("--value", metavar="COLUMN", help="With --plot or --svg: the column to draw.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    dataset: str,
    name: str | None,
    sql: str | None,
    since: date | None,
    until: date | None,
    provider: str | None,
    model: str | None,
    limit: int | None,
    format: str,  # noqa: A002 - the option's name
    plot: bool,
    svg: Path | None,
    value: str | None,
) -> int:
    """Answer a question about the exchanges of many tapes, from a dataset of `deltatape scan`.

    DATASET is a folder, or the URL of an object store, which is copied to this machine. QUESTION is
    the name of a prepared question; without it, all are listed. --sql takes any SELECT on the
    tables tapes, exchanges, calls, findings; docs/ask.md describes both.
    """
    if name is not None and sql is not None:
        raise UsageError("--sql and QUESTION are different questions; give one")
    if name is None and sql is None:
        refuse_useless(ctx, {"dataset"}, "without a question")
        with Dataset(local_dataset(dataset, os.environ)):  # says whether there is one
            show(_listed())
        return 0
    if not (plot or svg):
        refuse_useless(ctx, set(ctx.params) - {"value"}, "without --plot or --svg")
    if plot and format != "text":
        raise UsageError(f"--plot: draws on the terminal; --format {format} is for programs")
    if since and until and since > until:
        raise UsageError(f"--since {since}: is after --until {until}; no exchange lies between")
    asked = question(name) if name is not None else None
    only = Only(since=since, until=until, provider=provider, model=model)
    sql = asked.sql if asked else sql or ""
    title = asked.title if asked else " ".join(sql.split())
    drawn = value or (asked.plot if asked else None)
    with Dataset(local_dataset(dataset, os.environ), only) as opened:
        for note in opened.notes:
            say(f"deltatape: {note}")
        try:
            answer = opened.ask(sql)
            answer = Answer(answer.columns, islice(answer.rows, limit))
            if plot or svg:
                rows = list(islice(answer.rows, _DRAWN))
                found = bars(answer.columns, rows, drawn)
                answer = Answer(answer.columns, chain(rows, answer.rows))
                if svg:
                    _save(svg, chart_svg(title, found))
                if plot:
                    show(chart_lines(title, found, width()))
                    _say_more(sum(1 for _ in answer.rows) - len(rows))
                    return 0
            if format == "json":
                _write_json(name, answer)
            elif format == "csv":
                _write_csv(answer)
            else:
                _show_table(title, answer, limit or _SHOWN)
        except SqlError as error:
            # DuckDB shows the place, on lines of their own.
            for each in f"deltatape: {error}".splitlines():
                say(each)
            return SqlError.exit_code
    return 0


def _listed() -> list[Line]:
    rows: list[list[Cell]] = [
        [StyledText(each.name, BOLD), each.title] for each in questions().values()
    ]
    return table(rows, width=list_width(), give={1: LEAST})


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"--svg {path}: {error.strerror}") from None
    say(f"deltatape: wrote {path}")


def _say_more(left: int) -> None:
    if left:
        say(f"deltatape: {count(left, 'row')} more; see --limit and --format")


def _show_table(title: str, answer: Answer, limit: int) -> None:
    rows = list(islice(answer.rows, limit))
    heads: list[Cell] = [StyledText(each.name, BOLD) for each in answer.columns]
    cells: list[list[Cell]] = [[_text(each) for each in row] for row in rows]
    right = [at for at, column in enumerate(answer.columns) if column.numeric]
    give = {
        at: LEAST
        for at, column in enumerate(answer.columns)
        if column.type in _LONG and not _REFERENCE.search(column.name)
    }
    lines = [line(StyledText(title, DIM))]
    if rows:
        lines += table([heads, *cells], right=right, width=list_width(), give=give)
    else:
        lines.append(line(StyledText("no rows", DIM)))
    show(lines)
    _say_more(sum(1 for _ in answer.rows))


def _text(value: object) -> str:
    """Return a value as a table shows it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.isoformat(" ", "seconds")
        case list():
            return ", ".join(map(_text, value))
        case _:
            text = str(_plain(value))
            return escape(text if len(text) <= _MAX_CELL else f"{text[: _MAX_CELL - 3]}...")


def _plain(value: object) -> object:
    """Return a value as JSON has it: times as text, durations in seconds, bytes as hex."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime():
            return value.isoformat() + ("Z" if value.tzinfo is None else "")
        case timedelta():
            return value.total_seconds()
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case _:
            return str(value)


def _write_json(name: str | None, answer: Answer) -> None:
    """Write the document of docs/ask.schema.json in parts: there may be any number of rows."""
    columns = inert_line([{"name": each.name, "type": each.type} for each in answer.columns])
    write(
        f'{{\n "version": {VERSION},\n "question": {inert_json(name)},\n "columns": {columns},\n'
        ' "rows": ['
    )
    names = [each.name for each in answer.columns]
    for at, row in enumerate(answer.rows):
        found = inert_line(dict(zip(names, map(_plain, row), strict=True)))
        write(f"{',' if at else ''}\n  {found}")
    write("\n ]\n}\n")


def _write_csv(answer: Answer) -> None:
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow([each.name for each in answer.columns])
    for row in answer.rows:
        rows.writerow(["" if each is None else _field(_plain(each)) for each in row])
        write(text.getvalue())
        text.seek(0)
        text.truncate()
    write(text.getvalue())


def _field(value: object) -> object:
    """Return what a field of CSV holds: lists as JSON, text without what terminals obey."""
    return escape(value) if isinstance(value, str) else inert_line(value)
