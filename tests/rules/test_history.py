from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result
from helpers.taped import taped

GO_ON: dict[str, object] = {"role": "user", "content": "And tomorrow?"}
LAST: dict[str, object] = {"role": "user", "content": "And then?"}
SYSTEM: dict[str, object] = {"role": "system", "content": "Be kind."}
PIECES = ("Hel", "lo, it is", " 13 degrees", " in Gent", ".")
DELIVERED = "".join(PIECES)


def said(*pieces: str) -> list[object]:
    return [*(choice({"content": each}) for each in pieces), FINISH_TEXT]


def text(content: str) -> dict[str, object]:
    return assistant(text=content)


def changed(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C012"]


def repeated(content: str, *pieces: str) -> list[Digest]:
    return digests((asks(USER), said(*(pieces or PIECES))), (asks(USER, text(content), GO_ON), []))


def test_a_lost_first_fragment_says_who_and_where() -> None:
    (finding,) = changed(repeated(DELIVERED[3:]))
    assert finding.message == (
        "the app repeats the text of #1 without its first fragment, 'Hel':"
        " it begins with 'lo, it is 13 degrees in '"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.ERROR)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.PROVEN)
    assert finding.evidence == DELIVERED[3:]
    assert finding.against
    assert (finding.against.exchange, finding.against.evidence) == (1, DELIVERED)
    assert finding.excluded


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (DELIVERED + DELIVERED, "text of #1 twice"),
        ("".join(each * 2 for each in PIECES), "with each of its 5 fragments duplicated"),
        (DELIVERED.replace("lo, it is", ""), "without fragment 2 of 5"),
        ("Hello,it is13 degreesin Gent.", ""),
    ],
)
def test_other_damage(content: str, words: str) -> None:
    found = changed(repeated(content))
    assert words in found[0].message if words else not found


def test_a_text_of_several_messages_is_theirs_together() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER, text(DELIVERED[:9]), text(DELIVERED[9:]), GO_ON), []),
    )
    assert not changed(tape)
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER, text(DELIVERED[3:9]), text(DELIVERED[9:]), GO_ON), []),
    )
    assert len(changed(tape)) == 1


def test_the_same_text_in_two_messages_in_a_row_is_likely() -> None:
    twice = (asks(USER, text(DELIVERED), text(DELIVERED), GO_ON), said("Rain", "."))
    (finding,) = changed(digests((asks(USER), said(*PIECES)), twice))
    assert finding.message == ("the app repeats the text of #1 2 times, each in a separate message")
    assert finding.confidence is Confidence.LIKELY
    assert not changed(digests((asks(USER), said(*PIECES)), (asks(USER), said(*PIECES)), twice))
    short = (asks(USER, text("Ok."), text("Ok."), GO_ON), said("Rain", "."))
    assert not changed(digests((asks(USER), said("Ok."[:1], "k.")), short))
    right = (asks(USER, text(DELIVERED), GO_ON), said("Rain", "."))
    assert not changed(digests((asks(USER), said(*PIECES)), right, twice))


def test_a_character_that_a_read_cut_and_the_app_lost_is_proven() -> None:
    data = 'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
    body = (data % "It is " + data % "13 °C" + data % " here").encode() + sse(FINISH_TEXT)
    at = body.index("°".encode()) + 1
    first = taped([(10, body[:at]), (20, body[at:])], body=asks(USER))
    second = asks(USER, text("It is 13 C here"), GO_ON)
    later = taped([(10, sse(FINISH_TEXT))], body=second, number=2)
    (finding,) = changed([digest(first), replace(digest(later), t_ns=60_000_000_000)])
    assert finding.confidence is Confidence.PROVEN
    assert "without the characters '°'" in finding.message
    assert "a chunk boundary splits the bytes" in finding.excluded[0].because


def test_what_is_only_possible_is_likely_once_it_happens_to_another_text_too() -> None:
    one, two = ("Fine. ", "It is", " warm"), ("Sure. ", "Take", " a coat")
    first, second = text("It is warm"), text("Take a coat")
    tape = digests(
        (asks(USER), said(*one)),
        (asks(USER, first, GO_ON), said(*two)),
        (asks(USER, first, GO_ON, second, LAST), []),
    )
    found = changed(tape)
    assert [each.confidence for each in found] == [Confidence.POSSIBLE, Confidence.LIKELY]
    assert [each.severity for each in found] == [Severity.WARNING, Severity.ERROR]
    assert "2 replies lost different words" in found[1].excluded[-1].because


def test_the_same_word_may_be_removed_again_and_again() -> None:
    one, two = ("Fine. ", "It is", " warm"), ("Fine. ", "Take", " a coat")
    first, second = text("It is warm"), text("Take a coat")
    tape = digests(
        (asks(USER), said(*one)),
        (asks(USER, first, GO_ON), said(*two)),
        (asks(USER, first, GO_ON, second, LAST), []),
    )
    assert [each.confidence for each in changed(tape)] == [Confidence.POSSIBLE] * 2


def test_another_answer_to_the_same_request_that_fits_acquits() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER), said("lo, it is", " 13 degrees", " in Gent", ".")),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    assert not changed(tape)


def test_of_several_answers_the_one_that_was_changed_is_likely_at_most() -> None:
    tape = digests(
        (asks(USER), said("Something", " else", " it is.")),
        (asks(USER), said(*PIECES)),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    (finding,) = changed(tape)
    assert finding.confidence is Confidence.LIKELY
    assert "#2" in finding.message


def test_of_two_answers_that_both_may_be_meant_none_is() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER), said("Yel", *PIECES[1:])),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    assert not changed(tape)


def test_a_text_that_was_repeated_rightly_may_be_shortened_later() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER, text(DELIVERED), GO_ON), said("Rain", ".")),
        (asks(USER, text(DELIVERED[3:]), GO_ON, text("Rain."), LAST), []),
    )
    assert not changed(tape)


def test_a_reply_that_is_not_whole_is_not_held_against_anybody() -> None:
    first, second = repeated(DELIVERED[3:])
    for less in (replace(first, whole=False), replace(first, lossy=True)):
        assert not changed([less, second])
    assert not changed([replace(first, content_ends=()), second])
    assert not changed([replace(first, end_ns=(second.t_ns or 0) + 1), second])


def test_a_text_beside_calls_may_be_left_out() -> None:
    tape = digests(
        (asks(USER), [choice({"content": "Let me look"}), *call(), FINISH]),
        (asks(USER, assistant(("c1", "get", '{"a":1}')), GO_ON), []),
    )
    assert not changed(tape)


def test_a_request_that_ends_with_the_answer_is_to_be_gone_on_with() -> None:
    assert not changed(
        digests((asks(USER), said(*PIECES)), (asks(USER, text(DELIVERED[3:])), said("!")))
    )


def test_two_prompts_with_the_same_question_are_kept_apart() -> None:
    tape = digests(
        (asks(SYSTEM, USER), said(*PIECES)),
        (asks(USER), said("lo, it is another one")),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    assert not changed(tape)


SAID = [TEXT, FINISH_TEXT]
HELLO = assistant(text="Hello")
MORE: dict[str, object] = {"role": "user", "content": "And what about tomorrow?"}


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def doubled(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C019"]


def found(finding: Finding) -> tuple[Severity, Blame | None, Confidence]:
    return finding.severity, finding.blame, finding.confidence


def test_twice_in_the_first_request_may_be_the_application() -> None:
    (finding,) = doubled(digests((asks(USER, USER), SAID)))
    assert finding.message == "the user's message appears twice in a row: 'What is the weather?'"
    assert found(finding) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    assert finding.exchange == 1


def test_each_of_several_messages_twice_is_no_users_habit() -> None:
    tape = digests((asks(USER, USER), SAID), (asks(USER, USER, HELLO, MORE, MORE), SAID))
    first, second = doubled(tape)
    assert found(first) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    assert found(second) == (Severity.WARNING, Blame.APP, Confidence.LIKELY)
    assert second.message.startswith("the user's message appears twice in a row, as each of 2 does")
    assert second.excluded[0].because == "each of the user's last 2 messages appears twice in a row"


def test_messages_with_the_same_text_and_different_pictures_may_be_meant() -> None:
    def shown(text: str, picture: str) -> dict[str, object]:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, image]}

    pages = [shown(text, each) for text in ("A page of it.", "A page behind it.") for each in "AB"]
    (finding,) = doubled(digests((asks(*pages), SAID)))
    assert found(finding) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    alike = [shown(text, "A") for text in ("A page of it.", "A page behind it.") for _ in "AB"]
    (finding,) = doubled(digests((asks(*alike), SAID)))
    assert finding.confidence is Confidence.LIKELY


def test_one_of_several_messages_twice_may_be_the_user() -> None:
    tape = digests((asks(USER), SAID), (asks(USER, HELLO, MORE, MORE), SAID))
    assert [found(each)[2] for each in doubled(tape)] == [Confidence.POSSIBLE]


def test_a_message_that_comes_again_right_after_its_answer_without_it_is_a_fact() -> None:
    (finding,) = doubled(digests((asks(USER), SAID), (asks(USER, USER), SAID)))
    assert found(finding) == (Severity.INFO, None, Confidence.PROVEN)


def test_a_message_that_comes_again_behind_its_answer_is_a_fact() -> None:
    (finding,) = doubled(digests((asks(USER), SAID), (asks(USER, HELLO, USER), SAID)))
    assert finding.message.startswith("the user's message appears again after its answer,")
    assert found(finding) == (Severity.INFO, None, Confidence.PROVEN)


def test_an_attempt_after_a_failure_is_none() -> None:
    first, second = digests((asks(USER), SAID), (asks(USER, USER), SAID))
    assert not doubled([replace(first, whole=False, failed=True), second])


def test_it_is_told_once() -> None:
    tape = digests(
        (asks(USER, USER), SAID),
        (asks(USER, USER, HELLO, MORE), SAID),
        (asks(USER, USER, HELLO, MORE, HELLO, user("And then, I wonder?")), SAID),
    )
    assert [each.exchange for each in doubled(tape)] == [1]


@pytest.mark.parametrize("text", ["ok", "yes", "continue", "Go on", "continue, please", "  "])
def test_short_messages_may_come_twice(text: str) -> None:
    assert not doubled(digests((asks(user(text), user(text)), SAID)))
    assert not doubled(digests((asks(user(text), HELLO, user(text)), SAID)))


def test_a_note_that_a_library_writes_for_the_user_may_come_again_and_again() -> None:
    note = user("Error: the answer is no JSON. Send the whole answer again, please.")
    assert not doubled(digests((asks(USER, HELLO, note, HELLO, note), SAID)))
    assert not doubled(digests((asks(USER, note, note), SAID)))


def test_a_script_without_spaces_counts_by_its_length() -> None:
    text = "今天根特的天气怎么样呢会下雨吗还是出太阳"
    assert len(doubled(digests((asks(user(text), user(text)), SAID)))) == 1


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
    assert not doubled(digests((asks(*history), SAID)))


def said_by_user(place: int) -> dict[str, object]:
    return {"role": "user", "content": f"And what about town {place}?"}


def answer(place: int) -> list[object]:
    return [choice({"content": f"In town {place} it is warm and dry."}), FINISH_TEXT]


def unkept(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C020"]


def growing(count: int = 4, answers: Sequence[list[object]] = ()) -> list[Digest]:
    """The user's messages, one more in each request."""
    told = answers or [answer(place) for place in range(count)]
    return digests(
        *((asks(*map(said_by_user, range(place + 1))), told[place]) for place in range(count))
    )


def test_the_second_answer_that_is_left_out_is_told_and_then_no_other() -> None:
    (finding,) = unkept(growing(5))
    assert finding.message == (
        "the request has 3 user messages but no answer: the answer #2 and the one before"
        " were delivered completely"
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
        (asks(said_by_user(0)), answer(0)),
        (asks(said_by_user(0), kept, said_by_user(1)), answer(1)),
        (asks(said_by_user(0), kept, said_by_user(1), said_by_user(2)), answer(2)),
        (asks(said_by_user(0), kept, said_by_user(1), said_by_user(2), said_by_user(3)), answer(3)),
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
        *(
            (asks(memory[place], *map(said_by_user, range(place + 1))), answer(place))
            for place in range(3)
        )
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
        (asks(said_by_user(0)), answer(0)),
        (asks(said_by_user(0), result("c1")), answer(1)),
        (asks(said_by_user(0), result("c1"), said_by_user(2)), answer(2)),
        (asks(said_by_user(0), result("c1"), said_by_user(2), said_by_user(3)), answer(3)),
    )
    assert not unkept(tape)
