"""The index as a file: what is asked of it, and how much work that is."""

import json
import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from deltatape.clock import parse_rfc3339
from deltatape.inspector.index import (
    MAX_ROWS,
    ORDERS,
    Filter,
    IndexReader,
    IndexWriter,
    Page,
    TapeState,
    filtered,
)

MANY = 20_000
COPIED = 1000
"""Rows that are written as usual; the others are copies of them."""
PROVIDERS = ("openai", "anthropic", "gemini", None)
MODELS = ("gpt-4o", "claude-5", "gemini-4", 'it\'s a "model"', None)
CODES = ((), (), (), ("T001",), ("C002", "T001"), ("W006",))
WORST = {"T001": ("error", "upstream"), "C002": ("error", "app"), "W006": ("warning", None)}


def row(number: int, tape: str = "x.tape", **more: object) -> dict[str, object]:
    codes = more.get("codes", ())
    assert isinstance(codes, tuple)
    severity, blame = WORST[codes[0]] if codes else ("", None)
    return {
        "tape": tape,
        "exchange": number,
        "at": "2026-11-21T20:36:01.000Z",
        "t_ns": 0,
        "provider": "openai",
        "model": "gpt-4o",
        "dialect": "openai-chat",
        "method": "POST",
        "target": "/v1/chat/completions",
        "status": 200,
        "duration_ns": 1_000_000_000,
        "first_event_ns": 100_000_000,
        "tokens": None,
        "calls": 0,
        "finish": "stop",
        "ending": "complete",
        "open": False,
        "findings": len(codes),
        "worst": {"code": codes[0], "name": "a-defect", "severity": severity, "blame": blame}
        if codes
        else None,
        "dead_zones": 0,
        "dead_ns": 0,
        "thread": number,
        "before": None,
        "marks": [],
        **more,
        "codes": list(codes),
    }


def state(name: str) -> TapeState:
    return TapeState(0, name, f"/tapes/{name}", 10, 20, 30, False, True, 0, None)  # noqa: FBT003


def put(index: Path, *rows: Mapping[str, object], rules: str = "") -> None:
    """Write rows, each to the tape that it names."""
    writer = IndexWriter(index, rules)
    with writer.changing():
        keys = {name: writer.put_tape(state(name)) for name in {str(each["tape"]) for each in rows}}
        for each in rows:
            writer.put_rows(keys[str(each["tape"])], [each])
    writer.close()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


def asked(index: Path, only: Filter = Filter(), order: str = "at", **more: int) -> Page:  # noqa: B008
    reader = IndexReader(index)
    try:
        return reader.page(only, order, offset=more.get("offset", 0), limit=more.get("limit", 500))
    finally:
        reader.close()


def numbers(page: Page) -> list[int]:
    return [json.loads(each)["exchange"] for each in page.rows]


@pytest.mark.parametrize(
    ("only", "left"),
    [
        (Filter(), [1, 2, 3, 4]),
        (Filter(providers=("anthropic",)), [2]),
        (Filter(providers=("anthropic", "nobody")), [2]),
        (Filter(models=("gpt-4o",)), [1, 4]),
        (Filter(codes=("T001",)), [2, 3]),
        (Filter(codes=("T",)), [2, 3]),
        (Filter(codes=("C", "W")), [2, 4]),
        (Filter(codes=("T00", "T001")), [2, 3]),
        (Filter(codes=("X",)), []),
        (Filter(severity="error"), [2, 3]),
        (Filter(severity="warning"), [2, 3, 4]),
        (Filter(severity="info"), [2, 3, 4]),
        (Filter(text="GPT"), [1, 4]),
        (Filter(text="/v1/messages claude"), [2]),
        (Filter(text="x.tape#3"), [3]),
        (Filter(text="a-defect w006"), [4]),
        (Filter(text="100%"), []),
        (Filter(text="' OR 1=1 --"), []),
        (Filter(models=("' OR 1=1 --",)), []),
        (Filter(tape="x.tape"), [1, 2, 3]),
        (Filter(tape="z.tape"), []),
        (Filter(from_ns=parse_rfc3339("2026-11-22T00:00:00.000000000Z")), [3, 4]),
        (Filter(until_ns=parse_rfc3339("2026-11-22T00:00:00.000000000Z")), [1, 2]),
        (Filter(severity="error", models=("m'",)), [3]),
    ],
)
def test_a_filter_leaves_the_rows_that_have_all_of_it(
    index: Path, only: Filter, left: Sequence[int]
) -> None:
    rows = [
        row(1),
        row(2, provider="anthropic", model="claude", target="/v1/messages", codes=("C002", "T001")),
        row(3, model="m'", at="2026-11-22T00:00:00.000Z", codes=("T001",)),
        row(4, tape="y.tape", at="2026-11-22T00:00:00.001Z", codes=("W006",)),
    ]
    put(index, *rows)
    page = asked(index, only)
    assert numbers(page) == left
    assert (page.total, page.all) == (len(left), 4)
    # Exchanges in progress are in no index.
    assert filtered(rows, only) == [rows[number - 1] for number in left]


def test_facets_count_what_the_filters_on_the_others_leave(index: Path) -> None:
    put(
        index,
        row(1),
        row(2, model="claude", provider="anthropic", codes=("T001", "C002")),
        row(3, model=None, provider="anthropic", codes=("T001",)),
    )
    assert asked(index).facets == {
        "provider": {"anthropic": 2, "openai": 1},
        "model": {"claude": 1, "gpt-4o": 1},
        "code": {"T001": 2, "C002": 1},
    }
    assert asked(index, Filter(providers=("openai",))).facets == {
        "provider": {"anthropic": 2, "openai": 1},
        "model": {"gpt-4o": 1},
        "code": {},
    }
    assert asked(index, Filter(codes=("C002",))).facets == {
        "provider": {"anthropic": 1},
        "model": {"claude": 1},
        "code": {"T001": 2, "C002": 1},
    }


def test_a_later_row_of_an_exchange_replaces_the_first(index: Path) -> None:
    put(index, row(1, codes=("T001",)), row(2))
    put(index, row(1, model="other"))
    page = asked(index)
    assert sorted(numbers(page)) == [1, 2]
    assert page.facets["code"] == {}
    assert page.facets["model"] == {"gpt-4o": 1, "other": 1}
    assert asked(index, Filter(text="gpt")).total == 1


@pytest.mark.parametrize("order", [*ORDERS, *(f"-{each}" for each in ORDERS)])
def test_rows_come_in_every_order_page_by_page(index: Path, order: str) -> None:
    choose = random.Random(order)
    rows = [
        row(
            number,
            at=f"2026-11-21T20:36:{choose.randrange(60):02d}.000Z",
            duration_ns=choose.randrange(99),
            first_event_ns=choose.randrange(99),
            tokens={"input": choose.randrange(99), "output": None},
            calls=choose.randrange(9),
            codes=choose.choice(CODES),
        )
        for number in range(1, 40)
    ]
    put(index, *rows)
    whole = [json.loads(each) for each in asked(index, order=order).rows]

    def value(each: Mapping[str, object]) -> object:
        name = order.removeprefix("-")
        tokens, worst = each["tokens"], each["worst"]
        return {
            "at": each["at"],
            "duration": each["duration_ns"],
            "first_event": each["first_event_ns"],
            "tokens": tokens["input"] if isinstance(tokens, dict) else None,
            "calls": each["calls"],
            "findings": each["findings"],
            "severity": ["error", "warning", "info", ""].index(
                worst["severity"] if isinstance(worst, dict) else ""
            ),
        }[name]

    values = [value(each) for each in whole]
    assert values == sorted(values, reverse=order.startswith("-"))  # type: ignore[type-var]
    parts = [asked(index, order=order, offset=at, limit=7) for at in range(0, 42, 7)]
    assert [number for part in parts for number in numbers(part)] == [
        each["exchange"] for each in whole
    ]


def test_a_conversation_is_in_order(index: Path) -> None:
    put(index, row(3, thread=1), row(2), row(1, thread=1), row(4, thread=1, tape="y.tape"))
    reader = IndexReader(index)
    found = reader.thread("x.tape", 3)
    assert found is not None
    assert [json.loads(each)["exchange"] for each in found] == [1, 3]
    assert reader.thread("x.tape", 9) is None
    assert reader.thread("z.tape", 1) is None
    reader.close()


def test_trends_are_counted_by_day_provider_and_model(index: Path) -> None:
    put(
        index,
        row(1, codes=("T001",), dead_zones=2, dead_ns=5),
        row(2),
        row(3, at="2026-11-22T00:00:00.000Z", model=None, codes=("T001", "C002")),
        row(4, at=None, provider=None),
    )
    reader = IndexReader(index)
    groups = reader.trends(Filter()).groups()
    told = [(each.day, each.provider, each.model, each.exchanges, each.affected) for each in groups]
    assert told == [
        (None, None, "gpt-4o", 1, 0),
        ("2026-11-21", "openai", "gpt-4o", 2, 1),
        ("2026-11-22", "openai", None, 1, 1),
    ]
    assert (groups[1].findings, groups[1].dead_zones, groups[1].dead_ns) == (1, 2, 5)
    assert groups[2].codes == {"T001": 1, "C002": 1}
    (only,) = reader.trends(Filter(codes=("C",))).groups()
    assert only.day == "2026-11-22"
    reader.close()


def test_what_is_dropped_is_gone_everywhere(index: Path) -> None:
    put(index, row(1, codes=("T001",)), row(1, tape="y.tape"))
    writer = IndexWriter(index, "")
    revision = writer.revision
    with writer.changing():
        writer.drop_tape(writer.tapes()["x.tape"].key)
    assert writer.revision == revision + 1
    with pytest.raises(sqlite3.IntegrityError), writer.changing():
        writer.put_rows(99, [row(1)])  # on no tape
    assert writer.revision == revision + 1
    writer.close()
    page = asked(index)
    assert (page.total, page.all, page.revision) == (1, 1, revision + 1)
    assert page.facets["code"] == {}
    with sqlite3.connect(index) as plain:
        for table, left in (("codes", 0), ("texts", 1), ("exchanges", 1), ("tapes", 1)):
            assert plain.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (left,), table
    plain.close()


def test_rows_of_other_rules_are_dropped(index: Path) -> None:
    put(index, row(1), rules="one")
    put(index, row(2), rules="one")
    assert asked(index).all == 2
    put(index, row(3), rules="another")
    assert numbers(asked(index)) == [3]


# However many rows there are, a page takes about the same work.


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("many") / "index"
    choose = random.Random(19)
    writer = IndexWriter(index, "")
    with writer.changing():
        key = writer.put_tape(state("x.tape"))
        rows = (
            row(
                number,
                at=f"2026-11-{number % 28 + 1:02d}T{number % 24:02d}:00:00.{number % 1000:03d}Z",
                duration_ns=choose.randrange(10**10),
                provider=choose.choice(PROVIDERS),
                model=choose.choice(MODELS),
                codes=choose.choice(CODES),
            )
            for number in range(1, COPIED + 1)
        )
        writer.put_rows(key, rows)
        columns = [
            name for _, name, *_ in writer._connection.execute("PRAGMA table_info(exchanges)")
        ]
        moved = {"key": f"key + {COPIED} * ?", "number": f"number + {COPIED} * ?"}
        copied = ", ".join(moved.get(each, each) for each in columns)
        for copy in range(1, MANY // COPIED):
            copying = f"INSERT INTO exchanges SELECT {copied} FROM exchanges WHERE key <= {COPIED}"
            writer._connection.execute(copying, [copy, copy])
            shift = COPIED * copy
            copying = f"INSERT INTO codes SELECT code, exchange + {shift} FROM codes"
            writer._connection.execute(f"{copying} WHERE exchange <= {COPIED}")
    writer.close()
    return index


@pytest.fixture
def reader(many: Path) -> Iterator[IndexReader]:
    made = IndexReader(many)
    yield made
    made.close()


class Work:
    """Counts what SQLite does: statements, and steps of its virtual machine in hundreds."""

    def __init__(self, reader: IndexReader) -> None:
        self.statements: list[str] = []
        self.hundreds = 0
        reader._connection.set_trace_callback(self.statements.append)
        reader._connection.set_progress_handler(self._step, 100)

    def _step(self) -> int:
        self.hundreds += 1
        return 0


@pytest.mark.parametrize("order", ["-at", "duration", "-severity", "first_event"])
def test_a_page_takes_the_same_work_however_many_rows_there_are(
    reader: IndexReader, order: str
) -> None:
    work = Work(reader)
    page = reader.page(Filter(), order, offset=0, limit=100)
    assert (page.total, page.all, len(page.rows)) == (MANY, MANY, 100)
    assert len(work.statements) <= 3
    assert work.hundreds <= 60


def test_a_page_far_below_steps_over_an_index_and_no_rows(reader: IndexReader) -> None:
    work = Work(reader)
    page = reader.page(Filter(), "-at", offset=MANY - 100, limit=100)
    assert len(page.rows) == 100
    assert work.hundreds <= 10 * MANY / 100


@pytest.mark.parametrize(
    "only",
    [
        Filter(providers=("openai",)),
        Filter(models=("gpt-4o",), severity="error"),
        Filter(codes=("T",)),
        Filter(from_ns=parse_rfc3339("2026-11-10T00:00:00.000000000Z")),
    ],
)
def test_who_scrolls_through_a_filter_has_it_counted_once(
    reader: IndexReader, only: Filter
) -> None:
    first = reader.page(only, "-at", offset=0, limit=100)
    assert 0 < first.total < MANY
    work = Work(reader)
    reader.page(only, "-at", offset=100, limit=100)
    assert len(work.statements) == 2
    assert work.hundreds <= 20 * MANY / 100


def test_no_answer_is_longer_than_the_most_rows(reader: IndexReader) -> None:
    assert len(reader.page(Filter(), "at", offset=0, limit=10**9).rows) == MAX_ROWS
    assert reader.page(Filter(), "at", offset=10**15, limit=10).rows == []
