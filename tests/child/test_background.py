"""Tasks and processes that run beside the streams."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from deltatape.child.background import BackgroundTask, kill, start_module


class Waiting(BackgroundTask):
    """Waits for ever; notes that it began and that it was cancelled."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.began = asyncio.Event()

    async def _run(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.notes.append("cleaned up")


def test_stop_waits_until_the_task_has_cleaned_up() -> None:
    async def run() -> list[str]:
        waiting = Waiting()
        waiting.start()
        await waiting.began.wait()
        await waiting.stop()
        return waiting.notes

    assert asyncio.run(run()) == ["cleaned up"]


def test_stop_is_harmless_without_a_start_and_twice() -> None:
    async def run() -> list[str]:
        waiting = Waiting()
        await waiting.stop()
        waiting.start()
        await waiting.began.wait()
        await waiting.stop()
        await waiting.stop()
        return waiting.notes

    assert asyncio.run(run()) == ["cleaned up"]


def test_a_module_of_the_working_directory_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "tool.py").write_text("print('wrong')")
    (tmp_path / "json" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)

    async def run() -> bytes:
        process = await start_module("json.tool", "--compact")
        output, _ = await process.communicate(b'{"a": 1}')
        return output

    assert asyncio.run(run()) == b'{"a":1}\n'


def test_a_module_is_spared_by_ctrl_c_and_shares_our_part_of_the_processors() -> None:
    async def run() -> tuple[int, int]:
        process = await start_module("json.tool")
        try:
            return os.getpgid(process.pid), os.getsid(process.pid)
        finally:
            await kill(process)

    group, session = asyncio.run(run())
    assert group != os.getpgrp()
    assert session == os.getsid(0)


def test_a_process_is_killed_once_and_its_exit_code_is_kept() -> None:
    async def run() -> tuple[int, int]:
        process = await start_module("json.tool")
        return await kill(process), await kill(process)

    assert asyncio.run(run()) == (-signal.SIGKILL, -signal.SIGKILL)
