import pytest

from deltatape.model.finding import Blame, Severity
from helpers.app import done, text, told
from helpers.exchanges import found, one


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (done(), "a second event that ends the stream"),
        ({"type": "error", "content": "late"}, "a second event that ends the stream"),
        ({"type": "title", "title": "x"}, "an event of the type 'title' after the one that ended"),
    ],
)
def test_what_follows_the_end_is_a_warning(event: dict[str, object], what: str) -> None:
    finding = one(told(text("a"), done(), event), "A005")
    assert finding.message.startswith(what)
    assert (finding.severity, finding.blame, finding.event) == (Severity.WARNING, Blame.APP, 2)


def test_the_sentinel_may_follow() -> None:
    assert not found(told(text("a"), done(), "[DONE]"), "A005")
    assert not found(told({"type": "title", "title": "x"}, text("a"), done()), "A005")
