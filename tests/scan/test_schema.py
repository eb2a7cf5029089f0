import re

import pytest

from deltatape.model.exchange_row import ExchangeRow
from deltatape.render.exchange_rows import row_object
from deltatape.scan.schema import EXCHANGES, TABLES, Table, file_name, path_of, rules_key

LEFT_OUT = {"called", "open", "shows"}
"""Excerpts of arguments, what is false on a whole tape, and what the findings say with `about`."""
FLATTENED = {"tokens": ("input_tokens", "output_tokens"), "worst": ("worst_code", "worst_blame")}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_names_its_tape_and_the_rules_and_no_column_twice(table: Table) -> None:
    names = [column.name for column in table.columns]

    assert names[0] == "tape"
    assert "rules" in names
    assert len(set(names)) == len(names)
    assert all(column.about for column in table.columns)


def test_exchanges_have_everything_that_the_document_about_exchanges_has(row: ExchangeRow) -> None:
    members = row_object(row).keys() - LEFT_OUT
    columns = {column.name for column in EXCHANGES.columns}

    missing = {each for each in members - FLATTENED.keys() if each not in columns}
    flattened = {name for each in members & FLATTENED.keys() for name in FLATTENED[each]}

    assert missing == set()
    assert flattened <= columns


@pytest.fixture
def row() -> ExchangeRow:
    return ExchangeRow(
        tape="x.tape",
        exchange=1,
        at=None,
        t_ns=None,
        provider=None,
        model=None,
        dialect="unknown",
        method="POST",
        target="/",
        status=None,
        duration_ns=None,
        first_event_ns=None,
        tokens=None,
        calls=0,
        finish=None,
        ending=None,
        open=False,
        findings=0,
        codes=(),
        worst=None,
        dead_zones=0,
        dead_ns=0,
        thread=1,
        before=None,
        marks=(),
    )


def test_rules_have_a_short_key_in_names() -> None:
    assert rules_key("0.1.0-aa") == rules_key("0.1.0-aa")
    assert rules_key("0.1.0-aa") != rules_key("0.1.0-ab")
    assert re.fullmatch("[0-9a-f]{12}", rules_key("0.1.0-aa"))


def test_a_file_is_named_by_its_tape_and_the_rules_in_the_folder_of_its_day() -> None:
    name = file_name("01ABC", "5f0c")

    assert path_of("calls", "2026-11-21", name) == "calls/day=2026-11-21/01ABC-5f0c.parquet"
