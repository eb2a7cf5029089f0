from dataclasses import replace

from deltatape.model.exchange import DeliveryProgress
from deltatape.rules.progress import ClientLag, SilencePhase, lags, silences, watched_until
from helpers.contexts import context_of
from helpers.exchanges import TEXT, timed
from helpers.taped import MS


def test_a_sentinel_counts_as_progress_and_is_the_end() -> None:
    exchange = timed((0.1, TEXT), (1.0, b"data: [DONE]\n\n"), end_s=30)
    (silence,) = silences(context_of(exchange), 10_000 * MS)
    assert (silence.phase, silence.open) == (SilencePhase.BEFORE_END, True)


def test_the_tape_watches_until_the_last_thing_it_says() -> None:
    exchange = timed((0.1, TEXT), end_s=2)
    assert watched_until(exchange) == 2_000 * MS
    crashed = replace(exchange, end=None)
    assert watched_until(crashed) == 100 * MS
    assert watched_until(replace(crashed, idle_ns=(7 * MS, 900 * MS))) == 900 * MS
    assert watched_until(replace(crashed, stopped_ns=1_000 * MS)) == 1_000 * MS


EXCHANGE = timed((0.1, b"12345"), (0.2, b"67890"))


def test_a_lag_runs_from_the_read_of_the_byte_to_its_delivery() -> None:
    delivered = (DeliveryProgress(t_ns=500 * MS, bytes=5), DeliveryProgress(t_ns=900 * MS, bytes=6))
    assert lags(replace(EXCHANGE, delivered=delivered)) == (
        ClientLag(start_ns=100 * MS, end_ns=500 * MS, offset=5, line=None),
        ClientLag(start_ns=200 * MS, end_ns=900 * MS, offset=6, line=None),
    )


def test_nothing_delivered_waits_since_the_first_read() -> None:
    (lag,) = lags(replace(EXCHANGE, delivered=(DeliveryProgress(t_ns=500 * MS, bytes=0),)))
    assert lag.start_ns == 100 * MS


def test_a_delivery_beyond_what_was_read_says_nothing() -> None:
    assert lags(replace(EXCHANGE, delivered=(DeliveryProgress(t_ns=1, bytes=99),))) == ()
