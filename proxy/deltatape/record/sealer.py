"""Seals finished tapes while others are recorded: `record --seal`.

A process of low priority does it (`sealing`), so that no stream waits for it. It may be killed at
any moment: a tape is deleted only after its sealed form is complete and was compared with it.
"""

import asyncio
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

from deltatape.child.background import BackgroundTask, kill, start_module
from deltatape.model.rule_settings import Settings

_AGAIN_S = 5.0
"""How long to wait before a process that died is started again."""


class Sealer(BackgroundTask):
    """Seals the finished tapes of a folder; the next recorder seals those left at `stop`.

    Args:
        folder: where tapes are recorded.
        rules: the thresholds for the findings in the index of a sealed tape.
        tell: gets a line for each tape that cannot be sealed.
    """

    def __init__(self, folder: Path, rules: Settings, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._rules = rules
        self._tell = tell
        self._told: set[str] = set()

    async def _run(self) -> None:
        while True:
            try:
                await self._serve()
            except OSError as error:
                self._remark(f"--seal: {error.strerror or error}; recording goes on")
            await asyncio.sleep(_AGAIN_S)

    async def _serve(self) -> None:
        """Start a process that seals tapes, and wait until it dies."""
        process = await start_module("deltatape.record.sealing", str(self._folder))
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
            await kill(process)

    def _remark(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self._tell(problem)
