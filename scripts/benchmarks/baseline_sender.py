"""A bare sender, a program: writes a schedule with `loop.call_at`, and does nothing else.

What the player is compared with: the same bytes at the same times, from the same event loop,
without a tape, a parser, or any look at the request. Prints its port; ends with standard input.
"""

import argparse
import asyncio
import sys

from benchmarks.played import HEAD_FIELDS, PIECE
from benchmarks.stream_listeners import schedule_ns
from deltatape.http1.body import write_chunk
from deltatape.http1.head import write_response


class Sender(asyncio.Protocol):
    """One connection, one answer."""

    def __init__(self, due_s: list[float]) -> None:
        self._loop = asyncio.get_running_loop()
        self._due_s = due_s
        self._chunk = write_chunk(PIECE)
        self._next = 0
        self._origin_s = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - any request is the request
        """See `asyncio.Protocol`."""
        assert self._transport is not None
        self._origin_s = self._loop.time()
        self._transport.write(write_response(200, b"OK", HEAD_FIELDS))
        self._loop.call_at(self._origin_s + self._due_s[0], self._send)

    def _send(self) -> None:
        assert self._transport is not None
        self._transport.write(self._chunk)
        self._next += 1
        if self._next < len(self._due_s):
            self._loop.call_at(self._origin_s + self._due_s[self._next], self._send)
        else:
            self._transport.write(b"0\r\n\r\n")
            self._transport.close()


async def _serve(due_s: list[float]) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sender(due_s), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="baseline_sender")
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--reads", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(_serve([due / 1e9 for due in schedule_ns(options.rate, options.reads)]))


if __name__ == "__main__":
    main()
