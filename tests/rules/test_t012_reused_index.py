from deltatape.model.finding import Blame
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_a_second_call_under_the_same_index_is_reported() -> None:
    finding = one(
        pasted(*call("get"), calls(entry(0, "c2", name="put", arguments="{}")), FINISH), "T012"
    )
    assert finding.blame is Blame.UPSTREAM
    assert "is used for another call" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T012")
