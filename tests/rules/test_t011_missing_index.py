from deltatape.model.finding import Blame
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_a_fragment_without_index_is_reported() -> None:
    finding = one(pasted(calls(entry(None, "c1", name="get", arguments="{}")), FINISH), "T011")
    assert finding.blame is Blame.UPSTREAM
    assert "has no index" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T011")
