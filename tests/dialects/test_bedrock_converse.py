from collections.abc import Sequence

import pytest

from deltatape.diagnose.check import check
from deltatape.dialects.bedrock_converse import BedrockConverse
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallStatus, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.events import codes, details, events, offering, reduced, spoilt
from helpers.eventstream import event, exception

Json = dict[str, object]
Frame = tuple[str, Json]
URL = "https://bedrock.example/model/m/converse-stream"


def start(index: int, **what: object) -> Frame:
    return "contentBlockStart", {"contentBlockIndex": index, "start": what}


def delta(index: int, **what: object) -> Frame:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": what}


def stop(index: int) -> Frame:
    return "contentBlockStop", {"contentBlockIndex": index}


def use(index: int, name: str, call_id: str, **more: object) -> Frame:
    return start(index, toolUse={"toolUseId": call_id, "name": name, **more})


def end(reason: str = "tool_use") -> Frame:
    return "messageStop", {"stopReason": reason}


def reply_to(*frames: Frame, exceptions: Sequence[int] = (), cut: bool = False) -> Reply:
    types = [kind for kind, _ in frames]
    fed = events(*(frame for _, frame in frames), types=types, exceptions=exceptions)
    return reduced(BedrockConverse(), fed, cut=cut)


STREAM: list[Frame] = [
    ("messageStart", {"role": "assistant"}),
    delta(0, reasoningContent={"text": "Hm."}),
    delta(0, reasoningContent={"signature": "abc"}),
    delta(0, reasoningContent={"redactedContent": "YWJj"}),
    stop(0),
    delta(1, text="Let me"),
    delta(1, text=" see", citation={"title": "t"}),
    stop(1),
    use(2, "get_weather", "t_1"),
    delta(2, toolUse={"input": ""}),
    delta(2, toolUse={"input": '{"city":'}),
    delta(2, toolUse={"input": ' "Gent"}'}),
    stop(2),
    use(3, "now", "t_2"),
    delta(3, toolUse={"input": ""}),
    stop(3),
    end(),
    ("metadata", {"usage": {"inputTokens": 3}, "metrics": {}}),
]


def test_blocks_become_text_reasoning_and_calls() -> None:
    reply = reply_to(*STREAM)
    assert (reply.text, reply.reasoning) == ("Let me see", "Hm.")
    assert [(c.wire_index, c.id, c.name, c.arguments, c.status) for c in reply.tool_calls] == [
        (2, "t_1", "get_weather", '{"city": "Gent"}', CallStatus.COMPLETE),
        (3, "t_2", "now", "", CallStatus.EMPTY_SUSPECT),
    ]
    assert (reply.finish_reason_raw, reply.usage) == ("tool_use", {"inputTokens": 3})
    assert reply.terminated
    assert reply.observations == ()


def test_a_call_without_input_is_fine_where_nothing_is_required() -> None:
    types = [kind for kind, _ in STREAM]
    fed = events(*(frame for _, frame in STREAM), types=types)
    assert reduced(BedrockConverse(), fed, offering("now")).tool_calls[1].status == "empty_ok"


def test_a_stream_that_is_cut_anywhere_leaves_no_call_whole_before_its_end() -> None:
    for length in range(STREAM.index(end())):
        for call in reply_to(*STREAM[:length], cut=True).tool_calls:
            whole = call.name == "get_weather" and length > STREAM.index(stop(2))
            assert (call.status is CallStatus.COMPLETE) is whole, (length, call)


def test_what_the_provider_runs_itself_is_not_a_call_of_the_application() -> None:
    reply = reply_to(
        use(0, "interpreter", "s_1", type="server_tool_use"),
        delta(0, toolUse={"input": '{"code":"1"}'}),
        stop(0),
        start(1, toolResult={"toolUseId": "s_1", "status": "success"}),
        delta(1, toolResult=[{"text": "1"}]),
        stop(1),
        start(2, image={"format": "png"}),
        stop(2),
        start(3),
        delta(3, text="one"),
        stop(3),
        end("end_turn"),
    )
    assert [(c.name, c.arguments, c.status) for c in reply.server_calls] == [
        ("interpreter", '{"code":"1"}', CallStatus.COMPLETE)
    ]
    assert (reply.tool_calls, reply.text, reply.observations) == ((), "one", ())


@pytest.mark.parametrize("reason", ["max_tokens", "malformed_tool_use", "guardrail_intervened"])
def test_an_abnormal_end_cuts_the_call(reason: str) -> None:
    reply = reply_to(use(0, "f", "i"), delta(0, toolUse={"input": '{"a'}), stop(0), end(reason))
    assert reply.tool_calls[0].status is CallStatus.TRUNCATED
    assert reply.finish_reason_raw == reason


def test_an_exception_is_an_error_and_not_a_terminal_event() -> None:
    reply = reply_to(
        delta(0, text="Let"),
        ("modelStreamErrorException", {"message": "down", "originalStatusCode": 500}),
        exceptions=[1],
    )
    assert (reply.text, reply.error, reply.terminated) == ("Let", "down", False)
    assert codes(reply) == ["S005"]


def test_a_violation_of_the_protocol_is_reported() -> None:
    reply = reply_to(
        delta(0, toolUse={"input": "{}"}),
        use(1, "f", "i"),
        end(),
        use(1, "g", "j"),
    )
    assert details(reply, "S006") == [
        "arguments of a call that never started",
        "nothing says that the call of '' is whole",
        "nothing says that the call of 'f' is whole",
        "content after the terminal event",
        "nothing says that the call of 'g' is whole",
    ]
    assert codes(reply).count("T012") == 1


def test_a_document_is_reduced_like_a_stream() -> None:
    content: list[Json] = [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
        {"text": "Let me see"},
        {"toolUse": {"toolUseId": "i", "name": "f", "input": {"a": [1, 2]}}},
        {"toolUse": {"toolUseId": "s", "name": "x", "input": {}, "type": "server_tool_use"}},
    ]
    document: Json = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 1},
    }
    reply = reply_to(("message", document))
    assert (reply.text, reply.reasoning) == ("Let me see", "Hm.")
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == [("i", "f", '{"a": [1, 2]}')]
    assert [c.name for c in reply.server_calls] == ["x"]
    assert reply.terminated
    assert reply.observations == ()


def test_an_error_body_is_an_error() -> None:
    assert reply_to(("message", {"message": "no access"})).error == "no access"
    assert reply_to(("message", {"Message": "no access"})).error == "no access"


def test_bytes_of_the_event_stream_come_out_as_calls() -> None:
    body = b"".join(event(kind, frame) for kind, frame in STREAM)
    media = "application/vnd.amazon.eventstream"
    found = check(Exchange.from_body(body, content_type=media, url=URL))
    assert [finding.code for finding in found] == ["T001"]
    body = event("messageStart", {}) + exception("throttlingException", "slow down")
    found = check(Exchange.from_body(body, content_type=media, url=URL))
    assert [finding.code for finding in found] == ["S005"]


@pytest.mark.slow
def test_no_value_of_any_type_anywhere_raises() -> None:
    types = [kind for kind, _ in STREAM]
    for frames in spoilt([frame for _, frame in STREAM]):
        reduced(BedrockConverse(), events(*frames, types=types))


PATH = "/model/some.model%3A0/converse-stream"


def test_what_is_not_an_object_asks_for_nothing() -> None:
    assert BedrockConverse().read_request(b"1", PATH) is NOTHING_ASKED


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        (PATH, "some.model:0", True),
        ("/bedrock/model/m/converse", "m", False),
        ("/model/arn%3Aaws%3Abedrock%2Fx/converse", "arn:aws:bedrock/x", False),
        ("/model/arn:aws:bedrock/x/converse-stream/", "arn:aws:bedrock/x", True),
        ("/converse", None, False),
        ("", None, False),
    ],
)
def test_the_path_names_model_and_method(path: str, model: str | None, stream: bool) -> None:  # noqa: FBT001
    asked = BedrockConverse().read_request(b'{"messages": [{"role": "user"}]}', path)
    assert (asked.model, asked.stream) == (model, stream)
    assert [one.role for one in asked.history] == ["user"]
