import json

import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Severity
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import found, one, pasted

TWICE = r"def run():\n    return 1\n"


def of(value: object) -> Exchange:
    """A call with these arguments."""
    return pasted(calls(entry(0, "c1", name="write", arguments=json.dumps(value))), FINISH)


@pytest.mark.parametrize("value", [{"a": TWICE}, {"a": [1, {"b": TWICE}], "c": "x"}])
def test_line_breaks_that_are_escaped_twice_are_possibly_the_models_mistake(value: object) -> None:
    finding = one(of(value), "T022")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.MODEL)
    assert "call 0 (write)" in finding.message


@pytest.mark.parametrize(
    "text",
    ["a\nb\n", "a\\nb", "print('a\\n' + 'b\\nc')", "a\nb\\n\\n", "C:\\new\\names", "\\n\\n\n"],
)
def test_line_breaks_and_escapes_that_are_meant_are_fine(text: str) -> None:
    assert not found(of({"a": text}), "T022")


def test_arguments_that_are_not_whole_are_the_business_of_others() -> None:
    cut = calls(entry(0, "c1", name="write", arguments=json.dumps({"a": TWICE})[:-1]))
    assert not found(pasted(cut, FINISH), "T022")
