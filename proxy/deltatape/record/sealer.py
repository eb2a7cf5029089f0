"""Has finished tapes sealed while others are recorded: `record --seal`.

That is done in another process of low priority (`sealing`), so that no stream waits for it. It may
be killed at any moment: a tape is only deleted when its sealed form is complete and was compared.
"""

import asyncio
import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

from deltatape.model.rule_settings import Settings

_AGAIN_S = 5.0
"""How long to wait before a process that died is started again."""


class Sealer:
    """Seals the finished tapes of a folder.

    Args:
        folder: where tapes are recorded.
        rules: the thresholds by which what is found is put into the index.
        tell: gets a line for each tape that cannot be sealed.
    """

    def __init__(self, folder: Path, rules: Settings, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._rules = rules
        self._tell = tell
        self._told: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it; recording does not wait for that."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End it at once; what it has not sealed is sealed when a recorder is next started."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def _run(self) -> None:
        while True:
            try:
                await self._serve()
            except OSError as error:
                self._remark(f"--seal: {error.strerror or error}; recording goes on")
            await asyncio.sleep(_AGAIN_S)

    async def _serve(self) -> None:
        """Have a process seal tapes until it dies."""
        # -P: no file of the working directory is imported. Its own session: Ctrl-C is ours.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "deltatape.record.sealing", str(self._folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            settings = json.dumps(dataclasses.asdict(self._rules))
            process.stdin.write(settings.encode() + b"\n")
            while line := await process.stdout.readline():
                self._remark(line.decode("utf-8", "replace").rstrip("\n"))
            await process.wait()
        finally:
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _remark(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self._tell(problem)
