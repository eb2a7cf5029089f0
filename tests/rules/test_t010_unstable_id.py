from deltatape.model.finding import Blame
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_an_id_that_changes_is_reported() -> None:
    finding = one(
        pasted(
            calls(entry(0, "c1", name="get", arguments="")),
            calls(entry(0, "c2", arguments="{}")),
            FINISH,
        ),
        "T010",
    )
    assert finding.blame is Blame.UPSTREAM
    assert "changes to 'c2'" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T010")
