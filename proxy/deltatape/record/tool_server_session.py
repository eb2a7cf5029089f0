"""`deltatape record --mcp-stdio`: chooses the tape for the traffic of an MCP server.

Strategy: an MCP client starts us in place of the server, and we start the server. If a recorder
runs for the same folder, the traffic goes to its tapes over a connection on loopback, so that tool
calls are beside the replies that ask for them, with the times of one clock. Otherwise the server
gets its own tape.

A recorder is found by a file in its folder, which only its owner can read, or by a variable that
names that file: many MCP clients start servers in their own folder, but without most variables.
"""

import asyncio
import contextlib
import hmac
import json
import os
import re
import secrets
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from deltatape.child.piped import run_piped
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.gateway.recorder import Recorder
from deltatape.gateway.routes import Refusal
from deltatape.model.exchange import EndReason
from deltatape.model.tape_summary import CHILD_EXIT
from deltatape.model.websocket import Side
from deltatape.record.recording import Recording, RecordOptions, RunEnvironment
from deltatape.record.reporter import Reporter
from deltatape.record.tool_server import StdioTaping
from deltatape.store.names import prepare_folder
from deltatape.tape.mask import Masker

VARIABLE = "DELTATAPE_RECORDER"
"""Names the file of the recorder that runs the program."""
_FILE = ".recorder-*.json"
_HOST = "127.0.0.1"
_PASSED = struct.Struct(">cQI")
"""What comes, when it came (the clock is that of the machine), and how many bytes there are of it;
for `_EXITED`, the exit code."""
_SIDES = {b"c": Side.CLIENT, b"s": Side.SERVER}
_KINDS = {side: kind for kind, side in _SIDES.items()}
_EXITED = b"e"
_ACCEPTED = b"ok\n"
_PATIENCE_S = 2.0
"""How long to wait for an answer on loopback."""
_MAX_WAITING = 64 << 20
"""How much may wait for a recorder that does not take it; then it gets no more."""
_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 40
_RUNNERS = re.compile(r"(?:python|node|deno|bun|npx|bunx|uvx?|pipx|docker|run|exec|env)[\d.]*")


def server_name(argv: Sequence[str]) -> str:
    """Return the default name of a server, from its command.

    >>> server_name(("npx", "-y", "@modelcontextprotocol/server-memory"))
    'server-memory'
    """
    words = [each for each in argv if not each.startswith("-")]
    named = [each for each in words if not _RUNNERS.fullmatch(PurePath(each).name)]
    return plain_name(
        re.sub(r"\.(?:py|m?js|ts|sh)$", "", PurePath((named or words or ["server"])[0]).name)
    )


def plain_name(name: str) -> str:
    """Return `name` in a form that URLs and file names can contain."""
    return _NAME.sub("-", name).strip(".-")[:_LONGEST_NAME] or "server"


def argument_secrets(argv: Sequence[str]) -> tuple[bytes, ...]:
    """Return the credentials in a command line, by the names of its options.

    >>> argument_secrets(("server", "--api-key", "k-123456789", "--port=80"))
    (b'k-123456789',)
    """
    found: set[bytes] = set()
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if not equals:
            value = argv[at + 1] if word.startswith("-") and at + 1 < len(argv) else word
        found |= {*known_secrets({name.lstrip("-").replace("-", "_"): value}, ())}
    return tuple(sorted(found))


# The recorder's side.


class ToolServerListener:
    """Takes what passes between MCP clients and servers, for the tapes of this run."""

    def __init__(self, recorder: Recorder, masker: Masker, folder: Path) -> None:
        self._recorder = recorder
        self._masker = masker
        self._path = (folder / _FILE.replace("*", str(os.getpid()))).absolute()
        self._token = secrets.token_hex(16)
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], StdioTaping | None] = {}

    @property
    def variables(self) -> Mapping[str, str]:
        """What leads a program's MCP servers here."""
        return {} if self._server is None else {VARIABLE: str(self._path)}

    async def start(self) -> None:
        """Listen, and write the file; without one, no client connects."""
        server = await asyncio.start_server(self._accept, _HOST, 0)
        port = server.sockets[0].getsockname()[1]
        try:
            prepare_folder(self._path.parent)
            self._path.unlink(missing_ok=True)  # of a process that had this number before
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, 0o600), "w") as file:
                json.dump({"port": port, "token": self._token}, file)
        except OSError:  # the tape will say so
            server.close()
        else:
            self._server = server

    async def stop(self, grace_s: float) -> None:
        """Stop listening; wait up to `grace_s` for servers that are ending to report that."""
        if self._server is None:
            return
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._server.close()
        self._server = None
        if self._open and grace_s:
            await asyncio.wait(self._open, timeout=grace_s)
        for task, taping in tuple(self._open.items()):
            if taping is not None:
                taping.end(EndReason.STOPPED, "")
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = None
        try:
            # Whoever ends the connection, also in the middle of something, has nothing more to say.
            with contextlib.suppress(OSError, EOFError, ValueError, TimeoutError):
                hello = await asyncio.wait_for(reader.readline(), _PATIENCE_S)
                taping = self._open[task] = self._begin(hello)
                if taping is not None:
                    writer.write(_ACCEPTED)
                    await self._take(reader, taping)
        except asyncio.CancelledError:  # by `stop`
            pass
        finally:
            taping = self._open.pop(task)
            if taping is not None:
                taping.end(EndReason.UPSTREAM_CLOSED, "the process between client and server ended")
            writer.close()

    def _begin(self, hello: bytes) -> StdioTaping | None:
        said = json.loads(hello)
        if not isinstance(said, dict) or not hmac.compare_digest(
            str(said.get("token")).encode(), self._token.encode()
        ):
            return None
        for secret in said["secrets"]:
            self._masker.learn(str(secret).encode("utf-8", "surrogateescape"))
        return StdioTaping(self._recorder, plain_name(str(said["name"])))

    @staticmethod
    async def _take(reader: asyncio.StreamReader, taping: StdioTaping) -> None:
        while True:
            kind, at_ns, size = _PASSED.unpack(await reader.readexactly(_PASSED.size))
            if kind == _EXITED:
                taping.exited(size)
                return
            taping.passed(_SIDES[kind], await reader.readexactly(size) if size else b"", at_ns)


# The side between client and server.


class _RemoteTaping:
    """Has another process tape what passes."""

    def __init__(self, writer: asyncio.StreamWriter, tell: Callable[[str], None]) -> None:
        self._writer = writer
        self._tell = tell
        self._lost = False

    def passed(self, side: Side, data: bytes, at_ns: int) -> None:
        """Tell what a side wrote; see `StdioTaping.passed`."""
        self._send(_PASSED.pack(_KINDS[side], at_ns, len(data)) + data)

    def exited(self, code: int) -> None:
        """Tell that the server has exited."""
        self._send(_PASSED.pack(_EXITED, 0, code))

    async def close(self) -> None:
        """Wait until all that was told has left."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), _PATIENCE_S)

    def _send(self, data: bytes) -> None:
        if self._lost:
            return
        transport = self._writer.transport
        full = transport.get_write_buffer_size() > _MAX_WAITING
        if full or transport.is_closing():
            self._lost = True
            why = "does not take it" if full else "has ended"
            self._tell(f"this MCP server is taped no further: the recorder {why}")
            transport.abort()
        else:
            self._writer.write(data)


@dataclass(frozen=True, slots=True)
class _Observer:
    """Tells the user what goes wrong with a tape of our own."""

    reporter: Reporter

    def refused(self, refusal: Refusal) -> None:
        """Never called: there is no upstream."""

    def alarm(self, problem: str) -> None:
        self.reporter.alarm(problem)

    def lasting_alarm(self, problem: str) -> None:
        self.reporter.lasting_alarm(problem)

    def taping(self, *, works: bool) -> None:
        self.reporter.taping(works=works)

    def remark(self, text: str) -> None:
        self.reporter.problem(text)


class ToolServerSession:
    """One run of a server whose traffic is taped."""

    def __init__(
        self, options: RecordOptions, around: RunEnvironment, reporter: Reporter, name: str | None
    ) -> None:
        """Args: name: of the server; None: by its command."""
        self._options = options
        self._around = around
        self._reporter = reporter
        self._name = plain_name(name) if name else server_name(options.command)

    async def run(self, folders: Iterable[Path]) -> int:
        """Run the server; return its exit code.

        Args: folders: where a recorder may be running, the likeliest first.
        """
        environment = self._around.environment
        learnt = {
            *known_secrets(environment, read_dotenv(self._around.folder, environment)),
            *argument_secrets(self._options.command),
        }
        for path in _recorders(environment, folders):
            writer = await _connect(path, self._name, learnt)
            if writer is not None:
                return await self._run_attached(writer)
        return await self._run_alone(learnt)

    async def _run_attached(self, writer: asyncio.StreamWriter) -> int:
        taping = _RemoteTaping(writer, self._reporter.problem)
        code = await self._run_server(taping)
        taping.exited(code)
        await taping.close()
        return code

    async def _run_alone(self, learnt: Iterable[bytes]) -> int:
        observer = _Observer(self._reporter)
        recording = Recording(self._options, self._around, observer, None, label=self._name)
        for secret in learnt:
            recording.masker.learn(secret)
        recording.recorder.start()
        taping = StdioTaping(recording.recorder, self._name)
        code = await self._run_server(taping)
        taping.exited(code)
        await recording.stop(CHILD_EXIT, code)
        return code

    async def _run_server(self, taping: "StdioTaping | _RemoteTaping") -> int:
        # What the server may know of a recorder is that it is itself recorded.
        environment = {k: v for k, v in self._around.environment.items() if k != VARIABLE}
        return await run_piped(
            self._options.command,
            environment,
            passed=taping.passed,
            tell=self._reporter.problem,
            clock=self._around.clock,
        )


def _recorders(environment: Mapping[str, str], folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of recorders that may be running, the latest of a folder first."""
    named = environment.get(VARIABLE)
    if named:
        yield Path(named)
    for folder in folders:
        found = []
        for path in folder.glob(_FILE):
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime_ns, path))
        yield from (path for _, path in sorted(found, reverse=True))


async def _connect(path: Path, name: str, learnt: Iterable[bytes]) -> asyncio.StreamWriter | None:
    """Return a connection to a recorder; None if it does not run any more."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, TimeoutError):
        said = json.loads(_text_of(path))
        connecting = asyncio.open_connection(_HOST, int(said["port"]))
        reader, writer = await asyncio.wait_for(connecting, _PATIENCE_S)
        known = [secret.decode("utf-8", "surrogateescape") for secret in learnt]
        hello = {"token": said["token"], "name": name, "secrets": known}
        writer.write(json.dumps(hello).encode() + b"\n")
        if await asyncio.wait_for(reader.readline(), _PATIENCE_S) == _ACCEPTED:
            return writer
        writer.close()
    return None


def _text_of(path: Path) -> str:
    """Return what the file of a recorder says: a line, on a local disk."""
    return path.read_text()
