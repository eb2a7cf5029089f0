"""Running a shell until a signal asks for its end."""

import asyncio
import signal
from collections.abc import Callable, Mapping

SIGNALS = {signal.SIGINT: "sigint", signal.SIGTERM: "sigterm"}


class Signals:
    """Waits for one of `signals`, SIGINT or SIGTERM; a second one calls `hurry`."""

    def __init__(
        self, hurry: Callable[[], None], signals: Mapping[signal.Signals, str] = SIGNALS
    ) -> None:
        self._hurry = hurry
        self._first: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        for number, name in signals.items():
            loop.add_signal_handler(number, self._caught, name)

    def _caught(self, name: str) -> None:
        if self._first.done():
            self._hurry()
        else:
            self._first.set_result(name)

    async def wait(self) -> str:
        """The name of the first signal, such as `sigint`."""
        return await self._first
