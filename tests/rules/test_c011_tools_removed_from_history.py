from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

TOOLS = [{"type": "function", "function": {"name": "get"}}]
ROUND = [assistant(("c1", "get", '{"a":1}')), result("c1")]
FIRST = (asks(USER, tools=TOOLS), [*call(), FINISH])
MORE: dict[str, object] = {"role": "user", "content": "And tomorrow?"}


def removed(tape: list[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "C011"]


def test_calls_in_the_history_and_no_tools_any_more() -> None:
    (finding,) = removed(digests(FIRST, (asks(USER, *ROUND), [TEXT, FINISH_TEXT])))
    assert finding.message == (
        "the history has tool calls or results, but the request offers no tools, as #1 did"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.INFO)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_it_is_an_error_if_it_was_refused() -> None:
    first, second = digests(FIRST, (asks(USER, *ROUND), []))
    (finding,) = removed([first, replace(second, status=400, error="toolConfig is missing")])
    assert finding.message.endswith("as #1 did; it was refused (400)")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert finding.evidence == "toolConfig is missing"


def test_it_is_told_once_until_tools_are_offered_again() -> None:
    said = [*ROUND, assistant(text="Hello"), MORE]
    tape = digests(
        FIRST,
        (asks(USER, *ROUND), [TEXT, FINISH_TEXT]),
        (asks(USER, *said), [TEXT, FINISH_TEXT]),
        (asks(USER, *said, assistant(text="Hello"), MORE, tools=TOOLS), [TEXT, FINISH_TEXT]),
        (asks(USER, *said, *[assistant(text="Hello"), MORE] * 2), []),
    )
    assert [(finding.exchange, finding.message[-9:]) for finding in removed(tape)] == [
        (2, "as #1 did"),
        (5, "as #4 did"),
    ]


@pytest.mark.parametrize(
    "second",
    [
        asks(USER, *ROUND, tools=TOOLS),
        asks(USER, assistant(text="Hello"), MORE),
        asks(MORE, *ROUND),
    ],
)
def test_tools_that_are_offered_or_not_needed_or_were_never_there(
    second: dict[str, object],
) -> None:
    assert not removed(digests(FIRST, (second, [])))


def test_tools_that_are_elsewhere_are_offered() -> None:
    first, second = digests(FIRST, (asks(USER, *ROUND), []))
    assert not removed([first, replace(second, tools_elsewhere=True)])
    assert not removed([first, replace(second, previous="resp_1")])


def test_a_refusal_for_another_reason_is_not_about_the_tools() -> None:
    first, second = digests(FIRST, (asks(USER, *ROUND), []))
    refused = replace(second, status=400, failed=True, error="maximum context length exceeded")
    (finding,) = removed([first, refused])
    assert finding.severity is Severity.INFO
    assert "refused" not in finding.message
