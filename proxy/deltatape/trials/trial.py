"""Run a command once against tapes, and return all that is observable about it.

Strategy: player and command run in one event loop. The command has a process group of its own,
which is killed at the deadline and after the command has ended, so that nothing disturbs the next
trial. Its output is captured; of long output the beginning and the end.

Invariants: a trial ends at the latest `DRAIN_S` after its deadline; nothing reads our stdin.
"""

import asyncio
import contextlib
import errno
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from deltatape.child.child import CANNOT_RUN, NOT_FOUND
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import UsageError
from deltatape.http1.head import ParsedRequestHead
from deltatape.http1.listener import Address
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayOptions, PlayReport, RequestOutcome
from deltatape.player.player import Player
from deltatape.replay.environment import keyed_environment, replay_environment
from deltatape.replay.playback import ANY_PORT, end, settle

DRAIN_S = 1.0
"""How long what left the process group may still hold the output open."""
MAX_OUTPUT_BYTES = 1024 * 1024
"""The limit of each output stream; a longer one loses its middle."""

_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """How a command ended, what it printed, and what it requested."""

    exit_code: int | None
    """None: a signal has ended it."""
    signal: str
    """`SIGSEGV`; "" for none. At the deadline it is our own SIGKILL."""
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool
    """Whether it was killed at the deadline."""
    report: PlayReport


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRunOptions:
    """Options that all runs of one search share, apart from the tapes."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Set in the environment, after all others."""
    led: bool = False
    """Whether a proxy leads the requests here, so that no base URL is set."""
    listen: Address = ANY_PORT
    """Where the player listens; at a fixed address runs come one after the other."""
    on_request: Callable[[ParsedRequestHead], None] = lambda _: None
    """Gets the head of each request."""


ALONE = SharedRunOptions()


async def attempt(
    command: Sequence[str],
    exchanges: Sequence[Exchange],
    playing: PlayOptions,
    environ: Mapping[str, str],
    folder: Path,
    deadline_s: float,
    *,
    shared: SharedRunOptions = ALONE,
) -> TrialResult:
    """Run `command` once against a player of `exchanges`; several may run at once, on any port.

    Args:
        command: >= 1 item; the program is looked for in the PATH of `environ`.
        exchanges: the exchanges of the provider's side.
        playing: how they are played.
        environ: the user's own environment; see `replay_environment`.
        folder: where the command is started.
        deadline_s: how many seconds it may take.
        shared: options of all runs.

    Raises:
        UsageError: the address is not available, or the command cannot be started: `exit_code` is
            126 or 127 then, as of env(1).
    """
    secrets = known_secrets(environ, read_dotenv(folder, environ))
    player = _Player(exchanges, _ignore, replace(playing, secrets=secrets))
    player.on_request = shared.on_request
    await player.start(shared.listen)
    try:
        environment_of = keyed_environment if shared.led else replay_environment
        environment = environment_of(player.listener.url, environ, folder, exchanges, command)
        run = await _start(command, {**environment, **shared.variables}, folder)
        try:
            await run.wait(deadline_s)
        finally:
            await run.leave()
        await settle()
        return run.outcome(player.report)
    finally:
        await end(player)


class _Player(Player):
    """A player that passes its requests on to a listener."""

    on_request: Callable[[ParsedRequestHead], None]

    def refused(self, head: ParsedRequestHead) -> bytes | None:
        self.on_request(head)
        return super().refused(head)


def _ignore(what: RequestOutcome) -> None:
    """Ignore it: the report covers it."""


async def wait_to_the_end(killed: asyncio.Future[int] | asyncio.Future[None]) -> None:
    """Wait for the end of a process that was killed, even if cancelled meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            await asyncio.wait([killed], timeout=DRAIN_S)
            break
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def _start(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> "_Run":
    run = _Run()
    try:
        try:
            await run.start(command, environment, folder)
        except OSError as error:
            path = shutil.which(command[0], path=environment.get("PATH"))
            if error.errno != errno.ENOEXEC or path is None:
                raise
            # A script without `#!`: as execvp(3), and so every shell, runs it.
            await run.start(("/bin/sh", path, *command[1:]), environment, folder)
    except OSError as error:
        failure = UsageError(f"{command[0]}: cannot be run: {error.strerror}")
        failure.exit_code = NOT_FOUND if error.errno == errno.ENOENT else CANNOT_RUN
        raise failure from None
    return run


class _Run(asyncio.SubprocessProtocol):
    """The command while it runs."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport: asyncio.SubprocessTransport | None = None
        self._began_s = loop.time()
        self._ended_s = 0.0
        self._timed_out = False
        self._exited: asyncio.Future[None] = loop.create_future()
        self._drained: asyncio.Future[None] = loop.create_future()
        self._printed = {1: _Printed(), 2: _Printed()}

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that it runs or has ended already."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._printed[fd].take(data)

    def process_exited(self) -> None:
        self._ended_s = asyncio.get_running_loop().time()
        self._exited.set_result(None)
        self._kill()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Note that it has ended and its pipes are closed."""
        self._drained.set_result(None)

    # The trial.

    async def start(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        """Start it.

        Raises:
            OSError: it fails.
        """
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )

    async def wait(self, deadline_s: float) -> None:
        """Wait for its end and its last output; end it at the deadline."""
        await asyncio.wait([self._exited], timeout=deadline_s)
        if not self._exited.done():
            self._timed_out = True
            self._kill()
        await asyncio.wait([self._drained], timeout=DRAIN_S)

    async def leave(self) -> None:
        """End it if it runs, and stop reading; also after cancellation."""
        assert self._transport is not None
        if not self._exited.done():
            self._kill()
        self._transport.close()
        await wait_to_the_end(self._exited)  # else nobody takes note of its end

    def _kill(self) -> None:
        """Kill its process group."""
        assert self._transport is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)

    def outcome(self, report: PlayReport) -> TrialResult:
        """Return its result."""
        assert self._transport is not None
        code = self._transport.get_returncode()
        ended_s = self._ended_s or asyncio.get_running_loop().time()
        return TrialResult(
            exit_code=code if code is not None and code >= 0 else None,
            signal=_signal_name(-code) if code is not None and code < 0 else "",
            stdout=self._printed[1].shown(),
            stderr=self._printed[2].shown(),
            seconds=ended_s - self._began_s,
            timed_out=self._timed_out,
            report=report,
        )


class _Printed:
    """The output of one stream: its beginning, and its end if it is long."""

    def __init__(self) -> None:
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def take(self, data: bytes) -> None:
        """Add bytes."""
        room = MAX_OUTPUT_BYTES // 2 - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        surplus = len(self._last) - MAX_OUTPUT_BYTES // 2
        if surplus > _PIECE:
            self._cut(surplus)

    def _cut(self, surplus: int) -> None:
        del self._last[:surplus]
        self._left_out += surplus

    def shown(self) -> bytes:
        """Return all of it, with a line that marks an omission."""
        self._cut(max(0, len(self._last) - MAX_OUTPUT_BYTES // 2))
        gap = b"\n[... %d bytes left out ...]\n" % self._left_out if self._left_out else b""
        return bytes(self._first) + gap + bytes(self._last)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of the real-time signals
        return f"signal {number}"
