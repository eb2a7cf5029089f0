from dataclasses import replace

import pytest

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Exchange, Framing
from deltatape.mutate import SeededChoices
from deltatape.vary import fault_effects
from deltatape.vary.failures import ProviderFailure
from deltatape.vary.fault_positions import MIDDLE, AnswerPosition, AnswerPositions, parse_where
from deltatape.wire.json_value import parse
from helpers.mutated import pasted
from helpers.taped import MS, taped
from helpers.varied import STEMS, TWO, of, pieces

SECOND = parse_where("event:1")
NOWHERE = parse_where("event:99")
THREE = (*TWO, (30, b"data: 3\n\n"))
FAILURE = ProviderFailure(status=500)


def places(exchange: Exchange) -> AnswerPositions:
    return AnswerPositions(exchange, SeededChoices(1))


def data(exchange: Exchange | None) -> list[str]:
    assert exchange
    return [event.data for event in decode(exchange).events]


@pytest.mark.parametrize(
    "reason", [EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET, EndReason.COMPLETE]
)
def test_a_cut_ends_the_answer_at_its_place(reason: EndReason) -> None:
    before = taped(TWO)
    after = fault_effects.cut(before, places(before), SECOND, reason)
    assert after
    assert after.end
    assert (pieces(after), after.end.reason) == ([b"data: 1\n\n"], reason)
    assert fault_effects.cut(before, places(before), NOWHERE, reason) is None


def test_with_all_of_an_answer_it_is_no_cut_but_of_the_connection() -> None:
    before = taped(TWO)
    last = parse_where("byte:18")
    assert fault_effects.cut(before, places(before), last, EndReason.COMPLETE) is None
    after = fault_effects.cut(before, places(before), last, EndReason.UPSTREAM_CLOSED)
    assert after
    assert after.body == before.body


def test_a_stall_lasts_for_ever_or_for_a_time() -> None:
    before = taped(TWO)
    ever = fault_effects.stalled(before, places(before), SECOND, None)
    assert ever
    assert ever.end
    assert (pieces(ever), ever.end.reason) == ([b"data: 1\n\n"], EndReason.STOPPED)
    time = fault_effects.stalled(before, places(before), SECOND, 100 * MS)
    assert time
    assert [read.t_ns // MS for read in time.reads] == [10, 120]
    assert fault_effects.stalled(before, places(before), NOWHERE, None) is None


def test_the_rest_drips() -> None:
    before = taped(TWO, end_ms=25)
    after = fault_effects.dripping(before, places(before), SECOND, size=4, wait_ns=50 * MS)
    assert after
    assert [(read.t_ns // MS, read.data) for read in after.reads] == [
        (10, b"data: 1\n\n"),
        (20, b"data"),
        (70, b": 2\n"),
        (120, b"\n"),
    ]
    assert after.end
    assert after.end.t_ns == 125 * MS
    assert fault_effects.dripping(before, places(before), NOWHERE, size=4, wait_ns=1) is None
    end = parse_where("byte:18")
    assert fault_effects.dripping(before, places(before), end, size=4, wait_ns=1) is None


@pytest.mark.parametrize("where", ["before-first", "event:1", "in-text"])
@pytest.mark.parametrize("stem", STEMS)
def test_an_error_event_is_the_last_and_the_stream_is_whole(stem: str, where: str) -> None:
    before = of(stem)
    after = fault_effects.failing(before, places(before), parse_where(where), FAILURE)
    assert after
    assert after.end
    assert after.end.reason is EndReason.COMPLETE
    stream = decode(after)
    assert "a fault of deltatape" in stream.events[-1].data
    assert stream.anomalies == ()
    if where != "before-first":
        assert "a fault of deltatape" in (rebuild(after).error or "")


def test_an_error_event_stands_in_an_array_as_an_element() -> None:
    body = b'[{"candidates":[]},\n{"candidates":[]}]'
    before = pasted(body, "application/json")
    texts = []
    for where in ("event:0", "event:1", "event:2"):
        after = fault_effects.failing(before, places(before), parse_where(where), FAILURE)
        assert after
        assert parse(after.body.decode()).error is None
        texts.append(after.body.partition(b'{"error"')[0])
    assert texts == [b"[", b'[{"candidates":[]},\n', b'[{"candidates":[]},\n{"candidates":[]},']


def test_where_nothing_is_streamed_no_error_event_can_come() -> None:
    before = pasted(b'{"a":1}', "application/json")
    assert fault_effects.failing(before, places(before), MIDDLE, FAILURE) is None
    before = taped(TWO)
    assert fault_effects.failing(before, places(before), NOWHERE, FAILURE) is None


def test_an_error_event_is_a_chunk_of_its_own_where_there_are_chunks() -> None:
    for framing, expected in ((Framing.CHUNKED, True), (Framing.CLOSE, False)):
        before = taped(TWO, framing=framing)
        after = fault_effects.failing(before, places(before), SECOND, FAILURE)
        assert after
        assert (after.reads[-1].boundaries == (len(after.reads[-1].data),)) is expected


def test_events_are_missing_come_twice_or_in_another_order() -> None:
    before = taped(THREE)
    assert data(fault_effects.dropped(before, places(before), SECOND)) == ["1", "3"]
    assert data(fault_effects.doubled(before, places(before), SECOND)) == ["1", "2", "2", "3"]
    assert data(fault_effects.swapped(before, places(before), SECOND)) == ["1", "3", "2"]
    for strike in (
        fault_effects.dropped,
        fault_effects.doubled,
        fault_effects.swapped,
        fault_effects.corrupted,
    ):
        assert strike(before, places(before), NOWHERE) is None
        assert strike(taped(()), places(taped(())), SECOND) is None


def test_the_last_event_has_none_to_change_places_with() -> None:
    before = taped(THREE)
    assert fault_effects.swapped(before, places(before), parse_where("event:2")) is None


@pytest.mark.parametrize("stem", STEMS)
def test_a_damaged_event_is_no_json_any_more(stem: str) -> None:
    before = of(stem)
    after = fault_effects.corrupted(before, places(before), MIDDLE)
    assert after
    assert len(after.body) == len(before.body)
    assert sum(a != b for a, b in zip(before.body, after.body, strict=True)) == 1
    stream = decode(after)
    bad = [event for event in stream.events if parse(event.data).error and event.data != "[DONE]"]
    assert len(bad) == 1 or len(stream.anomalies) == 1


def test_an_event_without_data_cannot_be_damaged() -> None:
    before = pasted(b"data: \n\ndata: 1\n\n")
    assert fault_effects.corrupted(before, places(before), AnswerPosition()) is not None
    empty = replace(before, reads=(before.reads[0]._replace(data=b"data:\n\n"),))
    assert fault_effects.corrupted(empty, places(empty), parse_where("event:0")) is None
