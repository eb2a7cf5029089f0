"""The provider's stream and the tools of the terminal assistant, for both versions."""

# ruff: noqa: INP001 - programs in a folder, no package
import contextlib
import http.client
import json
import os
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

_PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": _PATH},
    }
    for name, description in (
        ("list_directory", "The files of a folder."),
        ("read_file", "What is in a file."),
    )
]
SYSTEM = {"role": "system", "content": "You help in a terminal. Call tools when helpful."}
_FILES = {".": ["README.md", "main.py", "src"], "src": ["agent.py", "ui.py"]}


def run_tool(name: str, arguments: dict[str, str]) -> str:
    """What a tool says."""
    path = arguments.get("path", ".")
    if name == "list_directory":
        return json.dumps({"files": _FILES.get(path, [])})
    return json.dumps({"text": f"({path} is empty)"})


def deltas(
    messages: list[dict[str, object]], **options: object
) -> Iterator[tuple[dict[str, object], str | None]]:
    """Ask the provider; the delta and the finish reason of each chunk."""
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    body = {"model": "agent-model", "stream": True, "messages": messages, "tools": TOOLS, **options}
    key = os.environ.get("OPENAI_API_KEY", "no-key")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", f"{url.path}/chat/completions", json.dumps(body), headers)
        for line in connection.getresponse():
            if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                choice = json.loads(line[6:])["choices"][0]
                yield choice["delta"], choice["finish_reason"]


def lines() -> Iterator[str]:
    """What the user says."""
    return (line.strip() for line in sys.stdin)


def say(text: str) -> None:
    """A line for the user."""
    sys.stdout.write(f"assistant: {text}\n")
    sys.stdout.flush()


def log(text: str) -> None:
    """A line for the developer."""
    sys.stderr.write(f"agent: {text}\n")
