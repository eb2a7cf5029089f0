"""Responses built in a line, for tests that write the wire out."""

import json
from collections.abc import Sequence

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.reply import Reply

URL = "http://127.0.0.1/v1/responses"

Object = dict[str, object]


def sse(*events: object, lines: bool = True) -> bytes:
    """An event stream of `events` (objects, or texts that are sent as data), with event `lines`."""
    frames = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        named = lines and isinstance(event, dict) and "type" in event
        line = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
        frames.append(f"{line}data: {data}\n\n")
    return "".join(frames).encode()


def numbered(*events: Object, first: int = 0) -> list[Object]:
    """`events` with sequence numbers."""
    return [{**event, "sequence_number": at} for at, event in enumerate(events, first)]


def exchange(
    body: bytes, request: Object | None = None, content_type: str = "text/event-stream"
) -> Exchange:
    """An exchange whose answer is `body`."""
    return Exchange.from_body(body, content_type=content_type, url=URL, request=request)


def reply_to(*events: object, request: Object | None = None) -> Reply:
    """The reply of a stream of `events`."""
    return rebuild(exchange(sse(*events), request))


def findings(*events: object, request: Object | None = None) -> list[Finding]:
    """The findings about a stream of `events`."""
    return list(check(exchange(sse(*events), request)))


def codes(*events: object, request: Object | None = None) -> list[str]:
    """The codes of the findings about a stream of `events`."""
    return [finding.code for finding in findings(*events, request=request)]


def response(status: str = "completed", output: Sequence[object] = (), **more: object) -> Object:
    """A response object."""
    return {
        "id": "resp_fake",
        "object": "response",
        "model": "m",
        "status": status,
        "output": list(output),
        **more,
    }


def created() -> Object:
    """The first event."""
    return {"type": "response.created", "response": response("in_progress")}


def ended(*output: object, status: str = "completed", **more: object) -> Object:
    """The last event, which lists `output`."""
    return {"type": f"response.{status}", "response": response(status, output, **more)}


def added(item: object, index: object = 0) -> Object:
    """`response.output_item.added`."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item: object, index: object = 0) -> Object:
    """`response.output_item.done`."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def part(kind: str, index: object = 0, item_id: object = "fc_1", **more: object) -> Object:
    """An event `response.<kind>` about a part of an item; an `item_id` of None is left out."""
    named = {} if item_id is None else {"item_id": item_id}
    return {"type": f"response.{kind}", "output_index": index, **named, **more}


def delta(text: object, index: object = 0, item_id: object = "fc_1") -> Object:
    """A piece of the arguments of a function."""
    return part("function_call_arguments.delta", index, item_id, delta=text)


def say(text: object, index: object = 0, content: int = 0) -> Object:
    """A piece of text."""
    return part("output_text.delta", index, "msg_1", content_index=content, delta=text)


def function(arguments: object = "", number: int = 1, **more: object) -> Object:
    """A function call as an item."""
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": "get",
        "arguments": arguments,
        **more,
    }


def message(*texts: str, item_id: str = "msg_1", **more: object) -> Object:
    """A message as an item, with a part per text."""
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"id": item_id, "type": "message", "role": "assistant", "content": parts, **more}


def call(arguments: str = '{"a":1}', index: int = 0, number: int = 1) -> list[Object]:
    """The events of a healthy call in two pieces, without the last event of the stream."""
    half, item_id = len(arguments) // 2, f"fc_{number}"
    return [
        added(function(number=number), index),
        delta(arguments[:half], index, item_id),
        delta(arguments[half:], index, item_id),
        part("function_call_arguments.done", index, item_id, arguments=arguments),
        done(function(arguments, number), index),
    ]


def custom_calls(*inputs: str) -> list[Object]:
    """All events of a response with calls of a custom tool, one for each input."""
    items: list[Object] = [
        {
            "id": f"ctc_{at}",
            "type": "custom_tool_call",
            "call_id": f"call_{at}",
            "name": "run",
            "input": text,
        }
        for at, text in enumerate(inputs)
    ]
    events = [
        event
        for at, item in enumerate(items)
        for event in (added({**item, "input": ""}, at), done(item, at))
    ]
    return [created(), *events, ended(*items)]
