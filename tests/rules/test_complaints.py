from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.tape_summary import LogEntry, LogStream
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    FINISH_TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    result,
    user,
)

NS = 1_000_000_000
ONE = (asks(USER), CALL_REPLY)
CUT = assistant(("c1", "get", '":1}'))
OF_ARGUMENTS = "Failed to parse tool arguments: Unexpected end of JSON input"
GENERIC = "SyntaxError: Unexpected end of JSON input"
WRITTEN = [choice({"content": '<tool>{"tool_name": "f", "arguments": {}}</tool>'}), FINISH_TEXT]
STRAY = [choice({"content": '<tool>{"tool_name": "f", "arguments": {}}></tool>'}), FINISH_TEXT]
OF_GO = "Error: failed to parse tool call JSON: invalid character '>' after top-level value"


def errors(tape: list[Digest], *logs: LogEntry) -> list[Finding]:
    found = check_conversation(tape, logs=logs)
    return [finding for finding in found if finding.code == "C009"]


def answered(said: dict[str, object], text: str, chunks: list[object] = ONE[1]) -> list[Digest]:
    return digests((asks(USER), chunks), (asks(USER, said, result("c1", text)), []))


def printed(at_s: float, line: str) -> LogEntry:
    return LogEntry(t_ns=round(at_s * NS), stream=LogStream.STDERR, line=line.encode())


def test_it_is_proven_if_the_request_also_repeats_other_arguments() -> None:
    (finding,) = errors(answered(CUT, GENERIC))
    assert finding.message == (
        "the app reports an error of V8's JSON.parse, 'Unexpected end of JSON input',"
        " but call 0 (get, c1) of #1 was delivered complete: '{\"a\":1}';"
        " the app turned it into '\":1}'"
    )
    assert (finding.exchange, finding.line) == (2, 200)
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.APP)
    assert (finding.confidence, finding.evidence) == (
        Confidence.PROVEN,
        "Unexpected end of JSON input",
    )
    assert finding.hint.startswith("append every fragment")
    assert finding.against is not None
    assert (finding.against.exchange, finding.against.evidence) == (1, '{"a":1}')
    assert finding.against.request_span is not None


def test_it_is_likely_if_the_text_speaks_of_arguments_and_else_only_possible() -> None:
    (finding,) = errors(answered(CALL_MESSAGE, OF_ARGUMENTS))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.LIKELY)
    (finding,) = errors(answered(CALL_MESSAGE, GENERIC))
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.POSSIBLE)


COMMAND = '{"cmd":"pytest -q"}'
OTHERS = "agent/loop.py:88: ValueError: could not parse tool call arguments: Unterminated string"
DOCUMENT = "`Invalid JSON input for tool NAME`: the model wrote arguments that are not JSON."
OWN = "Invalid JSON input for tool bash: the text ends in the middle of a string"


@pytest.mark.parametrize(
    ("name", "text", "confidence"),
    [
        ("bash", OTHERS, Confidence.POSSIBLE),
        ("read_file", DOCUMENT, Confidence.POSSIBLE),
        ("book", OTHERS, Confidence.LIKELY),
        ("bash", OWN, Confidence.LIKELY),
        ("read_file", f"could not parse tool call c1: {GENERIC}", Confidence.LIKELY),
        ("bash", f"JSON parsing failed: Text: {COMMAND}.", Confidence.LIKELY),
        ("bash", f"bash: tests failed\n{OTHERS}", Confidence.POSSIBLE),
    ],
)
def test_what_a_tool_ran_or_read_is_about_the_call_only_if_it_names_it(
    name: str, text: str, confidence: Confidence
) -> None:
    said = assistant(("c1", name, COMMAND))
    chunks: list[object] = [calls(entry(0, "c1", name=name, arguments=COMMAND)), FINISH]
    (finding,) = errors(answered(said, text, chunks))
    assert finding.confidence is confidence


def test_what_the_application_prints_is_not_what_the_tool_read() -> None:
    chunks = [calls(entry(0, "c1", name="bash", arguments=COMMAND)), FINISH]
    (finding,) = errors(digests((asks(USER), chunks)), printed(1, OTHERS))
    assert finding.confidence is Confidence.LIKELY


NOTHING = [calls(entry(0, "c1", name="get", arguments="")), FINISH]
SAME = [calls(entry(0, "c5", name="get", arguments="")), calls(entry(0, arguments="{}")), FINISH]
UNREAD = assistant(("c1", "get", ""))
FAILED = (UNREAD, result("c1", GENERIC))
NO_PARAMETERS = {"type": "function", "function": {"name": "get", "parameters": {}}}


def given_nothing(said: dict[str, object], *more: dict[str, object]) -> Finding:
    """What is found where a call without argument bytes is answered with an error."""
    first = (asks(USER, tools=[NO_PARAMETERS]), NOTHING)
    failed = (USER, said, result("c1", GENERIC))
    later = ((asks(*failed), SAME), (asks(*failed, *more), [])) if more else ((asks(*failed), []),)
    (finding, *_) = errors(digests(first, *later))
    assert finding.exchange == 2
    return finding


def test_an_empty_text_may_be_what_the_tool_has_read_elsewhere() -> None:
    finding = given_nothing(UNREAD)
    assert finding.message.endswith(
        "was delivered complete, without arguments, which this tool allows"
    )
    assert finding.confidence is Confidence.POSSIBLE
    assert finding.hint == "use {} where no argument bytes came: this tool requires nothing"


@pytest.mark.parametrize(
    ("said", "answer", "confidence"),
    [
        (UNREAD, "12:00", Confidence.LIKELY),
        (UNREAD, GENERIC, Confidence.POSSIBLE),
        (assistant(("c1", "get", "{}")), "12:00", Confidence.POSSIBLE),
    ],
)
def test_who_repeats_nothing_where_the_tool_works_with_an_object_did_not_read_it(
    said: dict[str, object], answer: str, confidence: Confidence
) -> None:
    again = (assistant(("c5", "get", "{}")), result("c5", answer))
    finding = given_nothing(said, *again)
    assert finding.confidence is confidence
    if confidence is Confidence.LIKELY:
        assert finding.excluded[0].because == (
            "the request repeats the call without arguments, and the tool works where they are {}"
            " (#3)"
        )


def test_who_tears_calls_apart_elsewhere_did_not_read_it_either() -> None:
    torn = (assistant(("c9", "put", '":2}')), result("c9", "ok"))
    other = [
        calls(entry(0, "c9", name="put", arguments='{"b')),
        calls(entry(0, arguments='":2}')),
        FINISH,
    ]
    tape = digests(
        (asks(USER), other),
        (asks(USER, *torn, tools=[NO_PARAMETERS]), NOTHING),
        (asks(USER, *torn, *FAILED), []),
    )
    (finding,) = [each for each in errors(tape) if each.exchange == 3]
    assert finding.confidence is Confidence.LIKELY
    assert "and #2 repeats a call of #1 wrongly: " in finding.excluded[0].because


def test_without_the_call_in_the_request_nobody_knows_what_was_read() -> None:
    first = (asks(USER, tools=[NO_PARAMETERS]), NOTHING)
    tape = digests(first, (asks(USER, result("c1", GENERIC)), []))
    assert [each.confidence for each in errors(tape)] == [Confidence.POSSIBLE]


@pytest.mark.parametrize(
    "tape",
    [
        answered(CALL_MESSAGE, OF_ARGUMENTS, [*call(arguments='{"a":'), FINISH]),
        answered(CALL_MESSAGE, "13 °C"),
        answered(CALL_MESSAGE, "2 validation errors for Weather"),
        answered(CALL_MESSAGE, "x" * 300 + GENERIC),
        answered(assistant(("c7", "get", '{"a":1}')), OF_ARGUMENTS)[1:],
        digests(ONE, (asks(USER, CALL_MESSAGE, user(OF_ARGUMENTS)), [])),
        digests(ONE, (asks(USER, CALL_MESSAGE, {"role": "tool", "content": OF_ARGUMENTS}), [])),
        answered(
            assistant(("c1", "", '{"a":1}')),
            "malformed tool call",
            [calls(entry(0, "c1", arguments='{"a":1}')), FINISH],
        ),
    ],
    ids=[
        "broken",
        "fine",
        "schema",
        "far",
        "unknown",
        "user",
        "nameless",
        "without name",
    ],
)
def test_what_is_not_an_error_of_the_app(tape: list[Digest]) -> None:
    assert not errors(tape)


def test_a_validator_is_right_whatever_the_arguments_are() -> None:
    assert not errors(answered(assistant(("c1", "get", "{}")), "1 validation error for Weather"))


def test_an_edit_of_the_arguments_proves_nothing() -> None:
    edited = assistant(("c1", "get", '{"a":7}'))
    (finding,) = errors(answered(edited, OF_ARGUMENTS))
    assert finding.confidence is Confidence.LIKELY


def test_an_argument_that_is_broken_json_itself_may_be_what_the_tool_complains_of() -> None:
    nested = [*call(arguments='{"json": "{\\"a\\":"}'), FINISH]
    said = assistant(("c1", "get", '{"json": "{\\"a\\":"}'))
    (finding,) = errors(answered(said, OF_ARGUMENTS, nested))
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.POSSIBLE)


def test_an_error_is_reported_once() -> None:
    first, second = answered(CALL_MESSAGE, OF_ARGUMENTS)
    again = digests((asks(USER, CALL_MESSAGE, result("c1", OF_ARGUMENTS), USER), []))[0]
    assert len(errors([first, second, again])) == 1


def test_each_error_of_a_reply_with_several_calls_is_reported() -> None:
    torn = [("c1", "get", '":1}'), ("c2", "get", '":1}')]
    both = [result(call_id, OF_ARGUMENTS) for call_id, _, _ in torn]
    reply = [*call(), *call(index=1), FINISH]
    found = errors(digests((asks(USER), reply), (asks(USER, assistant(*torn), *both), [])))
    assert [each.confidence for each in found] == [Confidence.PROVEN] * 2


def test_calls_in_text_are_answered_by_the_user() -> None:
    told: dict[str, object] = user(f"Tool result:\n{OF_GO}")
    said = assistant(text='<tool>{"tool_name": "f", "arguments": {}}</tool>')
    (finding,) = errors(digests((asks(USER), WRITTEN), (asks(USER, said, told), [])))
    assert "an error of Go's encoding/json" in finding.message
    assert "call 0 (f) of #1 was delivered complete: '{}'" in finding.message
    assert finding.confidence is Confidence.LIKELY
    asked: dict[str, object] = user(f"Why does it say {GENERIC}?")
    assert not errors(digests((asks(USER), WRITTEN), (asks(USER, said, asked), [])))
    assert not errors(digests((asks(USER), WRITTEN), (asks(USER, told), [])))
    assert not errors(digests((asks(USER), STRAY), (asks(USER, said, told), [])))
    assert not errors(digests((asks(said, told), [])))


def test_what_the_user_says_of_a_call_in_text_is_not_what_the_tool_read() -> None:
    written = '<tool>{"tool_name": "read_file", "arguments": {}}</tool>'
    chunks = [choice({"content": written}), FINISH_TEXT]
    told: dict[str, object] = user(f"Tool result:\n{OF_GO}")
    (finding,) = errors(
        digests((asks(USER), chunks), (asks(USER, assistant(text=written), told), []))
    )
    assert finding.confidence is Confidence.LIKELY


def test_what_the_application_prints_is_about_the_reply_before() -> None:
    (finding,) = errors(digests(ONE), printed(0.6, f"[tool] {OF_ARGUMENTS}"))
    assert finding.message.startswith("the app printed an error of V8's JSON.parse, 'Unexpected ")
    assert (finding.exchange, finding.line, finding.t_ns) == (1, None, 600_000_000)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.LIKELY)


def test_what_is_printed_about_several_calls_names_them_in_short() -> None:
    both = [*call(), *call("put", index=1), FINISH]
    (finding,) = errors(digests((asks(USER), both)), printed(0.9, OF_ARGUMENTS))
    assert "call 0 (get, c1) of #1 and 1 more call were delivered complete" in finding.message
    broken = [*call(), *call("put", '{"a":', 1), FINISH]
    assert not errors(digests((asks(USER), broken)), printed(0.9, OF_ARGUMENTS))


def test_a_printed_error_may_be_about_one_of_several_replies() -> None:
    first, second = digests(ONE, (asks(USER, USER), CALL_REPLY))
    second = replace(second, t_ns=NS, called_ns=NS)
    (finding,) = errors([first, second], printed(1.5, OF_ARGUMENTS))
    assert (finding.exchange, finding.confidence) == (2, Confidence.POSSIBLE)


def test_what_is_printed_before_a_call_arrives_is_not_about_it() -> None:
    first, second = digests(ONE, (asks(USER, USER), CALL_REPLY))
    second = replace(second, t_ns=NS, called_ns=2 * NS)
    (finding,) = errors([first, second], printed(1.5, OF_ARGUMENTS))
    assert (finding.exchange, finding.confidence) == (1, Confidence.LIKELY)
    assert not errors([second], printed(1.5, OF_ARGUMENTS))


def test_a_reply_began_with_its_first_call_also_where_that_is_in_the_text() -> None:
    (delivered, written) = digests(ONE, (asks(USER), WRITTEN))
    assert delivered.called_ns is not None
    assert written.called_ns is not None
    assert digests((asks(USER), TEXT_REPLY))[0].called_ns is None


@pytest.mark.parametrize(
    "tape", [digests((asks(USER), TEXT_REPLY)), digests(ONE)], ids=["text", "too late"]
)
def test_what_is_printed_without_or_long_after_a_call_is_about_something_else(
    tape: list[Digest],
) -> None:
    assert not errors(tape, printed(12.0, OF_ARGUMENTS))


def test_other_lines_and_lines_before_any_reply_say_nothing() -> None:
    assert not errors(digests(ONE), printed(0.6, "listening on 8080"))
    late = replace(digests(ONE)[0], called_ns=5 * NS)
    assert not errors([late], printed(0.6, OF_ARGUMENTS))


def test_the_first_error_of_a_reply_is_enough_and_the_history_tells_it_better() -> None:
    twice = (printed(0.6, OF_ARGUMENTS), printed(0.7, OF_ARGUMENTS))
    assert len(errors(digests(ONE), *twice)) == 1
    (finding,) = errors(answered(CALL_MESSAGE, OF_ARGUMENTS), *twice)
    assert finding.exchange == 2


def test_a_call_that_was_dropped_without_need() -> None:
    line = "Filtering out malformed tool call (missing id or name)"
    (finding,) = errors(digests(ONE), printed(0.6, line))
    assert finding.hint.startswith("keep id and name")
