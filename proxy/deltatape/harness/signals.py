"""Running a shell until a signal asks for its end."""

import asyncio
import signal
from collections.abc import Callable

SIGNALS = {signal.SIGINT: "sigint", signal.SIGTERM: "sigterm"}


class Signals:
    """Waits for SIGINT or SIGTERM; a second one calls `hurry`."""

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self._first: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        for number, name in SIGNALS.items():
            loop.add_signal_handler(number, self._caught, name)

    def _caught(self, name: str) -> None:
        if self._first.done():
            self._hurry()
        else:
            self._first.set_result(name)

    async def wait(self) -> str:
        """The name of the first signal: `sigint` or `sigterm`."""
        return await self._first
