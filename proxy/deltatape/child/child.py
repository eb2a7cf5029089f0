"""Runs the user's command transparently, and copies its output.

The child inherits stdin and stays in our process group and session, so that prompts, password
prompts, Ctrl-C and job control are between it and the user's terminal. Its stdout and stderr come
through us (see `output`), signals are passed on (see `signals`), and its exit code is what comes
back. Its output is copied by us, so it can appear slightly later than what the child writes to
`/dev/tty` directly.
"""

import asyncio
import contextlib
import errno
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath

from deltatape.child.output import Output, OutputPump, Tee, follow_size, opened_outputs
from deltatape.child.screen import Screen
from deltatape.child.signals import InterruptEscalation, SignalRelay, send
from deltatape.printable import count

NOT_FOUND = 127
CANNOT_RUN = 126
FAILED = 125
"""As env(1): not found, found but not run, a failure of the runner itself."""

DRAIN_S = 1.0
"""How long others that hold the child's output open may still write after its end."""

_OWN_FAILURES = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


async def run_child(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    tee: Tee | None,
    tell: Callable[[str], None],
    ending: Callable[[], None] | None = None,
    screen: Screen | None = None,
) -> int:
    """Return the exit code of a command: its own, 128+n after signal n, or 125, 126, 127.

    While it runs, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 are passed on to it, and a
    second SIGTERM or SIGINT (not from the terminal) kills it; `InterruptEscalation` handles a
    Ctrl-C that the child ignores. Afterwards these signals have their default handlers.

    Args:
        argv: >= 1 item; the program is looked for in the PATH of `environment`.
        environment: the child's whole environment.
        tee: gets the output, in the event loop; None: the child has our own outputs.
        tell: gets lines for the user, in the event loop.
        ending: called when a signal asks for the end, in the event loop.
        screen: where the command and we print; who prints the lines for the user asks it whether
            they need a line break before.

    Raises:
        UsageError: no pipe or pseudo-terminal is available.
    """
    run = _Run(tell, screen or Screen())
    relay = SignalRelay(run.hurry, run.echoed, ending)
    try:
        with opened_outputs() if tee is not None else contextlib.nullcontext(()) as outputs:
            process = await _spawn(tuple(argv), environment, outputs)
        if isinstance(process, OSError):
            for output in outputs:
                output.close_source()
            return failure(argv[0], process, tell)
        relay.attach(
            process, InterruptEscalation(process, PurePath(argv[0]).name, tell, run.printed)
        )
        return await run.wait(process, outputs, tee)
    finally:
        relay.end()


class _Run:
    """The child's run and the wait after it."""

    def __init__(self, tell: Callable[[str], None], screen: Screen) -> None:
        self._tell = tell
        self._screen = screen
        self._pump: OutputPump | None = None

    def hurry(self) -> None:
        """End the wait after the child."""
        if self._pump is not None:
            self._pump.abandon()

    def printed(self) -> float | None:
        """Return when the child last printed, in the loop's time; None if unknown."""
        return None if self._pump is None else self._pump.taken_s

    def echoed(self) -> None:
        """Note that the terminal echoed a key."""
        self._screen.echoed()

    async def wait(
        self, process: asyncio.subprocess.Process, outputs: Sequence[Output], tee: Tee | None
    ) -> int:
        """Return the exit code after all output was written."""
        with _following_size(outputs), _killed_at_a_failure(process):
            if tee is not None:
                self._pump = OutputPump(outputs, tee, self._tell, self._screen)
            code = await process.wait()
            if self._pump is not None:
                await self._drain(self._pump)
        return code if code >= 0 else 128 - code

    async def _drain(self, pump: OutputPump) -> None:
        await asyncio.wait([pump.done], timeout=DRAIN_S)
        pump.finish()
        await pump.done
        if pump.left_out:
            self._tell(
                f"{count(pump.left_out, 'byte')} of the command's output are not on the tape: it"
                " prints more than is taped"
            )
        if pump.held:
            self._tell(
                "the command has ended, but a process that it started holds its"
                f" {' and '.join(pump.held)} open; what that writes from now on is not taken"
            )


async def _spawn(
    argv: tuple[str, ...], environment: Mapping[str, str], outputs: Sequence[Output]
) -> asyncio.subprocess.Process | OSError:
    """Return the running child, or why it could not start."""
    ends = {stream: output.child for output in outputs for stream in output.streams}
    try:
        try:
            return await _execute(argv, environment, ends)
        except OSError as error:
            path = shutil.which(argv[0], path=environment.get("PATH"))
            if error.errno != errno.ENOEXEC or path is None:
                return error
            # A script without `#!`: as execvp(3), and so env(1) and every shell, runs it.
            return await _execute(("/bin/sh", path, *argv[1:]), environment, ends)
    finally:
        for output in outputs:
            output.close_child()


async def _execute(
    argv: tuple[str, ...], environment: Mapping[str, str], ends: Mapping[str, int]
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv, env=environment, stdout=ends.get("stdout"), stderr=ends.get("stderr")
    )


def failure(program: str, error: OSError, tell: Callable[[str], None]) -> int:
    """Return the exit code of a command that could not start, and say why."""
    tell(f"{program}: {error.strerror}")
    if error.errno in _OWN_FAILURES:
        return FAILED
    return NOT_FOUND if error.errno == errno.ENOENT else CANNOT_RUN


@contextlib.contextmanager
def _following_size(outputs: Sequence[Output]) -> Iterator[None]:
    if not any(output.is_terminal for output in outputs):
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, follow_size, outputs)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


@contextlib.contextmanager
def _killed_at_a_failure(process: asyncio.subprocess.Process) -> Iterator[None]:
    """Kill the process if starting fails."""
    try:
        yield
    finally:
        if process.returncode is None:
            send(process, signal.SIGKILL)
