"""Block requests of a command to LLM hosts that bypass the player, and report them.

The command gets a tunnel that passes everything else; see `record.bypass`.
"""

import asyncio
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from deltatape.clock import SystemClock
from deltatape.gateway.dial import Connector
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.tunnel import Tunnel, TunnelledConnection
from deltatape.record.bypass import (
    LOOKING_S,
    BypassSearch,
    Places,
    replacement_lines,
    tunnel_variables,
    with_places,
)
from deltatape.record.reporter import Tell

NONE: Mapping[str, str] = MappingProxyType({})
_BLOCKED = "BLOCKED: "


class NetworkGuardTunnel:
    """The tunnel of one command."""

    def __init__(
        self,
        outbound: OutboundSettings,
        folder: Path,
        tell: Tell,
        *,
        telemetry: Mapping[str, str] = NONE,
        allowed: Collection[str] = (),
    ) -> None:
        """Create a guard; call `start` to listen.

        Args:
            outbound: how other hosts are reached.
            folder: where the application's code is.
            tell: gets lines for the user.
            telemetry: see `clients.telemetry_hosts`; blocked as any LLM host, but no failure.
            allowed: LLM hosts that may be reached.
        """
        self._bypasses = BypassSearch(folder, self._report)
        self._telemetry = telemetry
        self._allowed = frozenset(host.lower() for host in allowed)
        connector = Connector(outbound, SystemClock())
        self._tunnel = Tunnel(connector, self._seen, sealed=True, allowed=self._allowed)
        self._tell = tell
        self._reached: set[str] = set()

    @property
    def refused(self) -> Mapping[str, str]:
        """Return the LLM hosts requested past the player, with their providers."""
        return self._bypasses.hosts

    def remarks(self) -> Iterator[str]:
        """Yield a line for each LLM host that was requested past the player for a good reason."""
        for host, title in sorted(self._bypasses.telemetry.items()):
            yield f"blocked: telemetry of {title} to {host}; no failure"
        for host in sorted(self._reached):
            yield f"not played: {host} was reached directly, as --allow-host says"

    async def start(self, player_port: int) -> Mapping[str, str]:
        """Listen; return the variables that route the command here.

        Args:
            player_port: where the command may reach the player through the tunnel, too.
        """
        await self._tunnel.start(gateway_ports=[player_port])
        return tunnel_variables(self._tunnel)

    async def stop(self) -> None:
        """Cut open connections, and report the rest."""
        await self._tunnel.stop()
        await self._bypasses.wait()

    def _seen(self, connection: TunnelledConnection) -> None:
        if connection.llm is not None and connection.host.lower().rstrip(".") in self._allowed:
            self._reached.add(connection.host)
        else:
            self._bypasses.add(connection, self._telemetry)

    def _report(self, connection: TunnelledConnection, places: Places) -> None:
        problem = f"your app sent a request directly to {connection.host}, not to the player"
        self._tell(_BLOCKED + with_places(problem, places))
        for line in replacement_lines(places):
            self._tell(line)
        if not places:
            self._tell("    run `deltatape doctor` to find the place in your code")


_PATIENCE_S = 5.0
"""How long a loop that does nothing else may take."""


class NetworkGuard:
    """Blocks requests to providers that bypass the player, in many runs, while it is entered.

    It has its own thread and loop, since each run may have its own loop. Its lines are kept until
    the end, because a progress bar is shown meanwhile.
    """

    def __init__(
        self, outbound: OutboundSettings, folder: Path, *, telemetry: Mapping[str, str] = NONE
    ) -> None:
        """Args: see `NetworkGuardTunnel`."""
        self._lines: list[str] = []
        tell = self._lines.append
        self._guard = NetworkGuardTunnel(outbound, folder, tell, telemetry=telemetry)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.variables: Mapping[str, str] = {}
        """The variables that lead a command to the guard."""

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
        """Cut open connections, and collect what to report about them."""
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
