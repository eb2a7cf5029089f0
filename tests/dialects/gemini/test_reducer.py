import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.gemini import Gemini
from deltatape.dialects.gemini.reducer import GeminiReducer, PartialArguments
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallKind, CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.chat import codes, told
from helpers.gemini import MODEL, STOP, call, candidate, events, piece, pieces, reply_to
from helpers.json_values import json_values

KEYS = ("args", "id", "jsonPath", "name", "numberValue", "partialArgs", "stringValue", "text")
WORDS = ("$.a", "$.a[0]", "$['b']", "f", True)


def reduced(*chunks: object) -> Reply:
    reducer = GeminiReducer("gemini", NOTHING_ASKED)
    for event in events(*chunks):
        reducer.feed(event)
    return reducer.finish(cut=False)


def test_model_and_the_last_usage_are_kept() -> None:
    reply = reduced(
        {"modelVersion": "gemini-x-1", "usageMetadata": {"totalTokenCount": 1}},
        {"modelVersion": "other", "usageMetadata": {"totalTokenCount": 2}, **STOP},
        {"usageMetadata": 5, "modelVersion": 5},
    )
    assert (reply.model, reply.usage) == ("gemini-x-1", {"totalTokenCount": 2})
    assert (reply.terminated, reply.terminal_event, codes(reply)) == (True, 1, [])


def test_candidates_are_choices_by_index_or_place() -> None:
    both = {"candidates": [{"finishReason": "STOP"}, {"finishReason": "STOP"}]}
    reply = reduced(
        candidate({"text": "b"}, index=1), candidate({"text": "a"}, call("f"), index=0), both
    )
    assert [(one.index, one.text, len(one.tool_calls)) for one in reply.choices] == [
        (0, "a", 1),
        (1, "b", 0),
    ]
    assert reply.terminated


def test_every_candidate_has_to_end() -> None:
    reply = reduced(candidate({"text": "b"}, index=1), STOP)
    assert (reply.terminated, reply.terminator) == (False, "finishReason")
    assert not reduced().terminated


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_blocked_prompt_is_an_error_and_the_end(wrapped: object) -> None:
    feedback = {
        "promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "not that"},
        "usageMetadata": {},
    }
    frame = {"response": feedback} if wrapped else feedback
    reply = reduced(frame, frame)
    assert reply.error == "the prompt was blocked: SAFETY: not that"
    assert (reply.terminated, reply.finish_reason_raw, codes(reply)) == (True, None, ["S005"])
    assert reduced({"promptFeedback": {"blockReason": 1}}).error == "the prompt was blocked: 1"


def test_feedback_that_blocks_nothing_is_none() -> None:
    reply = reduced({"promptFeedback": {"safetyRatings": []}, **STOP}, {"promptFeedback": 5})
    assert (reply.error, codes(reply)) == (None, [])


def test_a_malformed_call_is_an_error_with_its_message() -> None:
    message = "Malformed function call: print(f(a=1"
    end = candidate(finish="MALFORMED_FUNCTION_CALL", finishMessage=message)
    reply = reduced(candidate({"text": "Let me"}), end, end)
    assert reply.error == f"MALFORMED_FUNCTION_CALL: {message}"
    assert reply.choices[0].finish_detail == message
    assert (reply.text, reply.terminated, codes(reply)) == ("Let me", True, ["S005"])
    assert reduced(candidate(finish="UNEXPECTED_TOOL_CALL")).error == "UNEXPECTED_TOOL_CALL"
    assert reduced(candidate(finish="SAFETY")).error is None


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_error_in_the_middle_keeps_what_came(wrapped: object) -> None:
    error = {"error": {"code": 499, "message": "cancelled", "status": "CANCELLED"}}
    reply = reduced(candidate({"text": "First"}), {"response": error} if wrapped else error)
    assert (reply.error, reply.text) == ("cancelled", "First")
    assert (reply.terminated, codes(reply)) == (False, ["S005"])


@pytest.mark.parametrize(
    "body", ['{"error":{"message":"bad key"}}', '[{"error":{"message":"bad key"}}]']
)
def test_an_error_document_and_an_array_with_one_are_errors(body: str) -> None:
    url = f"{MODEL}:streamGenerateContent"
    exchange = Exchange.from_body(body.encode(), content_type="application/json", url=url)
    reply = rebuild(exchange)
    assert (reply.dialect, reply.error) == ("gemini", "bad key")


@pytest.mark.parametrize(
    "frame",
    [
        "[DONE]",
        "[]",
        "5",
        {"candidates": 5},
        {"candidates": {}},
        {"candidates": [5]},
    ],
)
def test_a_wrong_shape_is_noted_once_and_nothing_else(frame: object) -> None:
    reply = reduced(frame, STOP)
    assert codes(reply) in (["S006"], ["W004"])
    assert reply.terminated


def test_unknown_fields_and_parts_are_ignored() -> None:
    reply = reduced({"responseId": "x"}, {}, candidate({"novelty": {}}, {}, avgLogprobs=1), STOP)
    assert codes(reply) == []


def test_a_stream_cut_anywhere_is_not_terminated() -> None:
    chunks = [candidate({"text": "a"}), candidate(call("f", args={"a": 1})), STOP]
    for count in range(3):
        reply = reply_to(*chunks[:count])
        assert not reply.terminated
        assert all(one.status == "complete" for one in reply.tool_calls)
    assert reply_to(*chunks).terminated


NESTED = json_values(
    st.integers(0, 3) | st.text(max_size=3) | st.sampled_from(WORDS), st.sampled_from(KEYS), 12
)


@pytest.mark.slow
@given(st.lists(NESTED, max_size=4))
def test_any_values_make_a_reply(chunks: list[object]) -> None:
    calls = [{"functionCall": chunk} for chunk in chunks]
    more = [{"functionCall": {"name": "f", "partialArgs": chunk}} for chunk in chunks]
    frames = [{"candidates": chunk, "promptFeedback": chunk, "error": chunk} for chunk in chunks]
    reply = reduced(*frames, candidate(*chunks, *calls), candidate(*more, finish="STOP"))
    assert len(reply.choices) >= 1


def test_text_and_thoughts_are_kept_apart() -> None:
    reply = reply_to(
        candidate({"text": "Let me ", "thought": True}, {"text": "It "}),
        candidate({"text": "think.", "thought": True, "thoughtSignature": "s"}),
        candidate({"text": "rains.", "thought": False, "thoughtSignature": "s"}),
        STOP,
    )
    assert (reply.reasoning, reply.text) == ("Let me think.", "It rains.")
    assert codes(reply) == []


def test_what_the_provider_runs_itself_is_a_server_call() -> None:
    code = {"language": "PYTHON", "code": "print(1)", "id": "c"}
    search = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "args": {"q": "x"}}
    reply = reply_to(
        candidate({"executableCode": code}, {"codeExecutionResult": {"output": "1"}}),
        candidate({"toolCall": search}, {"toolCall": {}}, {"toolResponse": {"id": "s"}}),
        candidate({"executableCode": 5}, {"inlineData": {}}, {"functionResponse": {}}),
        STOP,
    )
    found = [(one.kind, one.id, one.name, one.arguments) for one in reply.server_calls]
    assert found == [
        (
            CallKind.SERVER,
            "c",
            "executable_code",
            '{"language": "PYTHON", "code": "print(1)", "id": "c"}',
        ),
        (CallKind.SERVER, "s", "GOOGLE_SEARCH_WEB", '{"q": "x"}'),
        (CallKind.SERVER, None, None, ""),
    ]
    assert reply.server_calls[0].status is CallStatus.COMPLETE
    assert (reply.tool_calls, codes(reply)) == ((), [])


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("STOP", "STOP"),
        ("MAX_TOKENS", "MAX_TOKENS"),
        (1, "1"),
        (10, "10"),
        ("FINISH_REASON_UNSPECIFIED", None),
        (0, None),
        ("", None),
        (None, None),
    ],
)
def test_the_finish_reason_is_a_word_or_a_number(reason: object, told: str | None) -> None:
    reply = reply_to(candidate({"text": "x"}, finish=reason))
    assert reply.finish_reason_raw == told
    assert reply.terminated is (told is not None)
    assert codes(reply) == []


def test_the_message_of_an_early_finish_is_its_detail() -> None:
    message = "Model generated function call(s)."
    reply = reply_to(candidate({"text": "x"}, finish="STOP", finishMessage=message))
    assert reply.choices[0].finish_detail is None
    reply = reply_to(candidate(finish="SAFETY", finishMessage="too rude"))
    assert reply.choices[0].finish_detail == "too rude"


def test_a_finish_reason_may_be_in_every_event_but_not_change() -> None:
    assert codes(reply_to(STOP, STOP, STOP)) == []
    assert codes(reply_to(STOP, candidate(finish="SAFETY"))) == ["S004"]


@pytest.mark.parametrize(
    "broken",
    [
        {"content": 5},
        {"content": {"parts": 5}},
        {"content": {"parts": [5]}},
        {"content": {"parts": [{"text": 5}]}},
        {"content": {"parts": [{"functionCall": 5}]}},
        {"finishReason": 5.5},
        {"finishReason": {}},
    ],
)
def test_a_wrong_type_is_odd_and_nothing_else(broken: dict[str, object]) -> None:
    reply = reply_to({"candidates": [broken]}, candidate({"text": "ok"}), STOP)
    assert codes(reply) == ["S006"]
    assert (reply.text, reply.terminated) == ("ok", True)


@pytest.mark.parametrize(
    "empty", [{}, {"content": {}}, {"content": None}, {"content": {"parts": None}}]
)
def test_a_candidate_may_be_empty(empty: dict[str, object]) -> None:
    assert codes(reply_to({"candidates": [empty]}, STOP)) == []


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"inlineData": {"mimeType": "image/png"}}, True),
        ({"fileData": {}}, True),
        ({"inlineData": {}, "thought": True}, False),
        ({"codeExecutionResult": {}}, False),
    ],
)
def test_an_image_is_something_to_show_unless_it_is_a_thought(
    part: dict[str, object],
    media: bool,  # noqa: FBT001
) -> None:
    assert reply_to(candidate(part), STOP).choices[0].media is media


OPEN = candidate(call("f", willContinue=True, signature="s"))
CLOSE = candidate(call())
BOSTON = candidate(pieces(piece(jsonPath="$.city", stringValue="Bos", goes_on=True)))
ENDED = candidate(pieces(piece(jsonPath="$.city", stringValue="ton")))


def status(reply: Reply) -> list[CallStatus]:
    return [one.status for one in reply.tool_calls]


def test_a_whole_call_has_the_source_of_its_args() -> None:
    part = '{"functionCall": {"name": "f", "id": "x", "args": {"b" : 1.0,  "a": "\\u00e9"}}}'
    reply = reply_to(f'{{"candidates": [{{"content": {{"parts": [{part}]}}}}]}}', STOP)
    assert told(reply) == [("x", "f", '{"b" : 1.0,  "a": "\\u00e9"}')]
    assert status(reply) == [CallStatus.COMPLETE]
    assert reply.tool_calls[0].arguments_raw == reply.tool_calls[0].arguments
    assert codes(reply) == []


def test_calls_of_one_event_have_the_sources_of_their_own_args() -> None:
    reply = reply_to(candidate(call("f", args={"a": 1}), call("g", args={"args": 2})), STOP)
    assert told(reply) == [(None, "f", '{"a": 1}'), (None, "g", '{"args": 2}')]


@pytest.mark.parametrize("part", [call("f"), call("f", args=None), call("f", args={})])
def test_a_call_without_args_has_an_empty_object(part: object) -> None:
    reply = reply_to(candidate(part), STOP)
    assert told(reply) == [(None, "f", "{}")]
    assert status(reply) == [CallStatus.COMPLETE]


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ([1], CallStatus.NOT_OBJECT),
        ("text", CallStatus.NOT_OBJECT),
        ('{"a":1}', CallStatus.DOUBLE_ENCODED),
        (5, CallStatus.NOT_OBJECT),
    ],
)
def test_args_that_are_no_object_are_judged(args: object, found: CallStatus) -> None:
    reply = reply_to(candidate(call("f", args=args)), STOP)
    assert [(one.arguments, one.status) for one in reply.tool_calls] == [(json.dumps(args), found)]


def test_a_whole_call_is_whole_without_a_finish_reason() -> None:
    assert status(reply_to(candidate(call("f"), call("g", args={"a": 1})))) == [
        CallStatus.COMPLETE,
        CallStatus.COMPLETE,
    ]


def test_a_call_without_a_name_has_none() -> None:
    reply = reply_to(candidate(call(args={"a": 1}), call("", args={"b": 1})), STOP)
    assert status(reply) == [CallStatus.NO_NAME, CallStatus.NO_NAME]
    assert codes(reply) == ["S006"]


def test_the_same_call_twice_is_two_calls() -> None:
    one = call("f", args={"a": 1})
    assert len(reply_to(candidate(one, one), STOP).tool_calls) == 2
    assert len(reply_to(candidate(one), candidate(one), STOP).tool_calls) == 2


def test_an_equal_call_that_is_not_signed_is_another_call() -> None:
    """Of parallel calls only the first is signed, and each may come in its own event."""
    signed = call("f", args={"a": 1, "b": 2}, signature="s")
    reply = reply_to(candidate(signed), candidate(call("f", args={"b": 2, "a": 1})), STOP)
    assert told(reply) == [(None, "f", '{"a": 1, "b": 2}'), (None, "f", '{"b": 2, "a": 1}')]
    assert not codes(reply)


def test_an_equal_call_beside_the_signed_one_is_another_call() -> None:
    signed = call("f", args={"a": 1}, signature="s")
    plain = call("f", args={"a": 1})
    assert len(reply_to(candidate(signed, plain), STOP).tool_calls) == 2
    assert len(reply_to(candidate(signed), candidate(signed), STOP).tool_calls) == 2
    other = call("f", args={"a": 2})
    assert len(reply_to(candidate(signed), candidate(other), STOP).tool_calls) == 2
    assert len(reply_to(candidate(signed), candidate(call("g")), STOP).tool_calls) == 2


def test_ids_tell_equal_calls_apart_and_repeated_ones() -> None:
    first = call("f", id="1", args={"a": 1}, signature="s")
    second = call("f", id="2", args={"a": 1})
    assert len(reply_to(candidate(first), candidate(second), STOP).tool_calls) == 2
    again = reply_to(candidate(second), candidate(second), STOP)
    assert (told(again), codes(again)) == ([("2", "f", '{"a": 1}')], ["T020"])
    changed = reply_to(candidate(second), candidate(call("f", id="2", args={"a": 2})), STOP)
    assert (len(changed.tool_calls), codes(changed)) == (2, ["T010"])


def test_a_streamed_call_is_built_from_its_values() -> None:
    more = candidate(
        pieces(
            piece(jsonPath="$.days[0].n", numberValue=2.50),
            piece(jsonPath="$.days[1].n", numberValue=10**400),
            piece(jsonPath="$.now", boolValue=False),
            piece(jsonPath="$.then", boolValue=True),
            piece(jsonPath="$.none", nullValue="NULL_VALUE"),
            piece(jsonPath="$.announced", goes_on=True),
        )
    )
    days = f'[{{"n":2.5}},{{"n":{10**400}}}]'
    built = f'{{"city":"Boston","days":{days},"now":false,"then":true,"none":null}}'
    reply = reply_to(OPEN, BOSTON, ENDED, more, CLOSE, STOP)
    assert told(reply) == [
        (
            None,
            "f",
            built,
        )
    ]
    assert (status(reply), codes(reply)) == ([CallStatus.COMPLETE], [])
    fragments = reply.tool_calls[0].fragments
    assert [one.event for one in fragments] == [1, 2, 3]
    assert json.loads(fragments[0].text) == [
        {"jsonPath": "$.city", "stringValue": "Bos", "willContinue": True}
    ]


@pytest.mark.parametrize(
    "end",
    [
        [CLOSE, STOP],
        [candidate(call(), finish="STOP")],
        [STOP],
        [candidate(pieces(piece(jsonPath="$.city", stringValue=""), goes_on=False))],
        [candidate(call("g", args={"a": 1}))],
        [CLOSE],
    ],
)
def test_a_streamed_call_ends_in_many_ways(end: list[object]) -> None:
    reply = reply_to(OPEN, BOSTON, ENDED, *end)
    first = reply.tool_calls[0]
    assert (first.arguments, first.status) == ('{"city":"Boston"}', CallStatus.COMPLETE)
    assert codes(reply) == []


@pytest.mark.parametrize(
    ("count", "arguments"),
    [(1, ""), (2, '{"city":"Bos'), (3, '{"city":"Boston"')],
)
@pytest.mark.parametrize("end", [[], [candidate(finish="MAX_TOKENS")], [candidate(finish=2)]])
def test_a_streamed_call_that_is_cut_stays_a_beginning(
    count: int, arguments: str, end: list[object]
) -> None:
    reply = reply_to(*[OPEN, BOSTON, ENDED][:count], *end)
    assert told(reply) == [(None, "f", arguments)]
    assert status(reply) == [CallStatus.TRUNCATED]


def test_streamed_calls_follow_each_other() -> None:
    named = candidate(call("g", willContinue=True))
    at_once = candidate(
        call("h", partialArgs=[piece(jsonPath="$.a", numberValue=1)], id="3"), finish="STOP"
    )
    reply = reply_to(OPEN, CLOSE, named, BOSTON, ENDED, at_once)
    assert told(reply) == [
        (None, "f", "{}"),
        (None, "g", '{"city":"Boston"}'),
        ("3", "h", '{"a":1}'),
    ]


def test_a_name_that_comes_with_the_id_of_the_open_call_continues_it() -> None:
    opened = candidate(call("f", id="1", willContinue=True))
    value = candidate(
        call("f", id="1", partialArgs=[piece(jsonPath="$.a", numberValue=1)], willContinue=True)
    )
    assert told(reply_to(opened, value, CLOSE, STOP)) == [("1", "f", '{"a":1}')]
    other = candidate(call("f", id="2"))
    assert len(reply_to(opened, other, STOP).tool_calls) == 2


def test_values_after_an_end_that_was_none_are_taken() -> None:
    last = candidate(pieces(piece(jsonPath="$.city", stringValue="Bos"), goes_on=False))
    reply = reply_to(OPEN, last, ENDED, CLOSE, STOP, CLOSE)
    assert told(reply) == [(None, "f", '{"city":"Boston"}')]


def test_whole_args_count_more_than_the_values() -> None:
    reply = reply_to(OPEN, BOSTON, candidate(call(args={"city": "Ghent"})), STOP)
    assert told(reply) == [(None, "f", '{"city": "Ghent"}')]
    assert len(reply.tool_calls[0].fragments) == 2


def test_values_that_belong_to_no_call_are_an_orphan() -> None:
    reply = reply_to(ENDED, CLOSE, STOP)
    assert status(reply) == [CallStatus.ORPHAN]
    assert json.loads(reply.tool_calls[0].arguments_raw)


def test_an_end_without_a_beginning_is_odd() -> None:
    reply = reply_to(CLOSE, STOP)
    assert (told(reply), codes(reply)) == ([], ["S006"])


@pytest.mark.parametrize(
    "each",
    [
        5,
        {"stringValue": "x"},
        {"jsonPath": 5, "stringValue": "x"},
        {"jsonPath": "$.a[*]", "stringValue": "x"},
        {"jsonPath": "$.a.b", "numberValue": 1},
        {"jsonPath": "$.b[5]", "numberValue": 1},
    ],
)
def test_values_that_cannot_be_placed_are_odd(each: object) -> None:
    good = piece(jsonPath="$.a", numberValue=1)
    reply = reply_to(OPEN, candidate(call(partialArgs=[good, each], willContinue=True)), STOP)
    assert codes(reply) == ["S006"]
    assert reply.tool_calls[0].status is CallStatus.COMPLETE


@pytest.mark.parametrize("value", [5, "x", {"a": 1}, None])
def test_partial_args_of_a_wrong_type_do_no_harm(value: object) -> None:
    reply = reply_to(OPEN, candidate(call(partialArgs=value, willContinue=True)), STOP)
    assert told(reply) == [(None, "f", "{}")]


@pytest.mark.slow
def test_many_values_of_one_event_take_linear_time() -> None:
    many = [piece(jsonPath=f"$.a[{at}]", numberValue=at) for at in range(5000)]
    (event,) = events(candidate(call("f", partialArgs=many)))
    reply = reply_to(event.data, STOP)
    assert json.loads(reply.tool_calls[0].arguments) == {"a": list(range(5000))}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def test_nothing_is_an_empty_object_or_nothing() -> None:
    arguments = PartialArguments()
    assert (arguments.text(), arguments.beginning()) == ("{}", "")
    assert not arguments.has_gaps


def test_values_stand_where_their_paths_say() -> None:
    arguments = PartialArguments()
    assert arguments.put_string("$.a[0].b", "on", is_open=True)
    assert arguments.put_string("$['a'][0]['b']", "e", is_open=False)
    assert arguments.put("$.a[1]", "1.50")
    assert arguments.put("$.c", "null")
    assert arguments.text() == '{"a":[{"b":"one"},1.50],"c":null}'


def test_a_later_value_of_another_kind_replaces() -> None:
    arguments = PartialArguments()
    arguments.put_string("$.a", "x", is_open=True)
    arguments.put("$.a", "5")
    assert arguments.text() == '{"a":5}'
    arguments.put_string("$.a", "y", is_open=False)
    assert arguments.text() == '{"a":"y"}'


def test_a_value_cannot_stand_inside_another_one() -> None:
    arguments = PartialArguments()
    assert arguments.put("$.a", "1")
    assert arguments.put("$.b.c", "2")
    for path in ("$.a.b", "$.a[0]", "$.b", "$.b[0]", "$[0]", "$.b.*.["):
        assert not arguments.put(path, "3")
        assert not arguments.put_string(path, "3", is_open=False)
    assert arguments.text() == '{"a":1,"b":{"c":2}}'


def test_elements_are_in_the_order_of_their_indexes() -> None:
    arguments = PartialArguments()
    arguments.put("$.a[10]", "2")
    arguments.put("$.a[9]", "1")
    assert arguments.text() == '{"a":[1,2]}'
    assert arguments.has_gaps


def test_the_beginning_ends_where_the_values_do() -> None:
    arguments = PartialArguments()
    arguments.put("$.a[0].b", "1")
    assert arguments.beginning() == '{"a":[{"b":1'
    arguments.put_string("$.c", 'Bo"]}', is_open=True)
    assert arguments.beginning() == '{"a":[{"b":1}],"c":"Bo\\"]}'
    arguments.put_string("$.c", "", is_open=False)
    assert arguments.beginning() == '{"a":[{"b":1}],"c":"Bo\\"]}"'


def test_half_pairs_of_surrogates_are_joined_or_escaped() -> None:
    arguments = PartialArguments()
    arguments.put_string("$.a", "é\ud83d", is_open=True)
    arguments.put_string("$.a", "\ude00\n", is_open=True)
    assert arguments.text() == '{"a":"é\U0001f600\\n"}'
    arguments.put_string("$.b", "\ud83d", is_open=False)
    assert arguments.text().endswith('"b":"\\ud83d"}')


def flat(value: object, path: str) -> list[tuple[str, object]]:
    """The values in `value` that hold no others, with their paths."""
    if isinstance(value, dict):
        return [
            one for key, each in value.items() for one in flat(each, f"{path}[{json.dumps(key)}]")
        ]
    if isinstance(value, list):
        return [one for at, each in enumerate(value) for one in flat(each, f"{path}[{at}]")]
    return [(path, value)]


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.data())
def test_any_value_comes_back_from_its_paths(value: dict[str, object], data: st.DataObject) -> None:
    arguments = PartialArguments()
    for path, each in data.draw(st.permutations(flat(value, "$"))):
        if isinstance(each, str):
            middle = len(each) // 2
            arguments.put_string(path, each[:middle], is_open=True)
            arguments.put_string(path, each[middle:], is_open=False)
        else:
            arguments.put(path, json.dumps(each))
    assert json.loads(arguments.text()) == value
    assert not arguments.has_gaps


def test_every_framing_gives_the_same_reply() -> None:
    parts = [candidate({"text": "Hi"}), candidate(call("f", args={"a": 1})), STOP]
    wrapped = [{"response": each} for each in parts]
    bodies = {
        "text/event-stream": "".join(f"data: {json.dumps(each)}\n\n" for each in parts),
        "application/json": json.dumps(parts),
        "application/x-ndjson": "".join(f"{json.dumps(each)}\n" for each in parts),
        "text/event-stream; wrapped": "".join(f"data: {json.dumps(each)}\n\n" for each in wrapped),
    }
    url = f"{MODEL}:streamGenerateContent"
    for media, body in bodies.items():
        reply = rebuild(Exchange.from_body(body.encode(), content_type=media, url=url))
        assert (reply.dialect, reply.text, reply.finish_reason_raw) == ("gemini", "Hi", "STOP")
        assert [(one.name, one.arguments) for one in reply.tool_calls] == [("f", '{"a": 1}')]
        assert (reply.terminated, reply.observations) == (True, ())


def test_the_request_is_read_with_its_path() -> None:
    asked = Gemini().read_request(b"{}", "/v1beta/models/gemini-x:streamGenerateContent")
    assert (asked.model, asked.stream) == ("gemini-x", True)
    assert Gemini().reducer(asked).finish(cut=False).dialect == "gemini"
