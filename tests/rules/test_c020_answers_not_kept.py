from collections.abc import Sequence
from dataclasses import replace

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice
from helpers.exchanges import FINISH_TEXT, USER, asks, assistant, call, digests, result


def user(place: int) -> dict[str, object]:
    return {"role": "user", "content": f"And what about town {place}?"}


def answer(place: int) -> list[object]:
    return [choice({"content": f"In town {place} it is warm and dry."}), FINISH_TEXT]


def unkept(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C020"]


def growing(count: int = 4, answers: Sequence[list[object]] = ()) -> list[Digest]:
    """The user's messages, one more in each request."""
    told = answers or [answer(place) for place in range(count)]
    return digests(*((asks(*map(user, range(place + 1))), told[place]) for place in range(count)))


def test_the_second_answer_that_is_left_out_is_told_and_then_no_other() -> None:
    (finding,) = unkept(growing(5))
    assert finding.message == (
        "the request has 3 messages of the user and no answer: that of #2 and the one before were"
        " delivered whole"
    )
    assert (finding.exchange, finding.severity) == (3, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)
    assert finding.against
    assert finding.against.evidence == "In town 1 it is warm and dry."


def test_one_answer_may_have_been_interrupted() -> None:
    assert not unkept(growing(2))
    first, second, third = growing(3)
    assert not unkept([replace(first, whole=False), second, third])


def test_answers_that_are_kept() -> None:
    kept = assistant(text="In town 0 it is warm and dry.")
    tape = digests(
        (asks(user(0)), answer(0)),
        (asks(user(0), kept, user(1)), answer(1)),
        (asks(user(0), kept, user(1), user(2)), answer(2)),
        (asks(user(0), kept, user(1), user(2), user(3)), answer(3)),
    )
    assert not unkept(tape)


def test_answers_that_are_kept_in_another_place() -> None:
    quoted: list[dict[str, object]] = [
        {"role": "user", "content": f"You said: In town {place} it is warm and dry. And {place}?"}
        for place in range(3)
    ]
    tape = digests(
        (asks(USER), answer(0)),
        (asks(USER, quoted[0]), answer(1)),
        (asks(USER, quoted[0], quoted[1]), answer(2)),
    )
    assert not unkept(tape)
    memory: list[dict[str, object]] = [
        {"role": "system", "content": f"So far: {place}"} for place in range(3)
    ]
    changing = digests(
        *((asks(memory[place], *map(user, range(place + 1))), answer(place)) for place in range(3))
    )
    assert not unkept(changing)


def test_labels_json_and_calls_are_no_conversation() -> None:
    label: list[object] = [choice({"content": "weather"}), FINISH_TEXT]
    parsed: list[object] = [choice({"content": '{"label": "weather", "sure": 0.9}'}), FINISH_TEXT]
    assert not unkept(growing(4, [label] * 4))
    assert not unkept(growing(4, [parsed] * 4))
    assert not unkept(growing(4, [[*call(), FINISH]] * 4))


def test_what_brings_more_than_the_users_words_is_another_matter() -> None:
    tape = digests(
        (asks(user(0)), answer(0)),
        (asks(user(0), result("c1")), answer(1)),
        (asks(user(0), result("c1"), user(2)), answer(2)),
        (asks(user(0), result("c1"), user(2), user(3)), answer(3)),
    )
    assert not unkept(tape)
