"""When the process has no descriptors left: new connections wait, and that is said once a minute.

asyncio stops to accept for a second then and tries again, which is right; but it logs a traceback
for every place in the backlog each time, some hundred lines a second, and another one for each if
the listener has been closed when it tries.
"""

import asyncio
import errno
import logging
from collections.abc import Mapping

_ACCEPTING = "socket.accept() out of system resource"
_TRYING_AGAIN = "._start_serving("
_EVERY_S = 60.0

_log = logging.getLogger(__name__)


class Exhaustion:
    """An exception handler of a loop that knows this one trouble, and leaves others to asyncio."""

    def __init__(self) -> None:
        self._said: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        """See `asyncio.loop.set_exception_handler`."""
        message, error = context.get("message"), context.get("exception")
        if _TRYING_AGAIN in str(message) and isinstance(error, ValueError):
            return  # the socket is closed: nothing is to be accepted any more
        if message != _ACCEPTING:
            loop.default_exception_handler(dict(context))
            return
        if self._said is None or loop.time() - self._said >= _EVERY_S:
            self._said = loop.time()
            _log.warning("%s: new connections wait until others end", _reason(context))


def _reason(context: Mapping[str, object]) -> str:
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return "too many open files for one process (see `ulimit -n`)"
    return f"{error}"
