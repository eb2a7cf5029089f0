import pytest

from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import FINISH, calls, choice, entry, request
from helpers.exchanges import call, found, one, pasted

BAD = calls(entry(0, "c1", name="get", arguments='{"keywords": Dave}'))


def test_arguments_that_break_the_grammar_are_the_models_if_the_schema_is_known() -> None:
    finding = one(pasted(BAD, FINISH, request=request(get={"type": "object"})), "T002")
    assert (finding.blame, finding.confidence) == (Blame.MODEL, Confidence.LIKELY)
    assert "at character 13" in finding.message


def test_without_a_schema_the_provider_may_have_done_it() -> None:
    assert one(pasted(BAD, FINISH), "T002").blame is Blame.UPSTREAM


@pytest.mark.parametrize(
    ("arguments", "what"),
    [('{"a": 1, "a": 2}', "the key 'a' comes twice"), ('{"a": "\\ud800"}', "half of a surrogate")],
)
def test_json_that_parsers_read_differently_is_a_warning(arguments: str, what: str) -> None:
    whole = calls(entry(0, "c1", name="get", arguments=arguments))
    finding = one(pasted(whole, FINISH), "T002")
    assert finding.severity is Severity.WARNING
    assert what in finding.message


def test_valid_arguments_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T002")


@pytest.mark.parametrize("torn", ['code":"uptime"}', 'json\n{"a":1}', '{"a""b"}'])
def test_a_missing_piece_or_a_label_in_front_is_no_models_doing(torn: str) -> None:
    finding = one(pasted(*call(arguments=torn), FINISH, request=request(get={})), "T002")
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)


def test_a_call_in_text_that_is_no_json_is_the_models() -> None:
    written = '<tool>{"tool_name": "get", "arguments": {"a": Dave}}</tool>'
    finding = one(pasted(choice({"content": written}), choice({}, "stop")), "T002")
    assert (finding.blame, finding.confidence) == (Blame.MODEL, Confidence.LIKELY)
    assert "call 0 (get) in the text (tool) are not JSON" in finding.message
