from dataclasses import replace

from deltatape.model.exchange import Sent
from helpers.chat import choice
from helpers.exchanges import FINISH_TEXT, TEXT, found, one, pasted, timed

MANY = [(4.0 + at / 1000, choice({"content": "x"})) for at in range(40)]


def test_many_events_at_once_after_a_long_silence_are_a_burst() -> None:
    finding = one(timed(*MANY, (4.05, FINISH_TEXT)), "W007")
    assert "41 events came within 0.050 s after 4.0 s of silence, in 41 reads" in finding.message


def test_the_wait_is_measured_from_the_request_on_its_way() -> None:
    exchange = timed(*MANY, (4.05, FINISH_TEXT))
    late = replace(exchange, sent=Sent(t_ns=3_500_000_000, connect_ns=0, tls_ns=0, reused=False))
    assert not found(late, "W007")


def test_a_stream_that_comes_as_it_is_written_is_none() -> None:
    slow = [(4.0 + at / 10, choice({"content": "x"})) for at in range(40)]
    assert not found(timed(*slow), "W007")


def test_few_events_and_unknown_times_are_none() -> None:
    assert not found(timed((4.0, TEXT), (4.0, FINISH_TEXT)), "W007")
    assert not found(pasted(*[TEXT] * 50, FINISH_TEXT), "W007")
