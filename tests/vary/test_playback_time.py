from dataclasses import replace

from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import DeliveryProgress
from deltatape.vary.playback_time import at_tempo
from helpers.mutated import imported
from helpers.taped import MS, taped
from helpers.varied import TWO


def test_as_time_passed_nothing_changes() -> None:
    exchange = taped(TWO)
    assert at_tempo(exchange, ReplayTempo()) is exchange


def test_all_times_pass_faster_from_the_end_of_the_request_on() -> None:
    before = taped(TWO, end_ms=50)
    assert before.response
    early = replace(before.response, status=103, t_ns=3 * MS)
    before = replace(
        before,
        informational=(early,),
        idle_ns=(1,),
        delivered=(DeliveryProgress(t_ns=1, bytes=1),),
        request=replace(before.request, t_end_ns=1 * MS),
    )
    after = at_tempo(before, ReplayTempo(factor=2.0))
    assert after.response
    assert after.end
    assert [head.t_ns for head in after.informational] == [2 * MS]
    assert after.response.t_ns == 3 * MS
    assert [read.t_ns / MS for read in after.reads] == [5.5, 10.5]
    assert after.end.t_ns == 25.5 * MS
    assert (after.idle_ns, after.delivered) == ((), ())


def test_without_waiting_all_comes_at_once() -> None:
    after = at_tempo(taped(TWO), ReplayTempo(factor=0.0))
    assert after.end
    assert {after.end.t_ns, *(read.t_ns for read in after.reads)} == {0}


def test_what_has_no_head_or_no_end_gets_none() -> None:
    bare = at_tempo(taped((), framing=None), ReplayTempo(factor=0.0))
    assert bare.response is None
    assert at_tempo(imported(b"x"), ReplayTempo(factor=0.0)).end is None


def test_a_long_silence_has_the_idle_records_of_a_recorder_that_lives() -> None:
    slow = taped([(10, b"a"), (20, b"b")])
    after = at_tempo(slow, ReplayTempo(factor=0.001))
    (first, second) = (read.t_ns for read in after.reads)
    assert second - first == 10_000 * MS
    assert first + 5_000 * MS in after.idle_ns
