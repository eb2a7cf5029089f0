"""mitmproxy's hooks: each does one thing of a `MitmRun`.

What is not taped passes undecrypted, and bodies that are not taped pass as they come. Where
mitmproxy has one fixed upstream everything is taped, else what goes to the hosts of LLM providers.

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
    find_voice,
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
from deltatape.mitm.ipc import VARIABLE, AddonCommand, AddonMessage, Fields, inherit, logged
from deltatape.mitm.run import MitmRun

REVERSE = "reverse"
DEFAULT_PATIENCE_S = 600
OUR_PATIENCE_S = 24 * 3600
_PATIENCE = "tcp_timeout"
MAX_REPORTED = 200
"""Hosts that are remembered for being told once."""
STOPPED = "mitmproxy-exit"


class Proxyserver(Protocol):
    """mitmproxy's own addon that listens."""

    def listen_addrs(self) -> Sequence[Address]:
        """Where it listens."""


class Addons(Protocol):
    """mitmproxy's addons."""

    def get(self, name: str) -> Proxyserver:
        """The addon of that name."""


class Master(Protocol):
    """mitmproxy as a whole."""

    addons: Addons

    def shutdown(self) -> None:
        """End it, in good order."""


class AddonContext(Protocol):
    """mitmproxy's `ctx`."""

    options: AddonOptions
    master: Master


class MitmRecorder:
    """See the module.

    Args:
        ctx: mitmproxy's.
        version: mitmproxy's.
        refuse: the exception by which mitmproxy takes bad values of options.
    """

    def __init__(self, ctx: AddonContext, version: str, refuse: type[Exception]) -> None:
        self._ctx = ctx
        self._version = version
        self._refuse = refuse
        self._hosts = Hosts(())
        self._voice: AddonLogger = MitmproxyLogHandler()
        self._make_live: MakeLive = PlainObserver
        self._run: MitmRun | None = None
        self._over = False
        self._told: set[str] = set()
        self._stop: tuple[str, int | None] = (STOPPED, None)

    # Life.

    def load(self, loader: Loader) -> None:
        """Tell mitmproxy the options; load what takes long before it listens."""
        self._make_live = find_live()
        inherit(self._ctx.options, os.environ)
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
        """Take the options."""
        if "deltatape_hosts" in updated:
            try:
                self._hosts = Hosts(self._ctx.options.deltatape_hosts)
            except UsageError as error:
                raise self._refuse(str(error)) from None

    def _taping(self) -> MitmRun | None:
        """The run: from the first thing that happens on, which may be before `running`."""
        if self._run is None and not self._over:
            self._voice = find_voice(os.environ, self._heard, self._ctx.master.shutdown)
            folder = _folder(self._ctx.options.deltatape_to)
            self._run = MitmRun(
                folder, self._version, self._voice, self._make_live, self._patience_s
            )
        return self._run

    def _patience_s(self) -> float:
        """After how much silence mitmproxy ends a connection; version 11 has no option for it."""
        return float(getattr(self._ctx.options, _PATIENCE, DEFAULT_PATIENCE_S))

    async def running(self) -> None:
        """It listens."""
        run = self._taping()
        if run is None:
            return
        await self._voice.connect()
        if VARIABLE in os.environ and self._patience_s() == DEFAULT_PATIENCE_S:
            # Models think for longer; who has mitmproxy for themselves decides for themselves.
            self._ctx.options.update_known(**{_PATIENCE: OUR_PATIENCE_S})
        addresses = self._ctx.master.addons.get("proxyserver").listen_addrs()
        host, port = addresses[0][:2] if addresses else ("", 0)
        self._voice.say(
            AddonMessage.READY,
            url=f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
            tape=run.book.current.path,
            confdir=str(_folder(self._ctx.options.confdir)),
            version=self._version,
        )

    def _heard(self, kind: str, fields: Fields) -> None:
        """What the deltatape that started this mitmproxy says."""
        if self._run is None:
            return
        if kind == AddonCommand.LOG:
            self._run.book.log(*logged(fields))
        elif kind == AddonCommand.STOP:
            code, grace_s = fields["code"], fields["grace_s"]
            self._stop = (str(fields["reason"]), code if isinstance(code, int) else None)
            self._run.drain(
                float(grace_s) if isinstance(grace_s, int | float) else 0.0,
                self._ctx.master.shutdown,
            )

    async def done(self) -> None:
        """It ends."""
        self._over = True
        run, self._run = self._run, None
        if run is not None:
            await run.stop(*self._stop)

    # Connections.

    def client_connected(self, client: ClientConnection) -> None:
        """Where there is one upstream, everybody comes for what is taped."""
        run = self._taping()
        if run is None:
            return
        if self._is_new("client"):
            self._voice.say(AddonMessage.TRAFFIC, what="client")
        if client.proxy_mode.type_name == REVERSE:
            run.client(client.id)

    def _is_new(self, what: str) -> bool:
        """Whether this is to be told: the first time, and while few things were."""
        if what in self._told or len(self._told) >= MAX_REPORTED:
            return False
        self._told.add(what)
        return True

    def client_disconnected(self, client: ClientConnection) -> None:
        if self._run is not None:
            self._run.client_left(client.id)

    def server_disconnected(self, data: ServerData) -> None:
        if self._run is not None:
            self._run.server_left(data.server.id)

    def http_connect(self, flow: Flow) -> None:
        """A client wants to go somewhere."""
        run = self._taping()
        if run is not None and self._hosts.has(flow.request.host):
            run.client(flow.client_conn.id)

    def tls_clienthello(self, data: ClientHelloData) -> None:
        """Whether to look into what follows."""
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
            self._voice.say(AddonMessage.PASSED, host=names[0])

    def tls_failed_client(self, data: TlsData) -> None:
        """An application that does not trust mitmproxy's certificate; told once per host."""
        host = data.conn.sni or str((data.context.server.address or ("the proxy",))[0])
        if self._is_new(f"distrust {host}"):
            self._voice.say(
                AddonMessage.LINE,
                text=f"{host}: the app broke off the TLS handshake with mitmproxy: does it trust"
                f" the CA certificate in {self._ctx.options.confdir}? ({data.conn.error})",
            )

    # Exchanges.

    def requestheaders(self, flow: Flow) -> None:
        """A request's head has come."""
        run = self._taping()
        if run is not None and self._is_taped(flow):
            if self._is_new("exchange"):
                self._voice.say(AddonMessage.TRAFFIC, what="exchange")
            run.begin(flow)
        elif flow.response is None and not self._ctx.options.deltatape_decrypt_others:
            flow.request.stream = flow.request.stream or True

    def request(self, flow: Flow) -> None:
        """A request is whole."""
        if self._run is not None:
            self._run.request_end(flow)

    def responseheaders(self, flow: Flow) -> None:
        """A response's head has come."""
        if self._run is not None and self._is_taped(flow):
            self._run.response(flow)
        elif flow.response is not None and not self._ctx.options.deltatape_decrypt_others:
            flow.response.stream = flow.response.stream or True

    def response(self, flow: Flow) -> None:
        """A response is whole."""
        if self._run is not None:
            self._run.complete(flow)

    def error(self, flow: Flow) -> None:
        """An exchange ended otherwise."""
        if self._run is not None:
            self._run.failed(flow)

    def _is_taped(self, flow: Flow) -> bool:
        asked = flow.request
        return flow.client_conn.proxy_mode.type_name == REVERSE or any(
            map(self._hosts.has, (asked.host, asked.pretty_host))
        )


def _folder(text: str) -> Path:
    return Path(text).expanduser()
