"""The page's server, in a thread, on a real socket, with its processes; and a raw client of it."""

import asyncio
import contextlib
import fcntl
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deltatape.clock import SystemClock, rfc3339
from deltatape.http1.listener import Address
from deltatape.inspector.server import Inspector
from deltatape.live.messages import Begin
from deltatape.model.rule_settings import DEFAULTS
from deltatape.tape.encode import header_line
from deltatape.tape.record import Header

LIMIT_S = 60.0
TOKEN = "a-token-that-only-the-user-knows"  # noqa: S105 - made up


class Answer:
    """An answer: its status, its fields by their names in lower case, and its body."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.fields = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }

    def json(self) -> Any:
        assert self.fields["content-type"].startswith("application/json"), self.body
        return json.loads(self.body)


class Page:
    """A server that runs, asked by sockets."""

    def __init__(self, url: str, inspector: Inspector, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.inspector = inspector
        self.loop = loop
        self.host = url.removeprefix("http://")
        self._address = ("127.0.0.1", int(self.host.rpartition(":")[2]))

    def ask(self, lines: Sequence[str]) -> Answer:
        """Send a request as it is, and return the answer."""
        with socket.create_connection(self._address, LIMIT_S) as connection:
            connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
            with connection.makefile("rb") as file:
                return Answer(file.read())

    def get(self, path: str, *fields: str) -> Answer:
        """Ask as the page does."""
        bearer = f"Authorization: Bearer {TOKEN}"
        return self.ask([f"GET {path} HTTP/1.1", f"Host: {self.host}", bearer, *fields])

    def json(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status == 200, answer.body
        return answer.json()

    @contextlib.contextmanager
    def news(self, query: str = "") -> Iterator[Iterator[Mapping[str, Any]]]:
        """Follow what is new, with a filter."""
        fields = f"Host: {self.host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        head = f"GET /api/live{query} HTTP/1.1\r\n{fields}"
        with socket.create_connection(self._address, LIMIT_S) as connection:
            connection.sendall(head.encode())
            with connection.makefile("rb") as file:
                yield (json.loads(each[6:]) for each in file if each.startswith(b"data: "))

    def wait(self, until: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """Return the first news that are as expected."""
        with self.news() as news:
            return next(each for each in news if until(each))

    def indexed(self, tapes: int) -> "Page":
        """Wait until so many tapes are in the index."""
        self.wait(lambda news: news["indexed"]["done"] == news["indexed"]["of"] == tapes)
        return self


@contextlib.contextmanager
def inspected(
    folder: Path, index: Path, *, only: Path | None = None, dataset: bool = False
) -> Iterator[Page]:
    """Serve the tapes of a folder, or a single one, or a dataset."""
    begin = {
        "settings": dict(Begin.of(DEFAULTS).settings),
        "folders": [str(folder)],
        "only": str(only) if only is not None else None,
        "dataset": str(folder) if dataset else None,
    }
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    made: list[Inspector] = []

    async def start() -> str:
        made.append(Inspector(index, begin, TOKEN))
        return await made[0].start(Address("127.0.0.1", 0))

    try:
        url = asyncio.run_coroutine_threadsafe(start(), loop).result(LIMIT_S)
        yield Page(url, made[0], loop)
    finally:
        if made:
            asyncio.run_coroutine_threadsafe(made[0].stop(), loop).result(LIMIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LIMIT_S)
        loop.close()


class Growing:
    """A tape that a recorder holds, line by line."""

    def __init__(self, source: Path, path: Path) -> None:
        self.lines = source.read_bytes().splitlines(keepends=True)
        self.file = path.open("xb", buffering=0)
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def begin_now(self) -> None:
        """Say in the header that the recording begins now."""
        header = Header.from_json(json.loads(self.lines[0]))
        self.lines[0] = header_line(replace(header, recorded_at=rfc3339(SystemClock.wall_ns())))

    def write(self, lines: int) -> None:
        self.file.write(b"".join(self.lines[:lines]))
        del self.lines[:lines]

    def until(self, number: int, code: bytes) -> int:
        """How many lines there are up to one of an exchange."""
        start = b'%d,"%b"' % (number, code)
        return next(at for at, line in enumerate(self.lines, 1) if start in line)
