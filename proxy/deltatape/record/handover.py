"""`record --replace`: a recorder gets the listening sockets of the one whose place it takes.

Both then listen on the same sockets, so no connection is refused or reset, not even one that waits
to be accepted. Once the new recorder is ready, the old one stops accepting and lets its streams
end. haproxy and Envoy hand over their sockets in the same way.

Protocol, on a Unix socket that only its owner can reach, one for each address: the old recorder
sends a line of JSON, `{"version":1,"pid":...,"sockets":{ADDRESS:[how many, ...]}}`, with the
sockets as ancillary data; the new one sends `drain PID` once it listens; the old one answers with
the number of its open streams, and is done. A new one that fails before that has no effect.
"""

import asyncio
import contextlib
import itertools
import json
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path

from deltatape.errors import UsageError
from deltatape.http1.listener import Address, close_all
from deltatape.record.recording import Listening
from deltatape.store.names import prepare_folder, state_folder

VERSION = 1
PATIENCE_S = 10.0
"""The longest wait for the other side."""
_AT_ONCE = 128
"""Sockets in one message; the system allows 253."""
_MAX_BYTES = 65536
_LONGEST_PATH = 100
"""The longest path of a Unix socket; systems allow 103 or 107 bytes."""


def place_of(address: Address, environment: Mapping[str, str]) -> Path:
    """Return the path of the Unix socket for replacing a recorder on that address."""
    return state_folder(environment) / "replace" / f"{address}.sock"


class _Near:
    """A Unix socket's path, made short through the descriptor of its folder if necessary."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder: int | None = None

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= _LONGEST_PATH:
            return str(self._path)
        self._folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            os.close(self._folder)


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The recorder to replace.

    Attributes:
        pid: the pid of its process.
        sockets: its listening sockets.
    """

    pid: int
    sockets: Listening
    connection: socket.socket

    async def drain(self) -> int:
        """Make it stop accepting connections; return how many streams are still open there.

        Raises:
            UsageError: it has ended, or another recorder has replaced it meanwhile.
        """
        loop = asyncio.get_running_loop()
        self.connection.setblocking(False)  # noqa: FBT003 - its signature
        try:
            await loop.sock_sendall(self.connection, b"drain %d\n" % os.getpid())
            async with asyncio.timeout(PATIENCE_S):
                answer = await loop.sock_recv(self.connection, 64)
            return int(answer)
        except (OSError, ValueError):
            raise UsageError(
                f"--replace: the recorder with pid {self.pid} was replaced meanwhile"
            ) from None

    def close(self) -> None:
        """Close the sockets received from it; harmless twice."""
        self.connection.close()
        for groups in self.sockets.values():
            close_all(groups)


def find_predecessor(place: Path) -> Predecessor | None:
    """Return the recorder at that address, with its sockets; None if there is none.

    Raises:
        UsageError: it is of another version, or does not answer.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    try:
        with _Near(place) as path:
            connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise _no_answer(place, error) from None
    try:
        return _receive(connection)
    except (OSError, ValueError, KeyError) as error:
        connection.close()
        raise _no_answer(place, error) from None
    except UsageError:
        connection.close()
        raise


def _no_answer(place: Path, error: Exception) -> UsageError:
    return UsageError(f"--replace: no sockets from the recorder that runs: {error} ({place})")


def _receive(connection: socket.socket) -> Predecessor:
    data, numbers, _, _ = socket.recv_fds(connection, _MAX_BYTES, _AT_ONCE)
    if not data:
        raise UsageError("--replace: the recorder that runs is being replaced already")
    document = json.loads(data)
    if document["version"] != VERSION:
        raise UsageError(
            f"--replace: the recorder that runs, with pid {document['pid']}, is of a version that"
            " hands its sockets over in another way"
        )
    total = sum(sum(sizes) for sizes in document["sockets"].values())
    while len(numbers) < total and (more := socket.recv_fds(connection, 1, _AT_ONCE))[0]:
        numbers += more[1]
    if len(numbers) < total:
        raise ValueError("it has ended")
    rest = (socket.socket(fileno=number) for number in numbers)
    sockets = {
        address: [tuple(itertools.islice(rest, size)) for size in sizes]
        for address, sizes in document["sockets"].items()
    }
    return Predecessor(document["pid"], sockets, connection)


class Successors:
    """Waits for the recorder that replaces this one.

    Args:
        place: see `place_of`.
        sockets: returns copies of those on which this one listens.
    """

    def __init__(self, place: Path, sockets: Callable[[], Listening]) -> None:
        self._place = place
        self._sockets = sockets
        self._listening: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: asyncio.Future[tuple[int, socket.socket]] = (
            asyncio.get_running_loop().create_future()
        )

    def start(self) -> None:
        """Offer the place, instead of a recorder that has offered it before.

        Raises:
            UsageError: the Unix socket cannot be made.
        """
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        new = self._place.with_name(f".{self._place.name}.{os.getpid()}")
        try:
            prepare_folder(self._place.parent)
            new.unlink(missing_ok=True)
            mask = os.umask(0o177)
            try:
                with _Near(new) as path:
                    listening.bind(path)
            finally:
                os.umask(mask)
            listening.listen()
            new.replace(self._place)
        except OSError as error:
            listening.close()
            raise UsageError(f"--replace: {self._place}: {error.strerror or error}") from None
        listening.setblocking(False)  # noqa: FBT003 - its signature
        self._listening = listening
        self._begin(self._accept(listening))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            self._begin(self._offer(connection))

    async def _offer(self, connection: socket.socket) -> None:
        """Send copies of the sockets, and wait until the recorder that has them is ready."""
        loop = asyncio.get_running_loop()
        kept = False
        try:
            connection.setblocking(False)  # noqa: FBT003 - its signature
            self._send(connection)
            words = (await loop.sock_recv(connection, 64)).split()
            if words[:1] == [b"drain"] and not self._asked.done():
                self._asked.set_result((int(words[1]), connection))
                kept = True
        except (OSError, ValueError, IndexError):
            pass  # it has failed, and this one goes on
        finally:
            if not kept:
                connection.close()

    def _send(self, connection: socket.socket) -> None:
        sockets = self._sockets()
        document = {
            "version": VERSION,
            "pid": os.getpid(),
            "sockets": {name: [len(each) for each in groups] for name, groups in sockets.items()},
        }
        flat = [each.fileno() for groups in sockets.values() for group in groups for each in group]
        try:
            socket.send_fds(connection, [json.dumps(document).encode()], flat[:_AT_ONCE])
            for at in range(_AT_ONCE, len(flat), _AT_ONCE):
                socket.send_fds(connection, [b"."], flat[at : at + _AT_ONCE])
        finally:
            for groups in sockets.values():
                close_all(groups)

    async def wait(self) -> int:
        """Return the pid of the recorder that is ready."""
        return (await asyncio.shield(self._asked))[0]

    def answer(self, active: int) -> None:
        """Tell that recorder how many streams are still open here."""
        _, connection = self._asked.result()
        with contextlib.suppress(OSError):  # it has ended
            connection.send(b"%d\n" % active)
        connection.close()

    def close(self) -> None:
        """Offer the place no more; harmless twice."""
        for task in self._tasks:
            task.cancel()
        listening, self._listening = self._listening, None
        if listening is None:
            return
        listening.close()
        if not self._asked.done():  # else it is the other's
            self._place.unlink(missing_ok=True)
