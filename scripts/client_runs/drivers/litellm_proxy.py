"""An application behind LiteLLM's proxy, which it starts and stops: a loop that runs a shell."""

import json
import socket
import subprocess
import sys
from pathlib import Path

from openai import OpenAI

TOOL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Run a command of the shell.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def turn(client: OpenAI, messages: list) -> bool:
    """Ask once; return whether the model called the tool, whose results are then there."""
    text, calls = "", {}
    asked = {"model": "gpt-4.1", "messages": messages, "tools": [TOOL], "stream": True}
    for chunk in client.chat.completions.create(**asked):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.id or ""
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""
    said = [{"id": call.pop("id"), "type": "function", "function": call} for call in calls.values()]
    messages.append(
        {"role": "assistant", "content": text, **({"tool_calls": said} if said else {})}
    )
    for call in said:
        result = {"role": "tool", "tool_call_id": call["id"]}
        try:
            command = json.loads(call["function"]["arguments"])["command"]
            ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            messages.append({**result, "content": ran.stdout})
        except (ValueError, KeyError) as error:
            messages.append({**result, "content": f"invalid arguments: {error!r}"})
    return bool(said)


with socket.socket() as sock:
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
argv = ["litellm", "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
with Path("proxy.log").open("wb") as log:
    proxy = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        for line in proxy.stdout:
            log.write(line)
            if b"Uvicorn running" in line:
                break
        client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
        messages = [{"role": "user", "content": sys.argv[1]}]
        while turn(client, messages):
            pass
        print(messages[-1]["content"])
    finally:
        proxy.kill()
        proxy.wait()
