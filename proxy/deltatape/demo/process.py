"""deltatape as a process of its own: started, waited for by what it prints, ended by signal."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

LIMIT_S = 20.0
_URL = re.compile(r"https?://\S+?:[0-9]+(?=/|\s)")


class Background:
    """A running `deltatape record` or `deltatape replay`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        """What it has printed on stderr."""
        self._grown = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._grown:
                self.lines.append(line)
                self._grown.notify_all()
        with self._grown:
            self._ended = True
            self._grown.notify_all()

    def wait_for(self, pattern: str) -> str:
        """The first printed line that matches.

        Raises:
            TimeoutError: none came within 20 s, or the process ended without.
        """

        def found() -> str | None:
            return next((line for line in self.lines if re.search(pattern, line)), None)

        with self._grown:
            self._grown.wait_for(lambda: found() or self._ended, LIMIT_S)
            line = found()
        if line is None:
            raise TimeoutError(f"no line matches {pattern!r} in {''.join(self.lines)!r}")
        return line

    @property
    def url(self) -> str:
        """The address at which it listens: `http://127.0.0.1:8377`."""
        found = _URL.search(self.wait_for(_URL.pattern))
        assert found is not None
        return found[0]

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self.url.rpartition(":")[2])

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it by a signal; its exit code and all that it printed."""
        self.process.send_signal(number)
        code = self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        return code, "".join(self.lines)


@contextlib.contextmanager
def background(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Iterator[Background]:
    """Start `deltatape ARGUMENTS`; it is killed at the end if it still runs.

    Args:
        arguments: of the command line, without `deltatape`.
        cwd: the folder to start it in.
        env: its environment; this process's own by default.
        before: run in the new process before deltatape, to set a resource limit.
    """
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "deltatape", *arguments],
        cwd=cwd,
        env=dict(os.environ if env is None else env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,  # noqa: PLW1509 - a resource limit; no thread of ours runs yet
    )
    running = Background(process)
    try:
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        running._reader.join(LIMIT_S)  # noqa: SLF001 - its own module
        if process.stderr is not None:
            process.stderr.close()
