"""The exception that an application prints when it crashes."""

import re
from collections.abc import Iterable

from deltatape.model.tape_summary import CHILD_EXIT, LogEntry, TapeSummary

_LINE = 4000
"""How much of a line is searched, in bytes."""
_SIGNALS = 128
"""Exit codes from this one on mean that a signal ended it."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
THROWN = re.compile(r"\s*(?:\[?[\w.]+:? )?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Timeout|Exception)\b")
"""How the last line of a traceback begins, or an exception that is printed."""
_PANIC = re.compile(r"panic: |thread '[^']*' panicked|Unhandled exception")
_STOPPED = re.compile(r"KeyboardInterrupt|CancelledError|AbortError|SystemExit|ECONNRESET")
"""Exceptions that also occur when a user ends a program."""


def crashed(watch: TapeSummary | None) -> bool:
    """Return whether an error of the application ended it."""
    return watch is not None and watch.stop == CHILD_EXIT and 0 < (watch.exit_code or 0) < _SIGNALS


def shown(entry: LogEntry) -> str:
    """Return a printed line as text, without colour codes and surrounding blanks."""
    return _COLOUR.sub("", entry.line[:_LINE].decode("utf-8", "backslashreplace")).strip()


def last_thrown(logs: Iterable[LogEntry], start_ns: int, end_ns: int) -> str:
    """Return the last exception printed in this time; "" if there is none.

    Indented lines belong to a stack trace: they show source code.
    """
    near = (each for each in logs if start_ns <= each.t_ns <= end_ns)
    texts = [shown(each) for each in near if not each.line[:1].isspace()]
    found = [text for text in texts if THROWN.match(text) or _PANIC.match(text)]
    return found[-1] if found and not _STOPPED.search(found[-1]) else ""
