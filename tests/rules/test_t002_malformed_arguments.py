from deltatape.model.finding import Blame, Confidence
from helpers.chat import FINISH, calls, entry, request
from helpers.exchanges import call, found, one, pasted

BAD = calls(entry(0, "c1", name="get", arguments='{"keywords": Dave}'))


def test_arguments_that_break_the_grammar_are_the_models_if_the_schema_is_known() -> None:
    finding = one(pasted(BAD, FINISH, request=request(get={"type": "object"})), "T002")
    assert (finding.blame, finding.confidence) == (Blame.MODEL, Confidence.LIKELY)
    assert "at character 13" in finding.message


def test_without_a_schema_the_provider_may_have_done_it() -> None:
    assert one(pasted(BAD, FINISH), "T002").blame is Blame.UPSTREAM


def test_valid_arguments_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T002")
