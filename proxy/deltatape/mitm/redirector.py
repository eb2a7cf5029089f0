"""The addon of a replay: requests to LLM hosts go to a player, and nothing is taped.

Which hosts that are, and how others pass, is as in `recorder`. The name of a redirected host is
never looked up, and no connection to it is opened.
"""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from deltatape.gateway.routes import UPSTREAM_FIELD
from deltatape.mitm.addon_log import find_logger
from deltatape.mitm.flows import Flow, ServerData
from deltatape.mitm.ipc import PLAYER, AnyMessage, Stopped, StopTaping
from deltatape.mitm.recorder import AddonContext, MitmRecorder
from deltatape.mitm.run import MitmRun, origin


class MitmRedirector(MitmRecorder):
    """Receives mitmproxy's hooks; see `MitmRecorder`.

    Args:
        environment: has `PLAYER`.
    """

    def __init__(
        self,
        ctx: AddonContext,
        version: str,
        refuse: type[Exception],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__(ctx, version, refuse)
        player = urlsplit(environment[PLAYER])
        self._host, self._port = player.hostname or "", player.port or 80

    def _current_run(self) -> MitmRun | None:
        return None  # nothing is taped

    async def running(self) -> None:
        """Report that mitmproxy listens."""
        self._logger = find_logger(os.environ, self._on_message, self._ctx.master.shutdown)
        await self._announce(tape="")

    def _on_message(self, message: AnyMessage) -> None:
        if isinstance(message, StopTaping):
            self._ctx.master.shutdown()

    async def done(self) -> None:
        """Say that the end was in order."""
        self._logger.send(Stopped())

    def requestheaders(self, flow: Flow) -> None:
        """Lead a request to the player; it gets the body as a whole, since it has to compare it."""
        if not self._is_taped(flow):
            super().requestheaders(flow)
            return
        upstream = origin(flow.request.scheme, flow.request.host, flow.request.port).encode()
        kept = (each for each in flow.request.headers.fields if each[0].lower() != UPSTREAM_FIELD)
        flow.request.headers.fields = (*kept, (UPSTREAM_FIELD, upstream))
        flow.request.scheme = "http"
        flow.request.host = self._host
        flow.request.port = self._port

    def server_connect(self, data: ServerData) -> None:
        """Refuse connections to LLM hosts: a replay does not use the network."""
        address = data.server.address
        if address is None or address[:2] == (self._host, self._port):
            return
        if self._hosts.has(address[0]):
            data.server.error = "deltatape replay: this host is played"
