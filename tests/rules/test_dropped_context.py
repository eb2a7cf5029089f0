from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice
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
        "the history has tool calls or results, but the request offers no tools (#1 did)"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.INFO)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_it_is_an_error_if_it_was_refused() -> None:
    first, second = digests(FIRST, (asks(USER, *ROUND), []))
    (finding,) = removed([first, replace(second, status=400, error="toolConfig is missing")])
    assert finding.message.endswith("(#1 did); the provider rejected it (400)")
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
        (2, " (#1 did)"),
        (5, " (#4 did)"),
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


SYSTEM: dict[str, object] = {"role": "system", "content": "Be kind."}
OTHER: dict[str, object] = {"role": "system", "content": "Be brief."}
LAST: dict[str, object] = {"role": "user", "content": "And then?"}
SAID = [TEXT, FINISH_TEXT]
HELLO = assistant(text="Hello")
STEP = (USER, assistant(("c1", "get", '{"a":1}')), result("c1"))


def lost(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C021"]


def test_a_turn_without_the_prompt_is_possible() -> None:
    (finding,) = lost(digests((asks(SYSTEM, USER), SAID), (asks(USER, HELLO, MORE), SAID)))
    assert finding.message == ("the request continues #1, but without its system prompt")
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_it_is_likely_where_the_conversation_goes_on_from_there() -> None:
    rest = (USER, HELLO, MORE, HELLO, LAST)
    first, second = (asks(SYSTEM, USER), SAID), (asks(USER, HELLO, MORE), SAID)
    (back,) = lost(digests(first, second, (asks(SYSTEM, *rest), SAID)))
    assert back.message.endswith("prompt, and #3 has it again")
    assert back.confidence is Confidence.LIKELY
    assert [each.because for each in back.excluded] == [
        "model and tools are those of #1, and no call hands the conversation over",
        "#3 continues from its answer",
    ]
    (gone,) = lost(digests(first, second, (asks(*rest), SAID)))
    assert gone.message.endswith("but without its system prompt")
    assert gone.confidence is Confidence.LIKELY
    (other,) = lost(digests(first, second, (asks(OTHER, *rest), SAID)))
    assert other.message.endswith("but without its system prompt")


def test_it_is_likely_where_the_same_agent_goes_on_from_its_results() -> None:
    tape = digests(
        (asks(SYSTEM, USER, tools=TOOLS), [*call(), FINISH]), (asks(*STEP, tools=TOOLS), SAID)
    )
    (finding,) = lost(tape)
    assert finding.confidence is Confidence.LIKELY


def test_another_agent_may_have_no_instructions() -> None:
    first = (asks(SYSTEM, USER, tools=TOOLS), [*call(), FINISH])
    (finding,) = lost(digests(first, (asks(*STEP), SAID)))
    assert finding.confidence is Confidence.POSSIBLE
    (finding,) = lost(digests(first, (asks(*STEP, tools=TOOLS, model="other"), SAID)))
    assert finding.confidence is Confidence.POSSIBLE
    over = [*call("transfer_to_b"), FINISH]
    step = (USER, assistant(("c1", "transfer_to_b", '{"a":1}')), result("c1"))
    (finding,) = lost(
        digests((asks(SYSTEM, USER, tools=TOOLS), over), (asks(*step, tools=TOOLS), []))
    )
    assert finding.confidence is Confidence.POSSIBLE


def test_another_job_on_the_same_history_and_prompts_that_are_there() -> None:
    first = (asks(SYSTEM, USER), SAID)
    assert not lost(digests(first, (asks(USER), SAID)))
    assert not lost(digests(first, (asks(USER, MORE), SAID)))
    assert not lost(digests(first, (asks(OTHER, USER, HELLO, MORE), SAID)))
    assert not lost(digests((asks(USER), SAID), (asks(USER, HELLO, MORE), SAID)))
    assert not lost(digests(first, (asks(USER), SAID), (asks(USER, HELLO, MORE), SAID)))


def test_it_is_possible_only_where_the_conversation_goes_on_beside_it_with_its_prompt() -> None:
    stray = (USER, HELLO, MORE)
    tape = [
        (asks(SYSTEM, USER), SAID),
        (asks(*stray), SAID),
        (asks(*stray, HELLO, LAST), SAID),
    ]
    (finding,) = lost(digests(*tape, (asks(SYSTEM, USER, HELLO, LAST), SAID)))
    assert (finding.exchange, finding.confidence) == (2, Confidence.POSSIBLE)
    assert not finding.excluded
    (finding,) = lost(digests(*tape, (asks(OTHER, USER, HELLO, LAST), SAID)))
    assert finding.confidence is Confidence.LIKELY
    (finding,) = lost(digests(*tape, (asks(SYSTEM, *stray), SAID)))
    assert finding.confidence is Confidence.LIKELY


def test_a_stored_response_gives_no_instructions() -> None:
    first, second = digests((asks(SYSTEM, USER), SAID), (asks(MORE), SAID))
    first = replace(first, reply_id="r1", instructions=True)
    second = replace(second, previous="r1")
    (finding,) = lost([first, second])
    assert "the provider does not carry instructions over" in finding.message
    assert finding.confidence is Confidence.POSSIBLE
    assert not lost([first, replace(second, previous="r2")])
    assert not lost([replace(first, instructions=False), second])  # a message, which is kept
    assert not lost([replace(first, end_ns=(second.t_ns or 0) + 1), second])


LONG = "Hello, what a fine day."
SPOKE = [choice({"content": LONG}), FINISH_TEXT]
SHORTENED = (USER, assistant(text="Hi"), MORE, assistant(text=LONG), LAST)


def test_a_shortened_history_may_have_lost_the_prompt_with_its_first_messages() -> None:
    first = (asks(SYSTEM, *SHORTENED[:3]), SPOKE)
    (finding,) = lost(digests(first, (asks(*SHORTENED[2:]), SAID)))
    assert finding.message == (
        "the request continues #1 with a shortened history, and without its system prompt"
    )
    assert finding.confidence is Confidence.POSSIBLE
    assert not lost(digests(first, (asks(SYSTEM, *SHORTENED[2:]), SAID)))
    assert not lost(digests(first, (asks(*SHORTENED[2:], tools=TOOLS), SAID)))
    assert not lost(digests((asks(*SHORTENED[:3]), SPOKE), (asks(*SHORTENED[2:]), SAID)))
    assert not lost(digests(first, (asks(LAST, assistant(text=LONG), MORE), SAID)))
    assert not lost(digests(first, (asks(LAST, MORE, assistant(text=LONG)), SAID)))
    before, after = digests(first, (asks(*SHORTENED[2:]), SAID))
    assert not lost([before, replace(after, t_ns=1)])
    assert not lost([before, replace(after, previous="resp_1")])


def tools(*names: str) -> list[dict[str, object]]:
    return [{"type": "function", "function": {"name": name}} for name in names]


def withdrawn(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C022"]


def pair(
    *left: str, first: tuple[str, ...] = ("get", "put"), said: Sequence[object] = SAID
) -> list[Digest]:
    return digests(
        (asks(USER, tools=tools(*first)), [*call(), FINISH]),
        (asks(*STEP, tools=tools(*left)), said),
    )


def test_the_called_tool_is_gone_and_others_are_there() -> None:
    (finding,) = withdrawn(pair("put"))
    assert finding.message == (
        "the request has a result of get, which #1 offered, but offers only put"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_where_all_tools_are_others_it_is_a_remark() -> None:
    (finding,) = withdrawn(pair("set"))
    assert finding.severity is Severity.INFO


def test_a_model_that_calls_it_all_the_same() -> None:
    (finding,) = withdrawn(pair("a", "b", "c", "d", said=[*call(), FINISH]))
    assert finding.message.endswith(
        "offers only a, b, c and 1 more; the model calls it again anyway"
    )
    assert finding.severity is Severity.WARNING


def test_a_provider_that_refuses_it() -> None:
    first, second = pair("put")
    refused = replace(second, status=400, error="tool 'get' is not defined")
    (finding,) = withdrawn([first, refused])
    assert finding.message.endswith("put; the provider rejected it (400)")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_tools_that_are_there_or_never_were() -> None:
    assert not withdrawn(pair("get", "put"))
    assert not withdrawn(pair())
    assert not withdrawn(pair("put", first=("put",)))
    first, second = pair("put")
    assert not withdrawn([first, replace(second, tools_elsewhere=True)])
    assert not withdrawn(digests((asks(*STEP, tools=tools("put")), SAID)))


def test_a_call_without_its_result_may_be_over() -> None:
    first = (asks(USER, tools=tools("get", "put")), [*call(), FINISH])
    more: dict[str, object] = {"role": "user", "content": "Stop that."}
    assert not withdrawn(digests(first, (asks(*STEP[:2], more, tools=tools("put")), SAID)))


def test_the_same_id_may_be_another_call() -> None:
    one = (asks(USER, tools=tools("get", "put")), [*call(), FINISH])
    other = (asks(USER, tools=tools("put", "set")), [*call("put"), FINISH])
    step = (USER, assistant(("c1", "put", '{"a":1}')), result("c1"))
    later = (asks(*step, tools=tools("put")), SAID)
    assert not withdrawn(digests(one, later))
    assert not withdrawn(digests(other, one, later))


def test_another_agent_and_a_search_for_tools() -> None:
    first = (asks(SYSTEM, USER, tools=tools("get")), [*call(), FINISH])
    assert not withdrawn(digests(first, (asks(*STEP, tools=tools("put")), SAID)))
    assert not withdrawn(pair("tool_search", "put"))
    over = (asks(USER, tools=tools("transfer", "put")), [*call("transfer"), FINISH])
    step = (USER, assistant(("c1", "transfer", '{"a":1}')), result("c1"))
    assert not withdrawn(digests(over, (asks(*step, tools=tools("put")), SAID)))
