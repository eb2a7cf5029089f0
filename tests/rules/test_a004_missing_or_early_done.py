from deltatape.model.finding import Blame, Confidence, Severity
from helpers.app import call, done, result, text, told, ui
from helpers.exchanges import TEXT, found, one, pasted, timed


def test_a_stream_without_its_last_event_is_an_error() -> None:
    finding = one(timed((0.1, text("a"))), "A004")
    assert finding.message == "the stream ended without done or error"
    assert (finding.severity, finding.blame, finding.confidence) == (
        Severity.ERROR,
        Blame.APP,
        Confidence.PROVEN,
    )


def test_a_pasted_stream_may_have_lost_its_end() -> None:
    assert one(told(text("a")), "A004").blame is None


def test_more_of_the_answer_after_done_is_an_error() -> None:
    for more in (text("b"), call(), result()):
        finding = one(told(text("a"), done(), more), "A004")
        assert finding.message.endswith("the answer goes on after the event that ended it")
        assert (finding.severity, finding.event) == (Severity.ERROR, 2)


def test_a_stream_that_ends_is_fine_and_other_dialects_are_another_rules_business() -> None:
    assert not found(told(text("a"), done()), "A004")
    assert not found(told(text("a"), {"type": "error", "content": "no"}), "A004")
    assert not found(ui(), "A004")
    assert not found(pasted(TEXT, done=False), "A004")
    assert not found(told(text("a")), "S001")
