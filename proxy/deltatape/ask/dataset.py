"""A dataset of `deltatape scan` as read-only views for DuckDB.

A view has the rows of each tape's newest scan. A tape counts once its file in table `tapes` exists,
which a scan writes last: files that a stopped scan left are ignored.

Statements of a user read no file but those of the dataset, and change nothing: DuckDB may read only
that folder, its settings are locked, and every statement other than a SELECT is refused.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date  # noqa: TID251 - it reads no clock
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Self

from deltatape.errors import UsageError
from deltatape.model.finding import Confidence, Severity
from deltatape.printable import count
from deltatape.scan.schema import BEFORE, FINDINGS, JOINED, SUFFIX, TABLES, Column, Type

if TYPE_CHECKING:
    import duckdb

_DAY = "day="
_IS_DAY = re.compile(r"day=[0-9]{4}-[01][0-9]-[0-3][0-9]")
_BATCH = 1000
_TYPES = {
    Type.TEXT: "VARCHAR",
    Type.WORD: "VARCHAR",
    Type.TEXTS: "VARCHAR[]",
    Type.NUMBER: "BIGINT",
    Type.FLAG: "BOOLEAN",
    Type.TIME: "TIMESTAMP WITH TIME ZONE",
    Type.BYTES: "BLOB",
}
_RENAMED = {"at": "time"}
"""`at` is a word of DuckDB's SQL and would have to be quoted."""
_WITHDRAWN = "withdrawn"
_RANKS = {"severity_rank": tuple(Severity), "confidence_rank": tuple(Confidence)}
"""SQL functions for questions: 0 for the worst severity, for the highest confidence."""
_SAME_FINDING = ("tape", "exchange", "code", "fingerprint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """A filter on the exchanges in the views."""

    since: date | None = None
    """From this day on, in UTC."""
    until: date | None = None
    """Up to and including this day, in UTC."""
    provider: str | None = None
    model: str | None = None

    def condition(self) -> str:
        """Return the filter in SQL, on a row with `day`, `provider` and `model`."""
        parts = (
            self.since and f"day >= DATE '{self.since}'",
            self.until and f"day <= DATE '{self.until}'",
            self.provider is not None and f"provider = {_quoted(self.provider)}",
            self.model is not None and f"model = {_quoted(self.model)}",
        )
        return " AND ".join(each for each in parts if each) or "true"


class AnswerColumn(NamedTuple):
    """A column of an answer."""

    name: str
    type: str
    """As DuckDB calls it: `BIGINT`, `DECIMAL(9,2)`."""

    @property
    def numeric(self) -> bool:
        return self.type.partition("(")[0] in _NUMERIC


TABLES_ASKED = ("tapes", "exchanges", "calls", "findings", "digests", BEFORE)
"""The views that a statement may name."""
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMERIC = frozenset((*_WHOLE, *(f"U{each}" for each in _WHOLE), "FLOAT", "DOUBLE", "DECIMAL"))


class SqlError(UsageError):
    """DuckDB refuses a statement; the message has several lines and shows the place."""


class Answer:
    """The rows of a statement, fetched from DuckDB one batch at a time."""

    def __init__(self, columns: Sequence[AnswerColumn], rows: Iterator[tuple[object, ...]]) -> None:
        self.columns = tuple(columns)
        self.rows = rows


class Dataset:
    """The tables of a dataset, open to be asked.

    Args:
        folder: written by `deltatape scan`.
        only: the exchanges in the views.
        memory: the limit for DuckDB, such as `100MB`; None: its own default.

    Raises:
        UsageError: there is no dataset, or DuckDB is not installed.
    """

    def __init__(self, folder: Path, only: Only = Only(), memory: str | None = None) -> None:
        self._files = _DatasetFiles(folder)
        self._exit = contextlib.ExitStack()
        duckdb = _duckdb()
        # What does not fit into memory goes there, and not into the current folder.
        spilled = self._exit.enter_context(tempfile.TemporaryDirectory(prefix="deltatape-ask-"))
        self._duckdb = self._exit.enter_context(
            duckdb.connect(":memory:", config={"temp_directory": spilled})
        )
        if memory is not None:
            self._duckdb.execute(f"SET memory_limit = {_quoted(memory)}")
        self._make_views(only)
        for macro, words in _RANKS.items():
            ranks = " ".join(f"WHEN '{each}' THEN {rank}" for rank, each in enumerate(words))
            self._duckdb.execute(f"CREATE MACRO {macro}(word) AS CASE word {ranks} END")
        self._duckdb.execute("SET python_enable_replacements = false")
        self._duckdb.execute(f"SET allowed_directories = [{_quoted(str(folder.resolve()))}]")
        self._duckdb.execute("SET enable_external_access = false")
        self._duckdb.execute("SET lock_configuration = true")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks that apply to all answers."""
        return self._files.notes

    def ask(self, sql: str) -> Answer:
        """Return the answer to a SELECT statement.

        Raises:
            UsageError: it is not a single SELECT.
            SqlError: DuckDB refuses it.
        """
        duckdb = _duckdb()
        try:
            statements = self._duckdb.extract_statements(sql)
            if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
                raise UsageError("a question is one SELECT statement: a dataset is only read")
            result = self._duckdb.execute(statements[0])
            columns = _columns(result.description or ())
            first = result.fetchmany(_BATCH)
        except duckdb.Error as error:
            raise SqlError(str(error)) from None
        return Answer(columns, _all_rows(result, first))

    def _make_views(self, only: Only) -> None:
        """Make a view of each table, and of the findings of the previous rules."""
        for name, table in TABLES.items():
            self._view(f"all_{name}", table.columns, self._files.of(name), hidden={"digest"})
        joined = self._files.joined
        self._view("all_joined", FINDINGS.columns, joined, hidden=set())
        self._view("all_before", FINDINGS.columns, self._files.of(BEFORE), hidden=set())
        day = "coalesce(CAST(time AS DATE), nullif(day, DATE '1970-01-01'))"
        exchange = "day, time, provider, model, dialect, client_name, client_version"
        self._duckdb.execute(
            "CREATE VIEW exchanges AS SELECT * FROM"
            f" (SELECT * REPLACE ({day} AS day) FROM all_exchanges) WHERE {only.condition()}"
        )
        more = f"{exchange}, tape, exchange, rules AS rules_of_exchange"
        withdrawn = " AND ".join(
            f"w.{each} IS NOT DISTINCT FROM f.{each}" for each in _SAME_FINDING
        )
        self._duckdb.execute(
            f"CREATE VIEW findings AS SELECT * EXCLUDE (rules_of_exchange, {_WITHDRAWN}) FROM ("
            f" SELECT * EXCLUDE (day) FROM all_findings f WHERE NOT EXISTS"
            f" (SELECT 1 FROM all_joined w WHERE w.{_WITHDRAWN} AND {withdrawn})"
            f" UNION ALL BY NAME"
            f" SELECT * EXCLUDE (day) FROM all_joined WHERE NOT {_WITHDRAWN})"
            f" JOIN (SELECT {more} FROM exchanges) USING (tape, exchange)"
            " WHERE rules = rules_of_exchange"
        )
        for name in ("calls", "digests"):
            of_table = {each.name for each in TABLES[name].columns}
            left_out = ", ".join(["day", *(["time"] if "at" in of_table else [])])
            self._duckdb.execute(
                f"CREATE VIEW {name} AS SELECT * FROM"
                f" (SELECT * EXCLUDE ({left_out}) FROM all_{name})"
                f" JOIN (SELECT {exchange}, tape, exchange FROM exchanges) USING (tape, exchange)"
            )
        self._duckdb.execute(
            f"CREATE VIEW {BEFORE} AS SELECT * EXCLUDE (day, {_WITHDRAWN}) FROM all_before"
            f" JOIN (SELECT {exchange}, tape, exchange FROM exchanges) USING (tape, exchange)"
        )
        self._duckdb.execute(
            "CREATE TABLE compared AS SELECT unnest(?::VARCHAR[]) AS tape", [self._files.compared]
        )
        days = Only(since=only.since, until=only.until).condition()
        self._duckdb.execute(f"CREATE VIEW tapes AS SELECT * FROM all_tapes WHERE {days}")

    def _view(
        self, name: str, columns: Sequence[Column], files: Sequence[Path], hidden: set[str]
    ) -> None:
        """Make a view of Parquet files with all columns of the schema, even those they lack.

        Args:
            name: the name of the view.
            columns: the columns of the table.
            files: can be empty.
            hidden: columns to leave out.
        """
        names = [each for each in columns if each.name not in hidden]
        # Those of one version of the rules have the same columns: DuckDB need not look at all.
        by_day: dict[tuple[str, str], list[Path]] = {}
        there: dict[str, set[str]] = {}
        for path in files:
            rules = _rules_of(path)
            by_day.setdefault((path.parent.name.removeprefix(_DAY), rules), []).append(path)
            if rules not in there:
                first = f"DESCRIBE SELECT * FROM {_reading([path])}"
                there[rules] = {row[0] for row in self._duckdb.execute(first).fetchall()}
        parts = []
        for (day, rules), same in by_day.items():
            shown = ", ".join(_selected(each, there[rules]) for each in names)
            parts.append(f"SELECT DATE '{day}' AS day, {shown} FROM {_reading(same)}")
        if not parts:
            none = ", ".join(_selected(each, set()) for each in names)
            parts.append(f"SELECT NULL::DATE AS day, {none} WHERE false")
        self._duckdb.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")


def _reading(files: Sequence[Path]) -> str:
    """Return the expression that reads files; names of folders become no columns."""
    listed = ", ".join(_quoted(str(each)) for each in files)
    return f"read_parquet([{listed}], hive_partitioning = false)"


def _selected(column: Column, there: set[str]) -> str:
    """Return the expression for a column; NULL where the files lack it."""
    name = f'"{column.name}"'
    shown = f'"{_RENAMED.get(column.name, column.name)}"'
    if column.name not in there:
        name = "false" if column.name == _WITHDRAWN else f"NULL::{_TYPES[column.type]}"
    if column.type is Type.TIME:
        # Without a time zone: all times are in UTC, whatever zone this machine is in.
        return f"({name}::TIMESTAMP WITH TIME ZONE) AT TIME ZONE 'UTC' AS {shown}"
    return f"{name}::{_TYPES[column.type]} AS {shown}"


class _DatasetFiles:
    """The files of a dataset: of each tape, those of its newest scan.

    Args:
        folder: the folder of the dataset.

    Raises:
        UsageError: the folder holds no dataset.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        scanned = _named(folder, "tapes")
        if not scanned:
            what = "holds no dataset" if folder.exists() else "no such folder"
            raise UsageError(f"{folder}: {what}; `deltatape scan` makes a dataset")
        self._rules: dict[str, str] = {}
        """By tape: the version of the rules of its newest scan."""
        newest: dict[str, float] = {}
        for path, tape, rules in scanned:
            changed = path.stat().st_mtime
            if changed >= newest.get(tape, 0.0):
                self._rules[tape], newest[tape] = rules, changed
        self.rules = self._rules[max(newest, key=newest.__getitem__)]
        """The rules of the last scan."""
        self.joined = [
            path
            for path, tape, rules in _named(folder, FINDINGS.name)
            if tape == JOINED and rules == self.rules
        ]
        """Files of what only joining shows."""
        self.compared = sorted({tape for _, tape, _ in _named(folder, BEFORE)})
        """The tapes that were scanned with the rules before, too."""

    def of(self, table: str) -> list[Path]:
        """Return the files of a table for the tapes that were read completely."""
        found = _named(self._folder, table)
        if table == BEFORE:
            return [path for path, tape, _ in found if tape in self._rules]
        return [path for path, tape, rules in found if self._rules.get(tape) == rules]

    @property
    def notes(self) -> tuple[str, ...]:
        others = sum(rules != self.rules for rules in self._rules.values())
        notes = []
        if others:
            notes.append(
                f"{count(others, 'tape')} of other rules; `deltatape scan` reads them again"
            )
        return tuple(notes)


def _named(folder: Path, table: str) -> list[tuple[Path, str, str]]:
    """Return the files of a table, in the order of their names, each with its tape and rules."""
    found = []
    for path in sorted((folder / table).glob(f"{_DAY}*/*{SUFFIX}")):
        tape, _, rules = path.name.removesuffix(SUFFIX).rpartition("-")
        if tape and not path.name.startswith(".") and _IS_DAY.fullmatch(path.parent.name):
            found.append((path, tape, rules))
    return found


def _rules_of(path: Path) -> str:
    return path.name.removesuffix(SUFFIX).rpartition("-")[2]


def _columns(described: Sequence[Sequence[object]]) -> list[AnswerColumn]:
    """Return the columns of an answer under distinct names."""
    found: dict[str, AnswerColumn] = {}
    for name, kind, *_ in described:
        unique, again = str(name), 1
        while unique in found:
            again += 1
            unique = f"{name}_{again}"
        found[unique] = AnswerColumn(unique, str(kind))
    return list(found.values())


def _all_rows(
    result: "duckdb.DuckDBPyConnection", first: list[tuple[object, ...]]
) -> Iterator[tuple[object, ...]]:
    while first:
        yield from first
        try:
            first = result.fetchmany(_BATCH)
        except _duckdb().Error as error:
            raise SqlError(str(error)) from None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb() -> ModuleType:
    try:
        import duckdb  # noqa: PLC0415 - only where a dataset is asked
    except ImportError:
        raise UsageError('DuckDB is not installed; `pip install "deltatape[fleet]"`') from None
    return duckdb
