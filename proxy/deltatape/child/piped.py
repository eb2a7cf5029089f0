"""Runs a server of lines on stdin and stdout, and passes what both sides write.

A client that starts us in the server's place must not notice: each read is passed on at once and as
it is, stderr is the client's own, signals go to the server, and whoever closes its end closes it
for the other side. Two threads read and write, blocking, so that a slow side slows the other one,
and the descriptors, which we share with the client, keep their flags.
"""

import asyncio
import contextlib
import os
import select
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from deltatape.child.child import DRAIN_S, failure
from deltatape.child.signals import InterruptEscalation, SignalRelay
from deltatape.clock import Clock
from deltatape.model.websocket import Side

READ_SIZE = 1 << 16
Passed = Callable[[Side, bytes, int], None]
"""Gets what a side wrote and when that came, in the event loop, in the order of the reads; b"" when
the side has closed."""


async def run_piped(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    passed: Passed,
    tell: Callable[[str], None],
    clock: Clock,
) -> int:
    """Return the exit code of a command whose stdin and stdout pass through us: see `run_child`.

    Args:
        argv: >= 1 item; the program is looked for in the PATH of `environment`.
        environment: the command's whole environment.
        passed: gets what passes, b"" at the end of a side.
        tell: gets lines for the user, in the event loop.
        clock: tells the times.
    """
    loop = asyncio.get_running_loop()
    drained = asyncio.Event()
    relay = SignalRelay(drained.set, _nothing, None)
    its_input, to_server = os.pipe()
    from_server, its_output = os.pipe()
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, env=environment, stdin=its_input, stdout=its_output
            )
        except OSError as error:
            return failure(argv[0], error, tell)
        finally:
            os.close(its_input)
            os.close(its_output)
        relay.attach(process, InterruptEscalation(process, PurePath(argv[0]).name, tell, _unknown))

        def report(side: Side, data: bytes, at_ns: int) -> None:
            passed(side, data, at_ns)
            if not data and side is Side.SERVER:
                drained.set()

        for side, source, target in (
            (Side.CLIENT, sys.stdin.fileno(), to_server),
            (Side.SERVER, from_server, sys.stdout.fileno()),
        ):
            _Pump(loop, report, clock, side, source, target).start()
        code = await process.wait()
        # What it started may hold its output open.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(drained.wait(), DRAIN_S)
        return code if code >= 0 else 128 - code
    finally:
        relay.end()


def _nothing() -> None:
    """Say nothing about the keys of a terminal."""


def _unknown() -> None:
    """Report that it is unknown when the server last printed something."""


class _Pump(threading.Thread):
    """Passes what one side writes. It may outlive the loop: the client need not close its side."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        passed: Passed,
        clock: Clock,
        side: Side,
        source: int,
        target: int,
    ) -> None:
        super().__init__(name=f"deltatape-{side.value}", daemon=True)
        self._loop = loop
        self._passed = passed
        self._clock = clock
        self._side = side
        self._source = source
        self._target = target

    def run(self) -> None:
        while data := self._read():
            # First: an answer to it must not be reported before it.
            self._report(data)
            if not self._write(data):
                break
        _close(self._source)
        _close(self._target)
        self._report(b"")

    def _report(self, data: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._passed, self._side, data, self._clock.now_ns())

    def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._source, READ_SIZE)
            except BlockingIOError:
                select.select([self._source], [], [])
            except OSError:
                return b""

    def _write(self, data: bytes) -> bool:
        """Return False if nobody reads any more."""
        while data:
            try:
                data = data[os.write(self._target, data) :]
            except BlockingIOError:
                select.select([], [self._target], [])
            except OSError:
                return False
        return True


_STANDARD = 2
"""The last of the descriptors whose numbers have a meaning."""


def _close(descriptor: int) -> None:
    """Close a descriptor; a standard one is open on nothing afterwards, so that none is reused."""
    if descriptor > _STANDARD:
        os.close(descriptor)
        return
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, descriptor)
    os.close(nothing)
