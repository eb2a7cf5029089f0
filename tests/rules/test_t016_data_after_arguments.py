from deltatape.model.finding import Blame
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_a_brace_too_many_is_reported() -> None:
    finding = one(pasted(calls(entry(0, "c1", name="get", arguments='{"a":1}}')), FINISH), "T016")
    assert finding.blame is Blame.UPSTREAM
    assert "are whole after 7 characters" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T016")
