"""The page of `record --open`: `deltatape open` in a separate process; no stream waits for it."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from deltatape.child.background import BackgroundTask, kill, start_module
from deltatape.child.signals import Signals

STOP_S = 5.0
"""How long the process may take to end."""


class Page(BackgroundTask):
    """Shows the tapes of a folder; recording does not wait for it.

    Args:
        folder: where tapes are recorded.
        tell: gets lines for the user: the URL of the page.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._url = ""
        self._shown = asyncio.Event()

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
            process = await start_module(
                "deltatape", "open", "--until-eof", "--", str(self._folder)
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
                await kill(process)
