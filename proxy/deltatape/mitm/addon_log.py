"""Send the addon's messages to the deltatape that started mitmproxy, else to mitmproxy's log."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

from deltatape.mitm.ipc import VARIABLE, AddonSocket, AnyMessage, FromAddon, Ready
from deltatape.record.worker_messages import Said

_log = logging.getLogger("deltatape")


class AddonLogger(Protocol):
    """Where the addon's messages go."""

    def send(self, message: FromAddon) -> None:
        """Send one message; may be called from any thread."""

    async def connect(self) -> None:
        """Deliver the messages kept so far, and later ones at once."""


class MitmproxyLogHandler:
    """mitmproxy's own log: its terminal, its event log."""

    def send(self, message: FromAddon) -> None:
        match message:
            case Said(text=text, how="remark"):
                _log.info("%s", text)
            case Said(text=text):
                _log.warning("TAPING IN TROUBLE: %s", text)
            case Ready(tape=tape):
                _log.info("deltatape is taping: %s", tape or "nothing, see above")
            case _:
                pass

    async def connect(self) -> None:
        pass


class ParentLogHandler:
    """The deltatape that started this mitmproxy."""

    def __init__(self, connection: AddonSocket, number: int) -> None:
        """Args: number: the socket's descriptor."""
        self._socket = connection
        self._number = number
        self._loop = asyncio.get_running_loop()

    def send(self, message: FromAddon) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._socket.send(message)
        else:
            self._loop.call_soon_threadsafe(self._socket.send, message)

    async def connect(self) -> None:
        sock = socket.socket(fileno=self._number)
        sock.setblocking(False)  # noqa: FBT003 - its only argument
        await self._loop.create_unix_connection(lambda: self._socket, sock=sock)


def find_logger(
    environment: Mapping[str, str],
    on_message: Callable[[AnyMessage], None],
    on_gone: Callable[[], None],
) -> AddonLogger:
    """Return the logger for this run; see `ipc.AddonSocket` for the arguments."""
    number = environment.get(VARIABLE, "")
    return (
        ParentLogHandler(AddonSocket(on_message, on_gone), int(number))
        if number.isdecimal()
        else MitmproxyLogHandler()
    )
