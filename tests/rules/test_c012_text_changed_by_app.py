from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import FINISH_TEXT, USER, asks, assistant, call, digests
from helpers.taped import taped

MORE: dict[str, object] = {"role": "user", "content": "And tomorrow?"}
LAST: dict[str, object] = {"role": "user", "content": "And then?"}
SYSTEM: dict[str, object] = {"role": "system", "content": "Be kind."}
PIECES = ("Hel", "lo, it is", " 13 degrees", " in Gent", ".")
TEXT = "".join(PIECES)


def said(*pieces: str) -> list[object]:
    return [*(choice({"content": each}) for each in pieces), FINISH_TEXT]


def text(content: str) -> dict[str, object]:
    return assistant(text=content)


def changed(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C012"]


def repeated(content: str, *pieces: str) -> list[Digest]:
    return digests((asks(USER), said(*(pieces or PIECES))), (asks(USER, text(content), MORE), []))


def test_a_lost_first_fragment_says_who_and_where() -> None:
    (finding,) = changed(repeated(TEXT[3:]))
    assert finding.message == (
        "the app repeats the text of #1 without its first fragment, 'Hel':"
        " it begins with 'lo, it is 13 degrees in '"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.ERROR)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.PROVEN)
    assert finding.evidence == TEXT[3:]
    assert finding.against
    assert (finding.against.exchange, finding.against.evidence) == (1, TEXT)
    assert finding.excluded


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TEXT + TEXT, "text of #1 twice"),
        ("".join(each * 2 for each in PIECES), "with each of its 5 fragments doubled"),
        (TEXT.replace("lo, it is", ""), "without fragment 2 of 5"),
        ("Hello,it is13 degreesin Gent.", ""),
    ],
)
def test_other_damage(content: str, words: str) -> None:
    found = changed(repeated(content))
    assert words in found[0].message if words else not found


def test_a_text_of_several_messages_is_theirs_together() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER, text(TEXT[:9]), text(TEXT[9:]), MORE), []),
    )
    assert not changed(tape)
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER, text(TEXT[3:9]), text(TEXT[9:]), MORE), []),
    )
    assert len(changed(tape)) == 1


def test_the_same_text_in_two_messages_in_a_row_is_likely() -> None:
    twice = (asks(USER, text(TEXT), text(TEXT), MORE), said("Rain", "."))
    (finding,) = changed(digests((asks(USER), said(*PIECES)), twice))
    assert finding.message == (
        "the app repeats the text of #1 2 times, each time in a message of its own"
    )
    assert finding.confidence is Confidence.LIKELY
    assert not changed(digests((asks(USER), said(*PIECES)), (asks(USER), said(*PIECES)), twice))
    short = (asks(USER, text("Ok."), text("Ok."), MORE), said("Rain", "."))
    assert not changed(digests((asks(USER), said("Ok."[:1], "k.")), short))
    right = (asks(USER, text(TEXT), MORE), said("Rain", "."))
    assert not changed(digests((asks(USER), said(*PIECES)), right, twice))


def test_a_character_that_a_read_cut_and_the_app_lost_is_proven() -> None:
    data = 'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
    body = (data % "It is " + data % "13 °C" + data % " here").encode() + sse(FINISH_TEXT)
    at = body.index("°".encode()) + 1
    first = taped([(10, body[:at]), (20, body[at:])], body=asks(USER))
    second = asks(USER, text("It is 13 C here"), MORE)
    later = taped([(10, sse(FINISH_TEXT))], body=second, number=2)
    (finding,) = changed([digest(first), replace(digest(later), t_ns=60_000_000_000)])
    assert finding.confidence is Confidence.PROVEN
    assert "without '°'" in finding.message
    assert "cut in two by the end of a network read" in finding.excluded[0].because


def test_what_is_only_possible_is_likely_once_it_happens_to_another_text_too() -> None:
    one, two = ("Fine. ", "It is", " warm"), ("Sure. ", "Take", " a coat")
    first, second = text("It is warm"), text("Take a coat")
    tape = digests(
        (asks(USER), said(*one)),
        (asks(USER, first, MORE), said(*two)),
        (asks(USER, first, MORE, second, LAST), []),
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
        (asks(USER, first, MORE), said(*two)),
        (asks(USER, first, MORE, second, LAST), []),
    )
    assert [each.confidence for each in changed(tape)] == [Confidence.POSSIBLE] * 2


def test_another_answer_to_the_same_request_that_fits_acquits() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER), said("lo, it is", " 13 degrees", " in Gent", ".")),
        (asks(USER, text(TEXT[3:]), MORE), []),
    )
    assert not changed(tape)


def test_of_several_answers_the_one_that_was_changed_is_likely_at_most() -> None:
    tape = digests(
        (asks(USER), said("Something", " else", " it is.")),
        (asks(USER), said(*PIECES)),
        (asks(USER, text(TEXT[3:]), MORE), []),
    )
    (finding,) = changed(tape)
    assert finding.confidence is Confidence.LIKELY
    assert "#2" in finding.message


def test_of_two_answers_that_both_may_be_meant_none_is() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER), said("Yel", *PIECES[1:])),
        (asks(USER, text(TEXT[3:]), MORE), []),
    )
    assert not changed(tape)


def test_a_text_that_was_repeated_rightly_may_be_shortened_later() -> None:
    tape = digests(
        (asks(USER), said(*PIECES)),
        (asks(USER, text(TEXT), MORE), said("Rain", ".")),
        (asks(USER, text(TEXT[3:]), MORE, text("Rain."), LAST), []),
    )
    assert not changed(tape)


def test_a_reply_that_is_not_whole_is_not_held_against_anybody() -> None:
    first, second = repeated(TEXT[3:])
    for less in (replace(first, whole=False), replace(first, lossy=True)):
        assert not changed([less, second])
    assert not changed([replace(first, content_ends=()), second])
    assert not changed([replace(first, end_ns=(second.t_ns or 0) + 1), second])


def test_a_text_beside_calls_may_be_left_out() -> None:
    tape = digests(
        (asks(USER), [choice({"content": "Let me look"}), *call(), FINISH]),
        (asks(USER, assistant(("c1", "get", '{"a":1}')), MORE), []),
    )
    assert not changed(tape)


def test_a_request_that_ends_with_the_answer_is_to_be_gone_on_with() -> None:
    assert not changed(
        digests((asks(USER), said(*PIECES)), (asks(USER, text(TEXT[3:])), said("!")))
    )


def test_two_prompts_with_the_same_question_are_kept_apart() -> None:
    tape = digests(
        (asks(SYSTEM, USER), said(*PIECES)),
        (asks(USER), said("lo, it is another one")),
        (asks(USER, text(TEXT[3:]), MORE), []),
    )
    assert not changed(tape)
