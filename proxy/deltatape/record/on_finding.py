"""`--on-finding CMD`: runs a user's command when an exchange ends with findings.

CMD goes through the shell with the tape's path as `$1` and in `DELTATAPE_TAPE`; on its standard
input is a JSON document: `{"version":1,"tape":...,"exchange":3,"findings":[...]}`, each finding as
`check --format json` has it.

It never delays streams: a few commands run at a time, a few more wait, others are skipped and
counted. A command that takes too long is killed with its children. Its output goes to our stderr,
line by line, up to a limit.
"""

import asyncio
import contextlib
import io
import json
import os
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from deltatape.printable import count

JsonFinding: TypeAlias = Mapping[str, object]
"""A finding as `check --format json` has it."""

AT_ONCE = 2
WAITING = 32
LIMIT_S = 60.0
GRACE_S = 5.0
"""How long commands may still run when the recorder ends."""

_TERMINATED_S = 2.0
"""How long a command that was asked to end may take before it is killed."""
_PIPE_S = 1.0
"""How long to read on when the command has ended: something it started may hold the pipe."""
_MAX_LINES = 100
_MAX_LINE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One run of the command."""

    tape: str
    exchange: int
    document: bytes


class OnFinding:
    """Runs the command. Belongs to one event loop.

    Args:
        command: for `sh -c`.
        tell: prints a line for the user.
        environment: the environment of the command; None for our own.
        limit_s: the longest time of one run.
    """

    def __init__(
        self,
        command: str,
        tell: Callable[[str], None],
        *,
        environment: Mapping[str, str] | None = None,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._command = command
        self._tell = tell
        self._environment = os.environ if environment is None else environment
        self._limit_s = limit_s
        self._waiting: deque[_Call] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._closing = False
        self.left_out = 0
        """For how many exchanges the command was not run, since too many waited."""

    def run(self, tape: str, exchange: int, findings: Sequence[JsonFinding]) -> None:
        """Schedule the command for an exchange; return at once.

        Args:
            tape: its current path; findings may have an earlier one.
            exchange: its number on the tape.
            findings: the findings on the exchange; if empty, nothing is run.
        """
        if not findings or self._closing:
            return
        if len(self._waiting) >= WAITING:
            if not self.left_out:
                self._tell(
                    f"on-finding: {WAITING} runs wait already, so some exchanges are left out"
                )
            self.left_out += 1
            return
        document = _document(tape, exchange, findings)
        self._waiting.append(_Call(tape=tape, exchange=exchange, document=document))
        self._next()

    def _next(self) -> None:
        while self._waiting and len(self._running) < AT_ONCE:
            task = asyncio.get_running_loop().create_task(self._call(self._waiting.popleft()))
            self._running.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._next()

    async def stop(self, patience_s: float = GRACE_S) -> None:
        """Wait `patience_s` for running commands, then end them."""
        self._closing = True
        deadline = asyncio.get_running_loop().time() + patience_s
        while self._running and asyncio.get_running_loop().time() < deadline:
            left = deadline - asyncio.get_running_loop().time()
            await asyncio.wait(self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        left_out = len(self._waiting) + self.left_out
        self._waiting.clear()
        for task in tuple(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=2 * _TERMINATED_S + _PIPE_S)
        if left_out:
            self._tell(f"on-finding: not run for {count(left_out, 'exchange')} with findings")

    async def _call(self, call: _Call) -> None:
        name = f"on-finding ({call.tape}#{call.exchange})"
        with contextlib.ExitStack() as stack:
            try:
                pipe = stack.enter_context(_Pipe())
                reader, transport = await pipe.reader()
                stack.callback(transport.close)
                process = await self._start(call, pipe)
            except OSError as error:
                self._tell(f"{name}: cannot be run: {error.strerror}")
                return
            except asyncio.CancelledError:
                self._tell(f"{name}: not run: the recording has ended")
                raise
            output = asyncio.get_running_loop().create_task(self._print_output(reader))
            stack.callback(output.cancel)
            await self._wait(name, process)
            await asyncio.wait((output,), timeout=_PIPE_S)

    async def _start(self, call: _Call, pipe: "_Pipe") -> asyncio.subprocess.Process:
        with tempfile.TemporaryFile() as document:
            document.write(call.document)
            document.seek(0)
            process = await asyncio.create_subprocess_exec(
                *("sh", "-c", self._command, "deltatape", call.tape),
                stdin=document,
                stdout=pipe.write_end,
                stderr=asyncio.subprocess.STDOUT,
                env={**self._environment, "DELTATAPE_TAPE": call.tape},
                start_new_session=True,  # so that all it starts can be ended, and Ctrl-C is ours
            )
        pipe.started()
        return process

    async def _wait(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Wait for its end; report failures."""
        try:
            await asyncio.wait_for(process.wait(), self._limit_s)
        except TimeoutError:
            self._tell(f"{name}: ended after {self._limit_s:g} s: it was still running")
            await _end(process)
        except asyncio.CancelledError:
            self._tell(f"{name}: ended with the recording: it was still running")
            await _end(process)
        else:
            code = process.returncode or 0
            if code:
                how = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
                self._tell(f"{name}: {how}")

    async def _print_output(self, output: asyncio.StreamReader) -> None:
        rest, lines = b"", 0
        while data := await output.read(65536):
            *complete, rest = (rest + data).split(b"\n")
            rest = rest[:_MAX_LINE]
            for line in complete[: max(0, _MAX_LINES - lines)]:
                self._print_line(line)
            if lines < _MAX_LINES <= lines + len(complete):
                self._tell(f"on-finding: prints more than {_MAX_LINES} lines; they are left out")
            lines += len(complete)
        if rest and lines < _MAX_LINES:
            self._print_line(rest)

    def _print_line(self, line: bytes) -> None:
        self._tell(f"on-finding: {line[:_MAX_LINE].decode('utf-8', 'replace')}")


class _Pipe:
    """A pipe of our own: asyncio's `wait` lasts until every holder closes the pipe."""

    def __enter__(self) -> Self:
        self._read_end: int | None
        self._read_end, self.write_end = os.pipe()
        self._open = True
        return self

    async def reader(self) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
        """Return a reader for its output; close the transport at the end."""
        reader = asyncio.StreamReader()
        assert self._read_end is not None
        file, self._read_end = io.FileIO(self._read_end), None
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), file
        )
        return reader, transport

    def started(self) -> None:
        """Close our copy of the write end, so that the reader sees the end."""
        if self._open:
            self._open = False
            os.close(self.write_end)

    def __exit__(self, *_: object) -> None:
        self.started()
        if self._read_end is not None:
            os.close(self._read_end)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Terminate the command and its children; then kill them."""
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _TERMINATED_S)
    _signal(process, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _TERMINATED_S)


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a zombie
        os.killpg(process.pid, number)


def _document(tape: str, exchange: int, findings: Sequence[JsonFinding]) -> bytes:
    found = [{**finding, "tape": tape} for finding in findings]
    document = {"version": 1, "tape": tape, "exchange": exchange, "findings": found}
    return (json.dumps(document) + "\n").encode()
