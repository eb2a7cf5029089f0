"""Find why clients gave up: what they printed then, and whether they went on.

The wire shows that a client disconnected after a silence, not whether its timeout expired or its
user pressed stop. What the application prints then, and what it requests next, can show it: one
that repeats its request, or asks another provider, handles the failure.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from deltatape.model.digest import Digest, digest_at
from deltatape.model.exchange import Tap
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.tape_summary import LogEntry
from deltatape.printable import excerpt
from deltatape.rules.app_exception import THROWN, crashed, last_thrown, shown
from deltatape.rules.transport import DISCONNECTED, GAVE_UP, LEFT, NOT_SENT, STALLED, TIMED_OUT

_SOONER_NS, _LATER_NS = 500_000_000, 3_000_000_000
"""How long before and after the disconnect a line may be printed about it."""
_SHOWN = 200
_TIMEOUT = re.compile(
    r"(?i)timed?[ -]?out|\w*Timeout(?:Error|Exception|Expired)?\b|deadline[ _]?exceeded|ETIMEDOUT"
    r"|UND_ERR_\w+_TIMEOUT"
)
"""Words of a timeout."""
_THREW_TIMEOUT = re.compile(
    r"(?:\b[A-Za-z_]\w*\.)*\b[A-Z]\w*Timeout(?:Error|Exception|Expired)?: |\bTimeoutError(?:: |$)"
)
"""A timeout as an exception, anywhere in a line."""
_LEFT = re.compile(r"\b(?:AbortError|APIUserAbortError|CancelledError|ECONNRESET|ECONNABORTED)\b")
"""Errors of an aborted request; a stop button causes them, too."""


_TOTAL = (
    "the app's total timeout is shorter than this answer, which was still arriving: raise"
    " it, or time out on silence only"
)


def is_departure(finding: Finding) -> bool:
    """Return whether `finding` reports a client that disconnected."""
    if finding.code == "W006":
        return finding.message.startswith((GAVE_UP, LEFT))
    return finding.code in {"D001", "D004"} and DISCONNECTED in finding.message


def explained(finding: Finding, digests: Sequence[Digest], logs: Sequence[LogEntry]) -> Finding:
    """Return a finding about a client that left, with the line it printed and the new confidence.

    Args:
        finding: see `is_departure`.
        digests: the digests of all exchanges of the tape.
        logs: what the application printed, in order.
    """
    own = digest_at(digests, finding.exchange, finding.line)
    error = _own_error(finding, own, digests, logs)
    if error:
        return _of_crash(finding, own, error)
    if finding.message.startswith(LEFT):
        return finding
    line = _printed(own.end_ns or 0, logs)
    told = f", and printed: {excerpt(line, _SHOWN)}" if line else ""
    finding = replace(finding, message=finding.message + told)
    excused = any(words in finding.message for words in (NOT_SENT, STALLED))
    if finding.code != "W006" or excused or own.tap is Tap.APP:
        return finding
    threw = bool(line and _TIMEOUT.search(line))
    ended_well = own.watch is not None and own.watch.exit_code == 0
    timed_out = threw or (TIMED_OUT in finding.message and not ended_well)
    if not timed_out or own.lossy or any(_continues(each, own) for each in digests):
        return finding
    return replace(
        finding,
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        severity=Severity.ERROR if threw else Severity.WARNING,
        hint=(
            "the app's client timed out while this answer paused: raise its read timeout,"
            " and retry on a timeout"
        ),
    )


def _own_error(
    finding: Finding, own: Digest, digests: Sequence[Digest], logs: Sequence[LogEntry]
) -> str:
    """Return the exception that made the application crash and disconnect; "" if unknown."""
    if finding.code != "W006" or finding.blame is not None or own.tap is Tap.APP or own.lossy:
        return ""
    if not crashed(own.watch) or any(_continues(each, own) for each in digests):
        return ""
    end_ns = own.end_ns or 0
    error = last_thrown(logs, end_ns - _SOONER_NS, end_ns + _LATER_NS)
    if finding.message.startswith(LEFT):
        # Streamed text often ends without a newline, so that the error is on the same line.
        line = _printed(end_ns, logs)
        late = _THREW_TIMEOUT.search(line)
        return error or (line[late.start() :] if late else "")
    return "" if _TIMEOUT.search(error) else error


def _of_crash(finding: Finding, own: Digest, error: str) -> Finding:
    assert own.watch is not None
    ended = f"printed {excerpt(error, _SHOWN)!r} and exited with {own.watch.exit_code}"
    return replace(
        finding,
        message=f"{finding.message}; at the same time the app {ended}",
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        severity=Severity.ERROR,
        hint=_TOTAL
        if _TIMEOUT.search(error)
        else "the app exited with its own error: the traceback on the tape shows where",
        excluded=(Excluded("the user stopped it", f"the app {ended}"),),
    )


def _continues(other: Digest, own: Digest) -> bool:
    """Return whether the application repeated this request, or continued its conversation."""
    if other is own or other.tap is Tap.APP:
        return False
    if (other.end_ns or other.t_ns or 0) < (own.t_ns or 0):
        return False  # it was over before
    if not own.known or not other.known:
        return other.path == own.path
    return own.prefixes[-1] in other.prefixes


def _printed(end_ns: int, logs: Sequence[LogEntry]) -> str:
    """Return the line printed about a disconnect at `end_ns`; "" for none."""
    near = (shown(each) for each in logs if end_ns - _SOONER_NS <= each.t_ns <= end_ns + _LATER_NS)
    lines = [line for line in near if _TIMEOUT.search(line) or _LEFT.search(line)]
    thrown = [line for line in lines if THROWN.match(line)]
    return thrown[-1] if thrown else next(iter(lines), "")
