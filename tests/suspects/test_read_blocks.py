import base64
import json

from deltatape.suspects.read_blocks import block_steps
from deltatape.suspects.steps import Entry, Finish, Phase, Step
from helpers import messages as m
from helpers.eventstream import message
from helpers.suspected import AWS, SSE, deliver

CONVERSE = "http://127.0.0.1/model/x/converse-stream"
INVOKE = "http://127.0.0.1/model/x/invoke-with-response-stream"
COHERE = "http://127.0.0.1/v2/chat"


def _steps(body: bytes, url: str = m.URL, media: str = SSE) -> list[Step]:
    return [*block_steps(deliver(body, url=url, media=media).events)]


def _told(steps: list[Step]) -> list[tuple[str, int | None, str | None]]:
    return [(one.phase.value, one.index, one.text) for one in steps if isinstance(one, Entry)]


def test_a_block_begins_is_filled_and_ends() -> None:
    found = _steps(m.sse(m.start(), m.tool_block(1), m.piece("{}", 1), m.stop(1), *m.END))
    assert _told(found) == [("start", 1, "{}"), ("delta", 1, "{}"), ("close", 1, None)]
    assert found[-1] == Finish(4, "tool_use")


def test_text_and_tools_of_the_provider_are_passed_over() -> None:
    frames = [m.text_block(), m.text("x"), m.stop(), m.tool_block(1, kind="server_tool_use")]
    assert _steps(m.sse(*frames, m.piece("{}", 1), m.stop(1), m.reason(None))) == []


def test_a_message_that_is_whole_has_whole_calls() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "get", "input": {"a": 1}}
    text = {"type": "text", "text": "x"}
    body = {"type": "message", "content": [text, call], "stop_reason": "tool_use"}
    found = _steps(json.dumps(body).encode(), media="application/json")
    assert found[0] == Entry(0, Phase.WHOLE, at=1, id="c1", name="get", text='{"a":1}')
    assert found[1] == Finish(0, "tool_use")


def _aws(*events: tuple[str, object]) -> bytes:
    return b"".join(
        message({":message-type": "event", ":event-type": kind}, json.dumps(value).encode())
        for kind, value in events
    )


_CALL: tuple[tuple[str, object], ...] = (
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}}),
    ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("messageStop", {"stopReason": "tool_use"}),
)


def test_converse_names_the_type_outside() -> None:
    found = _steps(_aws(*_CALL), CONVERSE, AWS)
    assert _told(found) == [("start", 1, None), ("delta", 1, "{}"), ("close", 1, None)]
    assert found[-1] == Finish(5, "tool_use")


def test_tools_that_converse_runs_itself_are_passed_over() -> None:
    use = {"toolUseId": "t", "type": "server_tool_use"}
    start = ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": use}})
    assert _steps(_aws(start), CONVERSE, AWS) == []


def test_messages_on_bedrock_carry_events() -> None:
    inner = [m.start(), m.tool_block(0), m.stop(0), {"contentBlockStop": {"contentBlockIndex": 7}}]
    carried = [
        ("chunk", {"bytes": base64.b64encode(json.dumps(one).encode()).decode()}) for one in inner
    ]
    found = _steps(_aws(*carried, ("chunk", {"bytes": "???"})), INVOKE, AWS)
    assert _told(found) == [("start", 0, "{}"), ("close", 0, None)]


def test_cohere_has_one_call_per_event() -> None:
    def event(kind: str, **call: object) -> dict[str, object]:
        return {"type": kind, "index": 0, "delta": {"message": {"tool_calls": call}}}

    frames: list[dict[str, object]] = [
        event("tool-call-start", id="c1", function={"name": "get", "arguments": ""}),
        event("tool-call-delta", function={"arguments": "{}"}),
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    ]
    found = _steps(m.sse(*frames), COHERE)
    assert _told(found) == [("start", 0, ""), ("delta", 0, "{}"), ("close", 0, None)]
    assert found[-1] == Finish(3, "TOOL_CALL")
