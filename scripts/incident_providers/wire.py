"""A provider that answers each request by a script: bytes, pauses, an ending.

A script is made from the request alone, so that the same provider answers the broken application
and the fixed one, each as a model would that reads their histories.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nx-request-id: req_incident\r\nTransfer-Encoding: chunked\r\n\r\n"
)
FIRST_TOKEN_S = 0.25


@dataclass(frozen=True)
class Send:
    """Bytes of the body, as one HTTP chunk, after a pause."""

    data: bytes
    after_s: float = 0.02


Asked = Mapping[str, Any]
"""A request's body."""
Story = Callable[[Asked], Iterable[Send]]
"""What a provider sends to a request; the response then ends as HTTP wants it."""


def event(value: Mapping[str, object], name: str = "") -> bytes:
    """A server-sent event."""
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def pieces(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of `size` characters."""
    return (text[at : at + size] for at in range(0, len(text), size))


def parts(text: str, count: int) -> tuple[str, ...]:
    """`text` in `count` pieces of nearly the same size."""
    cuts = [len(text) * at // count for at in range(count + 1)]
    return tuple(text[start:end] for start, end in itertools.pairwise(cuts))


def words(text: str) -> list[str]:
    """`text` as a model streams it: a word with the space before it."""
    first, *rest = text.split(" ")
    return [first, *(f" {word}" for word in rest)]


@contextlib.asynccontextmanager
async def provider(story: Story) -> AsyncIterator[str]:
    """A provider on a free port; yields its URL."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await _answer(story, reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _answer(story: Story, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"\r\ntransfer-encoding: chunked\r\n" in head:
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
    writer.write(HEAD)
    for step in story(json.loads(body)):
        await asyncio.sleep(step.after_s)
        writer.write(b"%x\r\n%b\r\n" % (len(step.data), step.data))
    writer.write(b"0\r\n\r\n")
