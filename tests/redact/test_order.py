import json

import pytest

from deltatape.redact.audit import ExchangeOrder
from helpers.planted import exchange, numbered, record
from helpers.readings import told


def faults(lines: list[bytes]) -> list[tuple[int, str]]:
    order = ExchangeOrder()
    for line, one in numbered(lines):
        order.check(line, one)
    return [(fault.line, fault.message) for fault in order.faults]


WHOLE = exchange(framing="chunked", reads=[b"abc", b"de"])
"""Lines 2 to 8: request, request-body, request-end, response, two reads, end."""


def with_line(at: int, code: str, payload: object, t_ns: int = 60) -> list[bytes]:
    """`WHOLE` with another record on line `at`."""
    return [*WHOLE[: at - 2], record(t_ns, 1, code, payload), *WHOLE[at - 2 :]]


HEAD = {"status": 103, "reason": "", "http": "1.1", "headers": []}


@pytest.mark.parametrize(
    "lines",
    [
        WHOLE,
        WHOLE[:3],
        with_line(6, "boundaries", [0, 3]),
        with_line(6, "boundaries", []),
        with_line(6, "masked", {"spans": [[0, 3, "ab12cd34"]]}),
        with_line(5, "informational", HEAD, 40),
        with_line(6, "odd", 1, 0),
        with_line(6, "sent", {"connect_ns": 0, "tls_ns": 0, "reused": True}),
        with_line(6, "trailers", {"headers": []}),
        with_line(8, "idle", {}, 70),
        told(),
    ],
)
def test_what_the_format_allows_is_no_fault(lines: list[bytes]) -> None:
    assert faults(lines) == []


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (WHOLE[1:], 2, "`request-body` before the `request`"),
        (with_line(6, "request-end", {}), 6, "a second `request-end`"),
        (with_line(6, "request-body", "x"), 6, "`request-body` after `request-end`"),
        (with_line(6, "informational", HEAD), 6, "`informational` after `response`"),
        (with_line(5, "read", "x", 40), 5, "`read` before the `response`"),
        (with_line(6, "idle", {}, 5), 6, "its time, 5 ns, is earlier"),
        ([*WHOLE, record(9999, 1, "idle", {})], 9, "`idle` after the `end`"),
        (with_line(6, "boundaries", [4]), 7, "a read of 3 bytes, but the `boundaries` in line 6"),
        (with_line(8, "boundaries", [4], 70), 9, "the `boundaries` in line 8 have no `read`"),
        (
            with_line(6, "masked", {"spans": [[0, 9, "ab12cd34"]]}),
            7,
            "3 bytes, but the `masked`",
        ),
        (with_line(3, "masked", {"spans": [[0, 9, "ab12cd34"]]}, 10), 4, "7 bytes, but"),
        (with_line(6, "read", "more"), 9, "`end` counts 5 bytes, but the reads have 9"),
    ],
)
def test_what_is_out_of_order_is_told_with_its_line(
    lines: list[bytes], line: int, message: str
) -> None:
    at, told = faults(lines)[0]
    assert at == line
    assert told.startswith(message)


def test_boundaries_belong_to_chunked_responses_and_to_a_read() -> None:
    assert [line for line, _ in faults([*exchange()[:4], record(55, 1, "boundaries", [1])])] == [6]
    twice = [*with_line(6, "boundaries", [1])[:5], *with_line(6, "boundaries", [1])[4:]]
    assert faults(twice) == [(7, "the `boundaries` in line 6 have no `read`")]


def test_bytes_that_were_changed_are_told() -> None:
    lines = exchange(reads=[b"abc"])
    lines[4] = lines[4].replace(b"abc", b"abd")
    assert faults(lines) == [
        (7, "`end.sha256` does not match the reads: the body was changed after recording")
    ]


def test_an_exchange_knows_whether_losses_are_told() -> None:
    end = json.loads(WHOLE[-1])
    order = ExchangeOrder()
    assert not order.lost
    order.check(
        7, numbered([record(1, 1, "end", {**end[3], "recorder": {"lost_records": 2}})])[0][1]
    )
    assert order.lost
    assert order.line == 7
