import pytest

from deltatape.dialects._chat.reducer import (
    DELTA,
    MESSAGE,
    JsonSources,
    is_chat,
    is_completion,
    is_mistral,
)
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.stream import Event
from helpers.chat import FINISH, calls, choice, codes, entry, reply_to
from helpers.events import event_of

STOP = choice({}, "stop")
TEXT = choice({"content": "Hi"})
ERROR = {"error": {"message": "overloaded", "code": 502}}


@pytest.mark.parametrize(
    ("chunks", "done", "terminated"),
    [
        ([TEXT, STOP], True, True),
        ([TEXT, STOP], False, True),
        ([TEXT], True, True),
        ([TEXT], False, False),
        ([], True, True),
        ([], False, False),
        ([TEXT, ERROR], True, False),
        ([TEXT, STOP, ERROR], True, True),
        ([TEXT, choice({}, "error"), ERROR], True, False),
        ([TEXT, "[DONE]", ERROR], True, True),
        ([TEXT, ERROR, "[DONE]"], True, False),
        ([TEXT, STOP, choice({"content": "x"}, index=1)], False, False),
        ([TEXT, STOP, choice({"content": "x"}, index=1)], True, True),
    ],
)
def test_a_finish_reason_or_the_sentinel_terminates(
    chunks: list[object],
    done: bool,  # noqa: FBT001
    terminated: bool,  # noqa: FBT001
) -> None:
    reply = reply_to(*chunks, done=done)
    assert (reply.terminated, reply.terminator) == (terminated, "finish_reason and [DONE]")


def test_usage_and_model_are_taken_wherever_they_come() -> None:
    reply = reply_to(
        {"model": "", "choices": [], "prompt_filter_results": []},
        {"model": "m-1", **TEXT},
        STOP,
        {"model": "m-2", "choices": [], "usage": {"total_tokens": 1}},
        {"usage": {"total_tokens": 2}},
        {"choices": [], "usage": None},
    )
    assert (reply.model, reply.usage, codes(reply)) == ("m-1", {"total_tokens": 2}, [])


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([ERROR], "overloaded"),
        ([{"choices": [], "error": "late"}], "late"),
        ([{"choices": [{"index": 0, "delta": {}, "error": {"message": "inner"}}]}], "inner"),
        ([choice({}, "error")], "finish_reason is 'error'"),
        ([{**choice({}, "error"), **ERROR}], "overloaded"),
        ([ERROR, {"error": "second"}], "overloaded"),
    ],
)
def test_an_error_frame_is_told_with_its_message(chunks: list[object], message: str) -> None:
    reply = reply_to(TEXT, *chunks)
    assert (reply.error, reply.text) == (message, "Hi")
    assert set(codes(reply)) == {"S005"}


@pytest.mark.parametrize("data", ["{", "", '{"a":1}{"b":2}', ": OPENROUTER PROCESSING", "{NaN}"])
def test_data_that_is_no_json_is_told_and_passed_over(data: str) -> None:
    reply = reply_to(TEXT, data, STOP)
    assert (reply.text, codes(reply)) == ("Hi", ["W004"])
    (seen,) = reply.observations
    assert seen.detail.startswith("the data is not JSON: ")
    assert "(offset " in seen.detail
    assert (seen.evidence, seen.event) == (data, 1)


@pytest.mark.parametrize(
    "chunk", ["[]", "5", {"choices": {}}, {"choices": [None]}, {"type": "ping"}, {"choices": "x"}]
)
def test_unexpected_shapes_are_told_once(chunk: object) -> None:
    reply = reply_to(TEXT, chunk, chunk, STOP)
    assert (reply.text, codes(reply)) == ("Hi", ["S006"])


def test_reading_goes_on_after_a_finish_reason() -> None:
    reply = reply_to(FINISH, TEXT)
    assert (reply.text, reply.finish_reason_raw, codes(reply)) == ("Hi", "tool_calls", [])


def test_deltas_after_the_sentinel_are_told_and_no_part_of_the_answer() -> None:
    reply = reply_to(TEXT, STOP, " [DONE] ", TEXT, TEXT, {"choices": [], "usage": {"n": 1}})
    assert (reply.text, reply.usage, codes(reply)) == ("Hi", {"n": 1}, ["S006"])


@pytest.mark.parametrize(
    ("index", "expected"), [(None, [0, 1]), ("1", [1]), (7, [7]), (-1, [0, 1])]
)
def test_a_choice_without_index_has_its_place(index: object, expected: list[int]) -> None:
    one: dict[str, object] = {"index": index, "delta": {"content": "x"}}
    reply = reply_to({"choices": [one, one]})
    assert [found.index for found in reply.choices] == expected


def test_an_id_that_changes_within_an_answer_is_noted_once() -> None:
    said = choice({"content": "a"})
    ids: list[object] = ["x", "", None, 5, "x"]
    assert codes(reply_to(*({**said, "id": one} for one in ids))) == []
    assert codes(reply_to(*({**said, "id": one} for one in ("x", "y", "z")))) == ["S006"]


def content(text: object, finish: object = None) -> dict[str, object]:
    return choice({"content": text}, finish)


def test_text_reasoning_and_refusal_are_concatenated() -> None:
    reply = reply_to(
        content(""),
        choice({"reasoning_content": "th", "reasoning": "th"}),
        choice({"reasoning": "ink"}),
        content("Hel"),
        content("lo"),
        choice({"refusal": "no"}, "stop"),
    )
    assert (reply.text, reply.reasoning, reply.choices[0].refusal) == ("Hello", "think", "no")
    assert codes(reply) == []


def test_content_may_be_a_list_of_typed_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "th"}, 5]},
        {"type": "thinking", "thinking": "ink"},
        {"type": "text", "text": "Hi"},
        {"type": "text", "text": ""},
        {"type": "refusal", "refusal": "no"},
        {"type": "image"},
    ]
    reply = reply_to(content(parts, "stop"))
    assert (reply.text, reply.reasoning, reply.choices[0].refusal) == ("Hi", "think", "no")


def test_a_surrogate_pair_cut_between_deltas_is_one_character() -> None:
    half = '{"choices":[{"index":0,"delta":{"content":"%s"}}]}'
    assert reply_to(half % "\\ud83d", half % "\\ude00").text == "\U0001f600"


@pytest.mark.parametrize("last", ["stop", None])
def test_the_last_finish_reason_that_is_not_empty_counts(last: str | None) -> None:
    reply = reply_to(content("a"), content("b", "tool_calls"), choice({}, last))
    assert reply.finish_reason_raw == (last or "tool_calls")
    assert codes(reply) == (["S004"] if last else [])


@pytest.mark.parametrize(
    ("finishes", "seen"),
    [
        (["stop"] * 5, ["S004"]),
        (["stop", "stop"], []),
        ([None, "stop", None, "stop"], []),
        (["stop", None, None, None], []),
        (["tool_calls", "stop", "tool_calls"], ["S004"]),
    ],
)
def test_a_repeated_finish_reason_counts_if_it_differs_or_deltas_go_on(
    finishes: list[str | None], seen: list[str]
) -> None:
    reply = reply_to(*[content(str(n), finish) for n, finish in enumerate(finishes)])
    assert codes(reply) == seen
    assert reply.text == "".join(str(n) for n in range(len(finishes)))


@pytest.mark.parametrize("reason", ["", 0, [], False])
def test_a_finish_reason_that_is_none_is_told_and_ignored(reason: object) -> None:
    reply = reply_to(content("a", reason), content("b", reason), content("c", "stop"))
    assert (reply.finish_reason_raw, codes(reply)) == ("stop", ["S006"])


def status(*chunks: object, done: bool) -> CallStatus:
    opened = calls(entry(0, "c1", name="get", arguments=""))
    return reply_to(opened, *chunks, done=done).tool_calls[0].status


@pytest.mark.parametrize("done", [True, False])
def test_empty_arguments_are_truncated_if_nothing_ended_the_call(done: bool) -> None:  # noqa: FBT001
    assert status(FINISH, done=done) is CallStatus.EMPTY_SUSPECT
    assert status(choice({}, "length"), done=done) is CallStatus.TRUNCATED
    assert status(choice({}, "content_filter"), done=done) is CallStatus.TRUNCATED
    unquoted = CallStatus.EMPTY_SUSPECT if done else CallStatus.TRUNCATED
    assert status(done=done) is unquoted
    assert status({"error": "overloaded"}, done=done) is CallStatus.TRUNCATED


def test_a_whole_object_stays_complete_without_any_terminal_signal() -> None:
    reply = reply_to(calls(entry(0, "c1", name="get", arguments="{}")), done=False)
    assert (reply.tool_calls[0].status, reply.terminated) == (CallStatus.COMPLETE, False)


def test_the_delta_of_a_chunk_comes_before_its_finish_reason() -> None:
    reply = reply_to(choice({"tool_calls": [entry(0, "c1", name="get")]}, "tool_calls"))
    assert len(reply.tool_calls) == 1


@pytest.mark.parametrize(
    "delta",
    [
        "x",
        [],
        {"content": 5},
        {"content": ["x"]},
        {"tool_calls": {"index": 0}},
        {"tool_calls": ["x"]},
        {"function_call": "get"},
    ],
)
def test_unexpected_shapes_are_told_and_passed_over(delta: object) -> None:
    reply = reply_to(choice(delta), content("ok", "stop"))
    assert (reply.text, codes(reply)) == ("ok", ["S006"])


@pytest.mark.parametrize(
    "delta", [None, {}, {"tool_calls": None}, {"tool_calls": []}, {"content": None, "role": None}]
)
def test_deltas_that_say_nothing_are_no_finding(delta: object) -> None:
    reply = reply_to(choice(delta), content("ok", "stop"))
    assert (reply.text, codes(reply)) == ("ok", [])


def whole(message: object, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", **more}]}


def test_a_whole_message_is_read_like_deltas_but_needs_no_index() -> None:
    entries = [entry(None, "c1", name="get", arguments="{}"), entry(None, "c2", name="put")]
    reply = reply_to(whole({"content": "Hi", "tool_calls": entries}))
    assert (reply.text, len(reply.tool_calls), codes(reply)) == ("Hi", 2, [])


def test_a_call_twice_in_a_whole_message_is_one() -> None:
    twice = [entry(None, "c1", name="get", arguments="{}")] * 2
    reply = reply_to(whole({"tool_calls": twice}))
    assert (len(reply.tool_calls), codes(reply)) == (1, ["T020"])
    other = [entry(1, "c1", name="get", arguments="{}"), entry(1, "c1", name="x", arguments="[]")]
    reply = reply_to(whole({"tool_calls": [*other, {}]}))
    assert (len(reply.tool_calls), codes(reply)) == (2, ["T010"])


def test_a_message_beside_or_after_deltas_is_not_part_of_the_answer() -> None:
    beside = whole({"content": "Hello"}, delta={"content": "Hello"})
    assert reply_to(beside).text == "Hello"
    reply = reply_to(content("Hello"), whole({"content": "Hello"}), whole({"content": "Hello"}))
    assert (reply.text, codes(reply)) == ("Hello", ["S006"])


def test_a_message_of_an_unexpected_shape_is_told() -> None:
    reply = reply_to(whole("x"), whole(None))
    assert (reply.text, codes(reply)) == ("", ["S006"])


def test_choices_are_kept_apart() -> None:
    reply: Reply = reply_to(
        choice({"content": "b"}, index=1),
        choice({"content": "a"}),
        choice({"tool_calls": [entry(0, "c1", name="get", arguments="{}")]}, "tool_calls", 1),
        choice({}, "stop"),
    )
    assert [(one.index, one.text, len(one.tool_calls)) for one in reply.choices] == [
        (0, "a", 0),
        (1, "b", 1),
    ]


@pytest.mark.parametrize("key", ["audio", "images"])
def test_what_is_no_text_is_an_answer(key: str) -> None:
    reply = reply_to(choice({"content": None, key: [{"index": 0}]}), choice({}, "stop"))
    assert reply.choices[0].media
    assert not reply_to(choice({"content": "", key: None}, "stop")).choices[0].media


DATA = """{"choices": [
  {"delta": {"tool_calls": [ {"a": 1.0}, {"b" : 2} ]}, "message": {"tool_calls": [ "m" ]}},
  {"delta": {"tool_calls": [ "other" ]}}
]}"""


def event(data: str) -> Event:
    return event_of(data)


def test_calls_have_the_exact_source_that_the_event_has() -> None:
    sources, one = JsonSources(), event(DATA)
    assert sources.call(one, (0, DELTA), 0).text == '{"a": 1.0}'
    assert sources.call(one, (0, DELTA), 1).text == '{"b" : 2}'
    assert sources.call(one, (0, MESSAGE), 0).text == '"m"'
    assert sources.call(one, (1, DELTA), 0).text == '"other"'
    assert sources.body(one, (1, DELTA)).text == '{"tool_calls": [ "other" ]}'


def test_what_is_known_of_an_event_is_forgotten_with_the_next() -> None:
    sources = JsonSources()
    assert sources.call(event(DATA), (0, DELTA), 0).text == '{"a": 1.0}'
    again = DATA.replace("1.0", "2.0")
    assert sources.call(event(again), (0, DELTA), 0).text == '{"a": 2.0}'


def test_each_kind_of_completion_is_told_from_the_others() -> None:
    hexadecimal = "0123456789abcdef" * 2
    chat = {"object": "chat.completion.chunk", "choices": [{"delta": {}}]}
    older = {"choices": [None, {"text": ""}]}
    assert (is_chat(chat), is_completion(chat), is_mistral(chat)) == (True, False, False)
    assert (is_chat(older), is_completion(older)) == (False, True)
    assert is_completion({"object": "text_completion"})
    assert is_mistral({**chat, "id": hexadecimal})
    assert not is_mistral({**chat, "id": hexadecimal.upper()})
    assert not is_mistral({"id": hexadecimal})
    assert not is_mistral({**chat, "id": hexadecimal, "choices": []})
    assert not is_chat({"choices": 5})
    assert is_chat({"choices": []})
    assert is_chat({"choices": ["a", {"index": 0}]})
    assert not is_chat({"choices": ["a", {"label": "yes", "votes": 3}]})


def test_others_whose_ids_are_like_those_of_mistral_have_members_of_their_own() -> None:
    chunk = {"id": "0123456789abcdef" * 2, "choices": [{"delta": {}}]}
    assert is_mistral(chunk)
    assert not is_mistral({**chunk, "system_fingerprint": ""})
    assert not is_mistral({**chunk, "choices": [{"delta": {}, "matched_stop": None}]})


def test_the_older_ids_of_mistral_count_for_its_own_models() -> None:
    chunk = {"id": "cmpl-" + "0123456789abcdef" * 2, "choices": [{"delta": {}}]}
    assert is_mistral({**chunk, "model": "mistral-tiny"})
    assert is_mistral({**chunk, "model": "open-mixtral-8x7b"})
    assert not is_mistral({**chunk, "model": "mistralai/Mistral-7B-Instruct"})
    assert not is_mistral(chunk)
