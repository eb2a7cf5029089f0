from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, choice, sse
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
    system,
    user,
)
from helpers.taped import taped

GO_ON = user("And tomorrow?")
LAST = user("And then?")
SYSTEM = system("Be kind.")
PIECES = ("Hel", "lo, it is", " 13 degrees", " in Gent", ".")
DELIVERED = "".join(PIECES)


def text_reply(*pieces: str) -> list[object]:
    return [*(choice({"content": each}) for each in pieces), FINISH_TEXT]


def text(content: str) -> dict[str, object]:
    return assistant(text=content)


def c012_findings(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C012"]


def repeated(content: str, *pieces: str) -> list[Digest]:
    return digests(
        (asks(USER), text_reply(*(pieces or PIECES))), (asks(USER, text(content), GO_ON), [])
    )


def test_a_lost_first_fragment_says_who_and_where() -> None:
    (finding,) = c012_findings(repeated(DELIVERED[3:]))
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
    found = c012_findings(repeated(content))
    assert words in found[0].message if words else not found


def test_a_text_of_several_messages_is_theirs_together() -> None:
    tape = digests(
        (asks(USER), text_reply(*PIECES)),
        (asks(USER, text(DELIVERED[:9]), text(DELIVERED[9:]), GO_ON), []),
    )
    assert not c012_findings(tape)
    tape = digests(
        (asks(USER), text_reply(*PIECES)),
        (asks(USER, text(DELIVERED[3:9]), text(DELIVERED[9:]), GO_ON), []),
    )
    assert len(c012_findings(tape)) == 1


def test_the_same_text_in_two_messages_in_a_row_is_likely() -> None:
    twice = (asks(USER, text(DELIVERED), text(DELIVERED), GO_ON), text_reply("Rain", "."))
    (finding,) = c012_findings(digests((asks(USER), text_reply(*PIECES)), twice))
    assert finding.message == ("the app repeats the text of #1 2 times, each in a separate message")
    assert finding.confidence is Confidence.LIKELY
    assert not c012_findings(
        digests((asks(USER), text_reply(*PIECES)), (asks(USER), text_reply(*PIECES)), twice)
    )
    short = (asks(USER, text("Ok."), text("Ok."), GO_ON), text_reply("Rain", "."))
    assert not c012_findings(digests((asks(USER), text_reply("Ok."[:1], "k.")), short))
    right = (asks(USER, text(DELIVERED), GO_ON), text_reply("Rain", "."))
    assert not c012_findings(digests((asks(USER), text_reply(*PIECES)), right, twice))


def test_a_character_that_a_read_cut_and_the_app_lost_is_proven() -> None:
    data = 'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
    body = (data % "It is " + data % "13 °C" + data % " here").encode() + sse(FINISH_TEXT)
    at = body.index("°".encode()) + 1
    first = taped([(10, body[:at]), (20, body[at:])], body=asks(USER))
    second = asks(USER, text("It is 13 C here"), GO_ON)
    later = taped([(10, sse(FINISH_TEXT))], body=second, number=2)
    (finding,) = c012_findings([digest(first), replace(digest(later), t_ns=60_000_000_000)])
    assert finding.confidence is Confidence.PROVEN
    assert "without the characters '°'" in finding.message
    assert "a chunk boundary splits the bytes" in finding.excluded[0].because


def test_what_is_only_possible_is_likely_once_it_happens_to_another_text_too() -> None:
    one, two = ("Fine. ", "It is", " warm"), ("Sure. ", "Take", " a coat")
    first, second = text("It is warm"), text("Take a coat")
    tape = digests(
        (asks(USER), text_reply(*one)),
        (asks(USER, first, GO_ON), text_reply(*two)),
        (asks(USER, first, GO_ON, second, LAST), []),
    )
    found = c012_findings(tape)
    assert [each.confidence for each in found] == [Confidence.POSSIBLE, Confidence.LIKELY]
    assert [each.severity for each in found] == [Severity.WARNING, Severity.ERROR]
    assert "2 replies lost different words" in found[1].excluded[-1].because


def test_the_same_word_may_be_removed_again_and_again() -> None:
    one, two = ("Fine. ", "It is", " warm"), ("Fine. ", "Take", " a coat")
    first, second = text("It is warm"), text("Take a coat")
    tape = digests(
        (asks(USER), text_reply(*one)),
        (asks(USER, first, GO_ON), text_reply(*two)),
        (asks(USER, first, GO_ON, second, LAST), []),
    )
    assert [each.confidence for each in c012_findings(tape)] == [Confidence.POSSIBLE] * 2


def test_another_answer_to_the_same_request_that_fits_acquits() -> None:
    tape = digests(
        (asks(USER), text_reply(*PIECES)),
        (asks(USER), text_reply("lo, it is", " 13 degrees", " in Gent", ".")),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    assert not c012_findings(tape)


def test_of_several_answers_the_one_that_was_changed_is_likely_at_most() -> None:
    tape = digests(
        (asks(USER), text_reply("Something", " else", " it is.")),
        (asks(USER), text_reply(*PIECES)),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    (finding,) = c012_findings(tape)
    assert finding.confidence is Confidence.LIKELY
    assert "#2" in finding.message


def test_of_two_answers_that_both_may_be_meant_none_is() -> None:
    tape = digests(
        (asks(USER), text_reply(*PIECES)),
        (asks(USER), text_reply("Yel", *PIECES[1:])),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    assert not c012_findings(tape)


def test_a_text_that_was_repeated_rightly_may_be_shortened_later() -> None:
    tape = digests(
        (asks(USER), text_reply(*PIECES)),
        (asks(USER, text(DELIVERED), GO_ON), text_reply("Rain", ".")),
        (asks(USER, text(DELIVERED[3:]), GO_ON, text("Rain."), LAST), []),
    )
    assert not c012_findings(tape)


def test_a_reply_that_is_not_whole_is_not_held_against_anybody() -> None:
    first, second = repeated(DELIVERED[3:])
    for less in (replace(first, whole=False), replace(first, lossy=True)):
        assert not c012_findings([less, second])
    assert not c012_findings([replace(first, content_ends=()), second])
    assert not c012_findings([replace(first, end_ns=(second.t_ns or 0) + 1), second])


def test_a_text_beside_calls_may_be_left_out() -> None:
    tape = digests(
        (asks(USER), [choice({"content": "Let me look"}), *call(), FINISH]),
        (asks(USER, CALL_MESSAGE, GO_ON), []),
    )
    assert not c012_findings(tape)


def test_a_request_that_ends_with_the_answer_is_to_be_gone_on_with() -> None:
    assert not c012_findings(
        digests(
            (asks(USER), text_reply(*PIECES)), (asks(USER, text(DELIVERED[3:])), text_reply("!"))
        )
    )


def test_two_prompts_with_the_same_question_are_kept_apart() -> None:
    tape = digests(
        (asks(SYSTEM, USER), text_reply(*PIECES)),
        (asks(USER), text_reply("lo, it is another one")),
        (asks(USER, text(DELIVERED[3:]), GO_ON), []),
    )
    assert not c012_findings(tape)


HELLO = assistant(text="Hello")
MORE = user("And what about tomorrow?")


def c019_findings(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C019"]


def found(finding: Finding) -> tuple[Severity, Blame | None, Confidence]:
    return finding.severity, finding.blame, finding.confidence


def test_twice_in_the_first_request_may_be_the_application() -> None:
    (finding,) = c019_findings(digests((asks(USER, USER), TEXT_REPLY)))
    assert finding.message == "the user's message appears twice in a row: 'What is the weather?'"
    assert found(finding) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    assert finding.exchange == 1


def test_each_of_several_messages_twice_is_no_users_habit() -> None:
    tape = digests(
        (asks(USER, USER), TEXT_REPLY), (asks(USER, USER, HELLO, MORE, MORE), TEXT_REPLY)
    )
    first, second = c019_findings(tape)
    assert found(first) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    assert found(second) == (Severity.WARNING, Blame.APP, Confidence.LIKELY)
    assert second.message.startswith("the user's message appears twice in a row, as each of 2 does")
    assert second.excluded[0].because == "each of the user's last 2 messages appears twice in a row"


def test_messages_with_the_same_text_and_different_pictures_may_be_meant() -> None:
    def shown(text: str, picture: str) -> dict[str, object]:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, image]}

    pages = [shown(text, each) for text in ("A page of it.", "A page behind it.") for each in "AB"]
    (finding,) = c019_findings(digests((asks(*pages), TEXT_REPLY)))
    assert found(finding) == (Severity.WARNING, Blame.APP, Confidence.POSSIBLE)
    alike = [shown(text, "A") for text in ("A page of it.", "A page behind it.") for _ in "AB"]
    (finding,) = c019_findings(digests((asks(*alike), TEXT_REPLY)))
    assert finding.confidence is Confidence.LIKELY


def test_one_of_several_messages_twice_may_be_the_user() -> None:
    tape = digests((asks(USER), TEXT_REPLY), (asks(USER, HELLO, MORE, MORE), TEXT_REPLY))
    assert [found(each)[2] for each in c019_findings(tape)] == [Confidence.POSSIBLE]


def test_a_message_that_comes_again_right_after_its_answer_without_it_is_a_fact() -> None:
    (finding,) = c019_findings(digests((asks(USER), TEXT_REPLY), (asks(USER, USER), TEXT_REPLY)))
    assert found(finding) == (Severity.INFO, None, Confidence.PROVEN)


def test_a_message_that_comes_again_behind_its_answer_is_a_fact() -> None:
    (finding,) = c019_findings(
        digests((asks(USER), TEXT_REPLY), (asks(USER, HELLO, USER), TEXT_REPLY))
    )
    assert finding.message.startswith("the user's message appears again after its answer,")
    assert found(finding) == (Severity.INFO, None, Confidence.PROVEN)


def test_an_attempt_after_a_failure_is_none() -> None:
    first, second = digests((asks(USER), TEXT_REPLY), (asks(USER, USER), TEXT_REPLY))
    assert not c019_findings([replace(first, whole=False, failed=True), second])


def test_it_is_reported_once() -> None:
    tape = digests(
        (asks(USER, USER), TEXT_REPLY),
        (asks(USER, USER, HELLO, MORE), TEXT_REPLY),
        (asks(USER, USER, HELLO, MORE, HELLO, user("And then, I wonder?")), TEXT_REPLY),
    )
    assert [each.exchange for each in c019_findings(tape)] == [1]


@pytest.mark.parametrize("text", ["ok", "yes", "continue", "Go on", "continue, please", "  "])
def test_short_messages_may_come_twice(text: str) -> None:
    assert not c019_findings(digests((asks(user(text), user(text)), TEXT_REPLY)))
    assert not c019_findings(digests((asks(user(text), HELLO, user(text)), TEXT_REPLY)))


def test_a_note_that_a_library_writes_for_the_user_may_come_again_and_again() -> None:
    note = user("Error: the answer is no JSON. Send the whole answer again, please.")
    assert not c019_findings(digests((asks(USER, HELLO, note, HELLO, note), TEXT_REPLY)))
    assert not c019_findings(digests((asks(USER, note, note), TEXT_REPLY)))


def test_a_script_without_spaces_counts_by_its_length() -> None:
    text = "今天根特的天气怎么样呢会下雨吗还是出太阳"
    assert len(c019_findings(digests((asks(user(text), user(text)), TEXT_REPLY)))) == 1


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
    assert not c019_findings(digests((asks(*history), TEXT_REPLY)))


def question(place: int) -> dict[str, object]:
    return user(f"And what about town {place}?")


def answer(place: int) -> list[object]:
    return [choice({"content": f"In town {place} it is warm and dry."}), FINISH_TEXT]


def c020_findings(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C020"]


def growing(count: int = 4, answers: Sequence[list[object]] = ()) -> list[Digest]:
    """The user's messages, one more in each request."""
    told = answers or [answer(place) for place in range(count)]
    return digests(
        *((asks(*map(question, range(place + 1))), told[place]) for place in range(count))
    )


def test_the_second_answer_that_is_left_out_is_reported_and_then_no_other() -> None:
    (finding,) = c020_findings(growing(5))
    assert finding.message == (
        "the request has 3 user messages but no answer: the answer of #2 and the one before it"
        " were delivered completely"
    )
    assert (finding.exchange, finding.severity) == (3, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)
    assert finding.against
    assert finding.against.evidence == "In town 1 it is warm and dry."


def test_one_answer_may_have_been_interrupted() -> None:
    assert not c020_findings(growing(2))
    first, second, third = growing(3)
    assert not c020_findings([replace(first, whole=False), second, third])


def test_answers_that_are_kept() -> None:
    kept = assistant(text="In town 0 it is warm and dry.")
    tape = digests(
        (asks(question(0)), answer(0)),
        (asks(question(0), kept, question(1)), answer(1)),
        (asks(question(0), kept, question(1), question(2)), answer(2)),
        (asks(question(0), kept, question(1), question(2), question(3)), answer(3)),
    )
    assert not c020_findings(tape)


def test_answers_that_are_kept_in_another_place() -> None:
    quoted: list[dict[str, object]] = [
        user(f"You said: In town {place} it is warm and dry. And {place}?") for place in range(3)
    ]
    tape = digests(
        (asks(USER), answer(0)),
        (asks(USER, quoted[0]), answer(1)),
        (asks(USER, quoted[0], quoted[1]), answer(2)),
    )
    assert not c020_findings(tape)
    memory: list[dict[str, object]] = [system(f"So far: {place}") for place in range(3)]
    changing = digests(
        *(
            (asks(memory[place], *map(question, range(place + 1))), answer(place))
            for place in range(3)
        )
    )
    assert not c020_findings(changing)


def test_labels_json_and_calls_are_no_conversation() -> None:
    label: list[object] = [choice({"content": "weather"}), FINISH_TEXT]
    parsed: list[object] = [choice({"content": '{"label": "weather", "sure": 0.9}'}), FINISH_TEXT]
    assert not c020_findings(growing(4, [label] * 4))
    assert not c020_findings(growing(4, [parsed] * 4))
    assert not c020_findings(growing(4, [CALL_REPLY] * 4))


def test_what_brings_more_than_the_users_words_is_another_matter() -> None:
    tape = digests(
        (asks(question(0)), answer(0)),
        (asks(question(0), result("c1")), answer(1)),
        (asks(question(0), result("c1"), question(2)), answer(2)),
        (asks(question(0), result("c1"), question(2), question(3)), answer(3)),
    )
    assert not c020_findings(tape)


TOOLS = [{"type": "function", "function": {"name": "get"}}]
ROUND = [CALL_MESSAGE, result("c1")]
FIRST = (asks(USER, tools=TOOLS), CALL_REPLY)


def c011_findings(tape: list[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "C011"]


def test_calls_in_the_history_and_no_tools_any_more() -> None:
    (finding,) = c011_findings(digests(FIRST, (asks(USER, *ROUND), TEXT_REPLY)))
    assert finding.message == (
        "the history has tool calls or results, but the request offers no tools (#1 did)"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.INFO)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_it_is_an_error_if_it_was_refused() -> None:
    first, second = digests(FIRST, (asks(USER, *ROUND), []))
    (finding,) = c011_findings([first, replace(second, status=400, error="toolConfig is missing")])
    assert finding.message.endswith("(#1 did); the provider rejected it (400)")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert finding.evidence == "toolConfig is missing"


def test_it_is_reported_once_until_tools_are_offered_again() -> None:
    said = [*ROUND, assistant(text="Hello"), MORE]
    tape = digests(
        FIRST,
        (asks(USER, *ROUND), TEXT_REPLY),
        (asks(USER, *said), TEXT_REPLY),
        (asks(USER, *said, assistant(text="Hello"), MORE, tools=TOOLS), TEXT_REPLY),
        (asks(USER, *said, *[assistant(text="Hello"), MORE] * 2), []),
    )
    assert [(finding.exchange, finding.message[-9:]) for finding in c011_findings(tape)] == [
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
    assert not c011_findings(digests(FIRST, (second, [])))


def test_tools_that_are_elsewhere_are_offered() -> None:
    first, second = digests(FIRST, (asks(USER, *ROUND), []))
    assert not c011_findings([first, replace(second, tools_elsewhere=True)])
    assert not c011_findings([first, replace(second, previous="resp_1")])


def test_a_refusal_for_another_reason_is_not_about_the_tools() -> None:
    first, second = digests(FIRST, (asks(USER, *ROUND), []))
    refused = replace(second, status=400, failed=True, error="maximum context length exceeded")
    (finding,) = c011_findings([first, refused])
    assert finding.severity is Severity.INFO
    assert "refused" not in finding.message


OTHER = system("Be brief.")
STEP = (USER, CALL_MESSAGE, result("c1"))


def c021_findings(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C021"]


def test_a_turn_without_the_prompt_is_possible() -> None:
    (finding,) = c021_findings(
        digests((asks(SYSTEM, USER), TEXT_REPLY), (asks(USER, HELLO, MORE), TEXT_REPLY))
    )
    assert finding.message == ("the request continues #1, but without its system prompt")
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_it_is_likely_where_the_conversation_goes_on_from_there() -> None:
    rest = (USER, HELLO, MORE, HELLO, LAST)
    first, second = (asks(SYSTEM, USER), TEXT_REPLY), (asks(USER, HELLO, MORE), TEXT_REPLY)
    (back,) = c021_findings(digests(first, second, (asks(SYSTEM, *rest), TEXT_REPLY)))
    assert back.message.endswith("prompt, and #3 has it again")
    assert back.confidence is Confidence.LIKELY
    assert [each.because for each in back.excluded] == [
        "model and tools are those of #1, and no call hands the conversation over",
        "#3 continues from its answer",
    ]
    (gone,) = c021_findings(digests(first, second, (asks(*rest), TEXT_REPLY)))
    assert gone.message.endswith("but without its system prompt")
    assert gone.confidence is Confidence.LIKELY
    (other,) = c021_findings(digests(first, second, (asks(OTHER, *rest), TEXT_REPLY)))
    assert other.message.endswith("but without its system prompt")


def test_it_is_likely_where_the_same_agent_goes_on_from_its_results() -> None:
    tape = digests(
        (asks(SYSTEM, USER, tools=TOOLS), CALL_REPLY), (asks(*STEP, tools=TOOLS), TEXT_REPLY)
    )
    (finding,) = c021_findings(tape)
    assert finding.confidence is Confidence.LIKELY


def test_another_agent_may_have_no_instructions() -> None:
    first = (asks(SYSTEM, USER, tools=TOOLS), CALL_REPLY)
    (finding,) = c021_findings(digests(first, (asks(*STEP), TEXT_REPLY)))
    assert finding.confidence is Confidence.POSSIBLE
    (finding,) = c021_findings(
        digests(first, (asks(*STEP, tools=TOOLS, model="other"), TEXT_REPLY))
    )
    assert finding.confidence is Confidence.POSSIBLE
    over = [*call("transfer_to_b"), FINISH]
    step = (USER, assistant(("c1", "transfer_to_b", '{"a":1}')), result("c1"))
    (finding,) = c021_findings(
        digests((asks(SYSTEM, USER, tools=TOOLS), over), (asks(*step, tools=TOOLS), []))
    )
    assert finding.confidence is Confidence.POSSIBLE


def test_another_job_on_the_same_history_and_prompts_that_are_there() -> None:
    first = (asks(SYSTEM, USER), TEXT_REPLY)
    assert not c021_findings(digests(first, (asks(USER), TEXT_REPLY)))
    assert not c021_findings(digests(first, (asks(USER, MORE), TEXT_REPLY)))
    assert not c021_findings(digests(first, (asks(OTHER, USER, HELLO, MORE), TEXT_REPLY)))
    assert not c021_findings(
        digests((asks(USER), TEXT_REPLY), (asks(USER, HELLO, MORE), TEXT_REPLY))
    )
    assert not c021_findings(
        digests(first, (asks(USER), TEXT_REPLY), (asks(USER, HELLO, MORE), TEXT_REPLY))
    )


def test_it_is_possible_only_where_the_conversation_goes_on_beside_it_with_its_prompt() -> None:
    stray = (USER, HELLO, MORE)
    tape = [
        (asks(SYSTEM, USER), TEXT_REPLY),
        (asks(*stray), TEXT_REPLY),
        (asks(*stray, HELLO, LAST), TEXT_REPLY),
    ]
    (finding,) = c021_findings(digests(*tape, (asks(SYSTEM, USER, HELLO, LAST), TEXT_REPLY)))
    assert (finding.exchange, finding.confidence) == (2, Confidence.POSSIBLE)
    assert not finding.excluded
    (finding,) = c021_findings(digests(*tape, (asks(OTHER, USER, HELLO, LAST), TEXT_REPLY)))
    assert finding.confidence is Confidence.LIKELY
    (finding,) = c021_findings(digests(*tape, (asks(SYSTEM, *stray), TEXT_REPLY)))
    assert finding.confidence is Confidence.LIKELY


def test_a_stored_response_gives_no_instructions() -> None:
    first, second = digests((asks(SYSTEM, USER), TEXT_REPLY), (asks(MORE), TEXT_REPLY))
    first = replace(first, reply_id="r1", instructions=True)
    second = replace(second, previous="r1")
    (finding,) = c021_findings([first, second])
    assert "the provider does not carry instructions over" in finding.message
    assert finding.confidence is Confidence.POSSIBLE
    assert not c021_findings([first, replace(second, previous="r2")])
    assert not c021_findings(
        [replace(first, instructions=False), second]
    )  # a message, which is kept
    assert not c021_findings([replace(first, end_ns=(second.t_ns or 0) + 1), second])


LONG = "Hello, what a fine day."
SPOKE = [choice({"content": LONG}), FINISH_TEXT]
SHORTENED = (USER, assistant(text="Hi"), MORE, assistant(text=LONG), LAST)


def test_a_shortened_history_may_have_lost_the_prompt_with_its_first_messages() -> None:
    first = (asks(SYSTEM, *SHORTENED[:3]), SPOKE)
    (finding,) = c021_findings(digests(first, (asks(*SHORTENED[2:]), TEXT_REPLY)))
    assert finding.message == (
        "the request continues #1 with a shortened history, and without its system prompt"
    )
    assert finding.confidence is Confidence.POSSIBLE
    assert not c021_findings(digests(first, (asks(SYSTEM, *SHORTENED[2:]), TEXT_REPLY)))
    assert not c021_findings(digests(first, (asks(*SHORTENED[2:], tools=TOOLS), TEXT_REPLY)))
    assert not c021_findings(
        digests((asks(*SHORTENED[:3]), SPOKE), (asks(*SHORTENED[2:]), TEXT_REPLY))
    )
    assert not c021_findings(digests(first, (asks(LAST, assistant(text=LONG), MORE), TEXT_REPLY)))
    assert not c021_findings(digests(first, (asks(LAST, MORE, assistant(text=LONG)), TEXT_REPLY)))
    before, after = digests(first, (asks(*SHORTENED[2:]), TEXT_REPLY))
    assert not c021_findings([before, replace(after, t_ns=1)])
    assert not c021_findings([before, replace(after, previous="resp_1")])


def tools(*names: str) -> list[dict[str, object]]:
    return [{"type": "function", "function": {"name": name}} for name in names]


def c022_findings(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C022"]


def pair(
    *left: str, first: tuple[str, ...] = ("get", "put"), said: Sequence[object] = TEXT_REPLY
) -> list[Digest]:
    return digests(
        (asks(USER, tools=tools(*first)), CALL_REPLY),
        (asks(*STEP, tools=tools(*left)), said),
    )


def test_the_called_tool_is_gone_and_others_are_there() -> None:
    (finding,) = c022_findings(pair("put"))
    assert finding.message == (
        "the request has a result of get, which #1 offered, but offers only put"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_where_all_tools_are_others_it_is_a_remark() -> None:
    (finding,) = c022_findings(pair("set"))
    assert finding.severity is Severity.INFO


def test_a_model_that_calls_it_all_the_same() -> None:
    (finding,) = c022_findings(pair("a", "b", "c", "d", said=CALL_REPLY))
    assert finding.message.endswith(
        "offers only a, b, c and 1 more; the model calls it again anyway"
    )
    assert finding.severity is Severity.WARNING


def test_a_provider_that_refuses_it() -> None:
    first, second = pair("put")
    refused = replace(second, status=400, error="tool 'get' is not defined")
    (finding,) = c022_findings([first, refused])
    assert finding.message.endswith("put; the provider rejected it (400)")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_tools_that_are_there_or_never_were() -> None:
    assert not c022_findings(pair("get", "put"))
    assert not c022_findings(pair())
    assert not c022_findings(pair("put", first=("put",)))
    first, second = pair("put")
    assert not c022_findings([first, replace(second, tools_elsewhere=True)])
    assert not c022_findings(digests((asks(*STEP, tools=tools("put")), TEXT_REPLY)))


def test_a_call_without_its_result_may_be_over() -> None:
    first = (asks(USER, tools=tools("get", "put")), CALL_REPLY)
    more: dict[str, object] = user("Stop that.")
    assert not c022_findings(
        digests(first, (asks(*STEP[:2], more, tools=tools("put")), TEXT_REPLY))
    )


def test_the_same_id_may_be_another_call() -> None:
    one = (asks(USER, tools=tools("get", "put")), CALL_REPLY)
    other = (asks(USER, tools=tools("put", "set")), [*call("put"), FINISH])
    step = (USER, assistant(("c1", "put", '{"a":1}')), result("c1"))
    later = (asks(*step, tools=tools("put")), TEXT_REPLY)
    assert not c022_findings(digests(one, later))
    assert not c022_findings(digests(other, one, later))


def test_another_agent_and_a_search_for_tools() -> None:
    first = (asks(SYSTEM, USER, tools=tools("get")), CALL_REPLY)
    assert not c022_findings(digests(first, (asks(*STEP, tools=tools("put")), TEXT_REPLY)))
    assert not c022_findings(pair("tool_search", "put"))
    over = (asks(USER, tools=tools("transfer", "put")), [*call("transfer"), FINISH])
    step = (USER, assistant(("c1", "transfer", '{"a":1}')), result("c1"))
    assert not c022_findings(digests(over, (asks(*step, tools=tools("put")), TEXT_REPLY)))
