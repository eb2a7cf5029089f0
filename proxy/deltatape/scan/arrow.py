"""Rows as batches of Arrow, and the schemas of the tables."""

from collections.abc import Mapping, Sequence
from functools import cache

import pyarrow as pa

from deltatape.scan.rows import Row
from deltatape.scan.schema import RULES_KEY, VERSION, VERSION_KEY, Table, Type

TYPES: Mapping[Type, pa.DataType] = {
    Type.TEXT: pa.string(),
    Type.WORD: pa.string(),
    Type.TEXTS: pa.list_(pa.string()),
    Type.NUMBER: pa.int64(),
    Type.FLAG: pa.bool_(),
    Type.TIME: pa.timestamp("us", "UTC"),
    Type.BYTES: pa.binary(),
}
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@cache
def schema_of(table: Table, rules: str) -> pa.Schema:
    """Return the Arrow schema of a table, with the version of the rules as metadata."""
    return pa.schema(
        [
            pa.field(each.name, TYPES[each.type], nullable=not each.required)
            for each in table.columns
        ],
        metadata={VERSION_KEY: str(VERSION), RULES_KEY: rules},
    )


def batch_of(table: Table, rules: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows of a table as a batch.

    Args:
        table: their table.
        rules: the version of the rules that made them.
        rows: at least one.
    """
    columns = [
        _array(each.type, values)
        for each, values in zip(table.columns, zip(*rows, strict=True), strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(table, rules))


def _array(of: Type, values: Sequence[object]) -> pa.Array:
    try:
        return pa.array(values, TYPES[of])
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
        # JSON on the wire may hold halves of surrogate pairs, and any number.
        return pa.array([_holdable(each) for each in values], TYPES[of])


def _holdable(value: object) -> object:
    """Return the nearest value that fits into a column."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case int():
            return max(_LEAST, min(value, _MOST))
        case list():
            return [_holdable(each) for each in value]
        case _:
            return value
