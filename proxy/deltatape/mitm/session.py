"""Record with mitmproxy until a signal ends it, or around a command.

It is a session of `record` (`record.session`) whose recording is made by mitmproxy.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from deltatape import __version__
from deltatape.child.output import Tee
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.routes import Routes
from deltatape.http1.listener import Address
from deltatape.mitm.environment import (
    LOOPBACK,
    NODE_PROXY,
    ca_bundle,
    mitmproxy_environment,
    no_proxy,
    proxy_variables,
)
from deltatape.mitm.ipc import AnyMessage
from deltatape.mitm.mitmdump import Mitmdump, MitmOptions, Started
from deltatape.mitm.recording import MitmRecording
from deltatape.model.tape_summary import CHILD_EXIT
from deltatape.record.recording import RecordOptions, RunEnvironment
from deltatape.record.reporter import NO_TRAFFIC_S, Reporter
from deltatape.record.session import Session
from deltatape.record.worker_messages import Said
from deltatape.store.names import state_folder

_SHOWN = 5
Tell = Callable[[str], None]


class MitmSession(Session):
    """One run of a recorder that leads the app through mitmproxy."""

    def __init__(
        self, options: RecordOptions, around: RunEnvironment, reporter: Reporter, mitm: MitmOptions
    ) -> None:
        """Args: mitm: how to run mitmproxy; see `Session` for the others."""
        self._mitm = mitm
        super().__init__(options, around, reporter)

    def _make_recording(self) -> MitmRecording:
        self._led = MitmRecording(
            self._mitm, self, self._analysis, self._around.environment, self._options.grace_s
        )
        return self._led

    def _routes(self) -> Routes:
        return Routes(())  # mitmproxy sends requests where the app does

    def _url_of(self, address: Address) -> str:  # noqa: ARG002 - mitmproxy has one
        return self._led.started.url

    def _introduce(self, routes: Routes) -> None:  # noqa: ARG002 - there are none
        started, alone = self._led.started, not self._options.command
        for line in introduce(started, self._mitm, alone=alone):
            self._tell(line)
        if alone:
            bundle = None if self._mitm.upstream is not None else self._bundle()
            for line in what_to_set(started, self._mitm, bundle):
                self._tell(line)
        self._introduce_control()

    def _bundle(self) -> Path:
        environment = self._around.environment
        return ca_bundle(self._led.started.ca, state_folder(environment), environment)

    async def _lead(self, services: contextlib.AsyncExitStack) -> Mapping[str, str]:  # noqa: ARG002 - nothing else runs
        environment = self._around.environment
        variables = proxy_variables(self._base, self._bundle(), environment)
        return variables | (no_proxy(environment) if self._mitm.proxy is not None else {})

    def _log(self) -> tuple[Tee, Callable[[], None]]:
        return self._led.log, self._led.log_end

    def _remind(self) -> None:
        led = self._led
        if not led.counts().exchanges:
            self._tell(no_traffic(self._base, passed=led.passed, connected=led.connected))

    def _summarise(self) -> None:
        super()._summarise()
        if self._led.passed and not self._reporter.exchanges:
            self._reporter.problem(_not_taped(self._led.passed))


# Messages for the user: how to use mitmproxy, what happens.


def no_traffic(url: str, *, passed: Sequence[str], connected: bool) -> str:
    """Return a hint for when nothing comes that is to be taped.

    Args:
        url: where mitmproxy listens.
        passed: the hosts whose traffic passed undecrypted.
        connected: whether an app has connected.
    """
    waited = f"nothing to tape for {NO_TRAFFIC_S:.0f} s"
    if passed:
        return f"{waited}; {_not_taped(passed)}"
    if connected:
        return f"{waited}: a client connected but sent no request for an LLM host"
    return (
        f"{waited}: does the app read HTTPS_PROXY, in the process that calls the provider?"
        f" try: curl --proxy {url} https://api.openai.com/"
    )


def _not_taped(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:_SHOWN])
    more = f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else ""
    return f"passed undecrypted, not taped: {shown}{more}; --hosts NAME tapes one"


def introduce(started: Started, options: MitmOptions, *, alone: bool) -> Iterator[str]:
    """Yield the first lines: what is taped and decrypted; `alone`: no command is run."""
    by = f"deltatape {__version__} is recording by mitmproxy {started.version}"
    yield by + ("; Ctrl-C ends the tape" if alone else "")
    yield f"  tape     {started.tape or 'none: see above'}"
    if options.upstream is not None:
        yield f"  url      {started.url} forwards to {options.upstream}"
        yield from _unused_proxy_lines(options.outbound, options.upstream)
    else:
        hosts = " ".join(("the hosts of LLM providers", *options.hosts))
        yield f"  decrypt  {hosts}; all else passes undecrypted"
        if options.proxy is not None:
            yield f"  through  {options.proxy.url} ({options.proxy.variable})"
            yield "           (for all that comes here: mitmproxy heeds no NO_PROXY, apps do)"


def _unused_proxy_lines(outbound: OutboundSettings, upstream: str) -> Iterator[str]:
    """Yield a line about a proxy that mitmproxy does not use before a single upstream."""
    parts = urlsplit(upstream)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = outbound.proxy_for(parts.scheme, parts.hostname or "", port)
    if proxy is not None:
        yield (
            f"  note     {proxy.variable} is not used: mitmproxy reaches an --upstream directly;"
            " deltatape record --upstream goes through the proxy"
        )


def what_to_set(started: Started, options: MitmOptions, bundle: Path | None) -> Iterator[str]:
    """Yield what to set for an application that deltatape does not start.

    Args:
        started: where it listens.
        options: how it was started.
        bundle: see `environment.ca_bundle`; None for a reverse proxy.
    """
    if bundle is None:
        yield f"  set      OPENAI_BASE_URL={started.url}/v1  (or your SDK's base URL, same path)"
        return
    yield f"  set      HTTPS_PROXY={started.url}"
    yield f"           SSL_CERT_FILE={bundle}  (Python, curl, Go)"
    yield f"           REQUESTS_CA_BUNDLE={bundle}  (requests; AWS_CA_BUNDLE for boto3)"
    yield f"           NODE_EXTRA_CA_CERTS={bundle}  NODE_USE_ENV_PROXY=1  (Node.js 22.21, 24)"
    yield f"           NODE_OPTIONS='--require {NODE_PROXY}'  (older Node.js; for HTTP/2, any)"
    if options.proxy is not None:
        yield f"           NO_PROXY={LOOPBACK}  (besides yours)"
    if options.port == 0:
        yield "           (the port changes with every start: --listen HOST:PORT keeps it)"


class RedirectingProxy:
    """mitmproxy before a command whose base URL cannot be set: see `replay.session.CommandGuard`.

    Requests to the hosts of LLM providers, and to `hosts`, go to the player; all else passes.
    """

    refused: Mapping[str, str] = {}
    """Always empty: what would go past the player is led to it."""

    def __init__(
        self, hosts: Sequence[str], tell: Tell, environment: Mapping[str, str] = os.environ
    ) -> None:
        """Create a guard; mitmproxy and the command run in `environment`."""
        self._hosts = tuple(hosts)
        self._environment = environment
        self._tell = tell
        self._mitmdump: Mitmdump | None = None
        self._files = contextlib.ExitStack()

    def remarks(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    async def start(self, player_port: int) -> Mapping[str, str]:
        """Start mitmproxy; return the variables that lead the command to it.

        Raises:
            UsageError: it cannot be started; nothing is left to be stopped then.
        """
        options = MitmOptions(
            host="127.0.0.1",
            port=0,
            upstream=None,
            to=state_folder(self._environment),
            hosts=self._hosts,
            player=f"http://127.0.0.1:{player_port}",
        )
        variables = self._files.enter_context(mitmproxy_environment(options, self._environment))
        mitmdump = Mitmdump(self._take, self._tell)
        try:
            started = await mitmdump.start(options, variables)
            bundle = ca_bundle(started.ca, state_folder(self._environment), self._environment)
        except BaseException:  # Ctrl-C, too
            await mitmdump.kill()
            self._files.close()
            raise
        self._mitmdump = mitmdump
        hosts = " ".join(("the hosts of LLM providers", *self._hosts))
        self._tell(f"  redirect {hosts}, by mitmproxy {started.version}; all else passes")
        return proxy_variables(started.url, bundle, self._environment)

    def _take(self, message: AnyMessage) -> None:
        if isinstance(message, Said):
            self._tell(message.text)

    async def stop(self) -> None:
        """End mitmproxy."""
        if self._mitmdump is not None:
            self._mitmdump.stop(CHILD_EXIT, None, 0.0)
            await self._mitmdump.ended(0.0)
        self._files.close()
