"""The clients of the timing benchmark, a program: how far from its schedule each read arrives.

One thread over epoll. Every connection asks once, at a phase of its own, and counts whole chunks.
How late the request itself was taken is no matter of the schedule: a stream's schedule counts from
where its most punctual read puts it. Prints one line of JSON.
"""

import argparse
import gc
import json
import select
import socket
import sys
from collections.abc import Iterator, Sequence

from benchmarks.clients import percentile_us
from benchmarks.played import PIECE, STREAM_BODY, STREAM_PATH
from deltatape.clock import SystemClock
from deltatape.http1.body import write_chunk

_NS = 1_000_000_000
_GOLDEN = 0.6180339887
_READ_BYTES = 65536
_LIMIT_S = 20
_CHUNK_BYTES = len(write_chunk(PIECE))

_now_ns = SystemClock.now_ns


def schedule_ns(rate: float, reads: int) -> list[int]:
    """When each read is due after the request."""
    return [round((number + 1) * _NS / rate) for number in range(reads)]


class _Stream:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.sock.settimeout(0)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asked_ns = 0
        self.had = 0
        self.late_ns: list[int] = []
        """The delay of each chunk, counted from the request."""
        self._head = b""
        self._bytes = 0

    def ask(self, wire: bytes) -> None:
        self.asked_ns = _now_ns()
        self.sock.sendall(wire)

    def read(self) -> int:
        """How many chunks have come in all; -1 when the connection has ended."""
        data = self.sock.recv(_READ_BYTES)
        if not data:
            return -1
        if not self._head.endswith(b"\r\n\r\n"):
            self._head += data
            head, blank, rest = self._head.partition(b"\r\n\r\n")
            if not blank:
                return 0
            self._head, data = head + blank, rest
        self._bytes += len(data)
        return self._bytes // _CHUNK_BYTES

    def deviations_ns(self) -> Iterator[int]:
        """How much later than the most punctual chunk each came, by its schedule."""
        best = min(self.late_ns, default=0)
        return (late - best for late in self.late_ns)


def listen(port: int, streams: int, due_ns: Sequence[int]) -> dict[str, object]:
    """Ask for all streams, and see when what arrives."""
    wire = (
        f"POST {STREAM_PATH} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"content-length: {len(STREAM_BODY)}\r\n\r\n"
    ).encode() + STREAM_BODY
    epoll = select.epoll()
    opened = [_Stream(port) for _ in range(streams)]
    known = {each.sock.fileno(): each for each in opened}
    for fd in known:
        epoll.register(fd, select.EPOLLIN)
    gap_ns = due_ns[0]
    began = _now_ns()
    waiting = sorted((began + round(at * _GOLDEN % 1 * gap_ns), at) for at in range(streams))
    joined = 0
    while known and _now_ns() < began + due_ns[-1] + _LIMIT_S * _NS:
        while waiting and waiting[0][0] <= _now_ns():
            opened[waiting.pop(0)[1]].ask(wire)
        for fd, _ in epoll.poll(0 if waiting else 0.1):
            stream = known[fd]
            count, now = stream.read(), _now_ns()
            come = range(stream.had, min(count, len(due_ns)))
            stream.late_ns += (now - stream.asked_ns - due_ns[number] for number in come)
            joined += len(come) > 1
            stream.had += len(come)
            if stream.had == len(due_ns) or count < 0:
                epoll.unregister(fd)
                stream.sock.close()
                del known[fd]
    deviations = sorted(late for stream in opened for late in stream.deviations_ns())
    return {
        "reads": len(deviations),
        "joined": joined,
        "p50_us": percentile_us(deviations, 0.5),
        "p99_us": percentile_us(deviations, 0.99),
        "max_us": percentile_us(deviations, 1.0),
    }


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="stream_listeners")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--reads", type=int, required=True)
    options = parser.parse_args()
    gc.collect()
    gc.freeze()
    gc.disable()
    due_ns = schedule_ns(options.rate, options.reads)
    sys.stdout.write(json.dumps(listen(options.port, options.streams, due_ns)) + "\n")


if __name__ == "__main__":
    main()
