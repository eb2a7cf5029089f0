"""Mended: calls are collected by their index and told to the page once they are whole.

A call without a name, or with arguments that are no object, is an `error` for the page; else the
tool runs, its result goes to the page and to the model, and `done` ends the answer.
"""

# ruff: noqa: INP001 - a program
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from service import Json, chunks, get_stock_analysis, log, serve

MAX_ROUNDS = 3


@dataclass
class Reply:
    """What the provider said."""

    text: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)


def read(messages: list[Json], reply: Reply) -> Iterator[Json]:
    """Text events as they come; the rest goes to `reply`."""
    for chunk in chunks(messages):
        delta = chunk["choices"][0]["delta"]
        if delta.get("content"):
            reply.text += delta["content"]
            yield {"type": "text", "content": delta["content"]}
        for part in delta.get("tool_calls") or ():
            new = {"id": "", "name": "", "arguments": ""}
            call = reply.calls.setdefault(part["index"], new)
            function = part.get("function") or {}
            call["id"] = call["id"] or part.get("id") or ""
            call["name"] = call["name"] or function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""


def run(call: dict[str, str]) -> tuple[dict[str, object], Json]:
    """The arguments of a call and its result.

    Raises:
        ValueError: it has no name that we know, or its arguments are no JSON object.
    """
    if call["name"] != "get_stock_analysis":
        raise ValueError(f"the model's call has no name that we know: {call['name']!r}")
    arguments = json.loads(call["arguments"] or "{}")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {call['name']} are no object")  # noqa: TRY004
    return arguments, get_stock_analysis(**arguments)


def spoken(reply: Reply) -> Json:
    """The reply as a message of the history."""
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in reply.calls.values()
    ]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": calls}


def events(messages: list[Json]) -> Iterator[Json]:
    """The answer to the page."""
    full = ""
    for _ in range(MAX_ROUNDS):
        reply = Reply()
        yield from read(messages, reply)
        full += reply.text
        if not reply.calls:
            yield {"type": "done", "content": full}
            return
        messages.append(spoken(reply))
        for call in reply.calls.values():
            try:
                arguments, result = run(call)
            except ValueError as error:
                log(str(error))
                yield {"type": "error", "content": str(error)}
                return
            yield {"type": "tool_call", "name": call["name"], "arguments": arguments}
            yield {"type": "tool_result", "name": call["name"], "result": result}
            answer = {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)}
            messages.append(answer)
    yield {"type": "error", "content": "the model did not come to an end"}


if __name__ == "__main__":
    serve(events)
