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


def test_a_pattern_that_may_backtrack_is_skipped_and_that_is_said_once_for_each_tool() -> None:
    arguments = '{"city":"a","code":"b"}'
    chunks = [*call(arguments=arguments), *call(arguments=arguments, index=1), FINISH]
    finding = one(pasted(*chunks, request=request(get=CITY)), "T008")
    assert finding.severity is Severity.INFO
    assert finding.message.startswith("the arguments of call 0 (get) were not checked completely")
    assert "not checked: pattern '(a+)+b'" in finding.message


def test_what_was_skipped_is_said_with_a_violation_too() -> None:
    arguments = '{"code":"b"}'
    exchange = pasted(*call(arguments=arguments), FINISH, request=request(get=CITY))
    assert "required property (not checked: pattern" in one(exchange, "T008").message


def test_an_enormous_schema_is_not_used_and_that_is_said() -> None:
    exchange = pasted(*call(), FINISH, request=request(get=CITY))
    (finding,) = check(exchange, replace(DEFAULTS, schema_characters=20))
    assert "a schema of more than 20 characters" in finding.message
    (finding,) = check(exchange, replace(DEFAULTS, schema_characters=2))
    assert "arguments of more than 2 characters" in finding.message


def test_arguments_that_fit_and_tools_without_schema_are_fine() -> None:
    fits = request(get={"type": "object", "properties": {"a": {"type": "integer"}}})
    assert not found(pasted(*call(), FINISH, request=fits), "T008")
    assert not found(pasted(*call(), FINISH, request=request(get=None)), "T008")
    assert not found(pasted(*call(), FINISH), "T008")
