"""Streams of an application's own endpoint, for tests of what it sends its page."""

from deltatape.model.exchange import Exchange
from helpers.chat import sse

Json = dict[str, object]
URL = "http://127.0.0.1:3000/agent/stream"


def text(content: object) -> Json:
    """A piece of text."""
    return {"type": "text", "content": content}


def call(name: object = "get", arguments: object = None, **more: object) -> Json:
    """A call; without `arguments` it has an object."""
    return {
        "type": "tool_call",
        "name": name,
        "arguments": {"a": 1} if arguments is None else arguments,
        **more,
    }


def result(name: object = "get", **more: object) -> Json:
    """The result of a call."""
    return {"type": "tool_result", "name": name, "result": {"ok": True}, **more}


def done(content: object = None) -> Json:
    """The last event, with the whole text in `content` if given."""
    return {"type": "done"} if content is None else {"type": "done", "content": content}


def told(*frames: object) -> Exchange:
    """An exchange without times in which the application streamed `frames`."""
    body = sse(*frames, done=False)
    return Exchange.from_body(body, content_type="text/event-stream", url=URL)


def ui(*frames: Json, finish: str | None = "stop") -> Exchange:
    """As `told`, in the events of the AI SDK, from the start to `finish` and the sentinel."""
    end = {"type": "finish", "finishReason": finish} if finish else {"type": "finish"}
    return told({"type": "start", "messageId": "m"}, {"type": "start-step"}, *frames, end, "[DONE]")


def available(call_id: str = "c1", name: object = "get", value: object = None) -> Json:
    """A whole call in the events of the AI SDK; without `value` its input is an object."""
    return {
        "type": "tool-input-available",
        "toolCallId": call_id,
        "toolName": name,
        "input": {"a": 1} if value is None else value,
    }


def output(call_id: str = "c1") -> Json:
    """The result of such a call."""
    return {"type": "tool-output-available", "toolCallId": call_id, "output": 1}
