"""A WebSocket on which OpenAI Responses come."""

import json
from collections.abc import Iterable, Mapping

from deltatape.model.websocket import Side
from helpers.websocket import KEY, text

Sent = tuple[Side, bytes]
TOOLS = [
    {
        "type": "function",
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]


def asks(**members: object) -> Sent:
    """A request of the client."""
    request = {"type": "response.create", "model": "gpt-5", "tools": TOOLS, **members}
    return Side.CLIENT, text(json.dumps(request), mask=KEY)


def question(words: str = "Weather in Ghent?") -> Sent:
    """A request with a user's words."""
    content = [{"type": "input_text", "text": words}]
    return asks(input=[{"type": "message", "role": "user", "content": content}])


def result(number: int, output: str = "rain") -> Sent:
    """A request with the result of the call in response `number`, which it continues."""
    item = {"type": "function_call_output", "call_id": f"call_{number}", "output": output}
    return asks(previous_response_id=f"resp_{number}", input=[item])


def says(*events: Mapping[str, object]) -> list[Sent]:
    """Events of the server, a message each."""
    return [(Side.SERVER, text(json.dumps(event))) for event in events]


def call(number: int, arguments: str = '{"city":"Ghent"}', *, ends: bool = True) -> list[Sent]:
    """Response `number`, with one call."""
    item = {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": "get_weather",
        "arguments": "",
        "status": "in_progress",
    }
    done = {**item, "arguments": arguments, "status": "completed"}
    response = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "in_progress",
        "output": [],
    }
    at = {"item_id": f"fc_{number}", "output_index": 0}
    usage = {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}
    completed = {**response, "status": "completed", "output": [done], "usage": usage}
    pieces = (arguments[:7], arguments[7:])
    events: list[Mapping[str, object]] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": "response.function_call_arguments.delta", **at, "delta": x} for x in pieces),
        {"type": "response.function_call_arguments.done", **at, "arguments": arguments},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": completed},
    ]
    return says(*numbered(events if ends else events[:3]))


def numbered(events: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Events with their sequence numbers."""
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]
