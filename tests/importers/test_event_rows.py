import pytest

from deltatape.importers.event_rows import EventRowsImporter
from helpers.imported import notes, only, source

ROWS = (
    "Id\tType\tData\tTime\n"
    '\tmessage\t{"choices": [{"index": 0, "delta": {"content": "a\tb"}}]}\t23:59:59.5\n'
    "7\tping\t{}\t00:00:01\n"
    "\n"
    "\tmessage\t[DONE]\t00:00:01,250 am\n"
)


def test_a_row_is_an_event_with_its_time() -> None:
    exchange = only(ROWS.encode())
    assert exchange.body == (
        b'data: {"choices": [{"index": 0, "delta": {"content": "a\tb"}}]}\n\n'
        b"id: 7\nevent: ping\ndata: {}\n\ndata: [DONE]\n\n"
    )
    assert [read.t_ns for read in exchange.reads] == [0, 1_500_000_000, 1_750_000_000]
    assert notes(exchange)[0].startswith("EventStream: the body was written anew from 3 rows,")
    assert not exchange.timed


def test_a_user_may_describe_the_rest() -> None:
    row = b'message\t{"a": 1}\t1:02:03'
    exchange = only(row, request=b'{"model": "m"}', response=b'{"status": 201}')
    assert exchange.request.body == b'{"model": "m"}'
    assert exchange.response is not None
    assert exchange.response.status == 201
    assert exchange.body == b'data: {"a": 1}\n\n'


@pytest.mark.parametrize(
    "text",
    ["", "a\tb", "Type\tData\tTime\n", "message\t{}\t1:02:03\nother\n", "message\t{}\t1:02\0"],
)
def test_what_is_no_row_is_not_for_this_importer(text: str) -> None:
    assert not EventRowsImporter().claims(source(text.encode()))
