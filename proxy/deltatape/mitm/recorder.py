"""mitmproxy's hooks: each calls one method of a `MitmRun`.

With one fixed upstream, everything is taped, otherwise only requests to the hosts of LLM providers.
All else passes undecrypted, and without waiting for complete bodies.

Source: https://docs.mitmproxy.org/stable/api/events.html; the same hooks in versions 11 and 12.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from deltatape.errors import UsageError
from deltatape.mitm.addon_log import (
    AddonLogger,
    MakeLive,
    MitmproxyLogHandler,
    PlainObserver,
    find_live,
    find_logger,
)
from deltatape.mitm.flows import (
    AddonOptions,
    Address,
    ClientConnection,
    ClientHelloData,
    Flow,
    Loader,
    ServerData,
    TlsData,
)
from deltatape.mitm.hosts import Hosts
from deltatape.mitm.ipc import (
    VARIABLE,
    AddonCommand,
    AddonMessage,
    Fields,
    apply_options,
    parse_log,
)
from deltatape.mitm.run import MitmRun

REVERSE = "reverse"
DEFAULT_PATIENCE_S = 600
OUR_PATIENCE_S = 24 * 3600
_PATIENCE = "tcp_timeout"
MAX_REPORTED = 200
"""The most different messages to report; each is reported once."""
STOPPED = "mitmproxy-exit"


class Proxyserver(Protocol):
    """mitmproxy's own addon that listens."""

    def listen_addrs(self) -> Sequence[Address]:
        """Return its listening addresses."""


class Addons(Protocol):
    """mitmproxy's addons."""

    def get(self, name: str) -> Proxyserver:
        """Return the addon of that name."""


class Master(Protocol):
    """mitmproxy as a whole."""

    addons: Addons

    def shutdown(self) -> None:
        """End mitmproxy regularly."""


class AddonContext(Protocol):
    """mitmproxy's `ctx`."""

    options: AddonOptions
    master: Master


class MitmRecorder:
    """The addon: receives mitmproxy's hooks.

    Args:
        ctx: mitmproxy's.
        version: mitmproxy's.
        refuse: the exception that tells mitmproxy of an invalid option.
    """

    def __init__(self, ctx: AddonContext, version: str, refuse: type[Exception]) -> None:
        self._ctx = ctx
        self._version = version
        self._refuse = refuse
        self._hosts = Hosts(())
        self._logger: AddonLogger = MitmproxyLogHandler()
        self._make_live: MakeLive = PlainObserver
        self._run: MitmRun | None = None
        self._ended = False
        self._reported: set[str] = set()
        self._stop: tuple[str, int | None] = (STOPPED, None)

    def load(self, loader: Loader) -> None:
        """Register the options; import what takes long before mitmproxy listens."""
        self._make_live = find_live()
        apply_options(self._ctx.options, os.environ)
        loader.add_option(
            "deltatape_to",
            str,
            os.environ.get("DELTATAPE_MITM_TO") or ".deltatape",
            "The folder for deltatape's tapes.",
        )
        loader.add_option(
            "deltatape_hosts",
            Sequence[str],
            os.environ.get("DELTATAPE_MITM_HOSTS", "").split(),
            "Tape these hosts besides those of LLM providers; * stands for any characters.",
        )
        loader.add_option(
            "deltatape_decrypt_others",
            bool,
            False,  # noqa: FBT003 - mitmproxy's signature
            "Let mitmproxy decrypt hosts that deltatape does not tape.",
        )

    def configure(self, updated: Iterable[str]) -> None:
        """Read the options."""
        if "deltatape_hosts" in updated:
            try:
                self._hosts = Hosts(self._ctx.options.deltatape_hosts)
            except UsageError as error:
                raise self._refuse(str(error)) from None

    def _current_run(self) -> MitmRun | None:
        """Return the run, created by the first event, which may precede `running`."""
        if self._run is None and not self._ended:
            self._logger = find_logger(os.environ, self._on_message, self._ctx.master.shutdown)
            folder = _folder(self._ctx.options.deltatape_to)
            self._run = MitmRun(
                folder, self._version, self._logger, self._make_live, self._patience_s
            )
        return self._run

    def _patience_s(self) -> float:
        """Return mitmproxy's timeout for silent connections; version 11 has no option for it."""
        return float(getattr(self._ctx.options, _PATIENCE, DEFAULT_PATIENCE_S))

    async def running(self) -> None:
        """Report that mitmproxy listens."""
        run = self._current_run()
        if run is not None:
            await self._announce(tape=run.book.current.path)

    async def _announce(self, tape: str) -> None:
        await self._logger.connect()
        if VARIABLE in os.environ and self._patience_s() == DEFAULT_PATIENCE_S:
            # Models think for longer. A mitmproxy that the user started keeps its timeout.
            self._ctx.options.update_known(**{_PATIENCE: OUR_PATIENCE_S})
        addresses = self._ctx.master.addons.get("proxyserver").listen_addrs()
        host, port = addresses[0][:2] if addresses else ("", 0)
        self._logger.send(
            AddonMessage.READY,
            url=f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
            tape=tape,
            confdir=str(_folder(self._ctx.options.confdir)),
            version=self._version,
        )

    def _on_message(self, kind: str, fields: Fields) -> None:
        """Handle a message of the deltatape that started this mitmproxy."""
        if self._run is None:
            return
        if kind == AddonCommand.LOG:
            self._run.book.log(*parse_log(fields))
        elif kind == AddonCommand.STOP:
            code, grace_s = fields["code"], fields["grace_s"]
            self._stop = (str(fields["reason"]), code if isinstance(code, int) else None)
            self._run.drain(
                float(grace_s) if isinstance(grace_s, int | float) else 0.0,
                self._ctx.master.shutdown,
            )

    async def done(self) -> None:
        """Close the tape when mitmproxy ends."""
        self._ended = True
        run, self._run = self._run, None
        if run is not None:
            await run.stop(*self._stop)

    # Connections.

    def client_connected(self, client: ClientConnection) -> None:
        """Count a client; with a single upstream all clients count."""
        run = self._current_run()
        if run is None:
            return
        if self._is_new("client"):
            self._logger.send(AddonMessage.TRAFFIC, what="client")
        if client.proxy_mode.type_name == REVERSE:
            run.client(client.id)

    def _is_new(self, what: str) -> bool:
        """Return whether to report this: the first time, up to a limit."""
        if what in self._reported or len(self._reported) >= MAX_REPORTED:
            return False
        self._reported.add(what)
        return True

    def client_disconnected(self, client: ClientConnection) -> None:
        if self._run is not None:
            self._run.client_left(client.id)

    def server_disconnected(self, data: ServerData) -> None:
        if self._run is not None:
            self._run.server_left(data.server.id)

    def http_connect(self, flow: Flow) -> None:
        """Note the target of a CONNECT request."""
        run = self._current_run()
        if run is not None and self._hosts.has(flow.request.host):
            run.client(flow.client_conn.id)

    def tls_clienthello(self, data: ClientHelloData) -> None:
        """Decide whether to decrypt a connection."""
        context = data.context
        reverse = context.client.proxy_mode.type_name == REVERSE
        if reverse or self._ctx.options.deltatape_decrypt_others:
            return
        address = context.server.address
        names = [name for name in (data.client_hello.sni, address[0] if address else None) if name]
        if any(map(self._hosts.has, names)):
            return
        data.ignore_connection = True
        if names and self._is_new(f"passed {names[0]}"):
            self._logger.send(AddonMessage.PASSED, host=names[0])

    def tls_failed_client(self, data: TlsData) -> None:
        """Report once per host that an application does not trust mitmproxy's certificate."""
        host = data.conn.sni or str((data.context.server.address or ("the proxy",))[0])
        if self._is_new(f"distrust {host}"):
            self._logger.send(
                AddonMessage.LINE,
                text=f"{host}: the app broke off the TLS handshake with mitmproxy: does it trust"
                f" the CA certificate in {self._ctx.options.confdir}? ({data.conn.error})",
            )

    # Exchanges.

    def requestheaders(self, flow: Flow) -> None:
        """Begin an exchange with its request's head."""
        run = self._current_run()
        if run is not None and self._is_taped(flow):
            if self._is_new("exchange"):
                self._logger.send(AddonMessage.TRAFFIC, what="exchange")
            run.begin(flow)
        elif flow.response is None and not self._ctx.options.deltatape_decrypt_others:
            flow.request.stream = flow.request.stream or True

    def request(self, flow: Flow) -> None:
        """End a request."""
        if self._run is not None:
            self._run.request_end(flow)

    def responseheaders(self, flow: Flow) -> None:
        """Begin a response with its head."""
        if self._run is not None and self._is_taped(flow):
            self._run.response(flow)
        elif flow.response is not None and not self._ctx.options.deltatape_decrypt_others:
            flow.response.stream = flow.response.stream or True

    def response(self, flow: Flow) -> None:
        """End a response."""
        if self._run is not None:
            self._run.complete(flow)

    def error(self, flow: Flow) -> None:
        """End an exchange that failed."""
        if self._run is not None:
            self._run.failed(flow)

    def _is_taped(self, flow: Flow) -> bool:
        request = flow.request
        return flow.client_conn.proxy_mode.type_name == REVERSE or any(
            map(self._hosts.has, (request.host, request.pretty_host))
        )


def _folder(text: str) -> Path:
    return Path(text).expanduser()
