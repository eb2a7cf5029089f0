from dataclasses import replace

from deltatape.diagnose.check import check
from deltatape.model.finding import Blame, Severity
from deltatape.rules.settings import DEFAULTS
from helpers.chat import FINISH, request
from helpers.exchanges import call, found, one, pasted

CITY = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}, "code": {"pattern": "(a+)+b"}},
    "additionalProperties": False,
}


def test_a_missing_parameter_is_an_error_of_the_model() -> None:
    exchange = pasted(*call(arguments="{}"), FINISH, request=request(get=CITY))
    finding = one(exchange, "T008")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.MODEL)
    assert "$: 'city' is a required property" in finding.message


def test_an_unknown_parameter_is_a_warning() -> None:
    exchange = pasted(*call(arguments='{"city":"a","b":1}'), FINISH, request=request(get=CITY))
    assert one(exchange, "T008").severity is Severity.WARNING


def test_a_pattern_that_may_backtrack_is_skipped_and_that_is_said() -> None:
    exchange = pasted(*call(arguments='{"city":"a"}'), FINISH, request=request(get=CITY))
    finding = one(exchange, "T008")
    assert finding.severity is Severity.INFO
    assert "not checked: pattern '(a+)+b'" in finding.message


def test_an_enormous_schema_is_not_used_and_that_is_said() -> None:
    exchange = pasted(*call(), FINISH, request=request(get=CITY))
    (finding,) = check(exchange, replace(DEFAULTS, schema_characters=20))
    assert "more than 20 characters" in finding.message


def test_arguments_that_fit_and_tools_without_schema_are_fine() -> None:
    fits = request(get={"type": "object", "properties": {"a": {"type": "integer"}}})
    assert not found(pasted(*call(), FINISH, request=fits), "T008")
    assert not found(pasted(*call(), FINISH, request=request(get=None)), "T008")
    assert not found(pasted(*call(), FINISH), "T008")
