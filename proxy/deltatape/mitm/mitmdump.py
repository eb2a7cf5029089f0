"""Run mitmproxy with the addon as a child process.

It is a process, not a library: its pinned dependencies and its event loop stay separate, and a
mitmproxy of another environment works, too. It is looked for beside this Python, then on PATH. It
runs in a session of its own, so that Ctrl-C reaches only deltatape, which lets streams end.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deltatape.errors import UsageError
from deltatape.gateway.outbound import OutboundSettings, Proxy
from deltatape.http1.listener import is_loopback
from deltatape.mitm.ipc import (
    PLAYER,
    VARIABLE,
    AddonSocket,
    AnyMessage,
    Ready,
    Stopped,
    StopTaping,
    ToAddon,
)

ADDON = Path(__file__).resolve().with_name("addon.py")
"""The script for `mitmdump -s`."""

START_S = 30.0
END_S = 15.0
_POLL_S = 0.02
_KEPT = 40
"""How many lines of mitmproxy's output to keep for an error message."""
_STARTUP = "logged during startup"
_IN_USE = "address already in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class MitmOptions:
    """How to run mitmproxy.

    Attributes:
        host: where to listen.
        port: 0 takes any free one.
        upstream: `http(s)://HOST[:PORT]` for a reverse proxy; None for a proxy that apps have to be
            configured for.
        to: the folder for tapes.
        hosts: what is taped besides LLM providers; see `hosts`.
        more: mitmproxy's own options; they come last, so they win.
        outbound: proxy and certificates for upstreams; see `environment.mitmproxy_environment`.
        player: the URL of a player that answers instead of those hosts; nothing is taped then.
        keep: the budget of the ring of tapes, as the user has written it; "" keeps everything.
        bodies: tape the bodies of requests.
        durable: sync the tape after each exchange.
    """

    host: str
    port: int
    upstream: str | None
    to: Path
    hosts: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    outbound: OutboundSettings = field(default_factory=OutboundSettings)
    player: str | None = None
    keep: str = ""
    bodies: bool = True
    durable: bool = True

    @property
    def proxy(self) -> Proxy | None:
        """Return the corporate proxy behind mitmproxy, unless the variable names mitmproxy."""
        proxy = self.outbound.https_proxy
        if self.upstream is not None or proxy is None:
            return None
        here = is_loopback(proxy.host) or proxy.host == self.host
        return None if here and proxy.port == self.port else proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A mitmproxy that listens."""

    url: str
    tape: str
    """The tape's path; "" when there is none."""
    ca: Path
    """The certificate of its CA, in PEM."""
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MitmdumpResult:
    """A mitmproxy that has ended. `in_order`: it was asked to end, and closed its tape."""

    in_order: bool
    code: int


def find_mitmdump(environment: Mapping[str, str]) -> str:
    """Return the path of the program, in this Python's environment or in PATH.

    Raises:
        UsageError: there is none.
    """
    beside = Path(sys.executable).with_name("mitmdump")
    if beside.is_file():
        return str(beside)
    found = shutil.which("mitmdump", path=environment.get("PATH"))
    if found is not None:
        return found
    raise UsageError(
        "mitmproxy is not installed: pip install 'deltatape[mitm]' adds it to this environment,"
        " pipx install mitmproxy gives it one of its own; a mitmproxy elsewhere takes the addon:"
        ' mitmdump -s "$(deltatape mitm --addon-path)"'
    )


def arguments(options: MitmOptions) -> list[str]:
    """Return mitmdump's arguments. It connects upstream only when there is something to send."""
    return [
        *("--quiet", "--mode", _mode(options)),
        *("--listen-host", options.host, "--listen-port", str(options.port)),
        *("--set", "connection_strategy=lazy", "--set", "http3=false"),
        *("--set", f"deltatape_to={options.to}"),
        *(("--set", f"deltatape_keep={options.keep}") if options.keep else ()),
        *(() if options.bodies else ("--set", "deltatape_bodies=false")),
        *(() if options.durable else ("--set", "deltatape_durable=false")),
        *(part for host in options.hosts for part in ("--set", f"deltatape_hosts={host}")),
        *(() if options.player is None else ("--set", "upstream_cert=false")),
        *options.more,
        # Last, so that it respects options set by other addons.
        *("--scripts", str(ADDON)),
    ]


def _mode(options: MitmOptions) -> str:
    if options.upstream is not None:
        return f"reverse:{options.upstream}"
    return "regular" if options.proxy is None else f"upstream:{options.proxy.url}"


class Mitmdump:
    """One run of mitmproxy: `start`, then `stop`, then `ended`."""

    def __init__(
        self, on_message: Callable[[AnyMessage], None], on_line: Callable[[str], None]
    ) -> None:
        """Args: on_message: gets the addon's messages. on_line: gets what mitmproxy prints."""
        self._on_addon_message = on_message
        self._on_line = on_line
        loop = asyncio.get_running_loop()
        self._socket = AddonSocket(self._on_message, lambda: None)
        self._ready: asyncio.Future[Ready] = loop.create_future()
        self._in_order = False
        self._printed: list[str] = []
        self._process: asyncio.subprocess.Process | None = None
        self._output: asyncio.Task[None] | None = None

    async def start(self, options: MitmOptions, environment: Mapping[str, str]) -> Started:
        """Start it, and wait until it listens.

        Raises:
            UsageError: it did not start; the message has its output.
        """
        program = find_mitmdump(environment)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - its only argument
        try:
            self._process = await asyncio.create_subprocess_exec(
                program,
                *arguments(options),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={
                    **environment,
                    **({} if options.player is None else {PLAYER: options.player}),
                    VARIABLE: str(theirs.fileno()),
                    "PYTHONUNBUFFERED": "1",
                },
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise UsageError(f"{program}: {error.strerror}") from None
        finally:
            theirs.close()
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self._socket, sock=ours)
        self._output = loop.create_task(self._relay(self._process.stdout))
        return await self._until_ready(options)

    async def _until_ready(self, options: MitmOptions) -> Started:
        assert self._output is not None
        await asyncio.wait(
            (self._ready, self._output), timeout=START_S, return_when=asyncio.FIRST_COMPLETED
        )
        if not self._ready.done():
            await self.kill()
            raise UsageError(_startup_error(options, self._printed))
        ready = self._ready.result()
        ca = Path(ready.confdir) / "mitmproxy-ca-cert.pem"
        if options.upstream is None:
            await self._until_written(ca)
        return Started(
            url=ready.url,
            tape=ready.tape,
            ca=ca,
            version=ready.version,
        )

    async def _until_written(self, ca: Path) -> None:
        """Wait for the whole CA, which mitmproxy writes on its first run after it listens."""
        assert self._output is not None
        deadline = asyncio.get_running_loop().time() + START_S
        while not _is_written(ca) and not self._output.done():
            if asyncio.get_running_loop().time() > deadline:
                await self.kill()
                raise UsageError(f"{ca}: mitmproxy has made no CA there")
            await asyncio.sleep(_POLL_S)

    async def _relay(self, output: asyncio.StreamReader | None) -> None:
        """Pass on mitmproxy's own output until it ends."""
        assert output is not None
        while line := await _next_line(output):
            text = line.decode("utf-8", "replace").rstrip()
            if not self._ready.done():
                self._printed.append(text)
                del self._printed[:-_KEPT]
            elif text:
                self._on_line(f"mitmproxy: {text}")

    def _on_message(self, message: AnyMessage) -> None:
        match message:
            case Ready():
                self._ready.set_result(message)
            case Stopped():
                self._in_order = True
            case _:
                self._on_addon_message(message)

    def send(self, message: ToAddon) -> None:
        """Send the addon a message."""
        self._socket.send(message)

    def stop(self, reason: str, code: int | None, grace_s: float) -> None:
        """Stop mitmproxy; streams may continue for `grace_s`."""
        self.send(StopTaping(reason=reason, code=code, grace_s=grace_s))

    async def gone(self) -> None:
        """Wait until it has ended, for whatever reason."""
        assert self._process is not None
        await self._process.wait()

    async def ended(self, within_s: float) -> MitmdumpResult:
        """Wait for the end; kill it some time after `within_s`."""
        assert self._process is not None
        assert self._output is not None
        try:
            await asyncio.wait_for(self._process.wait(), within_s + END_S)
        except TimeoutError:
            await self.kill()
        code = await self._process.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._output, END_S)
        return MitmdumpResult(in_order=self._in_order, code=code)

    async def kill(self) -> None:
        """Kill it at once, with the processes that it started; harmless after its end."""
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()


def _is_written(ca: Path) -> bool:
    """Return whether a certificate is written to its end, or cannot be read."""
    try:
        return b"-----END CERTIFICATE-----" in ca.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # who reads it next tells why


async def _next_line(output: asyncio.StreamReader) -> bytes:
    """Return a line with its end, or the part of one too long to keep; empty at the end."""
    try:
        return await output.readuntil()
    except asyncio.IncompleteReadError as rest:
        return rest.partial
    except asyncio.LimitOverrunError as long:
        return await output.read(long.consumed)


def _startup_error(options: MitmOptions, printed: Sequence[str]) -> str:
    lines = [line.strip() for line in printed if line.strip(" ^~") and _STARTUP not in line]
    if any(_IN_USE in line.lower() for line in lines):
        return (
            f"cannot listen on {options.host}:{options.port}: Address already in use; choose"
            " another address with --listen (port 0 takes any free one)"
        )
    return "mitmproxy did not start: " + ("; ".join(lines[-2:]) or "it said nothing")
