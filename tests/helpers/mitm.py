"""mitmproxy as users run it: a real mitmdump of each version, with the addon."""

import asyncio
import contextlib
import os
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import trustme

from deltatape.clock import SystemClock
from deltatape.http1.listener import Address
from deltatape.mitm.ipc import AnyMessage, FirstClient, Passed, Released
from deltatape.mitm.mitmdump import ADDON, Mitmdump, MitmdumpResult, MitmOptions, Started
from deltatape.mitm.session import MitmSession
from deltatape.model.exchange import Exchange
from deltatape.model.rule_settings import DEFAULTS
from deltatape.record.recording import RecordOptions, RunEnvironment
from deltatape.record.reporter import Reporter
from deltatape.record.worker_messages import Drained, Said
from deltatape.store.reader import Tape, open_tape
from helpers.chat import FINISH, calls, entry, sse
from helpers.clients import ROOT
from helpers.needed import skip_unless
from helpers.program import MEASURED, UNMEASURED, environment
from helpers.upstream import connect, free_port

VENVS = {"11": ROOT / ".venv-mitm", "12": ROOT / ".venv-mitm12"}
"""Environments by the version of mitmproxy in them: for what depends on mitmproxy."""
NEWEST = ("12",)
"""For what is deltatape's own: how it starts mitmproxy, and the processes around it."""
_NEEDED = {"11": "mitm", "12": "mitm12"}
_MEASURED = VENVS["11"]
"""Where coverage can be measured. With Python 3.12, which mitmproxy 12 runs on, a mitmproxy that is
measured takes three times as long to start, and it runs the same lines."""


def installed(version: str) -> Path:
    """The environment of that version; skips the test where it is not there."""
    venv = VENVS[version]
    why = f"no mitmproxy {version}; scripts/setup {_NEEDED[version]} installs it"
    skip_unless((venv / "bin" / "mitmdump").exists(), why)
    return venv


def variables(folder: Path, venv: Path, *, measured: bool = False) -> dict[str, str]:
    """The test's environment, with the mitmproxy of that version first on PATH.

    Args:
        folder: the test's.
        venv: of mitmproxy.
        measured: measure coverage of the addon, for which mitmproxy takes half as long again to
            start: where a test reaches lines that no other does.
    """
    coverage = MEASURED if measured and venv == _MEASURED else UNMEASURED
    env = {**environment(folder), **coverage}
    return {**env, "PATH": f"{venv / 'bin'}{os.pathsep}{env['PATH']}", "PYTHONPATH": ""}


def write_ca(folder: Path) -> None:
    """Write a CA for mitmproxy into its folder: to make the keys takes it a tenth of a start."""
    folder.mkdir(parents=True, exist_ok=True)
    ca = _ca()
    for name, parts in (("ca", (ca.private_key_pem, ca.cert_pem)), ("ca-cert", (ca.cert_pem,))):
        (folder / f"mitmproxy-{name}.pem").write_bytes(b"".join(part.bytes() for part in parts))


def confdir(folder: Path) -> tuple[str, str]:
    """The option that names such a folder."""
    write_ca(folder / "conf")
    return "--set", f"confdir={folder / 'conf'}"


@cache
def _ca() -> trustme.CA:
    return trustme.CA(organization_name="mitmproxy", key_type=trustme.KeyType.RSA)


@dataclass
class ObserverLog:
    """Keeps what the addon says, and what mitmproxy prints."""

    lines: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    connected: bool = False
    drained: Callable[[], None] = lambda: None
    """Called when the tapes wait to be analysed."""

    def take(self, message: AnyMessage) -> None:
        match message:
            case Said(text=text, how="remark"):
                self.lines.append(text)
            case Said(text=text):
                self.alarms.append(text)
            case Passed(host=host):
                self.hosts.append(host)
            case FirstClient():
                self.connected = True
            case Drained():
                self.drained()
            case _:
                pass


class Running:
    """A mitmdump that deltatape has started."""

    def __init__(self, mitmdump: Mitmdump, started: Started, observed: ObserverLog) -> None:
        self.mitmdump = mitmdump
        self.started = started
        self.observed = observed

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.started.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        """Its process."""
        process = self.mitmdump._process
        assert process is not None
        return process.pid

    def tape(self) -> Tape:
        """What is on its tape now."""
        return open_tape(self.started.tape)

    def text(self) -> str:
        """Its lines."""
        return Path(self.started.tape).read_text()

    async def ended(self, count: int = 1) -> list[Exchange]:
        """Its exchanges once `count` have ended."""
        for _ in range(500):
            done = [each for each in self.tape() if each.end is not None]
            if len(done) >= count:
                return sorted(done, key=lambda each: each.number)
            await asyncio.sleep(0.02)
        raise AssertionError(f"{count} exchanges did not end: {self.observed}")

    async def until(self, condition: Callable[[ObserverLog], bool]) -> None:
        """Wait until the observations meet a condition."""
        for _ in range(500):
            if condition(self.observed):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"never observed: {self.observed}")

    async def stop(self, reason: str = "test", code: int | None = None) -> MitmdumpResult:
        """End it in good order."""
        self.mitmdump.stop(reason, code, 0.0)
        return await self.mitmdump.ended(0.0)


@contextlib.asynccontextmanager
async def mitmproxy(
    folder: Path,
    version: str,
    upstream: int | None = None,
    *,
    hosts: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    measured: bool = False,
) -> AsyncIterator[Running]:
    """A mitmdump as `deltatape mitm` runs it: in front of a plain port of loopback, or regular."""
    options = MitmOptions(
        host="127.0.0.1",
        port=0,
        upstream=None if upstream is None else f"http://127.0.0.1:{upstream}",
        to=folder / "mitm",
        hosts=hosts,
        more=(*confdir(folder), *more),
    )
    observed = ObserverLog()
    mitmdump = Mitmdump(observed.take, observed.lines.append)
    observed.drained = lambda: mitmdump.send(Released())
    venv = installed(version)
    own = variables(folder, venv, measured=measured)
    started = await mitmdump.start(options, {**own, **(env or {})})
    running = Running(mitmdump, started, observed)
    try:
        yield running
        if not mitmdump._in_order:
            await running.stop()
    finally:
        await mitmdump.kill()


@dataclass
class Recorded:
    """A session with mitmproxy that goes on, or has ended: its reporter, lines and exit code."""

    session: MitmSession
    reporter: Reporter
    lines: list[str]


def recorder(
    options: MitmOptions,
    env: Mapping[str, str],
    argv: tuple[str, ...] = (),
    *,
    log: bool = False,
    **more: Any,
) -> Recorded:
    """A session of `deltatape mitm`, or around a command; needs a running loop.

    Args:
        options: of mitmproxy.
        env: its environment, and the command's.
        argv: the command.
        log: tape what it prints.
        more: of `RecordOptions`.
    """
    lines: list[str] = []
    listen = Address(options.host, options.port)
    chosen: dict[str, Any] = {
        "workers": 1,
        "upstreams": (),
        "app": None,
        "token": None,
        "check_keys": False,
        "grace_s": 2.0,
        "durable": True,
        "bodies": True,
        "keep": None,
        "on_finding": None,
        "ready_file": None,
        "control": None,
        "tunnel": False,
        "rules": DEFAULTS,
        **more,
    }
    record = RecordOptions(
        listen=listen,
        app_listen=listen,
        to=options.to,
        outbound=options.outbound,
        command=argv,
        log=log,
        **chosen,
    )
    around = RunEnvironment(
        environment=env, folder=Path.cwd(), clock=SystemClock(), mask_key=b"key", tell=lines.append
    )
    reporter = Reporter(lines.append)
    return Recorded(MitmSession(record, around, reporter, options), reporter, lines)


@dataclass(frozen=True)
class Own:
    """A user's own mitmdump, with the addon."""

    port: int
    process: asyncio.subprocess.Process
    folder: Path

    async def stop(self) -> str:
        """End it; return what it printed."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = await self.process.communicate()
        return out.decode()

    def tape(self) -> Tape:
        """Its only tape."""
        (path,) = (self.folder / "own").glob("*.tape")
        return open_tape(path)


@contextlib.asynccontextmanager
async def own_mitmproxy(
    folder: Path, command: tuple[str, ...], env: Mapping[str, str], *more: str
) -> AsyncIterator[Own]:
    """A mitmdump that deltatape did not start; `command` starts it."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(*command, "--listen-host", "127.0.0.1", "--listen-port", str(port)),
        *(*confdir(folder), "--set", f"deltatape_to={folder / 'own'}", "-s", str(ADDON), *more),
        env=dict(env),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        while process.returncode is None:
            with contextlib.suppress(ConnectionError):
                (await connect(port)).close()
                break
            await asyncio.sleep(0.05)
        yield Own(port, process, folder)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@dataclass(frozen=True)
class Authority:
    """A CA of the test's own, and a server's side of TLS with a certificate by it."""

    context: ssl.SSLContext
    path: Path
    issuer: str

    @property
    def trusted(self) -> tuple[str, ...]:
        """The options that make mitmproxy trust it."""
        return ("--set", f"ssl_verify_upstream_trusted_ca={self.path}")


def authority(folder: Path) -> Authority:
    """For `localhost` and 127.0.0.1."""
    ca = trustme.CA(organization_name="deltatape tests")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    path = folder / "authority.pem"
    ca.cert_pem.write_to_path(str(path))
    return Authority(context, path, "deltatape tests")


async def ran(
    *command: str | Path, env: Mapping[str, str], cwd: Path | None = None
) -> tuple[int, str, str]:
    """A program's exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        env=dict(env),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def call_events(arguments: str = '{"a": 1}') -> list[bytes]:
    """The events of a stream with one call."""
    pieces = [calls(entry(0, arguments=piece)) for piece in arguments]
    chunks = (calls(entry(0, "c1", name="get")), *pieces, FINISH)
    return [*(sse(each, done=False) for each in chunks), b"data: [DONE]\n\n"]


OPENAI_APP = """
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1], api_key="sk-fake-000000", max_retries=0)
with client.chat.completions.create(model="m", messages=[], stream=True) as stream:
    for event in stream:
        for call in event.choices[0].delta.tool_calls or ():
            sys.stdout.write(call.function.arguments or "")
"""
"""An application on the official SDK: argv is the base URL; prints the arguments of the calls."""
