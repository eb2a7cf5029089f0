import json

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects._cohere_v1 import is_v1, v1_table
from deltatape.dialects._table import TableReducer
from deltatape.dialects.cohere import V1, V2, Cohere
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary
from helpers.events import codes, details, events, offering, reduced, spoilt

Json = dict[str, object]


def delta(kind: str, index: int | None = None, **message: object) -> Json:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, "delta": {"message": message}}


def start(index: int, name: str, call_id: str) -> Json:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    return delta("tool-call-start", index, tool_calls=call)


def more(index: int, text: str) -> Json:
    return delta("tool-call-delta", index, tool_calls={"function": {"arguments": text}})


def end(index: int) -> Json:
    return {"type": "tool-call-end", "index": index}


def last(reason: str = "TOOL_CALL", **told: object) -> Json:
    usage = {"tokens": {"input_tokens": 3, "output_tokens": 4}}
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": usage, **told}}


STREAM: list[Json] = [
    {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}},
    delta("tool-plan-delta", tool_plan="I will "),
    delta("tool-plan-delta", tool_plan="look."),
    delta("content-start", 0, content={"type": "text", "text": ""}),
    delta("content-delta", 0, content={"text": "Mom"}),
    delta("content-delta", 0, content={"thinking": " Hm."}),
    delta("content-delta", 0, content={"text": "ent"}),
    {"type": "content-end", "index": 0},
    start(0, "get_weather", "w_1"),
    start(1, "get_time", "t_1"),
    more(0, '{"city": '),
    more(1, '{"zone": "CET"}'),
    more(0, '"Gent"}'),
    end(0),
    end(1),
    {"type": "citation-start", "index": 0, "delta": {"message": {"citations": {}}}},
    {"type": "debug", "prompt": "..."},
    last(),
]


def test_parallel_calls_are_keyed_by_index_and_the_plan_is_reasoning() -> None:
    reply = reduced(Cohere(), events(*STREAM, "[DONE]"))
    assert [(c.wire_index, c.id, c.name, c.arguments) for c in reply.tool_calls] == [
        (0, "w_1", "get_weather", '{"city": "Gent"}'),
        (1, "t_1", "get_time", '{"zone": "CET"}'),
    ]
    assert (reply.text, reply.reasoning) == ("Moment", "I will look. Hm.")
    assert reply.finish_reason_raw == "TOOL_CALL"
    assert reply.usage == {"tokens": {"input_tokens": 3, "output_tokens": 4}}
    assert reply.terminated
    assert reply.terminal_event == len(STREAM) - 1
    assert reply.observations == ()


def test_a_list_where_an_object_should_be_is_read_too() -> None:
    call = {"id": "w_1", "function": {"name": "f", "arguments": "{"}}
    reply = reduced(
        Cohere(),
        events(
            delta("tool-call-start", 0, tool_calls=[call]),
            delta("tool-call-delta", 0, tool_calls=[{"function": {"arguments": "}"}}]),
            end(0),
            last(),
        ),
    )
    assert [(c.name, c.arguments, c.status) for c in reply.tool_calls] == [
        ("f", "{}", CallStatus.COMPLETE)
    ]
    assert codes(reply) == []


def test_a_call_without_arguments_is_judged_by_its_schema() -> None:
    fed = events(start(0, "now", "n_1"), end(0), last())
    assert reduced(Cohere(), fed, offering("now")).tool_calls[0].status is CallStatus.EMPTY_OK
    needing = reduced(Cohere(), fed, offering("now", "zone"))
    assert needing.tool_calls[0].status is CallStatus.EMPTY_SUSPECT


def test_a_stream_that_is_cut_anywhere_leaves_no_call_whole_before_its_end() -> None:
    for length in range(len(STREAM)):
        reply = reduced(Cohere(), events(*STREAM[:length]), cut=True)
        ends = [length > STREAM.index(end(index)) for index in (0, 1)]
        for call, whole in zip(reply.tool_calls, ends, strict=False):
            wanted = CallStatus.COMPLETE if whole else CallStatus.TRUNCATED
            assert call.status is wanted, (length, call)
        assert not reply.terminated


def test_a_limit_cuts_and_an_error_is_reported() -> None:
    cut = reduced(Cohere(), events(start(0, "f", "i"), more(0, '{"a":'), last("MAX_TOKENS")))
    assert (cut.tool_calls[0].status, cut.error) == (CallStatus.TRUNCATED, None)
    failed = reduced(Cohere(), events(last("ERROR", error="boom")))
    assert (failed.error, codes(failed)) == ("boom", ["S005"])
    assert reduced(Cohere(), events(last("TIMEOUT"))).error == "finish_reason is 'TIMEOUT'"


def test_a_violation_of_the_protocol_is_reported_and_nothing_is_lost() -> None:
    reply = reduced(
        Cohere(),
        events(
            more(0, '{"a":1}'),
            end(7),
            start(1, "f", "i"),
            start(1, "f", "i"),
            start(1, "g", "j"),
            end(1),
            more(1, " "),
            delta("tool-call-start", 2),
            delta("tool-call-delta", 2),
            last(),
            delta("content-delta", 0, content={"text": "late"}),
        ),
    )
    assert [(c.name, c.status) for c in reply.tool_calls] == [
        (None, CallStatus.ORPHAN),
        ("f", CallStatus.EMPTY_SUSPECT),
        ("g", CallStatus.EMPTY_SUSPECT),
    ]
    assert details(reply, "T012") == ["the index 1 is used for another call"]
    assert details(reply, "S006") == [
        "arguments of a call that never started",
        "nothing says that the call of '' is whole",
        "the end of a call that never started",
        "nothing says that the call of 'f' is whole",
        "the call starts a second time",
        "arguments after the end of the call",
        "the start of a call without the call",
        "a piece of a call without the call",
        "content after the terminal event",
    ]
    assert reply.text == "late"


def test_events_of_a_call_without_index_continue_the_last_one() -> None:
    bare = start(0, "f", "i")
    del bare["index"]
    reply = reduced(
        Cohere(),
        events(
            bare,
            {**more(0, "{}"), "index": None},
            {"type": "tool-call-end"},
            last(),
        ),
    )
    assert [(c.arguments, c.repairs, c.status) for c in reply.tool_calls] == [
        ("{}", ("T011",), CallStatus.COMPLETE)
    ]


def test_a_document_is_reduced_like_a_stream() -> None:
    message = {
        "role": "assistant",
        "tool_plan": "plan",
        "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "hi"}, 3],
        "tool_calls": [{"id": "i", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }
    document = {"id": "x", "finish_reason": "TOOL_CALL", "message": message, "usage": {"n": 1}}
    reply = reduced(Cohere(), events(document))
    assert (reply.text, reply.reasoning, reply.usage) == ("hi", "plant", {"n": 1})
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == [("i", "f", '{"a":1}')]
    assert reply.terminated
    assert reply.observations == ()


@pytest.mark.parametrize(
    ("frame", "message"),
    [({"message": "no such key"}, "no such key"), ({"error": {"message": "down"}}, "down")],
)
def test_an_error_body_is_an_error(frame: Json, message: str) -> None:
    reply = reduced(Cohere(), events(frame))
    assert (reply.error, reply.terminated) == (message, False)


OLD: list[Json] = [
    {"event_type": "stream-start", "generation_id": "g"},
    {"event_type": "text-generation", "text": "I will"},
    {"event_type": "tool-calls-chunk", "text": " look"},
    {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "name": "get"}},
    {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "parameters": '{"a":'}},
    {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "parameters": "1}"}},
    {
        "event_type": "tool-calls-generation",
        "tool_calls": [{"name": "get", "parameters": {"a": 1}}],
    },
    {
        "event_type": "stream-end",
        "finish_reason": "COMPLETE",
        "response": {
            "text": "I will look",
            "tool_calls": [{"name": "get", "parameters": {"a": 1}}],
            "meta": {"tokens": {}},
        },
    },
]


def test_version_1_takes_its_calls_from_the_list_that_follows_their_pieces() -> None:
    reply = reduced(Cohere(), events(*OLD))
    assert [(c.id, c.name, c.arguments, c.status) for c in reply.tool_calls] == [
        (None, "get", '{"a": 1}', CallStatus.COMPLETE)
    ]
    assert reply.tool_calls[0].arguments_raw == '{"a":1}'
    assert (reply.text, reply.finish_reason_raw, reply.usage) == (
        "I will look",
        "COMPLETE",
        {"tokens": {}},
    )
    assert reply.terminated
    assert reply.observations == ()


def test_version_1_without_the_list_is_cut() -> None:
    reply = reduced(Cohere(), events(*OLD[:6]))
    assert [c.status for c in reply.tool_calls] == [CallStatus.TRUNCATED]
    assert codes(reply) == []


def test_version_1_without_pieces_has_its_calls_and_text_from_the_end() -> None:
    reply = reduced(Cohere(), events(OLD[0], OLD[-1]))
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("get", '{"a": 1}')]
    assert reply.text == "I will look"


def test_sources_of_version_1_that_disagree_are_reported() -> None:
    other = {**OLD[6], "tool_calls": [{"name": "put", "parameters": {"a": 2}}]}
    reply = reduced(Cohere(), events(*OLD[:6], other, OLD[7]))
    assert details(reply, "T015")[0] == "the name 'get' changes to 'put'"
    assert codes(reply) == ["T015", "T015"]


def test_an_error_of_version_1_ends_the_stream() -> None:
    spoken = {"event_type": "text-generation", "text": "a"}
    error = {"event_type": "stream-error", "finish_reason": "ERROR", "err": "down"}
    reply = reduced(Cohere(), events(spoken, error))
    assert (reply.text, reply.error, reply.finish_reason_raw) == ("a", "down", "ERROR")


def test_a_document_of_version_1_is_reduced() -> None:
    exchange = Exchange.from_body(
        b'{"generation_id":"g","text":"hi","tool_calls":[{"name":"f","parameters":{ }}],'
        b'"finish_reason":"COMPLETE"}',
        content_type="application/json",
        url="https://api.cohere.com/v1/chat",
    )
    reply = rebuild(exchange)
    assert (reply.dialect, reply.text, reply.terminated) == ("cohere", "hi", True)
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("f", "{ }")]
    assert reply.observations == ()


def test_nothing_at_all_is_an_empty_reply() -> None:
    reply = reduced(Cohere(), [])
    assert (reply.text, reply.tool_calls, reply.terminated) == ("", (), False)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [STREAM, OLD], ids=["v2", "v1"])
def test_no_value_of_any_type_anywhere_raises(stream: list[Json]) -> None:
    for frames in spoilt(stream):
        reduced(Cohere(), events(*frames))


def test_both_versions_are_the_same_dialect_and_end_in_words_of_their_own() -> None:
    assert V1.name == V2.name == "cohere"
    assert (V1.terminator, V2.terminator) == ("stream-end", "message-end")
    assert V1.terminator in V1.events
    assert V2.terminator in V2.events


def test_only_version_2_has_ids() -> None:
    assert (V1.policy.ids, V2.policy.ids) == (False, True)


def read(request: object) -> RequestSummary:
    return Cohere().read_request(json.dumps(request).encode(), "/v2/chat")


def test_what_is_not_an_object_asks_for_nothing() -> None:
    assert Cohere().read_request(b"[", "") is NOTHING_ASKED


def test_version_2_is_read_as_a_chat_completion() -> None:
    schema = {"type": "object", "required": ["city"]}
    asked = read(
        {
            "model": "command",
            "stream": True,
            "tool_choice": "REQUIRED",
            "tools": [{"type": "function", "function": {"name": "get", "parameters": schema}}],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "tool_plan": "plan",
                    "tool_calls": [{"id": "i", "function": {"name": "get", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "i", "content": [{"type": "document"}]},
            ],
        }
    )
    assert (asked.known, asked.model, asked.stream) == (True, "command", True)
    assert asked.tool_choice == "required"
    tool = asked.tool("get")
    assert tool is not None
    assert tool.parameters == schema
    assert asked.history[1].calls == (RepeatedCall(id="i", name="get", arguments="{}"),)
    assert [message.call_id for message in asked.history] == [None, None, "i"]
    assert read({"messages": [], "tool_choice": "NONE"}).tool_choice == "none"


def test_version_1_has_the_last_message_beside_the_history() -> None:
    asked = read(
        {
            "model": "command",
            "stream": True,
            "preamble": "Be brief.",
            "chat_history": [
                {"role": "USER", "message": "hi"},
                {"role": "CHATBOT", "tool_calls": [{"name": "f", "parameters": {"a": 1}}, 3]},
                {"role": "TOOL", "tool_results": [{"call": {"name": "f"}, "outputs": [{}]}]},
                "no message",
            ],
            "message": "and now?",
            "tool_results": [{"call": {"name": "g"}, "outputs": []}, None],
        }
    )
    assert (asked.model, asked.stream, asked.tool_choice) == ("command", True, None)
    assert [(one.role, one.text, one.call_id) for one in asked.history] == [
        ("system", "Be brief.", None),
        ("user", "hi", None),
        ("assistant", "", None),
        ("tool", "", "f"),
        ("user", "and now?", None),
        ("tool", "", "g"),
    ]
    assert asked.history[2].calls == (RepeatedCall(id=None, name="f", arguments='{"a": 1}'),)


def test_a_message_of_version_1_has_the_same_digest_once_it_is_history() -> None:
    now = read({"message": "hi"})
    later = read({"chat_history": [{"role": "USER", "message": "hi"}], "message": "on"})
    assert now.history[0].digest == later.history[0].digest
    assert read({"message": ""}).history == ()


def test_parameters_of_version_1_become_a_schema() -> None:
    definitions = {"city": {"type": "str", "required": True}, "days": {"type": "List[int]"}, "x": 1}
    asked = read(
        {"message": "m", "tools": [{"name": "f", "parameter_definitions": definitions}, {}, 1]}
    )
    assert [(tool.name, tool.parameters) for tool in asked.tools] == [
        (
            "f",
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {}, "x": {}},
                "required": ["city"],
            },
        )
    ]


def reply_to(*frames: object) -> Reply:
    reducer = TableReducer(v1_table("some"), NOTHING_ASKED)
    for event in events(*frames):
        reducer.feed(event)
    return reducer.finish(cut=False)


@pytest.mark.parametrize(
    ("frame", "ours"),
    [
        ({"event_type": "stream-start", "generation_id": "g"}, True),
        ({"event_type": "tool-calls-chunk"}, True),
        ({"event_type": "step.start"}, False),
        ({"generation_id": "g", "text": ""}, True),
        ({"text": ""}, False),
    ],
)
def test_its_objects_are_known(frame: dict[str, object], ours: bool) -> None:  # noqa: FBT001
    assert is_v1(frame) is ours


def test_a_plan_that_is_repeated_is_said_once_and_calls_come_from_the_list() -> None:
    calls = [{"name": "get", "parameters": {"a": 1}}]
    end = {"finish_reason": "COMPLETE", "response": {"text": "I look.", "tool_calls": calls}}
    reply = reply_to(
        {"event_type": "tool-calls-chunk", "text": "I "},
        {"event_type": "tool-calls-chunk", "text": "look."},
        {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "name": "get"}},
        {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "parameters": "{"}},
        {"event_type": "tool-calls-generation", "text": "I look.", "tool_calls": calls},
        {"event_type": "stream-end", **end},
    )
    assert (reply.dialect, reply.text, reply.finish_reason_raw) == ("some", "I look.", "COMPLETE")
    assert [(one.name, one.arguments) for one in reply.tool_calls] == [("get", '{"a": 1}')]
    assert codes(reply) == ["T015"]


def test_a_call_without_the_list_is_cut() -> None:
    delta = {"index": 0, "name": "get", "parameters": "{}"}
    reply = reply_to({"event_type": "tool-calls-chunk", "tool_call_delta": delta})
    assert [one.status for one in reply.tool_calls] == [CallStatus.TRUNCATED]
