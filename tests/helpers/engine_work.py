"""Work for the processes of an engine, which import it by its name."""

import contextlib
import os
import signal
from pathlib import Path

from deltatape.errors import UsageError


def square(number: int) -> int:
    return number * number


def process_of(_: int) -> int:
    return os.getpid()


def die(number: int) -> int:
    """Be killed for one of them, each time."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die_once(mark: tuple[str, int]) -> int:
    """Be killed by the first of them that comes."""
    folder, number = mark
    with contextlib.suppress(FileExistsError):
        (Path(folder) / "killed").mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def note(mark: tuple[str, int]) -> int:
    """Add a byte to the file of the item, each time that it is done."""
    folder, number = mark
    with (Path(folder) / str(number)).open("ab") as file:
        file.write(b".")
    return number


def fail(number: int) -> int:
    raise UsageError(f"wrong: {number}")
