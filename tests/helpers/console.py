"""The command line inside the test's own process, for a pipe and for a terminal: quick."""

import contextlib
import io
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

import pytest

from deltatape.cli import main
from helpers.program import environment

Environment = Mapping[str, str] | None


def called(
    *arguments: str | Path, folder: Path, stdin: bytes = b"", env: Environment = None
) -> subprocess.CompletedProcess[bytes]:
    """What `deltatape ARGUMENTS` in `folder` prints into pipes, and its exit code."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
    typed = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    code = _main(arguments, (typed, out, err), folder, env or {})
    printed, errors = (stream.buffer.getvalue() for stream in (out, err))
    return subprocess.CompletedProcess(arguments, code, printed, errors)


def on_terminal(
    *arguments: str | Path, folder: Path, stdin: bytes = b"", env: Environment = None
) -> subprocess.CompletedProcess[bytes]:
    """What `deltatape ARGUMENTS` in `folder` shows on a terminal (as `stdout`), and its exit code.

    `stdin` is typed before it starts, as it is: with ^D for its end.
    """
    with _terminal(stdin) as (stream, shown):
        variables = {"TERM": "xterm-256color", **(env or {})}
        code = _main(arguments, (stream, stream, stream), folder, variables)
    return subprocess.CompletedProcess(arguments, code, bytes(shown), b"")


def _main(
    arguments: tuple[str | Path, ...],
    streams: tuple[TextIO, TextIO, TextIO],
    folder: Path,
    env: Mapping[str, str],
) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("NO_COLOR", raising=False)
        for name, value in {**environment(folder), **env}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["deltatape", *map(str, arguments)])
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        return main()


@contextlib.contextmanager
def _terminal(typed: bytes) -> Iterator[tuple[TextIO, bytearray]]:
    """A terminal as a text file, and what it shows; that is complete at the end."""
    master, slave = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more
            while data := os.read(master, 65536):
                shown.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        os.write(master, typed)
        pair = io.BufferedRWPair(io.FileIO(slave, "r", closefd=False), io.FileIO(slave, "w"))
        # Typed for files that have a descriptor of their own.
        with io.TextIOWrapper(pair, "utf-8", "backslashreplace") as stream:  # type: ignore[type-var]
            yield stream, shown
    finally:
        reader.join(10)
        os.close(master)
