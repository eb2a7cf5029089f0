"""Run real SDKs on exchanges: one process for many streams, bounded in time.

A runner (`runners/`) is a program in the SDK's own language that imports the SDK from an
environment of its own; it gets base URLs at which a `SdkServer` plays the exchanges. If the SDK
hangs or crashes on a stream, that is the stream's result, and the next streams get a new process.
"""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape.errors import DeltatapeError
from deltatape.http1.access import check_origin
from deltatape.http1.head import ParsedRequestHead, error_answer
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.http1.socket import UnreadBytes
from deltatape.match.request import MatchQuery, NoMatch
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.model.request_summary import RepeatedCall
from deltatape.player.play import PlayHandler
from deltatape.player.player import NO_RETRY
from deltatape.player.response_bytes import Renditions

_RUNNERS = Path(__file__).parent / "runners"
_START_S = 60.0
_MOST_SHOWN = 400
"""How many characters of a dying process's output are shown."""
_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")
"""Variables passed on from the user: no keys, no proxies, no telemetry settings."""
_LINE_BYTES = 64 << 20


# A provider on loopback for SDKs: requests below `/N/` are answered with exchange N.
#
# The content of a request is ignored: only the SDK's reading of the answer matters. The player
# (`deltatape.player`) sends the bytes, reads and ending of the tape.

_NUMBER = re.compile(rb"(?:https?://[^/]*)?/([0-9]+)(?:[/?]|$)")
HOLD_S = 0.2
"""How long to wait before a cut, if the tape does not show how the provider continued."""
LONGEST = 16 * 1024 * 1024
"""The largest request of an SDK, in bytes."""
AT_ONCE = ReplayTempo(factor=0.0)


class SdkServer:
    """Serves the exchanges; see `http1.server.ServerOwner` and `player.play.PlayContext`."""

    def __init__(self, exchanges: Sequence[Exchange], tempo: ReplayTempo, hold_s: float) -> None:
        self.renditions = Renditions(tempo)
        self.unread = UnreadBytes()
        self.hold_s = hold_s
        self.longest = LONGEST
        self._exchanges = tuple(exchanges)
        self._plays: set[PlayHandler] = set()
        self._listener = Listener()

    def url(self, number: int) -> str:
        """Return the base URL of an exchange, by its place in the list."""
        return f"http://127.0.0.1:{self._listener.port}/{number}"

    async def open(self) -> None:
        """Listen on a free port."""
        await self._listener.open(Address("127.0.0.1"), lambda: ServerConnection(self))

    def close(self) -> None:
        """Stop listening, and cut what is playing."""
        self._listener.close()
        for play in tuple(self._plays):
            play.stop()
        self.unread.close()

    # Implements `http1.server.ServerOwner`, which connections call.

    def handler(self, connection: ServerConnection) -> Handler:
        return PlayHandler(self, connection)

    def opened(self, connection: ServerConnection) -> None:
        self._listener.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        self._listener.closed(connection)

    def refused_bytes(self, problem: str) -> bytes:
        return error_answer(400, "bad_request", f"not an HTTP/1 request: {problem}")

    # Implements `player.play.PlayContext`, which plays call.

    def refused(self, head: ParsedRequestHead) -> bytes | None:
        foreign = check_origin(head.fields)
        return None if foreign is None else error_answer(403, foreign.code, foreign.message)

    def continues(self, head: ParsedRequestHead) -> bool:  # noqa: ARG002 - part of the protocol
        return True

    def find(self, query: MatchQuery, play: PlayHandler) -> Exchange | NoMatch:  # noqa: ARG002 - none is read back
        named = _NUMBER.match(query.target)
        if named is None or int(named[1]) >= len(self._exchanges):
            return NoMatch(
                nearest=None, problem="no number of an exchange in the path", differences=()
            )
        return self._exchanges[int(named[1])]

    def missed(self, query: MatchQuery, miss: NoMatch) -> bytes:
        path = query.target.decode("latin-1")
        return error_answer(404, "not_on_tape", f"{path}: {miss.problem}", fields=NO_RETRY)

    def begun(self, play: PlayHandler) -> None:
        self._plays.add(play)

    def ended(self, play: PlayHandler) -> None:
        self._plays.discard(play)


@contextlib.asynccontextmanager
async def standing(
    exchanges: Sequence[Exchange], *, tempo: ReplayTempo = AT_ONCE, hold_s: float = HOLD_S
) -> AsyncIterator[SdkServer]:
    """Yield a listening server; it does not wait as the provider did, unless `tempo` says so.

    Args:
        exchanges: what it plays.
        tempo: how time passes.
        hold_s: how long it stays silent where the tape does not show how the provider continued.
    """
    stand = SdkServer(exchanges, tempo, hold_s)
    await stand.open()
    try:
        yield stand
    finally:
        stand.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An installed SDK."""

    package: str
    """Its name in the registry and in the runner."""
    command: tuple[str, ...]
    """The command line of the runner; the package's name is the last argument."""
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkStream:
    """A stream that an SDK is to read."""

    exchange: Exchange
    dialect: str
    tools: tuple[str, ...]
    """The names of the tools that the SDK offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkReply:
    """The reply that an SDK passes to its application."""

    calls: tuple[RepeatedCall, ...]
    refused: tuple[RepeatedCall, ...] = ()
    """Calls that it marks as invalid."""
    text: str = ""
    finish: str | None = None
    """The finish reason, in the SDK's spelling."""
    error: str = ""
    """The error that it throws or reports: `TypeError: ...`; "" if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkRun:
    """The readings of streams by one SDK."""

    versions: Mapping[str, str]
    """Versions of the package and of its relevant dependencies."""
    replies: tuple[SdkReply, ...]


def python_environment(package: str, python: Path) -> Environment:
    """Return the environment of an SDK that `python` can import."""
    program = str(_RUNNERS / "run_python.py")
    command = (str(python), "-I", "-W", "ignore", program, package)
    return Environment(package=package, command=command, folder=python.parent)


def node_environment(package: str, folder: Path) -> Environment:
    """Return the environment of an SDK in `folder/node_modules`."""
    code = (_RUNNERS / "run_node.mjs").read_text()
    # By --eval, as Node looks for packages where the program is.
    command = ("node", "--no-warnings", "--input-type=module", "--eval", code, package)
    return Environment(package=package, command=command, folder=folder)


async def run_sdk(
    environment: Environment,
    streams: Sequence[SdkStream],
    *,
    limit_s: float = 10.0,
    tempo: ReplayTempo = AT_ONCE,
    hold_s: float = HOLD_S,
) -> SdkRun:
    """Return the SDK's reading of each stream, in order.

    Args:
        environment: where the SDK is.
        streams: what it is to read.
        limit_s: how long it may take for one.
        tempo: how recorded time passes.
        hold_s: how long it stays silent where the tape does not show how the provider continued.

    Raises:
        DeltatapeError: the SDK cannot be started.
    """
    versions: Mapping[str, str] = {}
    replies: list[SdkReply] = []
    exchanges = [stream.exchange for stream in streams]
    async with standing(exchanges, tempo=tempo, hold_s=hold_s) as stand:
        urls = [stand.url(number) for number in range(len(streams))]
        while not versions or len(replies) < len(streams):
            async with _running(environment) as runner:
                versions = await runner.versions()
                for stream, url in list(zip(streams, urls, strict=True))[len(replies) :]:
                    replies.append(await runner.ask(stream, url, limit_s))
                    if not runner.alive:
                        break
    return SdkRun(versions=versions, replies=tuple(replies))


class _Runner:
    """A running program."""

    def __init__(self, environment: Environment, process: asyncio.subprocess.Process) -> None:
        self._environment = environment
        self._process = process
        self.alive = True

    async def versions(self) -> Mapping[str, str]:
        """Return the versions from its first line."""
        line = await self._line(_START_S)
        if isinstance(line, str):
            raise DeltatapeError(f"{self._environment.package}: cannot be started: {line}")
        return {str(name): str(version) for name, version in line.items()}

    async def ask(self, stream: SdkStream, url: str, limit_s: float) -> SdkReply:
        """Return its reading of one stream."""
        request = {"url": url, "dialect": stream.dialect, "tools": stream.tools}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        line = await self._line(limit_s)
        return SdkReply(calls=(), error=line) if isinstance(line, str) else _reply(line)

    async def _line(self, limit_s: float) -> Mapping[str, object] | str:
        """Return the next line, or why there is none."""
        process = self._process
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), limit_s)
        except TimeoutError:
            self.alive = False
            return f"Timeout: no end after {limit_s:g} s"
        if not line:
            self.alive = False
            errors = (await process.stderr.read()).decode(errors="replace").strip()
            return f"Exit: its process ended: {errors[-_MOST_SHOWN:] or 'without a word'}"
        found = json.loads(line)
        assert isinstance(found, dict)
        return found


@contextlib.asynccontextmanager
async def _running(environment: Environment) -> AsyncIterator[_Runner]:
    surroundings = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # A folder without certificates: httpx would read all of a machine's for each client, which took
    # most of the time, and no runner connects to anything with TLS.
    surroundings["SSL_CERT_DIR"] = str(_RUNNERS)
    try:
        process = await asyncio.create_subprocess_exec(
            *environment.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=surroundings,
            cwd=environment.folder,
            limit=_LINE_BYTES,
        )
    except OSError as problem:
        raise DeltatapeError(
            f"{environment.package}: {environment.command[0]} cannot be run: {problem.strerror}"
        ) from problem
    try:
        yield _Runner(environment, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def _reply(line: Mapping[str, object]) -> SdkReply:
    problem = line["error"]
    error = ""
    if isinstance(problem, dict):
        error = f"{problem['type']}: {problem['text']}".removesuffix(": ")
    finish = line["finish"]
    return SdkReply(
        calls=_calls(line["calls"]),
        refused=_calls(line["refused"]),
        text=str(line["text"]),
        finish=None if finish is None else str(finish),
        error=error,
    )


def _calls(value: object) -> tuple[RepeatedCall, ...]:
    assert isinstance(value, list)
    return tuple(
        RepeatedCall(id=one["id"], name=one["name"], arguments=one["arguments"]) for one in value
    )
