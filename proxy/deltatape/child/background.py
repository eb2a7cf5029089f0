"""Tasks and processes of our own that run beside the streams; no stream waits for them."""

import asyncio
import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence

_LINE = 1 << 16


class BackgroundTask(ABC):
    """Runs `_run` as a task, from `start` to `stop`."""

    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cancel the task and wait for its end; harmless without a start, and twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    @abstractmethod
    async def _run(self) -> None: ...


async def start_module(
    module: str, *arguments: str, limit: int = _LINE, pass_fds: Sequence[int] = ()
) -> asyncio.subprocess.Process:
    """Start a module of ours in a process of its own, with pipes for its input and output.

    Such a module ends when its input ends: it does not outlive us, however we end.

    Args:
        module: run as `python -m MODULE`.
        *arguments: of its command line.
        limit: the most bytes of a line that it prints.
        pass_fds: descriptors that it inherits.

    Raises:
        OSError: it cannot be started.
    """
    # -P: no file of the working directory is imported. Its own process group: Ctrl-C is ours. Not
    # its own session, which Linux would give as much of a processor as all of ours, however nice.
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        process_group=0,
        limit=limit,
        pass_fds=pass_fds,
    )


async def kill(process: asyncio.subprocess.Process) -> int:
    """Kill a process, unless it has ended, and return its exit code."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    return await process.wait()
