"""The processes that read tapes for the server: one that indexes, some that make documents.

They run niced, and give way to streams (see `yielding`). A tape that takes long or all memory stops
only the process that reads it, which is started again.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from deltatape.child.background import BackgroundTask, kill, start_module
from deltatape.errors import DeltatapeError

_LOG = logging.getLogger(__name__)
_MAX_LINE = 64 << 20
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 5.0
"""How long to wait before a process that died is started again: each time twice as long."""
MAX_S = 60.0
"""How long a document may take."""
_AT_ONCE = 2
"""How many documents are made at once."""


async def _started(what: str, begin: Mapping[str, object]) -> asyncio.subprocess.Process:
    process = await start_module("deltatape.inspector", what, limit=_MAX_LINE)
    assert process.stdin is not None
    process.stdin.write(json.dumps(begin).encode() + b"\n")
    return process


class IndexProcess(BackgroundTask):
    """Keeps the indexing process running.

    Args:
        begin: what it indexes; see `indexing`.
        told: gets each state that it reports.
    """

    def __init__(
        self, begin: Mapping[str, object], told: Callable[[Mapping[str, object]], None]
    ) -> None:
        self._begin = begin
        self._told = told
        self._process: asyncio.subprocess.Process | None = None

    async def _run(self) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            process = self._process = await _started("index", self._begin)
            try:
                if await self._listen(process):
                    wait_s = FIRST_WAIT_S
            finally:
                self._process = None
                code = await kill(process)
            _LOG.warning("deltatape: the index ended with exit code %d; starting it again", code)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _listen(self, process: asyncio.subprocess.Process) -> bool:
        """Pass on what a process reports, until it ends; return whether it reported anything."""
        told = False
        assert process.stdout is not None
        with contextlib.suppress(ValueError, ConnectionError):  # longer than any line; killed
            while (line := await process.stdout.readline()).endswith(b"\n"):
                self._told(json.loads(line))
                told = True
        return told


class Document(NamedTuple):
    """The answer of a document process, as of HTTP."""

    status: int
    fields: Mapping[str, str]
    """Header fields."""
    body: bytes


class DocumentError(DeltatapeError):
    """A document process died, or took too long."""


class DocumentProcesses:
    """Makes documents, each in a process that makes only one at a time.

    Args:
        begin: the first line of input of each process; see `documents`.
    """

    def __init__(self, begin: Mapping[str, object]) -> None:
        self._begin = begin
        self._idle: list[asyncio.subprocess.Process] = []
        self._all: set[asyncio.subprocess.Process] = set()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._first: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start a process, so that the first document need not wait for that."""
        self._first = asyncio.get_running_loop().create_task(self._prepare())

    async def _prepare(self) -> None:
        self._idle.append(await self._new())

    async def _new(self) -> asyncio.subprocess.Process:
        process = await _started("documents", self._begin)
        self._all.add(process)
        return process

    async def make(self, question: Mapping[str, object]) -> Document:
        """Return the answer to a question.

        Raises:
            DocumentError: there is none.
        """
        async with self._places:
            process = self._idle.pop() if self._idle else None
            if process is None or process.returncode is not None:
                process = await self._new()
            done = False
            try:
                async with asyncio.timeout(MAX_S):
                    document = await _answer(process, question)
                done = True
            except TimeoutError:
                raise DocumentError(
                    f"this took longer than {MAX_S:.0f} s and was stopped; the command line has no"
                    " limit"
                ) from None
            except (asyncio.IncompleteReadError, ConnectionError, ValueError):
                raise DocumentError(
                    "the process that reads the tape died of it, such as by lack of memory"
                ) from None
            finally:
                if done:
                    self._idle.append(process)
                else:  # also when the page has gone: nobody waits for the answer
                    self._all.discard(process)
                    await asyncio.shield(kill(process))
            return document

    async def stop(self) -> None:
        """End all processes."""
        if self._first is not None:
            await asyncio.wait((self._first,))
        while self._all:
            await kill(self._all.pop())


async def _answer(process: asyncio.subprocess.Process, question: Mapping[str, object]) -> Document:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question).encode() + b"\n")
    await process.stdin.drain()
    head = json.loads(await process.stdout.readuntil(b"\n"))
    body = await process.stdout.readexactly(head["size"])
    return Document(head["status"], head["fields"], body)
