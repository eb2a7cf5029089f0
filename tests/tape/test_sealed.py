"""The index of sealed tapes as bytes."""

import json
import struct
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from deltatape.model.exchange import EndReason
from deltatape.model.exchange_row import ExchangeRow, Mark, WorstFinding
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.token_usage import TokenCount
from deltatape.render.exchange_rows import row_object
from deltatape.tape import sealed
from deltatape.tape.fields import MalformedError
from deltatape.tape.sealed import (
    TRAILER_BYTES,
    Entry,
    EntryChunk,
    OrderChunk,
    Part,
    Run,
    SealedSummary,
    Spans,
    Stored,
    Table,
    add_part,
    plan_frames,
    read_entries,
    read_order,
    read_rows,
    read_trailer,
    skippable,
    trailer,
    write_order,
)

FILE = 10_000
TABLE = Table(
    tool="deltatape 0.1.0",
    rules="x",
    damaged=False,
    size=1_150,
    lines=12,
    torn=0,
    sha256="00",
    exchanges=2,
    frames=(Stored(0, 60, 100), Stored(60, 400, 1_000), Stored(460, 40, 50)),
    entries=(EntryChunk(Stored(508, 90, 300), 1, 2, 2),),
    order=(OrderChunk(Stored(600, 80, 90), 100, 2), OrderChunk(Stored(700, 80, 90), 600, 8)),
    rest=(Part(2, 0, 50),),
)
ROW = ExchangeRow(
    tape="x.tape.zst",
    exchange=7,
    at="2026-11-21T20:36:01.061Z",
    t_ns=61_000_000,
    provider="openai",
    model="gpt-4o",
    dialect="openai-chat",
    method="POST",
    target="/v1/chat/completions",
    status=200,
    duration_ns=5,
    first_event_ns=4,
    tokens=TokenCount(input=61, output=None),
    calls=1,
    called=("get {}",),
    finish="tool_calls",
    ending=EndReason.COMPLETE,
    open=False,
    findings=2,
    codes=("T001", "T003"),
    worst=WorstFinding(
        code="T001",
        name="empty-arguments",
        severity=Severity.ERROR,
        blame=Blame.MODEL,
        confidence=Confidence.PROVEN,
    ),
    dead_zones=0,
    dead_ns=0,
    thread=6,
    before=6,
    marks=(Mark.RETRY,),
)
PLAIN = replace(
    ROW,
    exchange=8,
    at=None,
    t_ns=None,
    tokens=None,
    ending=None,
    worst=None,
    before=None,
    marks=(),
)


def entry(row: ExchangeRow | None) -> Entry:
    found = None if row is None else row_object(row)
    return Entry(
        exchange=7,
        id="01A",
        t_ns=61,
        begin=100,
        end=400,
        parts=(Part(1, 0, 300),),
        row=found and {k: v for k, v in found.items() if k not in ("tape", "exchange")},
    )


def altered(table: Table, **changes: object) -> bytes:
    """The table as it is written, with other values."""
    return json.dumps({**json.loads(table.to_json()), **changes}).encode()


def test_a_table_is_read_as_it_was_written_and_more_keys_are_ignored() -> None:
    assert Table.from_json(TABLE.to_json(), FILE) == TABLE
    assert Table.from_json(altered(TABLE, more=[1]), FILE) == TABLE
    without = {k: v for k, v in json.loads(TABLE.to_json()).items() if k not in ("tool", "rules")}
    found = Table.from_json(json.dumps(without).encode(), FILE)
    assert (found.tool, found.rules) == ("", "")


WORST = {
    "code": "T001",
    "name": "empty-arguments",
    "severity": "error",
    "blame": None,
    "confidence": "proven",
    "message": "a call",
}


@pytest.mark.parametrize("worst", [None, WORST])
def test_a_table_may_have_a_summary(worst: dict[str, Any] | None) -> None:
    summary = SealedSummary(apps=("curl",), models=(), findings=2, worst=worst)
    table = replace(TABLE, summary=summary)
    assert Table.from_json(table.to_json(), FILE) == table


@pytest.mark.parametrize(
    "changes",
    [
        {"apps": "curl"},
        {"models": [1]},
        {"findings": -1},
        {"worst": 1},
        {"worst": {}},
        {"worst": {**WORST, "severity": "bad"}},
        {"worst": {**WORST, "severity": []}},
    ],
)
def test_a_damaged_summary_is_refused(changes: dict[str, Any]) -> None:
    summary = {"apps": [], "models": [], "findings": 0, "worst": None, **changes}
    with pytest.raises(MalformedError):
        Table.from_json(altered(TABLE, summary=summary), FILE)


def test_a_tape_may_have_a_header_alone() -> None:
    alone = replace(
        TABLE,
        size=100,
        lines=1,
        exchanges=0,
        frames=TABLE.frames[:1],
        entries=(),
        order=(),
        rest=(),
    )
    assert Table.from_json(alone.to_json(), FILE) == alone


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"sealed": 2}, "version 2"),
        ({"sealed": None}, "version null"),
        ({"journal": 1}, "an object is expected"),
        ({"damaged": 1}, "true or false"),
        ({"frames": 1}, "a list is expected"),
        ({"frames": []}, "it has no frame"),
        ({"frames": [[0, 1]]}, "3 integers"),
        ({"frames": [[0, 1, -1]]}, "3 integers"),
        ({"frames": [[0, 1, True]]}, "3 integers"),
        ({"frames": ["abc"]}, "3 integers"),
        ({"frames": [[0, FILE + 1, 1150]]}, "beyond the end"),
        ({"frames": [[0, 1, (64 << 20) + 1]]}, "at most"),
        ({"frames": [[0, 60, 100]]}, "another number of bytes"),
        ({"entries": [[508, 90, 300, 2, 1, 2]]}, '"entries" do not ascend'),
        ({"entries": [[508, FILE, 300, 1, 2, 2]]}, "beyond the end"),
        ({"order": []}, '"order" is missing'),
        ({"order": [[600, 80, 90, 100, 3]]}, "does not begin"),
        ({"order": [[600, 80, 90, 100, 2], [1, 1, 1, 100, 3]]}, '"order" does not ascend'),
        ({"order": [[600, 80, 90, 100, 2], [1, 1, 1, 101, 2]]}, '"order" does not ascend'),
        ({"order": [[600, 80, (16 << 20) + 1, 100, 2]]}, "at most"),
        ({"rest": [[3, 0, 1]]}, "not within a frame"),
        ({"rest": [[2, 1, 50]]}, "not within a frame"),
    ],
)
def test_a_table_that_does_not_add_up_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(MalformedError, match=problem):
        Table.from_json(altered(TABLE, **changes), FILE)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_no_table(data: bytes) -> None:
    with pytest.raises(MalformedError):
        Table.from_json(data, FILE)


def test_a_trailer_says_where_the_table_is() -> None:
    end = trailer(1234, 56)
    assert len(end) == TRAILER_BYTES
    assert read_trailer(end) == (1234, 56)
    assert skippable(b"abc") == b"\x5d\x2a\x4d\x18\x03\0\0\0abc"


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        (b"", "no sealed tape"),
        (trailer(1, 2)[1:], "no sealed tape"),
        (trailer(1, 2)[:-1] + b"x", "no sealed tape"),
        (b"x" + trailer(1, 2)[1:], "no sealed tape"),
        (trailer(1, 2)[:20] + struct.pack("<I", 2) + trailer(1, 2)[24:], "version 2"),
    ],
)
def test_what_is_no_trailer_is_refused(end: bytes, problem: str) -> None:
    with pytest.raises(MalformedError, match=problem):
        read_trailer(end)


def test_entries_are_read_as_they_were_written() -> None:
    both = [entry(ROW), entry(None)]
    assert [*read_entries(b"".join(each.to_line() for each in both), TABLE)] == both


@pytest.mark.parametrize(
    "changes",
    [
        {"exchange": -1},
        {"id": 1},
        {"journal": [1]},
        {"parts": [[9, 0, 1]]},
        {"parts": [[0, 0]]},
        {"row": 1},
    ],
)
def test_a_damaged_entry_is_refused(changes: dict[str, Any]) -> None:
    line = json.dumps({**json.loads(entry(ROW).to_line()), **changes}).encode()
    with pytest.raises(MalformedError):
        [*read_entries(line, TABLE)]


def test_rows_are_those_that_were_written() -> None:
    other = entry(PLAIN).to_line().replace(b'"exchange":7', b'"exchange":8')
    data = entry(ROW).to_line() + other
    assert [*read_rows(data, "x.tape.zst")] == [ROW, PLAIN]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"calls":1', b'"calls":"1"'),
        (b'"model":"gpt-4o"', b'"model":4'),
        (b'"dialect":"openai-chat",', b""),
        (b'"ending":"complete"', b'"ending":"finished"'),
        (b'"severity":"error"', b'"severity":"bad"'),
        (b'"input":61,', b""),
        (b'"row":', b'"rows":'),
        (b'"exchange":7', b'"exchange":"7"'),
        (b"{", b"["),
    ],
)
def test_damaged_rows_are_refused(old: bytes, new: bytes) -> None:
    data = entry(ROW).to_line()
    assert old in data
    with pytest.raises(MalformedError):
        [*read_rows(data.replace(old, new, 1), "x")]


def runs() -> list[Run]:
    """Two exchanges that interleave, the second one cut into two frames; and a line of the tape."""
    return [
        Run(at=100, line=2, lines=2, size=300, exchange=1, frame=1, offset=0),
        Run(at=400, line=4, lines=1, size=50, exchange=0, frame=2, offset=0),
        Run(at=450, line=5, lines=1, size=60, exchange=2, frame=1, offset=400),
        Run(at=510, line=6, lines=1, size=40, exchange=1, frame=1, offset=300),
        Run(at=550, line=7, lines=1, size=30, exchange=2, frame=1, offset=460),
        Run(at=580, line=8, lines=1, size=20, exchange=2, frame=0, offset=0),
        Run(at=600, line=9, lines=1, size=9, exchange=2, frame=1, offset=700),
    ]


def test_the_order_is_read_as_it_was_written() -> None:
    data = write_order(runs())
    assert read_order(data, TABLE.order[0], TABLE) == runs()
    assert json.loads(data)["places"] == [[1, 1, 0], [0, 2, 0], [2, 1, 400], [2, 0, 0], [2, 1, 700]]


@pytest.mark.parametrize(
    ("places", "numbers", "problem"),
    [
        ([[1, 1, 0]], [0, 1], "no three integers"),
        ([[1, 1, 0]], [1, 1, 1], "no run"),
        ([[1, 1, 0]], [0, 0, 1], "no run"),
        ([[1, 1, 0]], [0, 1, 0], "no run"),
        ([[1, 3, 0]], [0, 1, 1], "not within a frame"),
        ([[1, 1, 999]], [0, 1, 1, 0, 1, 1], "not within a frame"),
        ([[1, 1]], [], "3 integers"),
        ([], ["x"], "integers"),
        ([], None, "integers"),
    ],
)
def test_a_damaged_order_is_refused(places: object, numbers: object, problem: str) -> None:
    data = json.dumps({"places": places, "runs": numbers}).encode()
    with pytest.raises(MalformedError, match=problem):
        read_order(data, TABLE.order[0], TABLE)


def test_parts_that_follow_each_other_are_one() -> None:
    parts: list[Part] = []
    for each in (Part(1, 0, 5), Part(1, 5, 2), Part(1, 9, 1), Part(2, 10, 1)):
        add_part(parts, each)
    assert parts == [Part(1, 0, 7), Part(1, 9, 1), Part(2, 10, 1)]


def test_lines_of_an_exchange_in_a_row_are_a_run_up_to_some_bytes() -> None:
    spans = Spans(100, most=25)
    for exchange in (1, 1, 2, 1, 1, 1):
        spans.add(exchange, 10)
    assert [*spans.exchange] == [1, 2, 1, 1]
    assert [*spans.lines] == [2, 1, 2, 1]
    assert [*spans.sizes] == [20, 10, 20, 10]
    assert [*spans.at] == [100, 120, 130, 150]
    assert (len(spans), spans.end) == (4, 160)


def planned(
    conversations: list[list[list[int]]], sizes: list[int], shared: int = 10, most: int = 100
) -> list[list[int]]:
    frames = [*plan_frames(conversations, sizes, shared=shared, most=most)]
    assert sorted(chain(*frames)) == [*range(len(sizes))]
    assert all(sum(sizes[run] for run in frame) <= most or len(frame) == 1 for frame in frames)
    return frames


def test_small_conversations_share_a_frame_and_a_large_one_has_its_own() -> None:
    assert planned([[[0]], [[1], [2]], [[3]], [[4]]], [3, 5, 50, 7, 2]) == [[1, 2], [0, 3], [4]]


def test_a_conversation_that_is_too_large_is_cut_between_exchanges() -> None:
    assert planned([[[0, 2], [1, 3], [4]]], [40, 20, 30, 20, 10]) == [[0, 2], [1, 3, 4]]


def test_an_exchange_that_is_too_large_is_cut_between_runs() -> None:
    assert planned([[[0], [1, 2, 3], [4]]], [10, 60, 50, 20, 10]) == [[0], [1], [2, 3, 4]]
    assert planned([[[0, 1], [2]]], [150, 10, 10]) == [[0], [1, 2]]


def test_the_types_of_a_row_are_those_of_all_its_fields() -> None:
    assert set(sealed._ROW_TYPES) == set(ExchangeRow.__dataclass_fields__)
