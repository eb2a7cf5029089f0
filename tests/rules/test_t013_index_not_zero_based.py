from deltatape.model.finding import Blame
from helpers.chat import FINISH
from helpers.exchanges import call, found, one, pasted


def test_a_first_index_of_one_is_reported() -> None:
    finding = one(pasted(*call(index=1), FINISH), "T013")
    assert finding.blame is Blame.UPSTREAM
    assert "index of a tool call is 1" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T013")
