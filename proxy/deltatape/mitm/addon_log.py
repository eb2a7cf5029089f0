"""Send the addon's messages to the deltatape that started mitmproxy, else to mitmproxy's log."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

from deltatape.gateway.tapes import OpenTape
from deltatape.mitm.ipc import VARIABLE, AddonMessage, AddonSocket, Fields

_log = logging.getLogger("deltatape")


class AddonLogger(Protocol):
    """Where the addon's messages go."""

    def send(self, kind: AddonMessage, **fields: object) -> None:
        """Send one message; may be called from any thread."""

    async def connect(self) -> None:
        """Deliver the messages kept so far, and later ones at once."""


class MitmproxyLogHandler:
    """mitmproxy's own log: its terminal, its event log."""

    def send(self, kind: AddonMessage, **fields: object) -> None:
        match kind:
            case AddonMessage.LINE:
                _log.info("%s", fields["text"])
            case AddonMessage.ALARM:
                _log.warning("TAPING IN TROUBLE: %s", fields["text"])
            case AddonMessage.READY:
                _log.info("deltatape is taping: %s", fields["tape"] or "nothing, see above")
            case AddonMessage.ENDED:
                _log.info("%s", _summary(fields))
            case AddonMessage.STOPPING | AddonMessage.TRAFFIC | AddonMessage.PASSED:
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

    def send(self, kind: AddonMessage, **fields: object) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._socket.send(kind, **fields)
        else:
            self._loop.call_soon_threadsafe(lambda: self._socket.send(kind, **fields))

    async def connect(self) -> None:
        sock = socket.socket(fileno=self._number)
        sock.setblocking(False)  # noqa: FBT003 - its only argument
        await self._loop.create_unix_connection(lambda: self._socket, sock=sock)


def find_logger(
    environment: Mapping[str, str],
    on_message: Callable[[str, Fields], None],
    on_gone: Callable[[], None],
) -> AddonLogger:
    """Return the logger for this run; see `ipc.AddonSocket` for the arguments."""
    number = environment.get(VARIABLE, "")
    return (
        ParentLogHandler(AddonSocket(on_message, on_gone), int(number))
        if number.isdecimal()
        else MitmproxyLogHandler()
    )


def _summary(fields: Fields) -> str:
    lost, taped = fields["lost_records"], fields["exchanges"]
    text = f"deltatape taped {taped} exchange{'' if taped == 1 else 's'}"
    return f"{text}; NOT ON THE TAPE: {lost} records" if lost else text


# Lines about exchanges that have ended.
#
# With all of deltatape importable they have the findings, as the gateway prints them. A mitmproxy
# in another environment reports only that the exchange ended, and how.


class LiveObserver(Protocol):
    """Looks at exchanges while they are taped."""

    with_findings: int | None
    """How many exchanges had findings; None where nothing is analysed."""
    worst: str | None
    """The worst finding's severity."""

    def put(self, number: int, line: bytes) -> None:
        """Look at a line of an exchange that goes to the tape."""

    def begin(self, number: int) -> None:
        """Begin a new exchange."""

    def ended(self, tape: OpenTape, number: int, line: str) -> None:
        """End an exchange; `line` is its line without an analysis."""

    async def finish(self) -> None:
        """Finish the exchanges still being analysed."""


class PlainObserver:
    """Reports that an exchange ended, without analysis; see `LiveObserver`."""

    with_findings: int | None = None
    worst: str | None = None

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line

    def put(self, number: int, line: bytes) -> None:
        pass

    def begin(self, number: int) -> None:
        pass

    def ended(self, tape: OpenTape, number: int, line: str) -> None:
        del tape
        self._on_line(f"#{number} {line}")

    async def finish(self) -> None:
        pass


MakeLive = Callable[[Callable[[str], None]], LiveObserver]
"""Creates a `LiveObserver`; its argument is called with each line."""


def find_live() -> MakeLive:
    """Import and return the observer that this Python can run."""
    try:
        from deltatape.mitm.live_analysis import MitmAnalyzer  # noqa: PLC0415 - needs what may not be here
    except ImportError:
        return PlainObserver
    return MitmAnalyzer
