"""An event loop in which streams that run come first.

Asyncio treats all events alike, and looks for new ones when it has done everything that the last
ones brought: when hundreds of streams begin or end at once, that takes long, and all others wait.
Besides, a read through one of its transports costs a handle, a context and three calls in Python,
as much as all else that is done for a delta. So the selector, which asyncio lets a program choose,
calls the readers of streams itself, each time it is asked for events, and passes on only a few of
all other events. The kernel tells of the rest again.

Only plain data is a reader's: ends and errors are left to the transport, which stays in charge of
the socket. Where there is no epoll, transports read as usual.
"""

import asyncio
import contextlib
import itertools
import math
import os
import select
import selectors
import sys
from collections.abc import Callable, Mapping
from typing import Any

Reader = Callable[[], bool]
"""Reads its socket once; returns False if it left that to the transport."""

OTHERS_AT_ONCE = 8
"""How many events besides streams asyncio handles per turn of the loop; each can take 0.1 ms."""
_MOST_EVENTS = 128


class StreamingEventLoop(asyncio.SelectorEventLoop):
    """See the module."""

    def __init__(self) -> None:
        self._streams = _StreamsFirst() if sys.platform == "linux" else None
        super().__init__(self._streams)

    def read_directly(self, fd: int, reader: Reader) -> None:
        """Have a transport's socket be read by `reader` while the transport is not paused."""
        if self._streams is not None:
            self._streams.read_directly(fd, reader)

    def read_by_transport(self, fd: int) -> None:
        """End that, before the socket is closed; may be repeated."""
        if self._streams is not None:
            self._streams.read_by_transport(fd)


if sys.platform == "linux":

    class _StreamsFirst(selectors.EpollSelector):
        """Calls readers, and tells asyncio of the other events, a few at once.

        While some of these wait, only streams are looked for, in an epoll of their own: the one of
        all sockets would tell of what waits again and again.
        """

        def __init__(self) -> None:
            super().__init__()
            self._all = select.epoll.fromfd(os.dup(self.fileno()))
            self._streams = select.epoll()
            self._readers: dict[int, Reader] = {}
            self._waiting: dict[int, int] = {}  # events that were passed over, in this order

        def close(self) -> None:
            self._all.close()
            self._streams.close()
            super().close()

        def read_directly(self, fd: int, reader: Reader) -> None:
            if fd not in self._readers:
                self._streams.register(fd, select.EPOLLIN)
            self._readers[fd] = reader

        def read_by_transport(self, fd: int) -> None:
            if self._readers.pop(fd, None) is not None:
                with contextlib.suppress(OSError):  # TLS may have closed it
                    self._streams.unregister(fd)

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            key = super().unregister(fileobj)
            self._waiting.pop(key.fd, None)  # the next one with this number has other events
            return key

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            readers, waiting = self._readers, self._waiting
            if waiting:
                for fd, events in self._streams.poll(0, _MOST_EVENTS):
                    if not self._is_read(fd):
                        continue
                    reader = readers.get(fd)
                    if events != select.EPOLLIN or reader is None or not reader():
                        waiting.setdefault(fd, events)
                return self._keys(self._next())
            # Rounded up to milliseconds as in `EpollSelector`: epoll would return too early.
            wait_s = -1 if timeout is None else math.ceil(max(timeout, 0) * 1e3) * 1e-3
            others: dict[int, int] = {}
            for fd, events in self._all.poll(wait_s, _MOST_EVENTS):
                if events == select.EPOLLIN:
                    reader = readers.get(fd)
                    if reader is not None and reader():
                        continue
                others[fd] = events
            if len(others) > OTHERS_AT_ONCE:
                self._waiting = others
                others = self._next()
            return self._keys(others)

        def _is_read(self, fd: int) -> bool:
            """Check that its transport is not paused."""
            key = self.get_map().get(fd)
            return key is not None and bool(key.events & selectors.EVENT_READ)

        def _next(self) -> dict[int, int]:
            """Take the events that have waited for longest."""
            waiting = self._waiting
            return {fd: waiting.pop(fd) for fd in tuple(itertools.islice(waiting, OTHERS_AT_ONCE))}

        def _keys(self, events: Mapping[int, int]) -> list[tuple[selectors.SelectorKey, int]]:
            found: list[tuple[selectors.SelectorKey, int]] = []
            for fd, of_fd in events.items():
                try:
                    key = self.get_key(fd)
                except KeyError:  # a reader has ended it
                    continue
                mask = (selectors.EVENT_WRITE if of_fd & ~select.EPOLLIN else 0) | (
                    selectors.EVENT_READ if of_fd & ~select.EPOLLOUT else 0
                )
                found.append((key, mask & key.events))
            return found
