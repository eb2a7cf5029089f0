"""Run a player in its own thread, for code without an event loop.

Strategy: the thread runs the loop, everything asked of it from outside is called in the loop.
Invariants: the report counts every request whose bytes had arrived when it was requested; leaving
the context ends the thread, and every connection with it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Protocol, Self

from deltatape.errors import UsageError
from deltatape.http1.listener import Address, Listener
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayOptions, PlayReport, RequestOutcome
from deltatape.player.player import Player

ANY_PORT = Address("127.0.0.1", 0)
PATIENCE_S = 10.0
"""How long a loop that does nothing but play may take to answer."""

_TURNS = 4
"""Turns of the loop until arrived requests are counted: accept, register, read, one to spare."""


class ReplayServer(Protocol):
    """Answers requests from tapes: a `Player`, or one that records, too."""

    listener: Listener

    async def start(self, address: Address) -> None:
        """Listen.

        Raises:
            UsageError: the address is not available.
        """

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """Stop listening, let open answers end for `grace_s`, then cut the rest."""

    @property
    def report(self) -> PlayReport:
        """Return the requests so far."""


def _ignore(what: RequestOutcome) -> None:
    """Ignore the message."""


class Playback:
    """Plays `exchanges` while its context lasts.

    with Playback(exchanges, Playing()) as playback:
        ask(playback.url)
    assert playback.report.whole
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        playing: PlayOptions,
        tell: Callable[[RequestOutcome], None] = _ignore,
        address: Address = ANY_PORT,
        *,
        machine: ReplayServer | None = None,
    ) -> None:
        """Create a player; entering it listens.

        Args:
            exchanges: the exchanges of the provider's side.
            playing: how they are played.
            tell: called in the player's thread when a request was matched or missed.
            address: where to listen.
            machine: runs instead of a player of `exchanges`.

        Raises:
            UsageError: `playing.volatile` is invalid.
        """
        self._machine = machine or Player(exchanges, tell, playing)
        self._address = address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._begun = threading.Event()
        self._problem: UsageError | None = None
        self._thread = threading.Thread(target=self._run, name="deltatape player", daemon=True)

    def __enter__(self) -> Self:
        """Listen.

        Raises:
            UsageError: the address is not available.
        """
        self._thread.start()
        self._begun.wait()
        if self._problem is not None:
            self._thread.join(PATIENCE_S)
            raise self._problem
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Cut what plays, and end the thread.

        Raises:
            UsageError: recordings could not be added to their tape.
        """
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(PATIENCE_S)
        if self._problem is not None:
            raise self._problem

    @property
    def url(self) -> str:
        """Return its URL: `http://127.0.0.1:8378`."""
        return self._machine.listener.url

    @property
    def report(self) -> PlayReport:
        """Return the requests so far; any thread may call it, also afterwards."""
        self._run_in_loop(settle)
        return self._machine.report

    def cut(self) -> None:
        """Stop listening and cut what plays; return when that is done."""
        self._run_in_loop(self._machine.stop)

    def _run_in_loop(self, what: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a coroutine in the loop, if it is still running."""
        if self._loop is not None and self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(what(), self._loop).result(PATIENCE_S)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._machine.start(self._address)
        except UsageError as error:
            self._problem = error
            return
        finally:
            self._begun.set()
        await self._stopping.wait()
        await settle()
        try:
            await end(self._machine)
        except UsageError as error:
            self._problem = error


async def settle() -> None:
    """Let the running loop process what has arrived."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def end(machine: ReplayServer, grace_s: float = 0.0) -> None:
    """Stop a machine and its connections; see `ReplayServer.stop`."""
    try:
        await machine.stop(grace_s=grace_s)
        await settle()  # what was cut has left for the kernel, if there was room
    finally:
        machine.listener.drop()
        await settle()
