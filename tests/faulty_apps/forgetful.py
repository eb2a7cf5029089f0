"""A small application that asks for a call and answers it; mended, it keeps the call's arguments.

Run as a program: `forgetful.py [mended]`. It talks to $OPENAI_BASE_URL, as real ones do.
"""

import http.client
import json
import os
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "What is the weather in Gent?"}
CHUNKS = (
    {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "get_weather"}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '"Gent"}'}}]},
)
"""What its provider answers first."""


def ask(messages: list[object]) -> Iterator[dict[str, object]]:
    """The deltas of the answer."""
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=10)
    body = {"model": "m", "stream": True, "messages": messages, "tools": [TOOL]}
    connection.request("POST", f"{url.path}/chat/completions", json.dumps(body))
    for line in connection.getresponse().read().split(b"\n"):
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])["choices"][0]["delta"]


def main(*, mended: bool) -> None:
    """Ask, run the tool, go on."""
    identifier = name = arguments = ""
    for delta in ask([USER]):
        for entry in delta.get("tool_calls") or ():  # type: ignore[attr-defined]
            function = entry.get("function", {})
            identifier = entry.get("id") or identifier
            name = function.get("name") or name
            piece = function.get("arguments") or ""
            arguments = arguments + piece if mended or not piece else ""
    call = {"id": identifier, "type": "function"}
    call["function"] = {"name": name, "arguments": arguments}  # type: ignore[assignment]
    heard = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": identifier, "content": "rain"}
    for _ in ask([USER, heard, result]):
        pass


if __name__ == "__main__":
    main(mended="mended" in sys.argv)
