from deltatape.model.finding import Blame, Confidence, Severity
from helpers.app import call, done, result, text, told, ui
from helpers.exchanges import TEXT, found, one, pasted, timed


def test_a_stream_that_dies_in_a_call_is_an_error() -> None:
    finding = one(timed((0.1, call()), (0.2, result()), (0.3, call())), "A004")
    assert finding.message == "the stream ended without done or error"
    assert (finding.severity, finding.blame, finding.confidence) == (
        Severity.ERROR,
        Blame.APP,
        Confidence.LIKELY,
    )
    assert finding.excluded[0].because.endswith("which stops right behind this one")


def test_a_stream_that_ends_with_its_text_may_have_no_last_event_by_contract() -> None:
    for last in (text("a"), call()):
        finding = one(timed((0.1, last)), "A004")
        assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_pasted_stream_may_have_lost_its_end() -> None:
    assert one(told(text("a")), "A004").blame is None


def test_more_of_the_answer_after_done_may_be_the_next_step() -> None:
    for more in (text("b"), call(), result()):
        finding = one(told(text("a"), done(), more), "A004")
        assert finding.message.endswith("the answer goes on after the event that ended it")
        assert (finding.severity, finding.event) == (Severity.WARNING, 2)
        assert finding.confidence is Confidence.POSSIBLE


def test_a_stream_that_ends_is_fine_and_other_dialects_are_another_rules_business() -> None:
    assert not found(told(text("a"), done()), "A004")
    assert not found(told(text("a"), {"type": "error", "content": "no"}), "A004")
    assert not found(ui(), "A004")
    assert not found(pasted(TEXT, done=False), "A004")
    assert not found(told(text("a")), "S001")
