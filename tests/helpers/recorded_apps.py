"""A provider that gives every request the same answer, and `deltatape record` in front of it."""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from helpers.program import deltatape
from helpers.upstream import SSE_HEAD, Peer, chunk

ANSWER = "Olá, 7°C"


def _event(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**value, 'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


EVENTS = (_event({"role": "assistant", "content": ANSWER}), _event({}, "stop"), b"data: [DONE]\n\n")


class Provider:
    """Streams `ANSWER` to every client; `asked` has the request heads."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def serve(self, peer: Peer) -> None:
        """Answer the requests of one connection."""
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
    command = ("record", "--to", "tapes", *arguments)
    return await asyncio.to_thread(lambda: deltatape(*command, folder=folder, env=env))
