"""What the user is told about a mitmproxy: how to use it, what happens, what it was."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from deltatape import __version__
from deltatape.gateway.outbound import Outbound
from deltatape.mitm.environment import LOOPBACK, NODE_PROXY
from deltatape.mitm.mitmdump import Ended, MitmOptions, Started
from deltatape.rules.words import count

NO_TRAFFIC_S = 20.0
_SHOWN = 5

Tell = Callable[[str], None]


class Told:
    """See `mitmdump.Observer`.

    Attributes:
        trouble: whether anything could not be taped.
    """

    def __init__(self, tell: Tell, grace_s: float) -> None:
        self._tell = tell
        self._grace_s = grace_s
        self._seen: set[str] = set()
        self._passed: list[str] = []
        self.trouble = False

    def line(self, text: str) -> None:
        """See `Observer.line`."""
        self._tell(text)

    def traffic(self, what: str) -> None:
        """See `Observer.traffic`."""
        self._seen.add(what)

    def passed(self, host: str) -> None:
        """See `Observer.passed`."""
        self._passed.append(host)

    def alarm(self, problem: str) -> None:
        """See `Observer.alarm`."""
        self.trouble = True
        self._tell(f"TAPING IN TROUBLE: {problem}")

    def stopping(self, active: int) -> None:
        """See `Observer.stopping`."""
        if active:
            self._tell(
                f"stopping: {count(active, 'stream')} may go on for {self._grace_s:g} s;"
                " Ctrl-C again cuts"
            )

    def remind(self, url: str) -> None:
        """Say what to look at when nothing has been taped for a while."""
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

    def summarise(self, ended: Ended, started: Started) -> None:
        """The last words."""
        if not ended.in_order:
            self.trouble = True
            self._tell(
                f"TAPING IN TROUBLE: mitmproxy ended by itself (code {ended.code}); what it had"
                " written is on the tape"
            )
        else:
            found = (
                "not analysed live"
                if ended.with_findings is None
                else f"{ended.with_findings} with findings"
            )
            self._tell(f"{count(ended.exchanges, 'exchange')} taped, {found}")
        if ended.lost_records:
            self._tell(
                f"NOT ON THE TAPE: {ended.lost_records} records, {ended.lost_bytes} bytes;"
                " the streams themselves were not touched"
            )
        if self._passed and not ended.exchanges:
            self._tell(self._hosts())
        if started.tape:
            self._tell(f"tape: {started.tape}")
            if ended.exchanges or not ended.in_order:
                self._tell(f"next: deltatape why {started.tape}")


def introduce(started: Started, options: MitmOptions, *, alone: bool) -> Iterator[str]:
    """The first lines: where it tapes and what it looks into; `alone`: no command is run."""
    by = f"deltatape {__version__} is recording by mitmproxy {started.version}"
    yield by + ("; Ctrl-C ends the tape" if alone else "")
    yield f"  tape     {started.tape or 'none: see above'}"
    if options.upstream is not None:
        yield f"  forward  {started.url} -> {options.upstream}"
        yield from _not_through(options.outbound, options.upstream)
    else:
        hosts = " ".join(("the hosts of LLM providers", *options.hosts))
        yield f"  decrypt  {hosts}; all else passes undecrypted"
        yield from _through(options)


def _through(options: MitmOptions) -> Iterator[str]:
    """The company's proxy, where there is one."""
    if options.proxy is None:
        return
    yield f"  through  {options.proxy.url} ({options.proxy.variable})"
    yield "           (for all that comes here: mitmproxy heeds no NO_PROXY, apps do)"


def _not_through(outbound: Outbound, upstream: str) -> Iterator[str]:
    """The proxy that would have been asked, did mitmproxy ask any in front of one upstream."""
    parts = urlsplit(upstream)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = outbound.proxy_for(parts.scheme, parts.hostname or "", port)
    if proxy is not None:
        yield (
            f"  note     {proxy.variable} is not used: mitmproxy reaches an --upstream directly;"
            " deltatape record --upstream goes through the proxy"
        )


def what_to_set(started: Started, options: MitmOptions, bundle: Path | None) -> Iterator[str]:
    """What an application that deltatape does not start needs.

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
