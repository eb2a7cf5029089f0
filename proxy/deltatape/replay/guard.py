"""Block requests of a command that bypass the player, and report them.

A base URL that is written into a program is out of reach of the environment; HTTPS_PROXY is not.
So the command gets a tunnel that passes everything but what goes to an LLM host. Whoever looks at
neither variable gets through, as they would without deltatape.
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from deltatape.clock import SystemClock
from deltatape.doctor.hardcoded import Hardcoded, places_of_host
from deltatape.doctor.sources import Limits
from deltatape.gateway.dial import Connector
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.tunnel import Tunnel, TunnelledConnection
from deltatape.record.reporter import Tell

LOOKING_S = 6.0
"""How long the search for the place in the code may go on; it has a limit of its own."""


_BLOCKED = "BLOCKED: "


class NetworkGuardTunnel:
    """The tunnel of one command."""

    def __init__(self, outbound: OutboundSettings, folder: Path, tell: Tell) -> None:
        """Create a guard; call `start` to listen.

        Args:
            outbound: how other hosts are reached.
            folder: where the application's code is.
            tell: gets lines for the user.
        """
        self._tunnel = Tunnel(Connector(outbound, SystemClock()), self._seen, sealed=True)
        self._folder = folder
        self._tell = tell
        self._refused: dict[str, str] = {}
        self._looking: set[asyncio.Future[tuple[Hardcoded, ...]]] = set()

    @property
    def refused(self) -> Mapping[str, str]:
        """Return the LLM hosts requested past the player, with their providers."""
        return self._refused

    async def start(self, own_port: int) -> Mapping[str, str]:
        """Listen; return the variables that route the command here.

        Args:
            own_port: the player's.
        """
        await self._tunnel.start(own_ports=[own_port])
        return {
            "HTTPS_PROXY": self._tunnel.url,
            "https_proxy": self._tunnel.url,
            "NODE_USE_ENV_PROXY": "1",  # Node's fetch looks at the others only then
        }

    async def stop(self) -> None:
        """Cut open connections, and report the rest."""
        await self._tunnel.stop()
        if self._looking:
            await asyncio.wait(self._looking, timeout=LOOKING_S)
            await asyncio.sleep(0)  # what has been found is told

    def _seen(self, passed: TunnelledConnection) -> None:
        if passed.llm is None or passed.host in self._refused:
            return
        self._refused[passed.host] = passed.llm
        looking = asyncio.get_running_loop().run_in_executor(
            None, places_of_host, self._folder, passed.host, Limits()
        )
        self._looking.add(looking)
        looking.add_done_callback(lambda done: self._found(passed.host, done))

    def _found(self, host: str, done: "asyncio.Future[tuple[Hardcoded, ...]]") -> None:
        self._looking.discard(done)
        places = () if done.cancelled() else done.result()
        where = ", ".join(f"{place.path}:{place.line}" for place in places[:3])
        see = f"; see {where}" if where else ""
        self._tell(f"{_BLOCKED}your app sent a request directly to {host}, not to the player{see}")
        for place in places[:1]:
            if place.advice.new:
                self._tell(f"    instead of {place.advice.old}")
                self._tell(f"    write      {place.advice.new}")
        if not places:
            self._tell("    run `deltatape doctor` to find the place in your code")


# A guard for many runs of a command, as it is over one under `replay -- CMD`.
#
# Strategy: the guard has a thread and a loop of its own, since each run may have its own, too. What
# it has to tell is kept until the end: meanwhile there is a display of how far the runs are.

_PATIENCE_S = 5.0
"""How long a loop that does nothing else may take."""


class NetworkGuard:
    """Blocks requests to providers that bypass the player, while it is entered."""

    def __init__(self, outbound: OutboundSettings, folder: Path) -> None:
        """Args: see `NetworkGuardTunnel`."""
        self._lines: list[str] = []
        self._guard = NetworkGuardTunnel(outbound, folder, self._lines.append)
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
        """Cut open connections, and read what to report of them."""
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
        """Return the LLM hosts whose requests were blocked."""
        return sorted(self._guard.refused)

    def problem(self) -> str:
        """Return what the command requested and where; "" if nothing. Ends the guard."""
        if not self.refused:
            return ""
        self.close()
        return "; ".join(line.strip().removeprefix(_BLOCKED) for line in self._lines)
