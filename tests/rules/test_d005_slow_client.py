from dataclasses import replace

from deltatape.model.exchange import Delivered
from deltatape.model.finding import Blame
from helpers.exchanges import FINISH_TEXT, TEXT, found, one, pasted, timed
from helpers.taped import MS

FAST = timed((0.1, TEXT), (0.2, FINISH_TEXT))


def test_the_longest_wait_for_the_client_is_reported() -> None:
    delivered = (Delivered(t_ns=1_500 * MS, bytes=5), Delivered(t_ns=3_000 * MS, bytes=100))
    finding = one(replace(FAST, delivered=delivered), "D005")
    assert finding.message == "the client took byte 100 of the body 2.8 s after it came"
    assert finding.blame is Blame.APP
    assert finding.t_ns == 3_000 * MS


def test_a_client_that_keeps_up_is_fine() -> None:
    assert not found(FAST, "D005")
    assert not found(replace(FAST, delivered=(Delivered(t_ns=300 * MS, bytes=100),)), "D005")
    assert not found(pasted(TEXT, FINISH_TEXT), "D005")
