import pytest

from deltatape.model.finding import Blame, Confidence, Severity
from helpers.app import call, done, result, text, told, ui
from helpers.exchanges import found, one


@pytest.mark.parametrize(
    ("content", "relation"),
    [
        ("It is", "it is the beginning of the pieces"),
        ("13 °C.", "it is the end of the pieces"),
        ("It is 13 °C. Bye.", "it goes on where the pieces end"),
        ("It was 13 °C.", "they differ from character 3 on"),
    ],
)
def test_another_text_is_a_warning_that_says_how_it_differs(content: str, relation: str) -> None:
    finding = one(told(text("It is "), text("13 °C."), done(content)), "A006")
    assert finding.message == (
        f"12 characters of text came in pieces, the last event tells {len(content)}: {relation}"
    )
    assert (finding.severity, finding.blame, finding.event) == (Severity.WARNING, Blame.APP, 2)
    part = relation.startswith(("it is the beginning", "it is the end"))
    assert finding.confidence is (Confidence.LIKELY if part else Confidence.POSSIBLE)


def test_a_text_that_is_gone_is_a_warning_since_done_may_have_none_by_contract() -> None:
    finding = one(told(text("a"), done("")), "A006")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.message.endswith("nothing is left")
    assert finding.evidence == '{"type": "done", "content": ""}'


def test_all_of_the_text_or_what_comes_after_the_last_tool_is_fine() -> None:
    frames = (text("Wait."), call(), result(), text(" It is 13."))
    assert not found(told(*frames, done("Wait. It is 13.")), "A006")
    assert not found(told(*frames, done("It is 13.\n")), "A006")
    assert found(told(*frames, done("Wait.")), "A006")
    assert not found(told(*frames, done()), "A006")
    assert not found(told(done("It is 13.")), "A006")
    assert not found(ui(), "A006")
