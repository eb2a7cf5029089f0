from deltatape.model.finding import Severity
from helpers.chat import calls, choice, entry
from helpers.exchanges import FINISH_TEXT, TEXT, found, one, pasted

HALF = calls(entry(0, "c1", name="get", arguments='{"a":'))


def test_a_limit_in_the_arguments_is_an_error() -> None:
    finding = one(pasted(HALF, choice({}, "length")), "S009")
    assert finding.severity is Severity.ERROR
    assert finding.blame is None
    assert "in the arguments of call 0 (get)" in finding.message


def test_a_limit_in_the_text_is_a_warning() -> None:
    assert one(pasted(TEXT, choice({}, "length")), "S009").severity is Severity.WARNING


def test_a_filter_does_what_it_is_for_and_blames_nobody() -> None:
    finding = one(pasted(TEXT, choice({}, "content_filter")), "S009")
    assert finding.blame is None
    assert finding.message.startswith("a filter of the provider cut the reply")


def test_a_normal_end_is_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "S009")
