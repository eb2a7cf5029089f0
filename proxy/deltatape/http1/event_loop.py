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
import math
import os
import select
import selectors
import sys
from collections.abc import Callable, Mapping

Reader = Callable[[], bool]
"""Reads its socket once; returns False if it left that to the transport."""

OTHERS_AT_ONCE = 8
"""To how many events besides streams asyncio gives a turn of the loop; each can take 0.1 ms."""
_MOST_EVENTS = 128


class StreamingEventLoop(asyncio.SelectorEventLoop):
    """See the module."""

    def __init__(self) -> None:
        self._readers: dict[int, Reader] = {}
        super().__init__(_StreamsFirst(self._readers) if sys.platform == "linux" else None)

    def read_directly(self, fd: int, reader: Reader) -> None:
        """Have a transport's socket be read by `reader` while the transport is not paused."""
        self._readers[fd] = reader

    def read_by_transport(self, fd: int) -> None:
        """End that, before the socket is closed; may be repeated."""
        self._readers.pop(fd, None)


if sys.platform == "linux":

    class _StreamsFirst(selectors.EpollSelector):
        """Calls readers, and tells asyncio of the other events, a few at once."""

        def __init__(self, readers: Mapping[int, Reader]) -> None:
            super().__init__()
            self._epoll = select.epoll.fromfd(os.dup(self.fileno()))
            self._readers = readers
            self._waiting: dict[int, None] = {}  # sockets that were passed over, in this order

        def close(self) -> None:
            self._epoll.close()
            super().close()

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            # Rounded up to milliseconds as in `EpollSelector`: epoll would return too early.
            wait_s = -1 if timeout is None else math.ceil(max(timeout, 0) * 1e3) * 1e-3
            readers = self._readers
            others: dict[int, int] = {}
            for fd, events in self._epoll.poll(wait_s, _MOST_EVENTS):
                if events == select.EPOLLIN:
                    reader = readers.get(fd)
                    if reader is not None and reader():
                        continue
                others[fd] = events
            if len(others) > OTHERS_AT_ONCE:
                others = self._next(others)
            elif self._waiting:
                self._waiting.clear()
            return self._keys(others)

        def _next(self, events: Mapping[int, int]) -> dict[int, int]:
            """Return the events of some sockets, of those first that have waited for longest."""
            waiting = self._waiting
            order = [fd for fd in waiting if fd in events]
            order += [fd for fd in events if fd not in waiting]
            for fd in order[:OTHERS_AT_ONCE]:
                waiting.pop(fd, None)
            waiting.update(dict.fromkeys(order[OTHERS_AT_ONCE:]))
            return {fd: events[fd] for fd in order[:OTHERS_AT_ONCE]}

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
