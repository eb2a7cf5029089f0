import gzip
import json
from dataclasses import replace

import pytest

from deltatape.diagnose.digest import (
    HistoryDigest,
    argument_spans,
    digest,
    digest_analysis,
    digest_history,
)
from deltatape.diagnose.rebuild import analyse
from deltatape.model.digest import HistoryMessage
from deltatape.model.exchange import Exchange
from deltatape.model.request_summary import Message, RepeatedCall
from deltatape.model.rule_settings import Settings
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, choice, entry, sse
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


def test_a_digest_says_what_was_offered_and_how_it_was_answered() -> None:
    tools = [{"type": "function", "function": {"name": "get"}}]
    asked = asks(USER, tools=tools, tool_choice="required")
    made = digest(conversation((asked, [{"id": "chat-1", **TEXT}, FINISH_TEXT]))[0])
    assert (made.tools, made.tools_elsewhere, made.tool_choice) == (("get",), False, "required")
    assert (made.status, made.error, made.failed) == (200, None, False)
    assert (made.reply_id, made.previous) == ("chat-1", None)


def test_an_answer_that_is_none_has_failed() -> None:
    (whole,) = conversation((asks(USER), [TEXT, FINISH_TEXT]))
    assert not digest(whole).failed
    assert digest(replace(whole, response=None, reads=())).failed
    assert digest(pasted({"error": {"message": "overloaded"}}, status=503)).failed
    assert digest(pasted({"error": {"message": "overloaded"}})).failed
    assert digest(pasted(TEXT, done=False)).failed
    assert not digest(replace(whole, reads=whole.reads[:1], end=None, open=True)).failed


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ((), 0),
        (((b"Retry-After", b"20"),), 20),
        (((b"Retry-After", b"0.5"),), 0.5),
        (((b"Retry-After", b"soon"),), 0),
        (((b"retry-after-ms", b"450"), (b"Retry-After", b"1")), 0.45),
        (((b"Retry-After", b"Sun, 22 Nov 2026 05:30:09 GMT"),), 8),
        (((b"Retry-After", b"Sun, 22 Nov 2026 05:29:59 GMT"),), 0),
    ],
)
def test_how_long_to_wait_is_what_the_provider_says(
    headers: tuple[tuple[bytes, bytes], ...], wait_s: float
) -> None:
    exchange = timed((1.1, TEXT), headers=headers)
    assert exchange.response is not None
    began = replace(
        exchange,
        recorded_at="2026-11-22T05:30:00Z",
        response=replace(exchange.response, t_ns=1_000_000_000),
    )
    assert digest(began).wait_s == wait_s


def test_a_date_says_nothing_where_the_time_of_the_recording_is_unknown() -> None:
    exchange = timed((1.1, TEXT), headers=((b"Retry-After", b"Sun, 22 Nov 2026 05:30:09 GMT"),))
    assert digest(replace(exchange, recorded_at="")).wait_s == 0


def test_without_a_response_nothing_says_how_long_to_wait() -> None:
    assert digest(replace(pasted(TEXT), response=None)).wait_s == 0


def test_small_talk_is_the_users_last_word_and_all_of_it() -> None:
    bye: dict[str, object] = {"role": "user", "content": "Thanks, bye!"}
    said = [digests((asks(*each), []))[0].small_talk for each in ([USER, bye], [bye, USER], [])]
    assert said == ["thanks bye", "", ""]
    analysis = analyse(pasted(TEXT, request=asks({"role": "user", "content": "Ahoy"})))
    assert digest_analysis(analysis).small_talk == ""
    assert digest_analysis(analysis, Settings(small_talk=("ahoy",))).small_talk == "ahoy"


def test_errors_of_parsers_are_kept_of_results_and_of_messages_that_are_nothing_else() -> None:
    text = "Unexpected end of JSON input"
    spoken: dict[str, object] = {"role": "user", "content": f"I get {text}"}
    alone: dict[str, object] = {"role": "user", "content": text}
    (made,) = digests(
        (asks(result("c1", f"It says: {text}"), spoken, alone, assistant(text=text)), [])
    )
    assert [digest.failure for digest in made.history] == [text, "", text, ""]


def test_a_call_has_its_place_in_the_response() -> None:
    made = digest(conversation((asks(USER), [TEXT, *call(), FINISH]))[0])
    (said,) = made.calls
    chunks = [sse(each, done=False) for each in (TEXT, *call(), FINISH)]
    assert said.span == (len(chunks[0]), sum(map(len, chunks[:4])))
    assert said.line == 105
    (bare,) = digest(pasted(calls(entry(0, "c1", name="get")), FINISH)).calls
    assert bare.span is not None


def test_calls_in_text_are_whole_if_nothing_but_their_end_follows_on_their_json() -> None:
    def statuses(text: str) -> list[str]:
        made = digest(pasted(choice({"content": text}), FINISH_TEXT))
        return [call.status for call in made.text_calls]

    body = '{"tool_name": "f", "arguments": {}}'
    assert statuses(f"<tool>{body}</tool>") == ["complete"]
    assert statuses(f"<tool>{body}></tool>") == ["extra_data"]
    assert statuses("<function=f><parameter=a>1</parameter></function>") == ["complete"]
    deep = '<tool>{"tool_name": "f", "arguments": ' + '{"a":' * 5000 + "1" + "}" * 5001 + "</tool>"
    assert len(statuses(deep)) == 1


def made(arguments: str, call_id: str | None = "c1") -> RepeatedCall:
    return RepeatedCall(id=call_id, name="get", arguments=arguments)


def found(body: str, *calls: RepeatedCall) -> list[str]:
    spans = argument_spans(body.encode(), calls)
    return [body.encode()[span.start : span.end].decode() for _, span in spans]


@pytest.mark.parametrize(
    ("body", "arguments", "there"),
    [
        ('{"id":"c1","function":{"arguments":"{\\"a\\":1}"}}', '{"a":1}', '"{\\"a\\":1}"'),
        ('{"id":"c1","function":{"arguments" : ""}}', "", '""'),
        ('{"id":"c1","input":{"a": "é"}}', '{"a": "é"}', '{"a": "é"}'),
        ('{"id":"c1","arguments":"é"}', "é", '"é"'),
        ('{"id":"c1","arguments":"\\u00e9"}', "é", '"\\u00e9"'),
    ],
)
def test_arguments_are_found_behind_the_id(body: str, arguments: str, there: str) -> None:
    assert found(body, made(arguments)) == [there]


def test_what_does_not_agree_is_not_a_place() -> None:
    assert not found('{"id":"c1","input":{"b":1}}', made('{"a":1}'))
    assert not found('{"id":"c2","input":{"a":1}}', made('{"a":1}'))
    assert not found('{"id":"c1","name":"get"}', made(""))
    assert not found('{"id":"c1"}' + " " * 5000 + '{"input":{}}', made("{}"))


def test_calls_without_an_id_are_looked_for_by_what_they_say() -> None:
    body = '[{"args":{"a":1}},{"args":{"a":2}},{"args":{}}]'
    assert found(body, made('{"a":1}', None), made("{}", None), made('{"a":3}', None)) == [
        '{"a":1}'
    ]


def test_a_digest_knows_where_the_last_calls_stand() -> None:
    old, new = assistant(("c1", "get", "{}")), assistant(("c2", "get", '{"b":2}'))
    request = asks(USER, old, result("c1"), new, assistant(("c3", "put", "[]")), result("c2"))
    (exchange,) = conversation((request, []))
    body = exchange.request.body
    told = digest(exchange).asked_at
    assert [call.id for call, _ in told] == ["c2", "c3"]
    assert [json.loads(body[span.start : span.end]) for _, span in told] == ['{"b":2}', "[]"]


def test_a_compressed_request_is_digested_like_a_plain_one() -> None:
    (plain,) = conversation((asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1")), []))
    request = replace(
        plain.request,
        headers=((b"Content-Encoding", b"gzip"),),
        body=gzip.compress(plain.request.body),
    )
    assert digest(plain).asked_at
    assert digest(replace(plain, request=request)) == digest(plain)


def test_lone_surrogates_are_looked_for_as_they_are_written() -> None:
    assert found('{"id":"c1","arguments":"\\ud800"}', made("\ud800")) == ['"\\ud800"']


def test_it_can_be_read_off_a_tape() -> None:
    tape = open_tape("recordings/rules/C002/fires.tape")
    last = list(tape)[-1]
    told = [last.request.body[span.start : span.end] for _, span in digest(last).asked_at]
    assert told == [b'"{\\"city\\":\\"Gent\\"}"', b'""']


@pytest.fixture(autouse=True)
def empty_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.diagnose.digest._memory", ())


class MessageCounter:
    """Counts the messages that are looked at."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, message: Message) -> HistoryMessage:
        self.count += 1
        return HistoryMessage(role=message.role, text=message.text, calls=(), call_id=None)


def messages(count: int, name: str = "m") -> list[Message]:
    return [
        Message(role="user", text=f"{name}{at}", calls=(), call_id=None, digest=f"{name}{at}")
        for at in range(count)
    ]


def link(so_far: str, message: Message) -> str:
    return f"{so_far}-{message.digest}"


def digested_by(
    counter: MessageCounter, history: list[Message], start: str = ""
) -> tuple[HistoryDigest, int]:
    """What is kept, and how many messages were looked at for it."""
    before = counter.count
    made = digest_history(history, counter, link, start)
    assert len(made.messages) == len(history)
    assert [each.text for each in made.messages] == [each.text for each in history]
    so_far = [start]
    for message in history:
        so_far.append(link(so_far[-1], message))
    assert made.prefixes == tuple(so_far)
    return made, counter.count - before


def test_messages_that_an_earlier_history_had_are_not_looked_at_again() -> None:
    counter, history = MessageCounter(), messages(30)
    first, count = digested_by(counter, history[:20])
    second, more = digested_by(counter, history)
    assert (count, more) == (20, 10)
    assert all(one is other for one, other in zip(first.messages, second.messages, strict=False))


def test_equal_messages_that_are_other_objects_are_looked_at() -> None:
    counter = MessageCounter()
    assert [digested_by(counter, messages(20))[1] for _ in range(2)] == [20, 20]


def test_histories_share_as_much_as_they_have_in_common() -> None:
    counter, history = MessageCounter(), messages(20)
    digested_by(counter, history)
    assert digested_by(counter, [*history[:15], *messages(5, "n")])[1] == 5
    assert digested_by(counter, history[5:])[1] == 15


def test_several_conversations_are_remembered_and_not_too_many() -> None:
    counter = MessageCounter()
    every = [messages(20, name) for name in "abcdefgh"]
    for history in every:
        digested_by(counter, history)
    assert [digested_by(counter, history)[1] for history in every] == [0] * 8
    digested_by(counter, messages(20, "i"))
    assert digested_by(counter, every[0])[1] == 20


def test_short_histories_and_other_functions_share_nothing() -> None:
    counter, history = MessageCounter(), messages(7)
    assert [digested_by(counter, history)[1] for _ in range(2)] == [7, 7]
    long = messages(20)
    digested_by(counter, long)
    assert digested_by(MessageCounter(), long)[1] == 20


def test_where_a_history_starts_is_told_apart() -> None:
    counter, history = MessageCounter(), messages(20)
    digested_by(counter, history)
    digested_by(counter, history, start="stored")
