import pytest

from deltatape.conversation import check_conversation
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

ONE = [*call(), FINISH]


def says(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def talk(request: dict[str, object], chunks: list[object]) -> list[Finding]:
    found = check_conversation(digests((request, chunks)))
    return [finding for finding in found if finding.code == "C007"]


def test_a_farewell_needs_no_tool() -> None:
    (finding,) = talk(asks(USER, assistant(text="13 °C."), says("Thanks, that's all, bye!")), ONE)
    assert finding.message == ("the user says only 'thanks thats all bye', and the model calls get")
    assert (finding.severity, finding.blame) == (Severity.INFO, Blame.MODEL)
    assert (finding.confidence, finding.evidence) == (Confidence.LIKELY, '{"a":1}')


def test_a_call_that_is_written_into_the_text_is_one_too() -> None:
    written = choice({"content": '<tool>{"tool_name": "list", "arguments": {"path": "."}}</tool>'})
    (finding,) = talk(asks(says("bye")), [written, FINISH_TEXT])
    assert finding.message.endswith("the model calls list")


def test_a_call_without_name_and_arguments_is_told() -> None:
    (finding,) = talk(asks(says("bye")), [*call(name="", arguments=""), FINISH])
    assert finding.message.endswith("the model calls a tool without a name")
    assert finding.evidence == "(no argument bytes)"


@pytest.mark.parametrize(
    "request_",
    [
        asks(says("Thanks! And tomorrow?")),
        asks(says("Yes, thanks")),
        asks(says("bye"), assistant(("c1", "get", "{}")), result("c1")),
        asks(says("bye"), tool_choice="required"),
        asks(),
    ],
)
def test_where_something_else_is_said_or_a_call_is_forced_nothing_is_reported(
    request_: dict[str, object],
) -> None:
    assert not talk(request_, ONE)


def test_an_answer_in_words_is_what_is_wanted() -> None:
    assert not talk(asks(says("bye")), [TEXT, FINISH_TEXT])
