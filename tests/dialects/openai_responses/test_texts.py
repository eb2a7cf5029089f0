import pytest

from helpers.responses import added, codes, created, done, ended, message, part, reply_to, say

OPENED = (created(), added(message()))


def texts(*events: object) -> tuple[str, str, str]:
    reply = reply_to(*events)
    choice = reply.choices[0]
    return choice.text, choice.reasoning, choice.refusal


def test_pieces_make_the_text_and_the_wholes_confirm_it() -> None:
    whole = message("Hello", status="completed")
    events = [
        *OPENED,
        say("Hel"),
        say("lo"),
        part("output_text.done", 0, "msg_1", content_index=0, text="Hello"),
        part("content_part.done", 0, "msg_1", part={"type": "output_text", "text": "Hello"}),
        done(whole),
        ended(whole),
    ]
    assert texts(*events) == ("Hello", "", "")
    assert codes(*events) == []
    assert [piece.text for piece in reply_to(*events).choices[0].pieces] == ["Hel", "lo"]


@pytest.mark.parametrize(
    "rest",
    [
        (part("output_text.done", 0, "msg_1", text="Hello"),),
        (part("content_part.done", 0, "msg_1", part={"type": "output_text", "text": "Hello"}),),
        (done(message("Hello")),),
        (ended(message("Hello")),),
        (done(message("Hello")), ended(message("Hello"))),
    ],
)
def test_a_text_that_did_not_stream_is_taken_from_what_tells_it(rest: tuple[object, ...]) -> None:
    assert texts(*OPENED, *rest) == ("Hello", "", "")


def test_the_item_that_is_done_counts_more_than_the_final_response_and_the_pieces() -> None:
    events = (*OPENED, say("Help"), done(message("Hello")), ended(message("Hell")))
    assert texts(*events) == ("Hello", "", "")
    assert codes(*events) == ["T015"]


def test_the_rest_of_a_text_is_added_to_its_pieces() -> None:
    events = (*OPENED, say("Hel"), done(message("Hello")), ended(message("Hello")))
    pieces = reply_to(*events).choices[0].pieces
    assert [piece.text for piece in pieces] == ["Hel", "lo"]


def test_an_empty_whole_replaces_nothing() -> None:
    events = (*OPENED, say("Hello"), done(message()), ended(message()))
    assert texts(*events) == ("Hello", "", "")
    assert codes(*events) == ["T015"]


def test_parts_are_compared_together() -> None:
    events = (*OPENED, say("Hel", content=1), say("lo", content=3), done(message("Hello")))
    assert texts(*events, ended(message("Hello"))) == ("Hello", "", "")
    assert codes(*events, ended(message("Hello"))) == []


def test_a_cut_message_may_be_longer_in_its_pieces() -> None:
    cut = message("Hel", status="incomplete")
    events = (*OPENED, say("Hello"), done(cut), ended(cut, status="incomplete"))
    assert "T015" not in codes(*events)


def test_surrogates_cut_apart_are_one_character() -> None:
    whole = message("\U0001f600")
    events = (*OPENED, say("\ud83d"), say("\ude00"), done(whole), ended(whole))
    assert texts(*events) == ("\U0001f600", "", "")
    assert codes(*events) == []


def test_refusals_and_both_kinds_of_reasoning_have_their_channel() -> None:
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Sum. "}, {"type": "new"}, 3],
        "content": [{"type": "reasoning_text", "text": "Think."}],
    }
    refusal = {**message(), "content": [{"type": "refusal", "refusal": "No."}]}
    events = [
        created(),
        added({"id": "rs_1", "type": "reasoning", "summary": []}),
        part("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="Sum. "),
        part("reasoning_summary_text.done", 0, "rs_1", summary_index=0, text="Sum. "),
        part("reasoning_summary_part.done", 0, "rs_1", part={"type": "summary_text", "text": ""}),
        part("reasoning_text.delta", 0, "rs_1", content_index=0, delta="Think."),
        part("content_part.done", 0, "rs_1", part={"type": "reasoning_text", "text": "Think."}),
        done(thought),
        added(message(), 1),
        part("refusal.delta", 1, "msg_1", delta="No."),
        part("refusal.done", 1, "msg_1", refusal="No."),
        part("content_part.done", 1, "msg_1", part={"type": "refusal", "refusal": "No."}),
        part("content_part.done", 1, "msg_1", part={"type": "new"}),
        part("content_part.done", 1, "msg_1"),
        done(refusal, 1),
        ended(thought, refusal),
    ]
    assert texts(*events) == ("", "Sum. Think.", "No.")
    assert [code for code in codes(*events) if code != "D002"] == []


def test_several_messages_and_parts_follow_each_other() -> None:
    one, two = message("a", "b"), message("c", item_id="msg_2")
    assert texts(created(), ended(one, two)) == ("abc", "", "")
