"""A guard for many runs of a command, as it is over one under `replay -- CMD`; see `guard`.

Strategy: the guard has a thread and a loop of its own, since each run may have its own, too. What
it has to tell is kept until the end: meanwhile there is a display of how far the runs are.
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from deltatape.gateway.outbound import Outbound
from deltatape.replay.guard import LOOKING_S, Guard

_PATIENCE_S = 5.0
"""How long a loop that does nothing else may take."""


class Seclusion:
    """Keeps the runs of a command from asking a provider past the player, while it is entered."""

    def __init__(self, outbound: Outbound, folder: Path) -> None:
        """Args: see `Guard`."""
        self._lines: list[str] = []
        self._guard = Guard(outbound, folder, self._lines.append)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.variables: Mapping[str, str] = {}
        """What leads a command to the guard."""

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(self._guard.start(0), self._loop)
        self.variables = starting.result(_PATIENCE_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cut what is open, and find out what is to be told of it."""
        if self._loop.is_closed():
            return
        stopping = asyncio.run_coroutine_threadsafe(self._guard.stop(), self._loop)
        try:
            stopping.result(LOOKING_S + _PATIENCE_S)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @property
    def refused(self) -> Sequence[str]:
        """The LLM hosts that were asked for, and were not to be reached."""
        return sorted(self._guard.refused)

    def problem(self) -> str:
        """What the command did, and where; "" if it asked nobody. Ends the guard."""
        if not self.refused:
            return ""
        self.close()
        places = "; ".join(line.strip() for line in self._lines)
        return f"the command asked {', '.join(self.refused)} past the player: {places}"
