"""Exchanges as rows, and counts of them by day, provider and model.

If a line of text is too wide, columns are left out, the least important first, then the name of the
model and the worst finding are shortened.
"""

from collections.abc import Iterable, Sequence

from deltatape.model.exchange import EndReason
from deltatape.model.exchange_row import ExchangeRow, WorstFinding
from deltatape.model.finding import Severity
from deltatape.model.token_usage import TokenCount
from deltatape.printable import excerpt
from deltatape.render.json_document import VERSION, document, inert_members
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    LEAST,
    STYLES,
    WIDTH,
    Cell,
    Line,
    StyledText,
    line,
    table,
    without_columns,
)
from deltatape.render.numbers import duration
from deltatape.why.trends import TrendGroup, Trends

_MAX_MODEL = 32
_MAX_FINISH = 24
_MAX_CODES = 6
_SECOND = len("2000-01-01T00:00:00")
_NO_EXCHANGES = "no exchanges"
_HEADS = ("exchange", "UTC", "provider", "model", "took", "first event", "tokens", "calls")
_NUMBER, _AT, _PROVIDER, _MODEL, _TOOK, _FIRST, _TOKENS, _CALLS, _END, _WORST, _THREAD = range(11)
_LEAVE_OUT = (_TOKENS, _PROVIDER, _AT, _CALLS, _FIRST, _END, _TOOK, _MODEL)
"""Columns that may be left out, in this order."""
_GIVE = {_MODEL: LEAST, _WORST: len("error C002 arguments-chan...")}
"""Columns that may be cut, and to what."""
_RIGHT = frozenset({_TOOK, _FIRST, _TOKENS, _CALLS})
_ERROR = 400


def exchange_lines(tape: str, rows: Sequence[ExchangeRow], width: int = WIDTH) -> list[Line]:
    """Format the rows of a tape below its name."""
    lines = _rows(rows, width) if rows else [line(StyledText(_NO_EXCHANGES, DIM))]
    return [line(StyledText(tape, BOLD)), *lines]


def _rows(rows: Sequence[ExchangeRow], width: int) -> list[Line]:
    heads = (*_HEADS, "ending", "worst finding", "conversation")
    cells = [[StyledText(head, BOLD) for head in heads], *map(row_cells, rows)]
    shown = without_columns(cells, width, _LEAVE_OUT, _GIVE)
    return table(
        [[row[column] for column in shown] for row in cells],
        right=[at for at, column in enumerate(shown) if column in _RIGHT],
        width=width,
        give={at: _GIVE[column] for at, column in enumerate(shown) if column in _GIVE},
    )


def row_cells(row: ExchangeRow) -> list[StyledText]:
    """Return a row's cells: number, time, provider, model, ..., worst finding, conversation."""
    return [
        StyledText(f"#{row.exchange}", BOLD),
        StyledText(row.at[:_SECOND].replace("T", " ") if row.at else ""),
        StyledText(excerpt(row.provider or "", _MAX_MODEL)),
        StyledText(excerpt(row.model or "", _MAX_MODEL)),
        StyledText(_time(row.duration_ns)),
        StyledText(_time(row.first_event_ns)),
        StyledText(_tokens(row.tokens)),
        StyledText(str(row.calls) if row.calls else ""),
        _ending(row),
        _worst(row),
        StyledText(_conversation(row)),
    ]


def _time(ns: int | None) -> str:
    return "" if ns is None else duration(max(0, ns))


def _tokens(tokens: TokenCount | None) -> str:
    """`61 > 51`: how many went in and came out."""
    if tokens is None:
        return ""
    return " > ".join("?" if each is None else str(each) for each in (tokens.input, tokens.output))


def _ending(row: ExchangeRow) -> StyledText:
    """Return what matters most: `open`, `status 429`, `client closed`, `tool_calls`."""
    if row.open:
        return StyledText("open", STYLES[Severity.INFO])
    if row.status is not None and row.status >= _ERROR:
        return StyledText(f"status {row.status}", STYLES[Severity.ERROR])
    if row.ending not in (None, EndReason.COMPLETE):
        return StyledText(str(row.ending).replace("_", " "), STYLES[Severity.WARNING])
    return StyledText(excerpt(row.finish or "", _MAX_FINISH))


def _worst(row: ExchangeRow) -> StyledText:
    """`error C002 arguments-changed-by-app +1`: the worst finding, and how many more there are.

    `shows C002 of #1`: without any, what its request shows about an earlier reply.
    """
    worst = row.worst
    if worst is None and row.shows:
        shown, *others = row.shows
        more = f" +{len(others)}" if others else ""
        return StyledText(f"shows {shown.finding.code} of #{shown.exchange}{more}", DIM)
    if worst is None:
        return StyledText("healthy", GOOD)
    more = f" +{row.findings - 1}" if row.findings > 1 else ""
    return StyledText(f"{worst.severity} {worst.code} {worst.name}{more}", STYLES[worst.severity])


def _conversation(row: ExchangeRow) -> str:
    """`after #3: retry`."""
    after = f"after #{row.before}" if row.before is not None else ""
    return ": ".join(filter(None, (after, ", ".join(row.marks))))


def trend_lines(trends: Trends, width: int = WIDTH) -> list[Line]:
    """Format a line for each day, provider and model."""
    groups = trends.groups()
    if not groups:
        return [line(StyledText(_NO_EXCHANGES, DIM))]
    names = ("day", "provider", "model", "exchanges", "with findings", "dead zones", "findings")
    head: list[Cell] = [StyledText(name, BOLD) for name in names]
    rows = [head, *map(_trend_cells, groups)]
    give = {2: LEAST, len(names) - 1: LEAST, 1: LEAST}
    return table(rows, right=(3, 4, 5), width=width, give=give)


def _trend_cells(group: TrendGroup) -> list[Cell]:
    codes = [f"{code} {number}" for code, number in group.codes.most_common(_MAX_CODES)]
    left = len(group.codes) - len(codes)
    silent = f"{group.dead_zones}, {duration(group.dead_ns)}" if group.dead_zones else ""
    return [
        group.day or "unknown",
        excerpt(group.provider or "", _MAX_MODEL),
        excerpt(group.model or "", _MAX_MODEL),
        str(group.exchanges),
        str(group.affected or ""),
        silent,
        ", ".join([*codes, *([f"{left} more"] if left else [])]),
    ]


# The keys of the JSON are a contract: they are added to, never renamed. docs/exchanges.schema.json
# and docs/trends.schema.json say what each means.


class ExchangesDocument:
    """`ls --exchanges --format json`, written in parts: a tape may have any number of exchanges."""

    def __init__(self) -> None:
        self._rows = 0

    def add(self, rows: Iterable[ExchangeRow]) -> str:
        """Return the next part of the document: `rows`, possibly none."""
        return "".join(map(self._next, rows))

    def end(self) -> str:
        return document(exchanges=[]) if not self._rows else "\n ]\n}\n"

    def _next(self, row: ExchangeRow) -> str:
        begin = "," if self._rows else f'{{\n "version": {VERSION},\n "exchanges": ['
        self._rows += 1
        return f"{begin}\n{inert_members(row_object(row), '  ')}"


def row_object(row: ExchangeRow) -> dict[str, object]:
    """Return a row with the keys of the contract; what looks like a secret is still in it."""
    tokens = row.tokens
    return {
        "tape": row.tape,
        "exchange": row.exchange,
        "at": row.at,
        "t_ns": row.t_ns,
        "provider": row.provider,
        "model": row.model,
        "dialect": row.dialect,
        "method": row.method,
        "target": row.target,
        "status": row.status,
        "duration_ns": row.duration_ns,
        "first_event_ns": row.first_event_ns,
        "tokens": tokens and {"input": tokens.input, "output": tokens.output},
        "calls": row.calls,
        "called": list(row.called),
        "finish": row.finish,
        "ending": row.ending,
        "open": row.open,
        "findings": row.findings,
        "codes": list(row.codes),
        "worst": row.worst and _worst_object(row.worst),
        "shows": [{**_worst_object(each.finding), "exchange": each.exchange} for each in row.shows],
        "dead_zones": row.dead_zones,
        "dead_ns": row.dead_ns,
        "thread": row.thread,
        "before": row.before,
        "marks": list(row.marks),
    }


def _worst_object(worst: WorstFinding) -> dict[str, object]:
    return {
        "code": worst.code,
        "name": worst.name,
        "severity": worst.severity,
        "blame": worst.blame,
        "confidence": worst.confidence,
    }


def trends_json(trends: Trends) -> str:
    """`ls --trends --format json`."""
    return document(
        codes=[
            {"code": rule.code, "name": rule.name, "severity": rule.severity}
            for rule in trends.rules()
        ],
        trends=[_trend_object(group) for group in trends.groups()],
    )


def _trend_object(group: TrendGroup) -> dict[str, object]:
    return {
        "day": group.day,
        "provider": group.provider,
        "model": group.model,
        "exchanges": group.exchanges,
        "affected": group.affected,
        "findings": group.findings,
        "dead_zones": group.dead_zones,
        "dead_ns": group.dead_ns,
        "codes": [
            {"code": code, "exchanges": number} for code, number in sorted(group.codes.items())
        ],
    }
