"""The index: a row of every exchange of the tapes that are shown, in a SQLite file.

The indexing process uses `IndexWriter`; the server uses `IndexReader` to get pages of rows. Totals
without a filter are counted while rows are written, and every order has a database index, so that a
page takes the same work however many rows there are. A filter reads a database index of its
columns, never the rows that it leaves out.

The file is a cache: of requests and responses it holds only what a row shows, and it is made anew
if it is damaged or the rules have changed.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from deltatape.clock import parse_rfc3339, rfc3339
from deltatape.model.finding import Severity
from deltatape.why.trends import TrendGroup, Trends

Row: TypeAlias = Mapping[str, object]
"""A row of the `exchanges` document."""

MAX_ROWS = 500
"""The most rows of one answer."""
ORDERS: Mapping[str, str] = {
    "at": "at_ns",
    "duration": "duration_ns",
    "first_event": "first_event_ns",
    "tokens": "tokens",
    "calls": "calls",
    "findings": "findings",
    "severity": "severity",
}
"""What rows can be ordered by, and the columns."""
FACETS = ("provider", "model", "code")
_RANKS = {each.value: each.rank for each in Severity}
_NONE = len(_RANKS)
"""The rank of an exchange without findings."""
_SCHEMA = """
CREATE TABLE state (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), revision INTEGER NOT NULL,
  rules TEXT NOT NULL);
CREATE TABLE tapes (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path BLOB NOT NULL,
  bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  recording INTEGER NOT NULL, indexed INTEGER NOT NULL, starts INTEGER NOT NULL, problem TEXT,
  apps TEXT NOT NULL);
CREATE INDEX tapes_by_age ON tapes (modified_ns);
CREATE TABLE exchanges (key INTEGER PRIMARY KEY,
  tape INTEGER NOT NULL REFERENCES tapes ON DELETE CASCADE,
  number INTEGER NOT NULL, thread INTEGER NOT NULL, at_ns INTEGER, duration_ns INTEGER,
  first_event_ns INTEGER, tokens INTEGER, calls INTEGER NOT NULL, findings INTEGER NOT NULL,
  severity INTEGER NOT NULL, dead_zones INTEGER NOT NULL, dead_ns INTEGER NOT NULL,
  provider TEXT NOT NULL, model TEXT NOT NULL, row TEXT NOT NULL,
  UNIQUE (tape, number));
CREATE INDEX exchanges_by_thread ON exchanges (tape, thread, number);
CREATE INDEX exchanges_by_provider ON exchanges (provider, at_ns, key);
CREATE INDEX exchanges_by_model ON exchanges (model, at_ns, key);
CREATE TABLE texts (exchange INTEGER PRIMARY KEY REFERENCES exchanges ON DELETE CASCADE,
  text TEXT NOT NULL);
CREATE TABLE codes (code TEXT NOT NULL, exchange INTEGER NOT NULL REFERENCES exchanges
  ON DELETE CASCADE, PRIMARY KEY (code, exchange)) WITHOUT ROWID;
CREATE INDEX codes_by_exchange ON codes (exchange);
CREATE TABLE counts (facet TEXT NOT NULL, value TEXT NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY (facet, value)) WITHOUT ROWID;
"""
_FILTERED = "severity, provider, model, tape"
"""What each index of an order also has, so that filters need not read the rows."""
_COUNT = (
    "INSERT INTO counts VALUES {values}"
    " ON CONFLICT DO UPDATE SET number = number + excluded.number;"
)
_COUNTED = (
    ("exchanges", ("('all', '', {})", "('provider', {}.provider, {})", "('model', {}.model, {})")),
    ("codes", ("('code', {}.code, {})",)),
)
_DAY_NS = 86_400_000_000_000
_FORMAT = 1
"""The version of the file's format; a file of another version is made anew."""


class TapeState(NamedTuple):
    """The state of a tape in the index."""

    key: int
    id: str
    path: str
    bytes: int
    modified_ns: int
    inode: int
    recording: bool
    indexed: bool
    """Whether the index has all of it, as of this size and time."""
    starts: int
    """How often indexing it began without an end: it may have crashed the process."""
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter on rows; empty fields match all."""

    text: str = ""
    """Parts of what rows show, separated by spaces, in any case; all of them."""
    codes: tuple[str, ...] = ()
    """Codes of findings or their beginnings; any of them."""
    severity: str = ""
    """This severity or a worse one."""
    providers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    from_ns: int | None = None
    """Since 1970; inclusive."""
    until_ns: int | None = None
    """Since 1970; exclusive."""
    tape: str = ""
    """The id of a tape."""

    def where(self, without: str = "") -> tuple[str, list[object]]:
        """Return the condition and its values, leaving out that on a facet."""
        parts: list[str] = []
        values: list[object] = []

        def add(condition: str, *given: object) -> None:
            parts.append(condition)
            values.extend(given)

        if self.tape:
            add("tape = (SELECT key FROM tapes WHERE id = ?)", self.tape)
        if self.severity:
            add("severity <= ?", _RANKS[self.severity])
        for facet, wanted in (("provider", self.providers), ("model", self.models)):
            if wanted and facet != without:
                add(f"{facet} IN ({', '.join('?' * len(wanted))})", *wanted)
        if self.from_ns is not None:
            add("at_ns >= ?", self.from_ns)
        if self.until_ns is not None:
            add("at_ns < ?", self.until_ns)
        if self.codes and without != "code":
            either = " OR ".join(["code = ? OR (code > ? AND code < ?)"] * len(self.codes))
            ranges = [bound for each in self.codes for bound in (each, each, f"{each}~")]
            add(f"key IN (SELECT exchange FROM codes WHERE {either})", *ranges)
        words = self.text.casefold().split()
        if words:
            every = " AND ".join(["instr(text, ?)"] * len(words))
            add(f"key IN (SELECT exchange FROM texts WHERE {every})", *words)
        return " AND ".join(parts) or "TRUE", values


class Page(NamedTuple):
    """A page of rows, as JSON, with the totals."""

    rows: list[str]
    total: int
    """How many rows the filter leaves."""
    all: int
    """How many there are."""
    facets: Mapping[str, Mapping[str, int]]
    """How many rows each value of a facet has, with the filters on the others."""
    revision: int


def connect(path: Path) -> sqlite3.Connection:
    """Open an index that exists."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


class IndexWriter:
    """Writes the index at `path`; one process at a time.

    Args:
        path: the path of the file, made if it is missing.
        rules: the version of the rules; rows made by others are dropped.
    """

    def __init__(self, path: Path, rules: str) -> None:
        self._connection = _opened(path, rules)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute("PRAGMA synchronous = OFF")  # a cache; the next run makes it anew
        (self.revision,) = self._connection.execute("SELECT revision FROM state").fetchone()

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Make the changes of a block visible together, as the next revision."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            execute("ROLLBACK")
            raise
        self.revision += 1
        execute("UPDATE state SET revision = ?", [self.revision])
        execute("COMMIT")

    def tapes(self) -> dict[str, TapeState]:
        """Return all tapes by their ids."""
        return {each.id: each for each in _tapes(self._connection)}

    def put_tape(self, tape: TapeState) -> int:
        """Write the state of a tape, by its id; return its key."""
        fields = (tape.id, os.fsencode(tape.path), *tape[3:], "[]")
        (key,) = self._connection.execute(
            "INSERT INTO tapes VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET path = excluded.path, bytes = excluded.bytes,"
            " modified_ns = excluded.modified_ns,"
            " inode = excluded.inode, recording = excluded.recording, indexed = excluded.indexed,"
            " starts = excluded.starts, problem = excluded.problem RETURNING key",
            fields,
        ).fetchone()
        return int(key)

    def put_apps(self, tape: int, apps: Iterable[str]) -> None:
        """Write the names of the apps that sent requests."""
        self._connection.execute("UPDATE tapes SET apps = ? WHERE key = ?", [_json([*apps]), tape])

    def drop_tape(self, tape: int) -> None:
        """Forget a tape and its rows."""
        self.drop_rows(tape)
        self._connection.execute("DELETE FROM tapes WHERE key = ?", [tape])

    def drop_rows(self, tape: int) -> None:
        """Forget the rows of a tape."""
        # Explicitly, since triggers do not run for rows that a foreign key deletes in every case.
        of_tape = "(SELECT key FROM exchanges WHERE tape = ?)"
        for table in ("codes", "texts"):
            self._connection.execute(f"DELETE FROM {table} WHERE exchange IN {of_tape}", [tape])
        self._connection.execute("DELETE FROM exchanges WHERE tape = ?", [tape])

    def put_rows(self, tape: int, rows: Iterable[Row]) -> None:
        """Write rows of a tape; a row replaces an earlier one of the same exchange."""
        execute = self._connection.execute
        for row in rows:
            old = execute(
                "SELECT key FROM exchanges WHERE tape = ? AND number = ?", [tape, row["exchange"]]
            ).fetchone()
            if old is not None:
                for table in ("codes", "texts"):
                    execute(f"DELETE FROM {table} WHERE exchange = ?", old)
                execute("DELETE FROM exchanges WHERE key = ?", old)
            _insert(self._connection, old and old[0], tape, row)


def _opened(path: Path, rules: str) -> sqlite3.Connection:
    """Open the index, made anew if it is missing, damaged, or of other rules."""
    if path.exists():
        connection = connect(path)
        with contextlib.suppress(sqlite3.DatabaseError):
            if _is_kept(connection, rules):
                return connection
        connection.close()
        remove(path)
    # Private before there is anything in it.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    script = [_SCHEMA]
    for name, column in ORDERS.items():
        script.append(f"CREATE INDEX order_{name} ON exchanges ({column}, key, {_FILTERED});")
    for table, counted in _COUNTED:
        for event, row, step in (("INSERT", "NEW", 1), ("DELETE", "OLD", -1)):
            values = ", ".join(
                each.format(*[row] * (each.count("{}") - 1), step) for each in counted
            )
            script.append(
                f"CREATE TRIGGER {table}_{event.lower()} AFTER {event} ON {table} BEGIN"
                f" {_COUNT.format(values=values)} END;"
            )
    script.append(f"PRAGMA user_version = {_FORMAT};")
    connection.executescript("".join(script))
    connection.execute("INSERT INTO state VALUES (1, 0, ?)", [rules])
    return connection


def _is_kept(connection: sqlite3.Connection, rules: str) -> bool:
    """Check whether an index is of this format and these rules, and whole; reads all of it."""
    execute = connection.execute
    if execute("PRAGMA user_version").fetchone() != (_FORMAT,):
        return False
    if execute("SELECT rules FROM state").fetchone() != (rules,):
        return False
    return bool(execute("PRAGMA quick_check(1)").fetchone() == ("ok",))


def is_current(path: Path, rules: str) -> bool:
    """Check whether there is an index of these rules, which can be read before it is brought up."""
    if not path.exists():
        return False
    with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(path)) as connection:
        kept = "SELECT rules FROM state WHERE (SELECT user_version FROM pragma_user_version) = ?"
        return bool(connection.execute(kept, [_FORMAT]).fetchone() == (rules,))
    return False


def remove(path: Path) -> None:
    """Delete an index and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _tapes(connection: sqlite3.Connection) -> Iterator[TapeState]:
    for row in connection.execute(
        "SELECT key, id, path, bytes, modified_ns, inode, recording, indexed, starts, problem FROM"
        " tapes ORDER BY modified_ns DESC, id"
    ):
        key, name, path, size, modified_ns, inode, recording, indexed, starts, problem = row
        yield TapeState(
            *(key, name, os.fsdecode(path), size, modified_ns, inode),
            *(bool(recording), bool(indexed), starts, problem),
        )


def _insert(connection: sqlite3.Connection, key: int | None, tape: int, row: Row) -> None:
    """Insert a new row of a tape; a key of None takes the next one."""
    execute = connection.execute
    key = execute(
        "INSERT INTO exchanges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [key, tape, *_columns(row)],
    ).lastrowid
    execute("INSERT INTO texts VALUES (?, ?)", [key, _text(row)])
    for code in dict.fromkeys(_strings(row["codes"])):
        execute("INSERT INTO codes VALUES (?, ?)", [code, key])


def filtered(rows: Sequence[Row], only: Filter) -> list[Row]:
    """Return the `rows`, which no index holds, that pass a filter."""
    if only == Filter():
        return [*rows]
    # In an index of their own, since a filter is a condition of SQL.
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        tapes = {tape: key for key, tape in enumerate(dict.fromkeys(row["tape"] for row in rows))}
        connection.executemany(
            "INSERT INTO tapes VALUES (?, ?, '', 0, 0, 0, TRUE, FALSE, 0, NULL, '[]')",
            [(key, tape) for tape, key in tapes.items()],
        )
        for key, row in enumerate(rows):
            _insert(connection, key, tapes[row["tape"]], row)
        where, values = only.where()
        found = connection.execute(f"SELECT key FROM exchanges WHERE {where} ORDER BY key", values)
        return [rows[key] for (key,) in found]


def _columns(row: Row) -> Iterator[object]:
    at, worst, tokens = row["at"], row["worst"], row["tokens"]
    yield row["exchange"]
    yield row["thread"]
    yield parse_rfc3339(f"{at[:-1]:0<29}Z") if isinstance(at, str) and at else None
    yield row["duration_ns"]
    yield row["first_event_ns"]
    sizes = tokens.values() if isinstance(tokens, Mapping) else ()
    yield sum(each or 0 for each in sizes) if sizes else None
    yield row["calls"]
    yield row["findings"]
    yield _RANKS[str(worst["severity"])] if isinstance(worst, Mapping) else _NONE
    yield row["dead_zones"]
    yield row["dead_ns"]
    yield row["provider"] or ""
    yield row["model"] or ""
    yield _json(row)


def _text(row: Row) -> str:
    """Return all that a search looks in."""
    worst = row["worst"]
    shown = (
        f"{row['tape']}#{row['exchange']}",
        *(row[name] for name in ("provider", "model", "dialect", "method", "target", "status")),
        *(row[name] for name in ("finish", "ending")),
        *_strings(row["codes"]),
        worst["name"] if isinstance(worst, Mapping) else None,
        *_strings(row["marks"]),
    )
    return " ".join(str(each) for each in shown if each is not None).casefold()


def _strings(value: object) -> Sequence[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _json(value: object) -> str:
    """Return `value` as ASCII: names of files need not be valid Unicode."""
    return json.dumps(value, separators=(",", ":"))


class IndexReader:
    """Answers questions from an index that another process may be writing."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.execute("PRAGMA query_only = ON")
        # For a certain revision: who scrolls asks for the same totals again and again.
        self._totals = lru_cache(maxsize=64)(self._count)

    def close(self) -> None:
        self._connection.close()

    def tapes(self) -> list[tuple[TapeState, Mapping[str, object]]]:
        """Return all tapes, the latest first, with a summary of their rows."""
        query = self._connection.execute
        said: dict[int, dict[str, object]] = {}
        for key, apps in query("SELECT key, apps FROM tapes"):
            said[key] = {"apps": json.loads(apps), "models": []}
            said[key] |= {"exchanges": 0, "findings": 0, "worst": None}
        counted = "SELECT tape, COUNT(*), SUM(findings) FROM exchanges GROUP BY tape"
        for key, exchanges, findings in query(counted):
            said[key] |= {"exchanges": exchanges, "findings": findings}
        # The first of the gravest; found without the rows of others.
        gravest = (
            "SELECT tape, row FROM exchanges WHERE key IN (SELECT MIN(severity << 40 | key)"
            f" & {(1 << 40) - 1} FROM exchanges WHERE severity < {_NONE} GROUP BY tape)"
        )
        for key, row in query(gravest):
            said[key]["worst"] = json.loads(row)["worst"]
        models = (
            "SELECT tape, model FROM exchanges WHERE model > '' GROUP BY tape, model"
            " ORDER BY MIN(key)"
        )
        for key, model in query(models):
            known = said[key]["models"]
            assert isinstance(known, list)
            known.append(model)
        return [(tape, said[tape.key]) for tape in _tapes(self._connection)]

    def path_of(self, tape: str) -> str | None:
        """Return where the tape with this id is; None: there is none."""
        found = self._connection.execute("SELECT path FROM tapes WHERE id = ?", [tape]).fetchone()
        return None if found is None else os.fsdecode(found[0])

    def page(self, only: Filter, order: str, *, offset: int, limit: int) -> Page:
        """Return the rows from `offset` on.

        Args:
            only: which rows.
            order: one of `ORDERS`, after a `-` if the largest come first.
            offset: how many rows come before.
            limit: how many rows, at most `MAX_ROWS`.
        """
        query = self._connection.execute
        (revision,) = query("SELECT revision FROM state").fetchone()
        total, every, facets = self._totals(only, revision)
        where, values = only.where()
        column, down = ORDERS[order.removeprefix("-")], " DESC" if order.startswith("-") else ""
        rows = query(
            f"SELECT row FROM exchanges WHERE {where} ORDER BY {column}{down}, key{down}"
            " LIMIT ? OFFSET ?",
            [*values, min(limit, MAX_ROWS), offset],
        )
        return Page([row for (row,) in rows], total, every, facets, revision)

    def trends(self, only: Filter) -> Trends:
        """Return the rows of a filter counted by day, provider and model."""
        where, values = only.where()
        query = self._connection.execute
        key = "at_ns / 86400000000000, provider, model"
        groups = {
            (day, provider, model): TrendGroup(
                day=None if day is None else rfc3339(day * _DAY_NS)[: len("2000-01-01")],
                provider=provider or None,
                model=model or None,
                exchanges=exchanges,
                affected=affected,
                findings=findings,
                dead_zones=dead_zones,
                dead_ns=dead_ns,
            )
            for day, provider, model, exchanges, affected, findings, dead_zones, dead_ns in query(
                f"SELECT {key}, COUNT(*), SUM(findings > 0), SUM(findings), SUM(dead_zones),"
                f" SUM(dead_ns) FROM exchanges WHERE {where} GROUP BY 1, 2, 3",
                values,
            )
        }
        for *group, code, number in query(
            f"SELECT {key}, code, COUNT(*) FROM codes JOIN exchanges ON key = exchange"
            f" WHERE {where} GROUP BY 1, 2, 3, 4",
            values,
        ):
            groups[tuple(group)].codes[code] = number
        return Trends.of(groups.values())

    def thread(self, tape: str, exchange: int) -> list[str] | None:
        """Return the rows of an exchange's conversation, in order; None: no such exchange."""
        found = self._connection.execute(
            "SELECT tape, thread FROM exchanges WHERE number = ? AND tape ="
            " (SELECT key FROM tapes WHERE id = ?)",
            [exchange, tape],
        ).fetchone()
        if found is None:
            return None
        rows = self._connection.execute(
            "SELECT row FROM exchanges WHERE tape = ? AND thread = ? ORDER BY number", found
        )
        return [row for (row,) in rows]

    def _count(
        self,
        only: Filter,
        revision: int,  # noqa: ARG002 - the counts are those of a revision
    ) -> tuple[int, int, Mapping[str, Mapping[str, int]]]:
        query = self._connection.execute
        known: dict[str, dict[str, int]] = {"all": {}, **{facet: {} for facet in FACETS}}
        for facet, value, number in query("SELECT facet, value, number FROM counts WHERE number"):
            known[facet][value] = number
        every = known.pop("all").get("", 0)
        if only == Filter():
            return every, every, {facet: _named(known[facet]) for facet in FACETS}
        where, values = only.where()
        (total,) = query(f"SELECT COUNT(*) FROM exchanges WHERE {where}", values).fetchone()
        facets = {}
        for facet in FACETS:
            where, values = only.where(without=facet)
            source = "codes JOIN exchanges ON key = exchange" if facet == "code" else "exchanges"
            counted = query(
                f"SELECT {facet}, COUNT(*) FROM {source} WHERE {where} GROUP BY {facet}", values
            )
            facets[facet] = _named(dict(counted.fetchall()))
        return total, every, facets


def _named(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts without what has no name, the most frequent first."""
    named = [(value, number) for value, number in counts.items() if value]
    return dict(sorted(named, key=lambda each: (-each[1], each[0])))
