"""Applications that run under `deltatape record -- CMD`, and the provider that they reach."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from deltatape.model.exchange import Exchange
from deltatape.store.reader import Tape, open_tape
from helpers.clients import CLIENTS, PYTHON
from helpers.program import deltatape
from helpers.upstream import SSE_HEAD, Peer, chunk

PYTHON_SDK = """
import openai
client = openai.OpenAI(api_key="sk-fake-000000", max_retries=0)
stream = client.chat.completions.create(
    model="m", stream=True, messages=[{"role": "user", "content": "hi"}])
print("".join(part.choices[0].delta.content or "" for part in stream if part.choices))
"""

NODE_SDK = """
import OpenAI from "openai";
const client = new OpenAI({apiKey: "sk-fake-000000", maxRetries: 0});
const stream = await client.chat.completions.create(
  {model: "m", stream: true, messages: [{role: "user", content: "hi"}]});
let text = "";
for await (const part of stream) text += part.choices[0]?.delta?.content ?? "";
console.log(text);
"""

SHELL = """
curl --no-progress-meter -N -H 'Content-Type: application/json' -H "Authorization: Bearer $KEY" \\
    -d '{"model":"m","stream":true,"messages":[]}' "$OPENAI_BASE_URL/chat/completions"
"""

ANSWER = "Olá, 7°C"


def _event(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**value, 'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


EVENTS = (_event({"role": "assistant", "content": ANSWER}), _event({}, "stop"), b"data: [DONE]\n\n")


class Provider:
    """Streams `ANSWER` to everybody; `asked` are the heads it got."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def serve(self, peer: Peer) -> None:
        """One connection."""
        while True:
            head, _ = await peer.request()
            self.asked.append(head)
            await peer.send(SSE_HEAD)
            for event in EVENTS:
                await peer.send(chunk(event))
            await peer.send(b"0\r\n\r\n")


async def recorded(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """`deltatape record --to tapes ARGUMENTS` in `folder`, to its end."""
    given = ("record", "--to", "tapes", *arguments)
    return await asyncio.to_thread(lambda: deltatape(*given, folder=folder, env=env))


def python_app(folder: Path, code: str) -> tuple[str, ...]:
    """A command that runs `code` where the official SDKs are installed."""
    (folder / "app.py").write_text(code)
    return (str(PYTHON), "app.py")


def node_app(folder: Path, code: str) -> tuple[str, ...]:
    """The same in JavaScript; the SDK is found from the file's own folder."""
    (folder / "app.mjs").write_text(code)
    (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
    return ("node", "app.mjs")


def plain_app(folder: Path, code: str) -> tuple[str, ...]:
    """A command that runs `code` with this Python."""
    (folder / "app.py").write_text(code)
    return (sys.executable, "app.py")


def the_tape(folder: Path) -> Tape:
    """The only tape of a run."""
    (path,) = (folder / "tapes").glob("*.tape")
    return open_tape(path)


def the_exchange(folder: Path) -> Exchange:
    """The only exchange of a run."""
    (exchange,) = the_tape(folder)
    return exchange
