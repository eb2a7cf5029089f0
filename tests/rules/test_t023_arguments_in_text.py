import pytest

from deltatape.model.finding import Blame, Severity
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import found, one, pasted

ARGUMENTS = '{"city":"Gent"}'


def call(arguments: str) -> dict[str, object]:
    """A call with these arguments."""
    return calls(entry(0, "c1", name="get", arguments=arguments))


def test_arguments_that_are_shown_too_are_reported() -> None:
    said = choice({"content": f"Here: {ARGUMENTS}"})
    finding = one(pasted(said, call(ARGUMENTS), FINISH), "T023")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.UPSTREAM)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(ARGUMENTS, "Gent"), ("{}", "{}"), ('{"a":1}', '{"a":1}'), (ARGUMENTS[:-1], ARGUMENTS)],
)
def test_other_text_and_arguments_that_say_little_are_fine(arguments: str, text: str) -> None:
    said = choice({"content": text})
    assert not found(pasted(said, call(arguments), FINISH), "T023")


def test_arguments_that_are_no_object_are_the_business_of_others() -> None:
    said = choice({"content": '"a string that is long"'})
    assert not found(pasted(said, call('"a string that is long"'), FINISH), "T023")
