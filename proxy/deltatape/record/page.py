"""The page of `record --open`: `deltatape open` in a process of its own; no stream waits for it."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from deltatape.child.signals import Signals

STOP_S = 5.0
"""How long the process may take to end."""


class Page:
    """Shows the tapes of a folder.

    Args:
        folder: where tapes are recorded.
        tell: gets the lines for the user: where the page is.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._url = ""
        self._shown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it; recording does not wait for that."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End it; harmless without a start, and twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def stay(self) -> None:
        """Leave the page to a user at a terminal until a signal, such as by Ctrl-C."""
        if self._task is None or not os.isatty(2):
            return
        loop = asyncio.get_running_loop()
        asked, shown = loop.create_task(Signals().wait()), loop.create_task(self._shown.wait())
        ends = (asked, self._task)
        await asyncio.wait((*ends, shown), return_when=asyncio.FIRST_COMPLETED)
        if self._url:
            self._tell(f"the page stays at {self._url} until Ctrl-C; later: deltatape open")
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        shown.cancel()

    async def _run(self) -> None:
        try:
            # -P: no file of the working directory is imported. Its own session: Ctrl-C is ours.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "deltatape", "open", "--until-eof"),
                *("--", str(self._folder)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._tell(f"note: --open: {error.strerror or error}; recording goes on")
            return
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            self._url = (await process.stdout.readline()).decode().strip()
            if self._url:
                self._tell(f"  page     {self._url}")
                self._shown.set()
            await process.wait()
            self._tell("note: the page has ended; recording goes on: deltatape open shows it again")
        finally:
            process.stdin.close()  # which ends it
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
