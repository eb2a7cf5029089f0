"""Joins, on the engine, conversations that are spread over several tapes.

A shuffle in two steps; the engine maps each over files. `deal` sends the digests of some tapes to
partitions, by a hash of the beginning of their conversations: it writes one file with a row group
for each partition. `compare` reads one partition from all these files and compares its
conversations (`joined`). So no worker, nor the driver, holds more than a partition, and a worker
that dies loses only its current step.

Where the provider keeps the history, a request names the reply that it continues. The digest of
such a reply is also dealt to the conversations of these requests.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from deltatape.diagnose.check_tape import REFUSAL, answered_later
from deltatape.diagnose.digest import stored_history
from deltatape.errors import DeltatapeError
from deltatape.model.finding import Confidence, Severity
from deltatape.model.rule_settings import Settings
from deltatape.rules import RULES
from deltatape.scan.arrow import batch_of, schema_of
from deltatape.scan.dataset import DRAFTS, Files, StoredRows, open_files, stored_rows
from deltatape.scan.digest_codec import DigestDecoder, DigestEncoder
from deltatape.scan.engine import Engine, Lost
from deltatape.scan.joined import TapeDigest, joined
from deltatape.scan.rows import Row, finding_row
from deltatape.scan.schema import (
    DIGESTS,
    FINDINGS,
    JOINED,
    NO_DAY,
    SUFFIX,
    TAPES,
    file_name,
    path_of,
)

_PARTITION_BYTES = 4 << 20
"""Bytes of stored digests in a partition; in memory they take about thirty times as much."""
_STEP_BYTES, _STEP_FILES = 4 << 20, 256
"""The most that one call of `deal` reads; it holds all of it in memory."""
_KEEPING = (b'"dialect":"openai-responses"', b'"dialect":"gemini-interactions"')
"""Marks in digests of dialects whose provider can keep the history."""
_ROWS = 256
"""Rows that are read at once."""
_BUCKET_DIGITS = 8
_PLACES = {column.name: place for place, column in enumerate(FINDINGS.columns)}
_SILENCE = "D003"
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_DEALT = pa.schema(
    [
        ("key", pa.string()),
        ("day", pa.string()),
        ("tape", pa.string()),
        ("place", pa.int64()),
        ("began_ns", pa.int64()),
        ("alone", pa.bool_()),
        ("known", pa.list_(pa.string())),
        ("refusals", pa.list_(pa.string())),
        ("digest", pa.binary()),
    ]
)


class Dealt(NamedTuple):
    """A digest on its way to a partition."""

    key: str
    """Names its conversation: the hash of that one's beginning."""
    day: str
    tape: str
    place: int
    """Its position among the digests of the tape, from 1."""
    began_ns: int | None
    alone: bool
    known: list[str]
    """The findings that its tape already has on its exchange: code and fingerprint."""
    refusals: list[str]
    """Findings among them that change if another tape shows an answer: rows as JSON."""
    digest: bytes


class TapeToDeal(NamedTuple):
    """A tape whose digests are dealt out."""

    digests: StoredRows
    size: int
    """Bytes of the file with the digests."""
    findings: str | None
    """The file with its findings, if it has any."""


class FoundRow(NamedTuple):
    """A row of findings, and the day of its tape."""

    day: str
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinJob:
    """The parameters of a join that workers get with every step."""

    id: str
    """Names the run."""
    out: str
    """The folder or URL of the dataset."""
    rules: str
    settings: Settings
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSummary:
    """The numbers of findings that joining added and withdrew."""

    findings: int = 0
    withdrawn: int = 0


def join(out: str, engine: Engine, run: str, rules: str, settings: Settings) -> JoinSummary:
    """Find what takes several tapes of a dataset to see; replaces what an earlier join wrote.

    Args:
        out: the folder or URL of the dataset.
        engine: does the work.
        run: names the run; the caller clears its drafts.
        rules: the version of the rules; tapes scanned with another are left out.
        settings: the thresholds of the rules.

    Raises:
        DeltatapeError: a step cannot be done.
    """
    files = open_files(out)
    tapes = stored_rows(files, [TAPES.name])
    scanned = {(each.day, each.tape) for each in tapes if each.rules == rules}
    sizes = {each.path: each.size for each in files.found(DIGESTS.name)}
    of_tapes = (each for each in stored_rows(files, [DIGESTS.name]) if each.rules == rules)
    digests = sorted(
        (each for each in of_tapes if (each.day, each.tape) in scanned), key=attrgetter("path")
    )
    findings = {each.path for each in stored_rows(files, [FINDINGS.name])}
    total = sum(sizes.get(each.path, 0) for each in digests)
    job = JoinJob(
        id=run,
        out=out,
        rules=rules,
        settings=settings,
        partitions=1 + total // _PARTITION_BYTES,
    )
    tapes_to_deal = [
        TapeToDeal(each, sizes.get(each.path, 0), path if path in findings else None)
        for each in digests
        for path in [path_of(FINDINGS.name, each.day, file_name(each.tape, rules))]
    ]
    writer = _Writer(files, run, rules)
    try:
        dealt = tuple(sorted(_done(engine, partial(deal, job), _steps(tapes_to_deal))))
        items = [(part, dealt) for part in range(job.partitions)] if dealt else []
        for rows in _done(engine, partial(compare, job), items):
            writer.write(rows)
        return writer.publish()
    finally:
        writer.close()
        for each in list(files.found(f"{DRAFTS}/{run}")):
            if each.path.endswith(SUFFIX):  # also what workers that died have dealt out
                files.remove(each.path)


def is_joined(files: Files, rules: str) -> bool:
    """Return whether nothing was scanned since the tapes of a dataset were joined."""
    scanned = (each for each in stored_rows(files, [TAPES.name]) if each.rules == rules)
    joins = (each for each in stored_rows(files, [FINDINGS.name]) if each.tape == JOINED)
    last = max((each.modified_us for each in scanned), default=0)
    return any(each.rules == rules and each.modified_us >= last for each in joins)


def _done(
    engine: Engine, function: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[_Result]:
    for _, result in engine.map(function, items):
        if isinstance(result, Lost):
            raise DeltatapeError(f"the tapes cannot be joined: {result.why}")
        yield result


def _steps(tapes: Iterable[TapeToDeal]) -> Iterator[tuple[TapeToDeal, ...]]:
    """Yield the tapes that one call of `deal` reads."""
    step: list[TapeToDeal] = []
    taken = 0
    for each in tapes:
        if step and (taken + each.size > _STEP_BYTES or len(step) == _STEP_FILES):
            yield tuple(step)
            step, taken = [], 0
        step.append(each)
        taken += each.size
    if step:
        yield tuple(step)


def deal(job: JoinJob, step: Sequence[TapeToDeal]) -> str:
    """Deal the digests of some tapes out to partitions; return the path of the new file.

    It has a row group for each partition; its metadata lists their partitions in order.
    """
    files = open_files(job.out)
    dealt: dict[int, list[Dealt]] = {}
    for each in step:
        for row in _of_tape(files, each):
            bucket = int(row.key[:_BUCKET_DIGITS], 16) % job.partitions
            dealt.setdefault(bucket, []).append(row)
    drafts = files.drafts(job.id)
    try:
        draft = drafts / "dealt"
        _write_parts(draft, dealt)
        path = f"{DRAFTS}/{job.id}/{drafts.name}{SUFFIX}"
        files.publish(draft, path)
    finally:  # a store has got a copy
        shutil.rmtree(drafts, ignore_errors=True)
    return path


def _write_parts(draft: Path, dealt: dict[int, list[Dealt]]) -> None:
    parts = sorted(dealt)
    with pq.ParquetWriter(draft, _DEALT, compression="zstd", store_schema=False) as writer:
        for part in parts:
            columns = [list(column) for column in zip(*dealt.pop(part), strict=True)]
            table = pa.table(columns, schema=_DEALT)
            writer.write_table(table, row_group_size=max(1, len(table)))
        writer.add_key_value_metadata({"parts": json.dumps(parts)})


def _of_tape(files: Files, tape: TapeToDeal) -> Iterator[Dealt]:
    stored = tape.digests
    known = _known(files, tape.findings) if tape.findings is not None else _Known({}, {})
    decoder = DigestDecoder()
    with files.local(stored.path) as path:
        columns = ["exchange", "root", "recorded_ns", "alone", "digest"]
        place = 0
        for batch in pq.ParquetFile(path).iter_batches(_ROWS, columns=columns):
            of_columns = [batch.column(name).to_pylist() for name in columns]
            for exchange, root, recorded_ns, alone, digest in zip(*of_columns, strict=True):
                place += 1
                dealt = Dealt(
                    key=root,
                    day=stored.day,
                    tape=stored.tape,
                    place=place,
                    began_ns=recorded_ns,
                    alone=alone,
                    known=known.names.get(exchange, []),
                    refusals=known.refusals.get(exchange, []),
                    digest=digest,
                )
                yield dealt
                if not any(each in digest for each in _KEEPING):
                    continue
                # It continues only digests of the same dialect, which are all decoded here.
                kept = decoder.decode(digest)
                if kept.reply_id is not None and kept.store is not False:
                    whole = DigestEncoder().encode(kept).digest
                    yield dealt._replace(key=stored_history(kept.reply_id), digest=whole)


class _Known(NamedTuple):
    """The findings on a tape alone, by exchange: see `Dealt`."""

    names: dict[int, list[str]]
    refusals: dict[int, list[str]]


def _known(files: Files, path: str) -> _Known:
    found = _Known({}, {})
    with files.local(path) as local:
        table = pq.ParquetFile(local).read()
    of_columns = [table.column(name).to_pylist() for name in ("exchange", "code", "fingerprint")]
    for exchange, code, fingerprint in zip(*of_columns, strict=True):
        found.names.setdefault(exchange, []).append(f"{code} {fingerprint}")
    refused = pa.array([code == REFUSAL for code in of_columns[1]], pa.bool_())
    for row in table.filter(refused).to_pylist():
        text = json.dumps([row[name] for name in _PLACES])
        found.refusals.setdefault(row["exchange"], []).append(text)
    return found


def compare(job: JoinJob, item: tuple[int, tuple[str, ...]]) -> list[FoundRow]:
    """Return the findings of the conversations in a partition.

    Args:
        job: the parameters of the join.
        item: the partition, and the files that `deal` wrote.
    """
    part, paths = item
    files = open_files(job.out)
    tables = [each for path in paths if (each := _of_partition(files, path, part)) is not None]
    if not tables:
        return []
    table = pa.concat_tables(tables)
    # Most conversations are on one tape, whose scan has compared them.
    of_columns = [table.column(name).to_pylist() for name in ("key", "tape", "alone")]
    tapes: dict[str, str] = {}
    joins = set()
    for key, tape, alone in zip(*of_columns, strict=True):
        if alone or tapes.setdefault(key, tape) != tape:
            joins.add(key)
    chosen = pa.array([key in joins for key in of_columns[0]], pa.bool_())
    rows = [Dealt(**row) for row in table.filter(chosen).to_pylist()]
    rows.sort(key=attrgetter("key", "tape", "place"))
    found: dict[tuple[object, ...], FoundRow] = {}
    for _, group in groupby(rows, key=attrgetter("key")):
        for each in _compared(job, list(group)):
            # A reply that the provider keeps is in two groups.
            found.setdefault((each.day, *each.row), each)
    return list(found.values())


def _of_partition(files: Files, path: str, part: int) -> pa.Table | None:
    with files.local(path) as local:
        source = pq.ParquetFile(local)
        parts = json.loads(source.metadata.metadata[b"parts"])
        if part not in parts:
            return None
        return source.read_row_group(parts.index(part))


def _compared(job: JoinJob, rows: Sequence[Dealt]) -> Iterator[FoundRow]:
    days = {row.tape: row.day for row in rows}
    digests: list[TapeDigest] = []
    known: dict[tuple[str, int], list[str]] = {}
    refusals: dict[tuple[str, int], list[str]] = {}
    for tape, own in groupby(rows, key=attrgetter("tape")):
        decoder = DigestDecoder()
        for row in own:
            digest = decoder.decode(row.digest)
            digests.append(TapeDigest(tape, row.began_ns, row.alone, digest))
            known[tape, digest.exchange] = row.known
            refusals[tape, digest.exchange] = row.refusals
    shown = joined(digests, job.settings)
    for tape, counted in shown.new:
        found = finding_row(tape, job.rules, counted, across=True)
        if _name(found) not in known[tape, counted.finding.exchange]:
            yield FoundRow(days[tape], found)
    for tape, counted in shown.withdrawn:
        found = finding_row(tape, job.rules, counted, across=True)
        if _name(found) in known[tape, counted.finding.exchange]:
            yield FoundRow(days[tape], _with(found, withdrawn=True))
    for tape, exchange, answered in shown.retried:
        for text in refusals[tape, exchange]:
            refusal = _with(tuple(json.loads(text)), across=True)
            message = answered_later(str(refusal[_PLACES["message"]]), answered)
            less = _with(refusal, message=message, severity=Severity.INFO.value)
            yield FoundRow(days[tape], less)
            yield FoundRow(days[tape], _with(refusal, withdrawn=True))
    for tape, exchange in shown.answered:
        for name in known[tape, exchange]:
            code, _, fingerprint = name.partition(" ")
            if code == _SILENCE:
                yield FoundRow(days[tape], _answered(job, tape, exchange, fingerprint))


def _name(row: Row) -> str:
    return f"{row[_PLACES['code']]} {row[_PLACES['fingerprint']]}"


def _with(row: Row, **values: object) -> Row:
    changed = list(row)
    for name, value in values.items():
        changed[_PLACES[name]] = value
    return tuple(changed)


def _answered(job: JoinJob, tape: str, exchange: int, fingerprint: str) -> Row:
    """Return the row that withdraws the finding of an unanswered call."""
    (rule,) = [each for each in RULES if each.code == _SILENCE]
    return _with(
        (None,) * len(_PLACES),
        tape=tape,
        exchange=exchange,
        about=exchange,
        code=rule.code,
        name=rule.name,
        severity=rule.severity.value,
        confidence=Confidence.LIKELY.value,
        message="the conversation continues on another tape",
        across=True,
        withdrawn=True,
        fingerprint=fingerprint,
        rules=job.rules,
    )


class _Writer:
    """Writes the rows of findings, one file per day.

    Args:
        files: the dataset.
        run: names the run.
        rules: the version of the rules.
    """

    def __init__(self, files: Files, run: str, rules: str) -> None:
        self._files = files
        self._rules = rules
        self._drafts = files.drafts(run)
        self._days: dict[str, pq.ParquetWriter] = {}
        self._withdrawn = self._all = 0

    def write(self, found: Iterable[FoundRow]) -> None:
        """Add rows to the drafts."""
        ordered = sorted(found, key=attrgetter("day"))
        for day, own in groupby(ordered, key=attrgetter("day")):
            rows = [each.row for each in own]
            self._all += len(rows)
            self._withdrawn += sum(bool(row[_PLACES["withdrawn"]]) for row in rows)
            if day not in self._days:
                self._days[day] = self._opened(day)
            self._days[day].write_batch(batch_of(FINDINGS, self._rules, rows))

    def _opened(self, day: str) -> pq.ParquetWriter:
        schema = schema_of(FINDINGS, self._rules)
        return pq.ParquetWriter(self._drafts / day, schema, compression="zstd", store_schema=False)

    def publish(self) -> JoinSummary:
        """Make the drafts part of the dataset, in place of the files of an earlier join.

        The file of `NO_DAY` comes last, even without rows: it says that the join is complete.
        """
        written = set()
        last = self._days.pop(NO_DAY, None) or self._opened(NO_DAY)
        for day, writer in (*self._days.items(), (NO_DAY, last)):
            writer.add_key_value_metadata(dict(schema_of(FINDINGS, self._rules).metadata))
            writer.close()
            path = path_of(FINDINGS.name, day, file_name(JOINED, self._rules))
            self._files.publish(self._drafts / day, path)
            written.add(path)
        for each in list(stored_rows(self._files, [FINDINGS.name])):
            if each.tape == JOINED and each.path not in written:
                self._files.remove(each.path)
        return JoinSummary(findings=self._all - self._withdrawn, withdrawn=self._withdrawn)

    def close(self) -> None:
        """Delete the drafts that are left."""
        for writer in self._days.values():
            writer.close()
        shutil.rmtree(self._drafts, ignore_errors=True)
