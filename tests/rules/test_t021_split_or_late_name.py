from deltatape.model.finding import Blame
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_a_name_in_pieces_is_reported() -> None:
    finding = one(
        pasted(
            calls(entry(0, "c1", name="ge", arguments="")),
            calls(entry(0, name="t", arguments="{}")),
            FINISH,
        ),
        "T021",
    )
    assert finding.blame is Blame.UPSTREAM
    assert "'ge' and 't'" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T021")
