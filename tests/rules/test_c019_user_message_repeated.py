from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, digests, result

SAID = [TEXT, FINISH_TEXT]
HELLO = assistant(text="Hello")
MORE: dict[str, object] = {"role": "user", "content": "And what about tomorrow?"}


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def repeated(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C019"]


def found(finding: Finding) -> tuple[Severity, Blame | None, Confidence]:
    return finding.severity, finding.blame, finding.confidence


def test_twice_in_the_first_request_may_be_the_application() -> None:
    (finding,) = repeated(digests((asks(USER, USER), SAID)))
    assert finding.message == "the user's message stands twice in a row: 'What is the weather?'"
    assert found(finding) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    assert finding.exchange == 1


def test_each_of_several_messages_twice_is_no_users_habit() -> None:
    tape = digests((asks(USER, USER), SAID), (asks(USER, USER, HELLO, MORE, MORE), SAID))
    first, second = repeated(tape)
    assert found(first) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    assert found(second) == (Severity.WARNING, Blame.APP, Confidence.LIKELY)
    assert second.message.startswith("the user's message stands twice in a row, as each of 2 does")
    assert second.excluded[0].because == "each of the user's last 2 messages stands there twice"


def test_messages_with_the_same_text_and_different_pictures_may_be_meant() -> None:
    def shown(text: str, picture: str) -> dict[str, object]:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, image]}

    pages = [shown(text, each) for text in ("A page of it.", "A page behind it.") for each in "AB"]
    (finding,) = repeated(digests((asks(*pages), SAID)))
    assert found(finding) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    alike = [shown(text, "A") for text in ("A page of it.", "A page behind it.") for _ in "AB"]
    (finding,) = repeated(digests((asks(*alike), SAID)))
    assert finding.confidence is Confidence.LIKELY


def test_one_of_several_messages_twice_may_be_the_user() -> None:
    tape = digests((asks(USER), SAID), (asks(USER, HELLO, MORE, MORE), SAID))
    assert [found(each)[2] for each in repeated(tape)] == [Confidence.POSSIBLE]


def test_a_message_that_comes_again_right_after_its_answer_without_it_is_a_fact() -> None:
    (finding,) = repeated(digests((asks(USER), SAID), (asks(USER, USER), SAID)))
    assert found(finding) == (Severity.INFO, None, Confidence.PROVEN)


def test_a_message_that_comes_again_behind_its_answer_is_a_fact() -> None:
    (finding,) = repeated(digests((asks(USER), SAID), (asks(USER, HELLO, USER), SAID)))
    assert finding.message.startswith("the user's message comes again after its answer")
    assert found(finding) == (Severity.INFO, None, Confidence.PROVEN)


def test_an_attempt_after_a_failure_is_none() -> None:
    first, second = digests((asks(USER), SAID), (asks(USER, USER), SAID))
    assert not repeated([replace(first, whole=False, failed=True), second])


def test_it_is_told_once() -> None:
    tape = digests(
        (asks(USER, USER), SAID),
        (asks(USER, USER, HELLO, MORE), SAID),
        (asks(USER, USER, HELLO, MORE, HELLO, user("And then, I wonder?")), SAID),
    )
    assert [each.exchange for each in repeated(tape)] == [1]


@pytest.mark.parametrize("text", ["ok", "yes", "continue", "Go on", "continue, please", "  "])
def test_short_messages_may_come_twice(text: str) -> None:
    assert not repeated(digests((asks(user(text), user(text)), SAID)))
    assert not repeated(digests((asks(user(text), HELLO, user(text)), SAID)))


def test_a_note_that_a_library_writes_for_the_user_may_come_again_and_again() -> None:
    note = user("Error: the answer is no JSON. Send the whole answer again, please.")
    assert not repeated(digests((asks(USER, HELLO, note, HELLO, note), SAID)))
    assert not repeated(digests((asks(USER, note, note), SAID)))


def test_a_script_without_spaces_counts_by_its_length() -> None:
    text = "今天根特的天气怎么样呢会下雨吗还是出太阳"
    assert len(repeated(digests((asks(user(text), user(text)), SAID)))) == 1


@pytest.mark.parametrize(
    "history",
    [
        (USER, HELLO, MORE),
        (USER, user("What is the weather in Gent?")),
        (USER, HELLO, MORE, HELLO, USER),
        (USER, assistant(("c1", "get", "{}")), result("c1", "What is the weather?")),
        (USER, assistant(("c1", "get", "{}")), USER),
        (assistant(text="What is the weather?"), USER),
    ],
)
def test_other_histories(history: tuple[dict[str, object], ...]) -> None:
    assert not repeated(digests((asks(*history), SAID)))
