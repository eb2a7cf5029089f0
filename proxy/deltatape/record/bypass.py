"""Find the code that sends requests past deltatape, and what to write there instead.

The environment cannot change a hard-coded base URL, but it can set HTTPS_PROXY. So a command gets a
`Tunnel`, which sees the LLM hosts that it reaches directly. A program that ignores HTTPS_PROXY,
too, goes unnoticed.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from deltatape.gateway.tunnel import Tunnel, TunnelledConnection

if TYPE_CHECKING:
    from deltatape.doctor.hardcoded import Hardcoded

LOOKING_S = 6.0
"""How long to wait at the end for running searches; each has its own limit."""
_SHOWN = 3

Places: TypeAlias = "tuple[Hardcoded, ...]"


def tunnel_variables(tunnel: Tunnel) -> Mapping[str, str]:
    """Return the variables that lead a command to a tunnel."""
    return {
        "HTTPS_PROXY": tunnel.url,
        "https_proxy": tunnel.url,
        "NODE_USE_ENV_PROXY": "1",  # Node's fetch looks at the others only then
    }


class BypassSearch:
    """Searches a project, in threads, for the places that name a bypassing connection's host."""

    def __init__(self, folder: Path, found: Callable[[TunnelledConnection, Places], None]) -> None:
        """Create an empty search.

        Args:
            folder: where the application's code is.
            found: called once for each LLM host, in the event loop.
        """
        self.hosts: dict[str, str] = {}
        """The LLM hosts so far, and whose they are."""
        self.telemetry: dict[str, str] = {}
        """The LLM hosts that only got telemetry so far, and the title of its sender."""
        self.others: dict[str, None] = {}
        """Other hosts so far, as a set in their order."""
        self._folder = folder
        self._found = found
        self._running: set[asyncio.Future[Places]] = set()

    def add(self, connection: TunnelledConnection, telemetry: Mapping[str, str]) -> bool:
        """Search for the host of a connection; return False if it is no LLM's or was seen.

        Args:
            connection: past the gateway.
            telemetry: see `clients.telemetry_hosts`; a host there is kept apart.
        """
        if connection.llm is None:
            self.others[connection.host] = None
            return False
        if connection.host in telemetry:
            self.telemetry[connection.host] = telemetry[connection.host]
            return False
        if connection.host in self.hosts:
            return False
        self.hosts[connection.host] = connection.llm
        search = asyncio.get_running_loop().run_in_executor(
            None, _places, self._folder, connection.host
        )
        self._running.add(search)
        search.add_done_callback(lambda done: self._done(connection, done))
        return True

    def _done(self, connection: TunnelledConnection, search: "asyncio.Future[Places]") -> None:
        self._running.discard(search)
        self._found(connection, () if search.cancelled() else search.result())

    async def wait(self) -> None:
        """Wait until every place is reported."""
        if self._running:
            await asyncio.wait(self._running, timeout=LOOKING_S)
            await asyncio.sleep(0)  # for the callbacks of what was done already


def _places(folder: Path, host: str) -> Places:
    # Most commands bypass nothing, and are not to wait for this at their start.
    from deltatape.doctor.hardcoded import places_of_host  # noqa: PLC0415 - see above
    from deltatape.doctor.sources import Limits  # noqa: PLC0415 - see above

    return places_of_host(folder, host, Limits())


def with_places(problem: str, places: "Sequence[Hardcoded]") -> str:
    """Return `PROBLEM; see llm.py:2`."""
    where = ", ".join(f"{place.path}:{place.line}" for place in places[:_SHOWN])
    return f"{problem}; see {where}" if where else problem


def replacement_lines(places: "Sequence[Hardcoded]") -> Iterator[str]:
    """Yield what to write at the likeliest place."""
    for place in places[:1]:
        if place.advice.new:
            yield f"    instead of {place.advice.old}"
            yield f"    write      {place.advice.new}"
