"""The process that makes the index from a dataset of `deltatape scan`, instead of from tapes.

It reads no tape: a row of the dataset has all that the list and the trends show. An exchange can be
opened if its tape is still where the scan read it.
"""

import json
import os
import select
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime  # noqa: TID251 - they read no clock
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from deltatape.ask.dataset import Dataset
from deltatape.errors import UsageError
from deltatape.inspector.index import IndexWriter, Row, TapeState
from deltatape.live.messages import Begin
from deltatape.model.finding import Severity
from deltatape.rules import RULES
from deltatape.store.rule_set import rule_set

MOST_EXCHANGES = 1_000_000
"""The list has only the newest exchanges; a dataset can have any number."""
_AT_ONCE = 50
"""Tapes whose rows are read by one query."""
_LOOK_S = 5.0
"""The interval of checks whether a scan has changed the dataset."""
_NAMES = {rule.code: rule.name for rule in RULES}
_RANKS = {each.value: each.rank for each in Severity}
_NICENESS = 10

_TAPES = """
SELECT t.tape, t.source, t.bytes, t.scanned_at, t.exchanges, t.problem, t.rules,
    coalesce(list_sort(list(f.exchange || f.code || f.fingerprint)
        FILTER (f.across)), []) AS across
FROM tapes AS t LEFT JOIN findings AS f ON f.tape = t.tape AND f.across
GROUP BY ALL
ORDER BY max(t.recorded_at) DESC NULLS LAST, t.tape
"""
_ROWS = """
WITH found AS (
    SELECT tape, about AS exchange,
        list({{code: code, name: name, severity: severity, blame: blame, confidence: confidence}}
            ORDER BY severity_rank(severity), confidence_rank(confidence), code) AS about
    FROM findings WHERE tape IN ({tapes}) GROUP BY ALL
),
shown AS (
    SELECT tape, exchange,
        list({{code: code, name: name, severity: severity, blame: blame, confidence: confidence,
            exchange: about}}) AS shows
    FROM findings WHERE tape IN ({tapes}) AND about <> exchange GROUP BY ALL
)
SELECT e.*, f.about, s.shows
FROM exchanges AS e
LEFT JOIN found AS f ON f.tape = e.tape AND f.exchange = e.exchange
LEFT JOIN shown AS s ON s.tape = e.tape AND s.exchange = e.exchange
WHERE e.tape IN ({tapes})
ORDER BY e.tape, e.exchange
"""


class _Tape(NamedTuple):
    """A tape of the dataset, with its state in the index."""

    key: str
    state: TapeState
    exchanges: int


class DatasetIndexing:
    """Keeps the index up to date with the dataset.

    Args:
        folder: the folder of the dataset.
        index: the file of the index.
        rules: the version of the rules; the index is made anew if they change.
        most: the most exchanges to list.
    """

    def __init__(self, folder: Path, index: Path, rules: str, most: int = MOST_EXCHANGES) -> None:
        self._folder = folder
        self._most = most
        self._writer = IndexWriter(index, rules)
        self._stamp: object = None
        self._of = self._done = 0
        self._bytes = [0, 0]
        self._told: object = None

    def close(self) -> None:
        self._writer.close()

    def look(self) -> Iterator[None]:
        """Bring the index up to date if the dataset has changed, in small steps."""
        stamp = _stamp(self._folder)
        if stamp == self._stamp:
            return
        try:
            opened = Dataset(self._folder)
        except UsageError:
            return  # a scan is just replacing its files, or it is gone
        with opened:
            tapes = list(self._tapes(opened))
            known = self._writer.tapes()
            new = [each for each in tapes if not _is_same(known.get(each.state.id), each.state)]
            self._of, self._done = len(tapes), len(tapes) - len(new)
            self._bytes = [0, sum(each.state.bytes for each in tapes)]
            self._bytes[0] = self._bytes[1] - sum(each.state.bytes for each in new)
            gone = known.keys() - {each.state.id for each in tapes}
            with self._writer.changing():
                for name in gone:
                    self._writer.drop_tape(known[name].key)
            for first in range(0, len(new), _AT_ONCE):
                self._write(opened, new[first : first + _AT_ONCE])
                yield
        self._stamp = stamp

    def _tapes(self, opened: Dataset) -> Iterator[_Tape]:
        """Yield the tapes, the newest first."""
        rows = list(_objects(opened, _TAPES))
        names = [_name(row) for row in rows]
        left = self._most
        for row, name in zip(rows, names, strict=True):
            problem = row["problem"]
            left -= row["exchanges"]
            if left < 0 and not problem:
                problem = f"left out: the newest {self._most:,} exchanges are listed"
            yield _Tape(
                key=row["tape"],
                exchanges=row["exchanges"],
                state=TapeState(
                    key=0,
                    id=name if names.count(name) == 1 else row["tape"],
                    path=row["source"],
                    bytes=row["bytes"],
                    modified_ns=_ns(row["scanned_at"]),
                    inode=zlib.crc32(json.dumps([row["rules"], row["across"]]).encode()),
                    recording=False,
                    indexed=True,
                    starts=0,
                    problem=problem,
                ),
            )

    def _write(self, opened: Dataset, tapes: Sequence[_Tape]) -> None:
        names = {each.key: each.state.id for each in tapes}
        listed = [each.key for each in tapes if each.state.problem is None]
        rows: dict[str, list[Row]] = {}
        if listed:
            quoted = ", ".join(f"'{each}'" for each in listed)
            for row in _objects(opened, _ROWS.format(tapes=quoted)):
                rows.setdefault(row["tape"], []).append(_row(row, names[row["tape"]]))
        with self._writer.changing():
            for each in tapes:
                key = self._writer.put_tape(each.state)
                self._writer.drop_rows(key)
                self._writer.put_rows(key, rows.get(each.key, ()))
                self._done += 1
                self._bytes[0] += each.state.bytes

    def news(self) -> dict[str, object] | None:
        """Return the news for the server; None if there is none."""
        told = (self._writer.revision, self._done, self._of)
        if told == self._told:
            return None
        self._told = told
        done, of = self._bytes
        return {
            "revision": self._writer.revision,
            "indexed": {"done": self._done, "of": self._of, "bytes": {"done": done, "of": of}},
            "running": [],
        }


def serve(begin: Mapping[str, object], source: BinaryIO, out: BinaryIO) -> None:
    """Index, and report to the server, until the server ends."""
    settings = begin["settings"]
    assert isinstance(settings, Mapping)
    rules = rule_set(Begin(settings=settings).rules())
    indexing = DatasetIndexing(Path(str(begin["dataset"])), Path(str(begin["index"])), rules)

    def is_over(wait_s: float) -> bool:
        return bool(select.select([source], [], [], wait_s)[0])

    def tell() -> None:
        news = indexing.news()
        if news is not None:
            out.write(json.dumps(news, separators=(",", ":")).encode() + b"\n")
            out.flush()

    os.nice(_NICENESS)
    with closing(indexing):
        while True:
            for _ in indexing.look():
                tell()
                if is_over(0):
                    return
            tell()
            if is_over(_LOOK_S):
                return


def _objects(opened: Dataset, sql: str) -> Iterator[dict[str, Any]]:
    answer = opened.ask(sql)
    names = [column.name for column in answer.columns]
    for row in answer.rows:
        yield dict(zip(names, row, strict=True))


def _stamp(folder: Path) -> object:
    """Return a value that changes when a scan or a join writes files."""
    days = [*folder.glob("tapes/day=*"), *folder.glob("findings/day=*")]
    return sorted((str(each), each.stat().st_mtime_ns) for each in days if each.is_dir())


def _is_same(known: TapeState | None, state: TapeState) -> bool:
    return known is not None and known._replace(key=0) == state


def _name(row: Mapping[str, Any]) -> str:
    return str(row["source"]).rpartition("/")[2] or str(row["tape"])


def _ns(time: datetime | None) -> int:
    return 0 if time is None else int(time.replace(tzinfo=UTC).timestamp() * 1_000_000) * 1000


def _row(row: Mapping[str, Any], tape: str) -> Row:
    """Return a row of the `exchanges` document."""
    found = row["about"] or []
    tokens = {"input": row["input_tokens"], "output": row["output_tokens"]}
    return {
        "tape": tape,
        "exchange": row["exchange"],
        "at": None if row["time"] is None else f"{row['time'].isoformat(timespec='milliseconds')}Z",
        "t_ns": row["t_ns"],
        "provider": row["provider"],
        "model": row["model"],
        "dialect": row["dialect"],
        "method": row["method"],
        "target": row["target"],
        "status": row["status"],
        "duration_ns": row["duration_ns"],
        "first_event_ns": row["first_event_ns"],
        "tokens": tokens if any(each is not None for each in tokens.values()) else None,
        "calls": row["calls"],
        "called": [],
        "finish": row["finish"],
        "ending": row["ending"],
        "open": False,
        "findings": len(found),
        "codes": list(dict.fromkeys(each["code"] for each in found)),
        "worst": _worst(row, found),
        "shows": row["shows"] or [],
        "dead_zones": row["dead_zones"],
        "dead_ns": row["dead_ns"],
        "thread": row["thread"],
        "before": row["before"],
        "marks": row["marks"] or [],
    }


def _worst(row: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the finding that a verdict rests on, unless joining shows a more severe one."""
    if not found:
        return None
    code, severity = row["worst_code"], row["worst_severity"]
    kept = code in {each["code"] for each in found}
    if not kept or _RANKS[found[0]["severity"]] < _RANKS[severity]:
        return found[0]
    return {
        "code": code,
        "name": _NAMES.get(code, code),
        "severity": severity,
        "blame": row["worst_blame"],
        "confidence": row["worst_confidence"],
    }
