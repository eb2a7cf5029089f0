from deltatape.diagnose.digest import digest, digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from helpers.chat import FINISH, choice
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    digests,
    pasted,
    result,
    timed,
)

SYSTEM: dict[str, object] = {"role": "system", "content": "Be brief."}


def test_a_digest_says_what_the_reply_holds() -> None:
    made = digest(conversation((asks(USER), [TEXT, *call(), FINISH]))[0])
    (said,) = made.calls
    assert (said.id, said.name, said.arguments) == ("c1", "get", '{"a":1}')
    assert said.fragments == ('{"a', '":1}')
    assert made.summary == "openai-chat; 5 characters of text; 1 call: get; finish tool_calls"
    assert (made.tape, made.exchange, made.line, made.t_ns) == ("x.tape", 1, 100, 0)
    assert made.end_ns is not None
    assert made.whole


def test_an_analysis_is_digested_without_being_made_again() -> None:
    exchange = pasted(TEXT, FINISH_TEXT)
    assert digest_analysis(analyse(exchange)) == digest(exchange)


def test_a_history_that_goes_on_has_the_same_prefixes() -> None:
    first, second = digests((asks(USER), []), (asks(USER, assistant(text="Hi"), USER), []))
    assert first.prefixes == second.prefixes[:2]
    assert len(set(second.prefixes)) == 4


def test_system_messages_stand_apart() -> None:
    plain, system, other = digests(
        (asks(USER), []),
        (asks(SYSTEM, USER), []),
        (asks({**SYSTEM, "content": "Be long."}, USER), []),
    )
    assert plain.prefixes == system.prefixes == other.prefixes
    assert len({plain.system, system.system, other.system}) == 3
    assert len(system.history) == 1


def test_texts_are_hashed_without_their_margins_and_blank_is_none() -> None:
    spaced, tight, blank = digests(
        (asks(assistant(text=" Hi\n"), USER), [TEXT]),
        (asks(assistant(text="Hi"), USER), [choice({"content": "Hello "})]),
        (asks(assistant(text="  "), USER), []),
    )
    assert spaced.history[0].text == tight.history[0].text != ""
    assert spaced.text == tight.text != ""
    assert blank.history[0].text == blank.text == ""


def test_the_results_are_those_after_the_last_assistant_message() -> None:
    made = digests(
        (asks(USER, assistant(), result("c0"), assistant(), result("c1"), result("c2"), USER), [])
    )[0]
    assert made.results == ("c1", "c2")
    assert digests((asks(USER), []))[0].results == ()


def test_only_one_regular_answer_is_whole() -> None:
    two = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}
    assert digest(pasted(TEXT, FINISH_TEXT)).whole
    assert not digest(pasted(TEXT, done=False)).whole
    assert not digest(pasted(TEXT, FINISH_TEXT, two)).whole
    assert not digest(pasted(TEXT, choice({}, "length"))).whole
    broken = digest(pasted(TEXT, {"error": {"message": "overloaded"}}, FINISH_TEXT))
    assert not broken.whole
    assert "error: overloaded" in broken.summary


def test_a_tool_named_by_the_request_is_forced() -> None:
    named = {"type": "function", "function": {"name": "get"}}
    assert digest(pasted(TEXT, request=asks(USER, tool_choice=named))).forced
    assert not digest(pasted(TEXT, request=asks(USER, tool_choice="required"))).forced


def test_times_are_unknown_where_none_were_recorded() -> None:
    made = digest(pasted(TEXT))
    assert (made.t_ns, made.end_ns, made.line) == (None, None, None)
    assert digest(timed((0.1, TEXT))).t_ns == 0


def test_anything_has_a_digest() -> None:
    made = digest(Exchange.from_body(b"\xff", content_type="image/png", url="http://x/y"))
    assert (made.history, made.calls, made.text) == ((), (), "")
    assert made.summary == "unknown; finish unknown"


def test_a_model_and_a_nameless_call_are_part_of_the_summary() -> None:
    nameless = {
        "model": "m-1",
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1"}]}}],
    }
    assert digest(pasted(nameless)).summary == "openai-chat; m-1; 1 call: ?; finish unknown"
