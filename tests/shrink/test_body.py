import json
from dataclasses import replace

import pytest

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import EndReason, Exchange, Framing, Read
from deltatape.shrink.body import EditableBody, event_count, from_behind, with_reads
from deltatape.store.reader import open_tape
from helpers import eventstream
from helpers.chat import sse
from helpers.mutated import RECORDINGS
from helpers.shrunk import recorded, streamed


def body_of(exchange: Exchange) -> EditableBody:
    found = EditableBody.of(exchange)
    assert found is not None
    return found


def data_of(exchange: Exchange) -> list[str]:
    stream = decode(exchange)
    assert not stream.anomalies
    return [event.data for event in stream.events]


FRAMED = {
    "sse": (sse({"a": 1}, {"a": 2}, {"a": 3}, done=False), "text/event-stream"),
    "lines": (b'{"a": 1}\n{"a": 2}\n{"a": 3}\n', "application/x-ndjson"),
    "array": (b'[{"a": 1},\r\n{"a": 2}\n,{"a": 3}]', "application/json"),
    "messages": (
        b"".join(eventstream.event("chunk", {"a": number}) for number in (1, 2, 3)),
        "application/vnd.amazon.eventstream",
    ),
}


@pytest.mark.parametrize("kept", [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("form", FRAMED)
def test_events_are_left_out_in_every_framing(form: str, kept: tuple[int, ...]) -> None:
    exchange = recorded(*FRAMED[form])
    left = body_of(exchange).with_events(kept)
    said = [json.loads(data) for data in data_of(left)] if left.body else []
    assert said == [{"a": at + 1} for at in kept]
    assert left.end is not None
    assert left.end.bytes == len(left.body)


@pytest.mark.parametrize("form", FRAMED)
def test_values_are_replaced_in_every_framing(form: str) -> None:
    changed = body_of(recorded(*FRAMED[form])).with_source([(1, ("a",)), (2, ("b",))], '"x"')
    assert [json.loads(data) for data in data_of(changed)] == [
        {"a": 1},
        {"a": "x"},
        {"a": 3, "b": "x"},
    ]


def test_later_elements_are_dropped_first() -> None:
    body = body_of(streamed({"a": [1, 2, 3], "b": 1}, done=False))
    left = body.without_values([(0, ("a", 0)), (0, ("a", 1)), (0, ("b",))])
    assert data_of(left) == ['{"a": [3]}']
    assert sorted([("a", 2), ("b",), (0,)], key=from_behind) == [(0,), ("a", 2), ("b",)]


def test_a_json_document_is_one_event_on_however_many_lines() -> None:
    exchange = recorded(b'{\n "a": 1,\n "b": 2\n}\n', "application/json")
    body = body_of(exchange)
    assert body.values == ({"a": 1, "b": 2},)
    assert json.loads(body.without_values([(0, ("b",))]).body) == {"a": 1}
    assert body.ends == (len(exchange.body),)


def test_a_broken_document_is_taken_line_by_line() -> None:
    assert body_of(recorded(b'{\n "a": 1', "application/json")).texts == ("{",)


def test_what_is_not_text_has_no_body() -> None:
    coded = recorded(b"x")
    assert coded.response is not None
    headers = (*coded.response.headers, (b"content-encoding", b"gzip"))
    assert (
        EditableBody.of(replace(coded, response=replace(coded.response, headers=headers))) is None
    )
    assert event_count([replace(coded, reads=())]) == 0


def test_what_is_between_events_is_found_line_by_line() -> None:
    body = body_of(recorded(b": one\n: two\n\ndata: 1\n\n\n: end\n\ndata: 2\n\nrest"))
    spans = body.lines_between()
    whole = body.exchange.body
    assert b"".join(whole[start:end] for start, end in spans) in {
        b": one\n: two\n\n\n: end\n\nrest",
        b"\nrest",
    }
    left = body.without_bytes(spans)
    assert data_of(left) == ["1", "2"]
    assert len(left.body) < len(whole)


@pytest.mark.parametrize("form", ["array", "messages"])
def test_nothing_is_between_events_where_the_framing_is(form: str) -> None:
    assert body_of(recorded(*FRAMED[form])).lines_between() == ()


def test_a_body_that_was_cut_stays_announced_longer() -> None:
    exchange = recorded(FRAMED["sse"][0])
    assert exchange.response is not None
    assert exchange.end is not None
    cut = replace(
        exchange,
        response=replace(exchange.response, headers=((b"content-length", b"500"),)),
        end=replace(exchange.end, reason=EndReason.UPSTREAM_CLOSED),
    )
    left = body_of(cut).with_events([0])
    assert left.response is not None
    assert left.response.headers == ((b"content-length", b"500"),)
    shorter = with_reads(cut, cut.reads[:1])
    assert shorter.response == cut.response


def test_other_reads_get_a_head_and_an_end_that_fit() -> None:
    exchange = recorded(FRAMED["sse"][0])
    assert exchange.response is not None
    sized = replace(
        exchange,
        end=None,
        response=replace(
            exchange.response,
            headers=((b"Content-Length", b"1"), (b"a", b"b")),
            framing=Framing.LENGTH,
        ),
    )
    changed = with_reads(sized, (Read(t_ns=1, data=b"abc", boundaries=None, line=None),))
    assert changed.response is not None
    assert changed.response.headers == ((b"Content-Length", b"3"), (b"a", b"b"))
    assert changed.reads[0].boundaries is None
    chunked = with_reads(exchange, changed.reads)
    assert chunked.reads[0].boundaries == (3,)
    assert chunked.end is not None
    assert chunked.end.bytes == 3
    bare = with_reads(replace(exchange, response=None), changed.reads)
    assert bare.response is None


def test_events_are_counted() -> None:
    assert event_count(open_tape(RECORDINGS / "openai-chat.tape")) > 3
