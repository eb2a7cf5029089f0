"""An agent: it asks a model, and runs what that calls on an MCP server, by the official SDK.

argv: JSON of its conversations (the name of the tape or "", the fault that it has, the city that it
asks about), then the server: its command, or its URL.
"""

import asyncio
import json
import os
import re
import sys
import urllib.request
from importlib import import_module
from typing import Any

PREFIX = "mcp__weather__"
CONVERSATIONS, *SERVER = sys.argv[1:]


def on_tape(url: str, tape: str) -> str:
    """The URL by which a recorder tapes on a tape of that name."""
    scheme, host, path = re.fullmatch(r"(.*//)([^/]*)(.*)", url).groups()  # type: ignore[union-attr]
    return f"{scheme}{host}/s/{tape}{path}" if tape else url


def ask(tape: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the model's message."""
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    head = {"Content-Type": "application/json", "Authorization": "Bearer sk-fake-000000"}
    url = on_tape(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", tape)
    asked = urllib.request.Request(url, body, head)  # noqa: S310 - the test's own provider
    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - as above
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


async def run(session: Any, fault: str, name: str, arguments: dict[str, Any]) -> str:
    """Return what the server answers; an error as text, as clients do."""
    if fault == "arguments":
        arguments = {**arguments, "city": "Bruges"}
    if fault == "not asked":
        return "Sunny, 25 degrees"
    try:
        result = await session.call_tool(name, arguments)
    except Exception as error:  # noqa: BLE001 - the model is told
        return f"Error: {error}"
    return "" if fault == "result" else "".join(part.text for part in result.content)


async def converse(session: Any, tape: str, fault: str, city: str) -> None:
    """Ask, run the calls, and ask again."""
    await session.initialize()
    tools = [
        {
            "type": "function",
            "function": {"name": PREFIX + tool.name, "parameters": tool.input_schema},
        }
        for tool in (await session.list_tools()).tools
    ]
    messages = [{"role": "user", "content": f"What is the weather in {city}?"}]
    said = ask(tape, messages, tools)
    messages.append(said)
    for call in said["tool_calls"]:
        name = call["function"]["name"].removeprefix(PREFIX)
        content = await run(session, fault, name, json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    sys.stdout.write(ask(tape, messages, tools)["content"] + "\n")


async def main() -> None:
    """Connect to the server and converse, each time anew."""
    mcp = import_module("mcp")
    http = import_module("mcp.client.streamable_http")
    command = mcp.StdioServerParameters(command=SERVER[0], args=SERVER[1:])
    for tape, fault, city in json.loads(CONVERSATIONS):
        if SERVER[0].startswith("http"):
            connected = http.streamable_http_client(on_tape(SERVER[0], tape))
        else:
            connected = mcp.stdio_client(command)
        async with connected as streams, mcp.ClientSession(*streams[:2]) as session:
            await converse(session, tape, fault, city)


asyncio.run(main())
