"""The control listener: `--control HOST:PORT` answers health checks and scrapes.

`GET /health` answers 200, or 503 while taping has a problem (streams still pass). `GET /status`
says what the recorder is doing. Both answers are JSON objects with `"version": 1`; after a problem,
both have `since`, when it began or ended. `GET /metrics` answers Prometheus.

It is a separate listener, so that the gateway reserves no path, and on loopback only, since the
status is private (a health check runs inside its container). Requests that name another host are
refused, against DNS rebinding. Nothing can be changed here, and no page of another origin can read
an answer.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from deltatape.errors import UsageError
from deltatape.http1.access import check_origin
from deltatape.http1.listener import (
    Bound,
    bind_one,
    bracketed,
    duplicates,
    is_loopback,
    stop_accepting,
)

if TYPE_CHECKING:
    from aiohttp import web

_OK = "ok"
_TROUBLE = "taping-in-trouble"

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Type": "application/json",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "deltatape",
    "X-Content-Type-Options": "nosniff",
}


Scraped = tuple[str, bytes]
"""The type and the text of an answer to Prometheus."""


class Control:
    """Answers health checks of a run.

    Args:
        status: the answer of `/status`: JSON values by name. `trouble` among them, if true, makes
            the run unhealthy; `since` tells since when it is what it is, if that has changed.
        metrics: returns the type and the text of the answer of `/metrics` to a request with that
            `Accept` field; raises `UsageError` where what it needs is not installed.
    """

    def __init__(
        self, status: Callable[[], Mapping[str, object]], metrics: Callable[[str], Scraped]
    ) -> None:
        self._status = status
        self._metrics = metrics
        self._runner: web.ServerRunner | None = None
        self._sockets: Bound = ()

    async def start(self, host: str, port: int, sockets: Sequence[socket.socket] = ()) -> str:
        """Listen and return the URL. `port` 0 takes any free one.

        Args:
            host: the host.
            port: the port.
            sockets: the sockets to listen on, if they are bound to that address already.

        Raises:
            UsageError: the address is not available, or is not on loopback.
        """
        if not is_loopback(host):
            raise UsageError(
                f"--control {host!r}: only loopback is accepted, such as 127.0.0.1:8379 or"
                " [::1]:8379"
            )
        from aiohttp import web  # noqa: PLC0415 - takes longer to import than all else here

        self._runner = web.ServerRunner(web.Server(self._answer), access_log=None)
        await self._runner.setup()
        try:
            self._sockets = duplicates(sockets) or await bind_one(host, port)
            for each in self._sockets:
                await web.SockSite(self._runner, each).start()
        except OSError as error:
            await self.stop()
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise UsageError(
                f"--control {bracketed(host)}:{port}: {reason}; choose another port (0 takes any"
                " free one)"
            ) from None
        host, port = self._runner.addresses[0][:2]
        return f"http://{bracketed(host)}:{port}"

    @property
    def sockets(self) -> Bound:
        """Copies of those on which it listens, for another process."""
        return duplicates(self._sockets)

    async def stop(self) -> None:
        """Stop listening; harmless without a start, and twice.

        What waits to be accepted is left to other processes that listen on the same sockets.
        """
        runner, self._runner = self._runner, None
        await stop_accepting(self._sockets)
        self._sockets = ()
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: "web.BaseRequest") -> "web.Response":
        from aiohttp import web  # noqa: PLC0415 - loaded already

        status, found = self._look_up(request)
        if isinstance(found, tuple):
            content_type, text = found
            headers = {**_HEADERS, "Content-Type": content_type}
            return web.Response(status=status, headers=headers, body=text)
        text = (json.dumps({"version": 1, **found}) + "\n").encode()
        return web.Response(status=status, headers=_HEADERS, body=text)

    def _look_up(self, request: "web.BaseRequest") -> tuple[int, Mapping[str, object] | Scraped]:
        foreign = check_origin(request.raw_headers)
        if foreign is not None:
            return 403, {"error": foreign.message}
        if request.method not in ("GET", "HEAD"):
            return 405, {"error": f"{request.method}: GET and HEAD are answered"}
        if request.path == "/metrics":
            try:
                return 200, self._metrics(request.headers.get("Accept", ""))
            except UsageError as error:
                return 501, {"error": str(error)}
        if request.path not in ("/health", "/status"):
            return 404, {"error": f"no {request.path}; use /health, /status or /metrics"}
        status = self._status()
        trouble = bool(status.get("trouble"))
        summary = {"status": _TROUBLE if trouble else _OK}
        if since := status.get("since"):
            summary["since"] = str(since)
        if request.path == "/status":
            return 200, {**summary, **status}
        return 503 if trouble else 200, summary
