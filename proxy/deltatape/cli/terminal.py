"""Talking to a person: escaped, styled only on a terminal, and never in the way of results."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.console import Console

from deltatape.render.lines import Line, plain, styled
from deltatape.rules.evidence import escape


def say(line: str) -> None:
    """One line on stderr; control characters are shown, not obeyed.

    A terminal that is gone takes nothing with it: streams go on, results come out.
    """
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{escape(line)}\n")
        sys.stderr.flush()


def show(lines: Sequence[Line]) -> None:
    """Lines on stdout: with styles on a terminal, plain elsewhere or with NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        write(plain(lines))
        return
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.print(styled(lines), soft_wrap=True)


def write(text: str) -> None:
    """A document for programs on stdout."""
    with _results() as stdout:
        stdout.write(text)


def write_bytes(data: bytes) -> None:
    """Very bytes on stdout."""
    with _results() as stdout:
        stdout.buffer.write(data)


@contextlib.contextmanager
def _results() -> Iterator[TextIO]:
    """stdout, flushed in the end. A reader that leaves early, as `head` does, is no failure."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered must not fail once more when Python exits.
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device, not a path of ours
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
