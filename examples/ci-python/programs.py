"""The two applications under test, as their users have them: a terminal and an endpoint.

VERSION=broken tests them as they went wrong; otherwise they are tested as they were mended.
"""

# ruff: noqa: INP001 - programs in a folder, no package
import json
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

VERSION = os.environ.get("VERSION", "fixed")
INCIDENTS = Path(__file__).resolve().parents[1] / "incidents"
ASSISTANT = INCIDENTS / "5-agent-loop" / f"{VERSION}.py"
ENDPOINT = INCIDENTS / "3-app-events" / f"{VERSION}.py"
LIMIT_S = 20


def converse(*says: str) -> list[str]:
    """What the terminal assistant answers."""
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, ASSISTANT],
        input="".join(f"{line}\n" for line in says),
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return [line.removeprefix("assistant: ") for line in ended.stdout.splitlines()]


def ask(question: str) -> list[dict[str, object]]:
    """The events with which the chat endpoint answers."""
    port = str(free_port())
    server = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, ENDPOINT, port], stderr=subprocess.PIPE, text=True
    )
    with server:
        try:
            assert server.stderr is not None
            assert "listening" in server.stderr.readline()
            return list(events(f"http://127.0.0.1:{port}/api/chat", question))
        finally:
            server.kill()


def events(url: str, question: str) -> list[dict[str, object]]:
    """Ask an endpoint that streams events of its own."""
    body = json.dumps({"messages": [{"role": "user", "content": question}], "stream": True})
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})  # noqa: S310 - ours
    with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:  # noqa: S310 - ours
        return [json.loads(line[6:]) for line in answer if line.startswith(b"data: ")]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
