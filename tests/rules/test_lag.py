from dataclasses import replace

from deltatape.model.exchange import Delivered
from deltatape.rules._lag import Lag, lags
from helpers.exchanges import timed
from helpers.taped import MS

EXCHANGE = timed((0.1, b"12345"), (0.2, b"67890"))


def test_a_lag_runs_from_the_read_of_the_byte_to_its_delivery() -> None:
    delivered = (Delivered(t_ns=500 * MS, bytes=5), Delivered(t_ns=900 * MS, bytes=6))
    assert lags(replace(EXCHANGE, delivered=delivered)) == (
        Lag(start_ns=100 * MS, end_ns=500 * MS, offset=5, line=None),
        Lag(start_ns=200 * MS, end_ns=900 * MS, offset=6, line=None),
    )


def test_nothing_delivered_waits_since_the_first_read() -> None:
    (lag,) = lags(replace(EXCHANGE, delivered=(Delivered(t_ns=500 * MS, bytes=0),)))
    assert lag.start_ns == 100 * MS


def test_a_delivery_beyond_what_was_read_says_nothing() -> None:
    assert lags(replace(EXCHANGE, delivered=(Delivered(t_ns=1, bytes=99),))) == ()
