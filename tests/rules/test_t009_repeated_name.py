from deltatape.model.finding import Blame
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_a_name_that_comes_again_is_reported() -> None:
    finding = one(
        pasted(
            calls(entry(0, "c1", name="get", arguments="")),
            calls(entry(0, name="get", arguments="{}")),
            FINISH,
        ),
        "T009",
    )
    assert finding.blame is Blame.UPSTREAM
    assert "is sent again" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T009")
