"""The demo's application: a trip planner that streams tool calls, once broken and once fixed.

    python -m deltatape.demo.app --accumulator single-call|by-index

It is what a small agent looks like without an SDK: one request, the calls it made of the stream,
their results in a second request, the answer. The two accumulators differ in one decision, which
is a common mistake: to which call a fragment without an id belongs. Reads OPENAI_BASE_URL. Exit
code 0 when it has an answer for its user, 1 when it has none.
"""

import argparse
import http.client
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60.0

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in required},
                "required": required,
            },
        },
    }
    for name, description, required in (
        ("get_itinerary", "The bookings of a trip so far.", ["trip_id"]),
        ("search_flights", "Flights between two cities on a day.", ["origin", "to", "day"]),
    )
]

QUESTION = {
    "role": "user",
    "content": "What is booked for trip LIS-2027, and is there a flight from Berlin to Lisbon on"
    " 4 May?",
}


@dataclass
class AppToolCall:
    """A tool call as this application understands it."""

    id: str
    name: str
    arguments: str = ""


@dataclass
class AppReading:
    """The result of the application for a stream."""

    calls: list[AppToolCall] = field(default_factory=list)
    text: str = ""


Accumulator = Callable[[Iterator[dict[str, Any]]], AppReading]


def single_call(deltas: Iterator[dict[str, Any]]) -> AppReading:
    """Broken: append fragments to the call that was opened last, whatever their index."""
    understood = AppReading()
    current: AppToolCall | None = None
    for delta in deltas:
        understood.text += delta.get("content") or ""
        for part in delta.get("tool_calls") or ():
            function = part.get("function") or {}
            if current is None or part.get("id"):
                current = AppToolCall(part["id"], function["name"])
                understood.calls.append(current)
            current.arguments += function.get("arguments") or ""
    return understood


def by_index(deltas: Iterator[dict[str, Any]]) -> AppReading:
    """Fixed: append fragments to the call of their index."""
    understood = AppReading()
    calls: dict[int, AppToolCall] = {}
    for delta in deltas:
        understood.text += delta.get("content") or ""
        for part in delta.get("tool_calls") or ():
            function = part.get("function") or {}
            call = calls.get(part["index"])
            if call is None:
                call = calls[part["index"]] = AppToolCall(part["id"], function["name"])
                understood.calls.append(call)
            call.arguments += function.get("arguments") or ""
    return understood


ACCUMULATORS: dict[str, Accumulator] = {"single-call": single_call, "by-index": by_index}


def stream(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Request a stream; yield the deltas of the first choice."""
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT_S)
    request = {"model": "demo-model", "stream": True, "tools": TOOLS, "messages": messages}
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'no-key')}",
    }
    try:
        connection.request("POST", url.path + "/chat/completions", json.dumps(request), headers)
        response = connection.getresponse()
        for line in response:
            data = line.removeprefix(b"data:").strip()
            if line.startswith(b"data:") and data != b"[DONE]":
                yield from (choice["delta"] for choice in json.loads(data).get("choices", ()))
    finally:
        connection.close()


def run_tool(call: AppToolCall) -> str:
    """Pretend to run the tool; return its result."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError as error:
        print(f"app: {call.name} failed: bad arguments {call.arguments!r}: {error}")
        return json.dumps({"error": f"bad arguments: {error}"})
    print(f"app: {call.name}({arguments})")
    return json.dumps({"ok": True, "asked": arguments})


def answer(accumulate: Accumulator) -> str:
    """Answer the question, with tools if the model wants them."""
    messages: list[dict[str, Any]] = [QUESTION]
    first = accumulate(stream(messages))
    if not first.calls:
        return first.text
    messages.append(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in first.calls
            ],
        }
    )
    messages += (
        {"role": "tool", "tool_call_id": call.id, "content": run_tool(call)} for call in first.calls
    )
    return accumulate(stream(messages)).text


def main() -> int:
    """Run the application; its exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulator", choices=ACCUMULATORS, required=True)
    options = parser.parse_args()
    try:
        text = answer(ACCUMULATORS[options.accumulator])
    except (OSError, http.client.HTTPException) as error:
        print(f"app: the stream broke: {error!r}")
        return 1
    print(f"app: {text}" if text else "app: (the assistant said nothing)")
    return 0 if text else 1


if __name__ == "__main__":
    sys.exit(main())
