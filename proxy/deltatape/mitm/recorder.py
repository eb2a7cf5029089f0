"""mitmproxy's hooks: each calls one method of a `MitmRun`.

With one fixed upstream, everything is taped, otherwise only requests to the hosts of LLM providers.
All else passes undecrypted, and without waiting for complete bodies.

Source: https://docs.mitmproxy.org/stable/api/events.html; the same hooks in versions 11 and 12.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.mitm.addon_log import AddonLogger, MitmproxyLogHandler, find_logger
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
    AnyMessage,
    FirstClient,
    Log,
    LogEnd,
    Passed,
    PinAround,
    Ready,
    Released,
    Stopped,
    StopTaping,
    apply_options,
)
from deltatape.mitm.run import MitmRun, TapingOptions
from deltatape.mitm.run_session import OwnSession, ParentSession, RunSession, can_analyse
from deltatape.record.worker_messages import Hurry, Parsed, Said
from deltatape.store.ring import parse_keep

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
        self._parent: ParentSession | None = None
        self._run: MitmRun | None = None
        self._ended = False
        self._reported: set[str] = set()
        self._stop: tuple[str, int | None] = (STOPPED, None)

    def load(self, loader: Loader) -> None:
        """Register the options."""
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
            "deltatape_keep",
            str,
            "",
            "Keep the last 2h or 5GB of tapes, and what lies around findings.",
        )
        loader.add_option(
            "deltatape_bodies",
            bool,
            True,  # noqa: FBT003 - mitmproxy's signature
            "Tape the bodies of requests: prompts, history.",
        )
        loader.add_option(
            "deltatape_durable",
            bool,
            True,  # noqa: FBT003 - mitmproxy's signature
            "Sync the tape to disk after each exchange.",
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
        if "deltatape_keep" in updated and self._ctx.options.deltatape_keep:
            try:
                parse_keep(self._ctx.options.deltatape_keep)
            except UsageError as error:
                raise self._refuse(str(error)) from None

    def _current_run(self) -> MitmRun | None:
        """Return the run, created by the first event, which may precede `running`."""
        if self._run is None and not self._ended:
            options = self._ctx.options
            self._run = MitmRun(
                TapingOptions(
                    to=_folder(options.deltatape_to),
                    keep=parse_keep(options.deltatape_keep) if options.deltatape_keep else None,
                    bodies=options.deltatape_bodies,
                    durable=options.deltatape_durable,
                ),
                self._version,
                self._find_session(),
                self._patience_s,
            )
        return self._run

    def _find_session(self) -> RunSession:
        self._logger = find_logger(os.environ, self._on_message, self._gone)
        if VARIABLE not in os.environ:
            return OwnSession(self._logger, analysed=can_analyse())
        self._parent = ParentSession(self._logger.send, SystemClock().now_ns)
        return self._parent

    def _gone(self) -> None:
        """End, since deltatape has ended."""
        if self._parent is not None:
            self._parent.release()
        self._ctx.master.shutdown()

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
            Ready(
                url=f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
                tape=tape,
                confdir=str(_folder(self._ctx.options.confdir)),
                version=self._version,
            )
        )

    def _on_message(self, message: AnyMessage) -> None:
        """Handle a message of the deltatape that started this mitmproxy."""
        run, parent = self._run, self._parent
        if parent is None:
            return
        match message:
            case Released():
                parent.release()
            case Parsed(key=key, number=number, parsed=parsed):
                if tape := parent.tape(key):
                    parent.parsed(tape, number, parsed)
            case PinAround(key=key, end_ns=end_ns, ticket=ticket):
                # Of a tape that is closed by now, the end was a moment ago.
                tape = parent.tape(key)
                parent.finding(tape, end_ns if tape else None, lambda: parent.pinned(ticket))
            case Log() if run is not None:
                run.book.log(*message.parts())
            case LogEnd() if run is not None:
                run.book.log_end()
            case Hurry() if run is not None:
                run.hurry()
            case StopTaping() if run is not None:
                self._stop = (message.reason, message.code)
                run.drain(message.grace_s, self._ctx.master.shutdown)
            case _:
                pass

    async def done(self) -> None:
        """Close the tape when mitmproxy ends."""
        self._ended = True
        run, self._run = self._run, None
        if run is not None:
            if self._parent is not None:
                self._parent.stopping = True
            await run.stop(*self._stop)
            self._logger.send(Stopped())

    # Connections.

    def client_connected(self, client: ClientConnection) -> None:
        """Count a client; with a single upstream all clients count."""
        run = self._current_run()
        if run is None:
            return
        if self._is_new("client"):
            self._logger.send(FirstClient())
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
            self._logger.send(Passed(host=names[0]))

    def tls_failed_client(self, data: TlsData) -> None:
        """Report once per host that an application does not trust mitmproxy's certificate."""
        host = data.conn.sni or str((data.context.server.address or ("the proxy",))[0])
        if self._is_new(f"distrust {host}"):
            self._logger.send(
                Said(
                    text=f"{host}: the app broke off the TLS handshake with mitmproxy: does it"
                    f" trust the CA certificate in {self._ctx.options.confdir}?"
                    f" ({data.conn.error})",
                    how="remark",
                )
            )

    # Exchanges.

    def requestheaders(self, flow: Flow) -> None:
        """Begin an exchange with its request's head."""
        run = self._current_run()
        if run is not None and self._is_taped(flow):
            run.begin(flow)
        elif flow.response is None and not self._ctx.options.deltatape_decrypt_others:
            flow.request.stream = flow.request.stream or True

    def request(self, flow: Flow) -> None:
        """End a request."""
        if self._run is not None:
            self._run.asked_all(flow)

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

    def websocket_message(self, flow: Flow) -> None:
        """Tape a message on a WebSocket."""
        if self._run is not None:
            self._run.message(flow)

    def websocket_end(self, flow: Flow) -> None:
        """End a WebSocket."""
        if self._run is not None:
            self._run.closed(flow)

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
