"""All exceptions that deltatape raises on purpose.

    DeltatapeError                one line for the terminal, no traceback; exit code 2
    +-- UsageError                the request cannot be carried out (an option, a URL, a file name)
    +-- TapeFormatError           a file is no tape, of an unknown version, or damaged
    +-- StoreRefusedError         an object store refuses the credentials, or what they are used for
    +-- StoreUnreachableError     an object store does not answer; trying again may help

A defect of the wire is never an exception: decoders, dialects and rules return it as data.
"""

from collections.abc import Iterable

_SIMILAR = 0.6
"""How much of two names has to be equal for one to be a typing error of the other."""


class DeltatapeError(Exception):
    """Base of all errors that users see as one line."""

    exit_code = 2


class UsageError(DeltatapeError):
    """An impossible option or argument; the message says what is accepted."""


class TapeFormatError(DeltatapeError):
    """An unreadable tape.

    Args:
        path: the file as the user named it.
        line: 1-based line number, or 0 when the file as a whole is meant.
        problem: what is wrong, the value seen, and what would be accepted.
    """

    def __init__(self, path: str, line: int, problem: str) -> None:
        where = f"{path}:{line}" if line else path
        super().__init__(f"{where}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem


class StoreRefusedError(DeltatapeError):
    """An object store refuses the credentials, or what they are used for."""


class StoreUnreachableError(DeltatapeError):
    """An object store does not answer, or says that it cannot now; trying again may help."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'check'?`, the end of an error message; "" if no name is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors need it

    near = get_close_matches(name, known, n=1, cutoff=_SIMILAR)
    return f" Did you mean {near[0]!r}?" if near else ""
