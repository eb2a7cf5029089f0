"""Sessions of OpenAI Realtime on a WebSocket."""

import json
from collections.abc import Mapping

from deltatape.model.websocket import Side
from helpers.websocket import KEY, close, text

Sent = tuple[Side, bytes]
Json = Mapping[str, object]
TOOLS = [
    {
        "type": "function",
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]
CLOSE: list[Sent] = [(Side.CLIENT, close(mask=KEY)), (Side.SERVER, close())]


def asks(kind: str, **members: object) -> Sent:
    """A message of the client."""
    return Side.CLIENT, text(json.dumps({"type": kind, **members}), mask=KEY)


def says(kind: str, **members: object) -> Sent:
    """A message of the server."""
    return Side.SERVER, text(json.dumps({"type": kind, "event_id": "event_1", **members}))


def begins(**settings: object) -> list[Sent]:
    """A session begins, with a tool."""
    session = {"type": "realtime", "model": "gpt-realtime", "tools": TOOLS, **settings}
    return [
        says("session.created", session={"type": "realtime", "model": "gpt-realtime"}),
        asks("session.update", session=session),
        says("session.updated", session=session),
    ]


def adds(item: Json) -> list[Sent]:
    """The client adds an item."""
    return [
        asks("conversation.item.create", item=item),
        says("conversation.item.added", previous_item_id=None, item={"id": "item_0", **item}),
    ]


def user(words: str = "Weather in Ghent?") -> list[Sent]:
    """The client adds what a user wrote."""
    content = [{"type": "input_text", "text": words}]
    return adds({"type": "message", "role": "user", "content": content})


def result(call_id: str, output: str = "rain") -> list[Sent]:
    """The client adds a result."""
    return adds({"type": "function_call_output", "call_id": call_id, "output": output})


def response(number: int, status: str = "in_progress", **members: object) -> Json:
    """The object of response `number`."""
    return {
        "object": "realtime.response",
        "id": f"resp_{number}",
        "status": status,
        "status_details": None,
        "output": [],
        "conversation_id": "conv_1",
        **members,
    }


def created(number: int, **members: object) -> Sent:
    """Response `number` begins."""
    return says("response.created", response={**response(number), **members})


def done(
    number: int,
    output: list[Json],
    status: str = "completed",
    details: Json | None = None,
    **members: object,
) -> Sent:
    """Response `number` ends."""
    filled: dict[str, object] = {"output": output, "status_details": details, **members}
    whole = {**response(number, status), **filled}
    return says("response.done", response=whole)


def call_item(name: str, arguments: str = "", status: str = "in_progress") -> Json:
    """A call, as an item: `call_NAME`."""
    return {
        "id": f"item_{name}",
        "object": "realtime.item",
        "type": "function_call",
        "status": status,
        "name": "get_weather",
        "call_id": f"call_{name}",
        "arguments": arguments,
    }


def arguments_of(name: str) -> str:
    """The arguments of the call `call_NAME`."""
    return json.dumps({"city": f"Ghent {name}"})


def calls(number: int, *names: str, ends: bool = True) -> list[Sent]:
    """Response `number`, with calls: `call_NAME`; cut in the arguments if it does not end."""
    sent = [created(number)]
    for index, name in enumerate(names):
        arguments = arguments_of(name)
        at = {"response_id": f"resp_{number}", "output_index": index}
        part = {**at, "item_id": f"item_{name}", "call_id": f"call_{name}"}
        whole = call_item(name, arguments, "completed")
        sent += [
            says("response.output_item.added", **at, item=call_item(name)),
            says("response.function_call_arguments.delta", **part, delta=arguments[:7]),
        ]
        if ends:
            sent += [
                says("response.function_call_arguments.delta", **part, delta=arguments[7:]),
                says("response.function_call_arguments.done", **part, arguments=arguments),
                says("response.output_item.done", **at, item=whole),
            ]
    if ends:
        items = [call_item(name, arguments_of(name), "completed") for name in names]
        sent.append(done(number, items))
    return sent


BETA = ("response.audio_transcript", "response.audio", "response.text")
CURRENT = ("response.output_audio_transcript", "response.output_audio", "response.output_text")


def spoken(
    number: int, words: str = "It rains in Ghent.", names: tuple[str, str, str] = CURRENT
) -> list[Sent]:
    """Response `number`, spoken."""
    transcript, audio, _ = names
    at = {"response_id": f"resp_{number}", "output_index": 0}
    part = {**at, "item_id": f"item_{number}", "content_index": 0}
    item = {"id": f"item_{number}", "type": "message", "role": "assistant", "content": []}
    content = [{"type": audio.removeprefix("response."), "transcript": words}]
    whole = {**item, "status": "completed", "content": content}
    return [
        created(number),
        says("response.output_item.added", **at, item={**item, "status": "in_progress"}),
        says("response.content_part.added", **part, part={"type": "audio", "transcript": ""}),
        says(f"{transcript}.delta", **part, delta=words[:5]),
        says(f"{audio}.delta", **part, delta="AAAA"),
        says(f"{transcript}.delta", **part, delta=words[5:]),
        says(f"{audio}.done", **part),
        says(f"{transcript}.done", **part, transcript=words),
        says("response.content_part.done", **part, part={"type": "audio", "transcript": words}),
        says("response.output_item.done", **at, item=whole),
        done(number, [whole]),
    ]


def interrupted(number: int, reason: str = "turn_detected") -> list[Sent]:
    """Response `number`, spoken, and cancelled after its first words."""
    cut = spoken(number)[:5]
    item: dict[str, object] = {"id": f"item_{number}", "type": "message", "role": "assistant"}
    item |= {
        "status": "incomplete",
        "content": [{"type": "output_audio", "transcript": "It rains in"}],
    }
    at = {"response_id": f"resp_{number}", "output_index": 0}
    return [
        *cut,
        says("response.output_item.done", **at, item=item),
        done(number, [item], "cancelled", {"type": "cancelled", "reason": reason}),
    ]
