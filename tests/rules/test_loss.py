from dataclasses import replace

import pytest

from deltatape.model.exchange import DeliveryProgress, End, EndReason, Exchange, Note, RequestSent
from deltatape.model.finding import Severity
from deltatape.model.websocket import Side
from deltatape.rules.loss import (
    is_exhausted,
    is_left,
    is_lossy,
    is_recorder_timeout,
    is_refusal,
    loss_of,
    unwatched_ns,
)
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, call, found, one, pasted, timed
from helpers.taped import MS
from helpers.websocket import KEY, ping, socket, text

S = 1_000 * MS
WHOLE = timed((0.1, TEXT), (0.2, FINISH_TEXT))


def ended(exchange: Exchange) -> End:
    assert exchange.end
    return exchange.end


def test_a_whole_tape_and_one_that_was_made_from_a_file_lack_nothing() -> None:
    assert loss_of(WHOLE) is None
    assert loss_of(pasted(TEXT)) is None
    assert not is_lossy(WHOLE)


def test_what_the_recorder_counted_is_reported() -> None:
    recorder = {"lost_records": 2, "lost_bytes": 90, "error": "No space left on device"}
    loss = loss_of(replace(WHOLE, end=replace(ended(WHOLE), recorder=recorder)))
    assert loss is not None
    assert (loss.records, loss.error) == (2, "No space left on device")
    assert (loss.body_bytes, loss.answer) == (0, False)


def test_a_count_that_is_not_a_number_is_unknown() -> None:
    loss = loss_of(replace(WHOLE, end=replace(ended(WHOLE), recorder={"lost_records": "all"})))
    assert loss is not None
    assert (loss.records, loss.error) == (0, "")


def test_missing_bytes_are_a_loss_that_nobody_counted() -> None:
    loss = loss_of(replace(WHOLE, reads=WHOLE.reads[:1]))
    assert loss is not None
    assert loss.body_bytes == len(WHOLE.reads[1].data)
    assert loss.of == ended(WHOLE).bytes
    assert loss.answer


def test_a_head_that_is_missing_is_a_loss() -> None:
    for exchange in (
        replace(WHOLE, response=None),
        replace(WHOLE, request=replace(WHOLE.request, method="")),
        replace(WHOLE, request=replace(WHOLE.request, method=""), end=None),
    ):
        loss = loss_of(exchange)
        assert loss is not None
        assert loss.answer


def test_no_answer_at_all_is_not_a_loss() -> None:
    refused = timed(framing=None)
    assert loss_of(replace(refused, end=replace(ended(refused), reason=EndReason.REFUSED))) is None


@pytest.mark.parametrize(
    ("reason", "left"),
    [
        (EndReason.CLIENT_CLOSED, True),
        (EndReason.STOPPED, True),
        (EndReason.UPSTREAM_RESET, False),
        (EndReason.COMPLETE, False),
    ],
)
def test_who_leaves_is_the_client_or_the_recorder(reason: EndReason, left: bool) -> None:  # noqa: FBT001
    assert is_left(replace(WHOLE, end=replace(ended(WHOLE), reason=reason))) is left


def test_an_exchange_without_an_end_is_left_unless_it_goes_on() -> None:
    crashed = replace(WHOLE, end=None)
    assert is_left(crashed)
    assert is_lossy(crashed)
    assert not is_left(replace(crashed, open=True))
    assert not is_lossy(replace(crashed, open=True))


def test_a_silence_is_watched_where_idle_records_come_as_they_should() -> None:
    silent = timed((0.1, TEXT), (31.0, TEXT))
    assert unwatched_ns(silent, 100 * MS, 31 * S) == 0
    late = replace(silent, idle_ns=(10 * S, 15 * S, 20 * S, 25 * S, 30 * S))
    assert unwatched_ns(late, 100 * MS, 31 * S) == 0


def test_a_silence_is_not_watched_where_they_stop() -> None:
    silent = timed((0.1, TEXT), (31.0, TEXT))
    assert unwatched_ns(replace(silent, idle_ns=()), 100 * MS, 31 * S) == 30_900 * MS
    held_up = replace(silent, idle_ns=(5 * S, 10 * S, 26 * S))
    assert unwatched_ns(held_up, 100 * MS, 31 * S) == 16 * S


def test_any_record_of_the_exchange_shows_that_it_was_watched() -> None:
    silent = replace(timed((0.1, TEXT), (20.0, TEXT)), idle_ns=())
    for seen in (
        replace(silent, notes=(Note(t_ns=10 * S, text="a remark"),)),
        replace(silent, delivered=(DeliveryProgress(t_ns=10 * S, bytes=1),)),
        replace(silent, sent=RequestSent(t_ns=10 * S, connect_ns=0, tls_ns=0, reused=True)),
    ):
        assert unwatched_ns(seen, 100 * MS, 20 * S) == 0


def test_the_recorders_own_doings_are_known_by_what_they_say() -> None:
    assert is_refusal("the response is not HTTP/1: lines end with LF alone")
    assert is_recorder_timeout("mitmproxy gave up after 600 s without a byte: ")
    assert is_exhausted("http://a: no connection: Too many open files")
    for detail in ("", "connection reset by peer", "http://a: no connection: Connection refused"):
        assert not is_refusal(detail)
        assert not is_recorder_timeout(detail)
        assert not is_exhausted(detail)


FULL = {"lost_records": 2, "lost_bytes": 90, "error": "No space left on device"}


def lossy(exchange: Exchange, reads: int) -> Exchange:
    """`exchange` with so many of its reads on the tape, and the recorder's own count."""
    assert exchange.end
    end = replace(exchange.end, recorder=FULL)
    return replace(exchange, reads=exchange.reads[:reads], end=end)


def test_what_the_tape_lacks_is_reported_with_its_reason() -> None:
    finding = one(lossy(timed((0.1, TEXT), (0.2, TEXT), (0.3, FINISH_TEXT)), 2), "X002")
    assert finding.message.startswith(
        "the tape is missing 2 records of this exchange (No space left on device), with "
    )
    assert "bytes of the answer" in finding.message
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)


def test_an_answer_that_is_whole_is_said_to_be() -> None:
    finding = one(lossy(timed((0.1, TEXT), (0.3, FINISH_TEXT)), 2), "X002")
    assert finding.message.endswith("; all bytes of the answer were analysed")


def test_a_request_that_is_missing_is_reported_without_a_number() -> None:
    whole = timed(*((0.1, each) for each in call()), (0.2, FINISH))
    headless = replace(whole, request=replace(whole.request, method=""))
    assert one(headless, "X002").message == "the tape is missing records of this exchange"
    assert one(replace(headless, end=None), "X002").span is None


def test_a_whole_tape_and_a_file_are_fine() -> None:
    assert not found(timed((0.1, TEXT), (0.2, FINISH_TEXT)), "X002")
    assert not found(pasted(TEXT), "X002")


def test_frames_that_are_missing_are_a_loss() -> None:
    whole = socket((Side.SERVER, text("one") + text("two")))
    assert loss_of(whole) is None
    lost = replace(whole, frames=whole.frames[:1])
    loss = loss_of(lost)
    assert loss is not None
    assert (loss.records, loss.answer) == (1, True)
    assert [one.message for one in found(lost, "X002")] == [
        "the tape is missing 1 record of this exchange"
    ]


def test_a_frame_shows_that_it_was_watched() -> None:
    exchange = socket((Side.CLIENT, ping(mask=KEY)))
    late = replace(exchange, frames=(exchange.frames[0]._replace(t_ns=5_000 * MS),))
    assert unwatched_ns(exchange, 1_000, 10_500 * MS) > 0
    assert unwatched_ns(late, 1_000, 10_500 * MS) == 0
