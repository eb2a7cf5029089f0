"""An agent: it asks a model, and runs what that calls on an MCP server, by the official SDK.

argv: the fault that it has, then the server: its command, or its URL.
"""

import asyncio
import json
import os
import sys
import urllib.request
from importlib import import_module
from typing import Any

PREFIX = "mcp__weather__"
FAULT, *SERVER = sys.argv[1:]


def ask(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the model's message."""
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    head = {"Content-Type": "application/json", "Authorization": "Bearer sk-fake-000000"}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    asked = urllib.request.Request(url, body, head)  # noqa: S310 - the test's own provider
    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - as above
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return message


async def run(session: Any, name: str, arguments: dict[str, Any]) -> str:
    """Return what the server answers; an error as text, as clients do."""
    if FAULT == "arguments":
        arguments = {**arguments, "city": "Bruges"}
    if FAULT == "not asked":
        return "Sunny, 25 degrees"
    try:
        result = await session.call_tool(name, arguments)
    except Exception as error:  # noqa: BLE001 - the model is told
        return f"Error: {error}"
    return "" if FAULT == "result" else "".join(part.text for part in result.content)


async def converse(session: Any) -> None:
    """Ask, run the calls, and ask again."""
    await session.initialize()
    tools = [
        {
            "type": "function",
            "function": {"name": PREFIX + tool.name, "parameters": tool.input_schema},
        }
        for tool in (await session.list_tools()).tools
    ]
    messages = [{"role": "user", "content": "What is the weather?"}]
    said = ask(messages, tools)
    messages.append(said)
    for call in said["tool_calls"]:
        name = call["function"]["name"].removeprefix(PREFIX)
        content = await run(session, name, json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    sys.stdout.write(ask(messages, tools)["content"] + "\n")


async def main() -> None:
    """Connect to the server and converse."""
    mcp = import_module("mcp")
    if SERVER[0].startswith("http"):
        http = import_module("mcp.client.streamable_http")
        connected = http.streamable_http_client(SERVER[0])
    else:
        connected = mcp.stdio_client(mcp.StdioServerParameters(command=SERVER[0], args=SERVER[1:]))
    async with connected as streams, mcp.ClientSession(*streams[:2]) as session:
        await converse(session)


asyncio.run(main())
