"""Run mitmproxy until a signal ends it, or around a command."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deltatape import __version__
from deltatape.child.child import run_child
from deltatape.child.screen import Screen
from deltatape.child.signals import Signals
from deltatape.errors import UsageError
from deltatape.gateway.outbound import OutboundSettings
from deltatape.mitm.environment import (
    LOOPBACK,
    NODE_PROXY,
    ca_bundle,
    mitmproxy_environment,
    no_proxy,
    proxy_variables,
)
from deltatape.mitm.mitmdump import Mitmdump, MitmdumpResult, MitmOptions, Started
from deltatape.model.tape_summary import CHILD_EXIT
from deltatape.printable import count
from deltatape.store.names import state_folder

CLOSE_NOTICE_S = 1.0
"""How long mitmproxy may take to notice that the command's connections are closed."""
GONE = "mitmproxy-exit"
FAILED = "child-not-run"


# Messages for the user: how to use mitmproxy, what happens, the summary.

NO_TRAFFIC_S = 20.0
_SHOWN = 5
Tell = Callable[[str], None]


class RunObserver:
    """Prints a run's messages; see `mitmdump.MitmObserver`.

    Attributes:
        trouble: whether anything could not be taped.
    """

    def __init__(self, tell: Tell, grace_s: float, problem: Tell | None = None) -> None:
        """Args: see `serve_child`; `grace_s`: how long streams may go on at the end."""
        self._tell = tell
        self.problem = problem or tell
        self._grace_s = grace_s
        self._seen: set[str] = set()
        self._passed: list[str] = []
        self.trouble = False

    def line(self, text: str) -> None:
        self._tell(text)

    def traffic(self, what: str) -> None:
        self._seen.add(what)

    def passed(self, host: str) -> None:
        self._passed.append(host)

    def alarm(self, problem: str) -> None:
        self.trouble = True
        self.problem(f"TAPING IN TROUBLE: {problem}")

    def stopping(self, active: int) -> None:
        if active:
            self._tell(
                f"stopping: {count(active, 'stream')} may go on for {self._grace_s:g} s;"
                " Ctrl-C again cuts"
            )

    def remind(self, url: str) -> None:
        """Print what to check, unless a request has been taped."""
        if "exchange" in self._seen:
            return
        waited = f"nothing to tape for {NO_TRAFFIC_S:.0f} s"
        if self._passed:
            self._tell(f"{waited}; {self._hosts()}")
        elif "client" in self._seen:
            self._tell(f"{waited}: a client connected but sent no request for an LLM host")
        else:
            self._tell(
                f"{waited}: does the app read HTTPS_PROXY, in the process that calls the provider?"
                f" try: curl --proxy {url} https://api.openai.com/"
            )

    def _hosts(self) -> str:
        shown = ", ".join(self._passed[:_SHOWN])
        more = f" and {len(self._passed) - _SHOWN} more" if len(self._passed) > _SHOWN else ""
        return f"passed undecrypted, not taped: {shown}{more}; --hosts NAME tapes one"

    def summarise(self, ended: MitmdumpResult, started: Started) -> None:
        """Print the last lines."""
        if not ended.in_order:
            self.trouble = True
            self.problem(
                f"TAPING IN TROUBLE: mitmproxy ended by itself (code {ended.code}); what it had"
                " written is on the tape"
            )
        else:
            found = (
                "not analysed yet"
                if ended.with_findings is None
                else f"{ended.with_findings} with findings"
            )
            self._tell(f"{count(ended.exchanges, 'exchange')} taped, {found}")
        if ended.lost_records:
            self.problem(
                f"NOT ON THE TAPE: {ended.lost_records} records, {ended.lost_bytes} bytes;"
                " the streams themselves were not touched"
            )
        if self._passed and not ended.exchanges:
            self.problem(self._hosts())
        if started.tape:
            self._tell(f"tape: {started.tape}")
            if ended.exchanges or not ended.in_order:
                self._tell(f"next: deltatape why {started.tape}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MitmRunResult:
    """The result of a run. `trouble`: something could not be taped."""

    ended: MitmdumpResult
    trouble: bool


async def serve(
    options: MitmOptions, *, grace_s: float, tell: Tell, environment: Mapping[str, str] = os.environ
) -> MitmRunResult:
    """Run mitmproxy until SIGINT, SIGTERM or its own end; a second signal cuts streams.

    Args:
        options: of mitmproxy.
        grace_s: how long streams may go on at the end.
        tell: gets each line for the user.
        environment: of mitmproxy.

    Raises:
        UsageError: it cannot be started.
    """
    observer = RunObserver(tell, grace_s)
    mitmdump = Mitmdump(observer)
    with mitmproxy_environment(options, environment) as mitmproxy_variables:
        started = await mitmdump.start(options, mitmproxy_variables)
        signals = Signals(lambda: mitmdump.stop("hurried", None, 0.0))
        bundle = None
        if options.upstream is None:
            bundle = ca_bundle(started.ca, state_folder(environment), environment)
        for line in introduce(started, options, alone=True):
            tell(line)
        for line in what_to_set(started, options, bundle):
            tell(line)
        reminder = asyncio.get_running_loop().call_later(NO_TRAFFIC_S, observer.remind, started.url)
        reason = await _wait_for_end(signals, mitmdump)
        reminder.cancel()
        mitmdump.stop(reason, None, grace_s)
        ended = await mitmdump.ended(grace_s)
    observer.summarise(ended, started)
    return MitmRunResult(ended=ended, trouble=observer.trouble)


async def serve_child(
    argv: Sequence[str],
    options: MitmOptions,
    *,
    log: bool,
    tell: Tell,
    problem: Tell | None = None,
    environment: Mapping[str, str] = os.environ,
    screen: Screen | None = None,
) -> tuple[int, MitmRunResult]:
    """Run a command behind mitmproxy; return its exit code as `child.child.run_child` does.

    Args:
        argv: the command, >= 1 item.
        options: of mitmproxy, without an upstream.
        log: record the output of the command on the tape.
        tell: gets each line for the user.
        problem: gets those about problems instead.
        screen: where lines are printed, and the command's output.
        environment: of mitmproxy, and with the variables that name mitmproxy of the command.

    Raises:
        UsageError: mitmproxy cannot be started.
    """
    observer = RunObserver(tell, 0.0, problem)
    mitmdump = Mitmdump(observer)
    with mitmproxy_environment(options, environment) as mitmproxy_variables:
        started = await mitmdump.start(options, mitmproxy_variables)
        for line in introduce(started, options, alone=False):
            tell(line)
        bundle = ca_bundle(started.ca, state_folder(environment), environment)
        child_variables = {**environment, **proxy_variables(started.url, bundle, environment)}
        if options.proxy is not None:
            child_variables |= no_proxy(environment)
        reminder = asyncio.get_running_loop().call_later(NO_TRAFFIC_S, observer.remind, started.url)
        try:
            code = await run_child(
                argv,
                child_variables,
                tee=mitmdump.log if log else None,
                tell=observer.problem,
                screen=screen,
            )
        except UsageError:
            mitmdump.stop(FAILED, None, 0.0)
            await mitmdump.ended(0.0)
            raise
        finally:
            reminder.cancel()
        mitmdump.stop(CHILD_EXIT, code, CLOSE_NOTICE_S)
        ended = await mitmdump.ended(CLOSE_NOTICE_S)
    observer.summarise(ended, started)
    return code, MitmRunResult(ended=ended, trouble=observer.trouble)


class RedirectingProxy:
    """mitmproxy before a command whose base URL cannot be set: see `replay.session.CommandGuard`.

    Requests to the hosts of LLM providers, and to `hosts`, go to the player; all else passes.
    """

    refused: Mapping[str, str] = {}
    """Always empty: what would go past the player is led to it."""

    def __init__(
        self, hosts: Sequence[str], tell: Tell, environment: Mapping[str, str] = os.environ
    ) -> None:
        """Create a guard; `environment` is that of mitmproxy and of the command."""
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
            UsageError: it cannot be started.
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
        self._mitmdump = Mitmdump(RunObserver(self._tell, 0.0))
        started = await self._mitmdump.start(options, variables)
        bundle = ca_bundle(started.ca, state_folder(self._environment), self._environment)
        hosts = " ".join(("the hosts of LLM providers", *self._hosts))
        self._tell(f"  redirect {hosts}, by mitmproxy {started.version}; all else passes")
        return proxy_variables(started.url, bundle, self._environment)

    async def stop(self) -> None:
        """End mitmproxy."""
        if self._mitmdump is not None:
            self._mitmdump.stop(CHILD_EXIT, None, 0.0)
            await self._mitmdump.ended(0.0)
        self._files.close()


async def _wait_for_end(signals: Signals, mitmdump: Mitmdump) -> str:
    """Return the first signal's name, or that mitmproxy has ended."""
    signalled = asyncio.ensure_future(signals.wait())
    gone = asyncio.ensure_future(mitmdump.gone())
    await asyncio.wait((signalled, gone), return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if signalled.done():
        return signalled.result()
    signalled.cancel()
    return GONE
