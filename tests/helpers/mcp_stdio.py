"""An MCP server over stdin and stdout, and a client that starts it through `record --mcp-stdio`."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from helpers.program import environment

SERVER = """
import json, os, sys

def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

for line in sys.stdin:
    asked = json.loads(line)
    if isinstance(asked, list):
        print(json.dumps([{"jsonrpc": "2.0", "id": each["id"], "result": {}} for each in asked]),
              flush=True)
        continue
    params, method = asked.get("params", {}), asked.get("method")
    if method == "tools/call":
        name, arguments = params["name"], params["arguments"]
        if name == "exit":
            sys.exit(arguments["code"])
        if name == "wait":
            continue
        if name == "chat":
            print("a line that is no message", flush=True)
            say(id="s1", method="roots/list")
            say(method="notifications/progress", params={"progress": 1})
        text = os.environ.get("KEY", "") if name == "key" else json.dumps(arguments)
        say(id=asked["id"], result={"content": [{"type": "text", "text": text}]})
    elif method == "tools/list":
        tools = [{"name": "get_weather", "inputSchema": {"type": "object"}}]
        say(id=asked["id"], result={"tools": tools})
    elif method == "fail":
        say(id=asked["id"], error={"code": -32601, "message": "no such method"})
    elif "id" in asked and method:
        say(id=asked["id"], result={})
sys.stderr.write("the server ends\\n")
"""


def message(number: object, method: str, **params: object) -> bytes:
    """A request of the client, as a line."""
    return line(id=number, method=method, params=params)


def line(**members: object) -> bytes:
    """Any message, as a line."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def call(number: object, name: str, **arguments: object) -> bytes:
    """A call of a tool."""
    return message(number, "tools/call", name=name, arguments=arguments)


class StdioClient:
    """A client beside a server that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def send(self, *lines: bytes) -> None:
        self._to.write(b"".join(lines))
        self._to.flush()

    def ask(self, *lines: bytes) -> bytes:
        """Send, and return the next line."""
        self.send(*lines)
        return self._from.readline()

    def end(self) -> tuple[int, bytes, bytes]:
        """Close the server's input; return the exit code and the rest of both outputs."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def command(folder: Path, *options: str) -> tuple[str, ...]:
    """The command that runs the server, taped."""
    (folder / "server.py").write_text(SERVER)
    taped = (sys.executable, "-m", "deltatape", "record", "--mcp-stdio", *options)
    return (*taped, "--", sys.executable, str(folder / "server.py"))


@contextlib.contextmanager
def running(
    argv: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[StdioClient]:
    """Start a server; it is killed at the end if it still runs."""
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env={**environment(folder), **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield StdioClient(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
