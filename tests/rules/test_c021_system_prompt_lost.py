from dataclasses import replace

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

SYSTEM: dict[str, object] = {"role": "system", "content": "Be kind."}
OTHER: dict[str, object] = {"role": "system", "content": "Be brief."}
MORE: dict[str, object] = {"role": "user", "content": "And tomorrow?"}
LAST: dict[str, object] = {"role": "user", "content": "And then?"}
SAID = [TEXT, FINISH_TEXT]
HELLO = assistant(text="Hello")
STEP = (USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
TOOLS = [{"type": "function", "function": {"name": "get"}}]


def lost(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C021"]


def test_a_turn_without_the_prompt_is_possible() -> None:
    (finding,) = lost(digests((asks(SYSTEM, USER), SAID), (asks(USER, HELLO, MORE), SAID)))
    assert finding.message == (
        "the request goes on from #1, but without a system prompt, which that one had"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_it_is_likely_where_the_conversation_goes_on_from_there() -> None:
    rest = (USER, HELLO, MORE, HELLO, LAST)
    first, second = (asks(SYSTEM, USER), SAID), (asks(USER, HELLO, MORE), SAID)
    (back,) = lost(digests(first, second, (asks(SYSTEM, *rest), SAID)))
    assert back.message.endswith("which that one had, and #3 has it again")
    assert back.confidence is Confidence.LIKELY
    assert [each.because for each in back.excluded] == [
        "model and tools are those of #1, and no call hands over",
        "#3 goes on from its answer",
    ]
    (gone,) = lost(digests(first, second, (asks(*rest), SAID)))
    assert gone.message.endswith("which that one had")
    assert gone.confidence is Confidence.LIKELY
    (other,) = lost(digests(first, second, (asks(OTHER, *rest), SAID)))
    assert other.message.endswith("which that one had")


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
        "the request goes on from #1 with a shortened history, and without the system prompt that"
        " that one had"
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
