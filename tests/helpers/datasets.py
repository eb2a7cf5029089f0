"""Datasets as `deltatape scan` writes them, of rows that a test gives."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime  # noqa: TID251 - they read no clock
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from deltatape.scan.schema import TABLES, Column, Type, file_name, path_of

RULES = "5f0c1d2e3a4b"
DAY = "2026-11-21"
_TYPES = {
    Type.TEXT: pa.string(),
    Type.WORD: pa.string(),
    Type.TEXTS: pa.list_(pa.string()),
    Type.NUMBER: pa.int64(),
    Type.FLAG: pa.bool_(),
    Type.TIME: pa.timestamp("us", "UTC"),
    Type.BYTES: pa.binary(),
}
_EMPTY: Mapping[Type, object] = {
    Type.TEXT: "",
    Type.WORD: "",
    Type.TEXTS: [],
    Type.NUMBER: 0,
    Type.FLAG: False,
    Type.BYTES: b"",
}


def at(time: str, day: str = DAY) -> datetime:
    """A time of a day in UTC."""
    return datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC)


def write_rows(
    folder: Path,
    table: str,
    tape: str,
    rows: Sequence[Mapping[str, object]],
    *,
    day: str = DAY,
    rules: str = RULES,
) -> Path:
    """Write a tape's file of a table; what a row does not say is null, or empty if required."""
    of_table = TABLES[table.removesuffix("_before")].columns
    columns = {
        each.name: pa.array(
            [_value(each, {"tape": tape, "rules": rules, **row}) for row in rows],
            _TYPES[each.type],
        )
        for each in of_table
    }
    path = folder / path_of(table, day, file_name(tape, rules))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = folder / ".draft"
    pq.write_table(pa.table(columns), draft)
    return draft.replace(path)  # appears at once, as that of a scan


def _value(column: Column, row: Mapping[str, object]) -> object:
    missing = _EMPTY[column.type] if column.required else None
    return row.get(column.name, missing)
