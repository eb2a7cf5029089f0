"""Attempts: requests repeated because the one before them had failed.

Clients retry after an error answer, a cut or a timeout; some ask once more without streaming, or
another provider. What they send again has the same history and the same system messages, whatever
else differs, and it comes after the failed one has ended: requests side by side are no attempts of
each other. Each request goes on from one failed attempt at most, the one that ended last, so that
two conversations that ask the same at the same time keep their attempts apart as far as possible.

An exchange whose end was not recorded is not known to have failed: it starts no attempts.
"""

from collections.abc import Iterable, Sequence

from deltatape.model.attempts import Attempt, Attempts
from deltatape.model.digest import Digest
from deltatape.model.exchange import Tap
from deltatape.model.tape_summary import CHILD_EXIT
from deltatape.printable import count, excerpt

_ERROR = 400
_NS = 1_000_000_000
_SHOWN = 60
_ENDS = 3
"""Attempts that are shown at the start and at the end of a long row."""

_Key = tuple[str, str, str, str]


def attempts_of(digests: Iterable[Digest]) -> tuple[Attempts, ...]:
    """Return all groups of two or more attempts, in the order of their first requests.

    Args:
        digests: the digests of any number of conversations, in the order of their requests.
    """
    digests = tuple(digests)
    rows: list[list[Digest]] = []
    waiting: dict[_Key, list[list[Digest]]] = {}
    for digest in digests:
        if digest.tap is not Tap.PROVIDER or not digest.known:
            continue
        rest = waiting.setdefault(_key(digest), [])
        row = max((row for row in rest if had_ended(row[-1], digest)), key=_end, default=None)
        if row is None:
            row = []
            rows.append(row)
        else:
            rest.remove(row)
        row.append(digest)
        if digest.failed and not digest.lossy:
            rest.append(row)
    last = {digest.tape: digest for digest in digests}
    return tuple(_attempts_in(row, last[row[0].tape]) for row in rows if len(row) > 1)


def row_of(rows: Iterable[Attempts], number: int) -> Attempts | None:
    """Return the attempts that the exchange `number` of a tape belongs to."""
    return next(
        (row for row in rows if any(attempt.exchange == number for attempt in row.tries)), None
    )


def settled(rows: Iterable[Attempts]) -> frozenset[int]:
    """Return the exchanges that failed and were repeated with success in another one."""
    return frozenset(
        attempt.exchange
        for row in rows
        if row.answered
        for attempt in row.tries[:-1]
        if attempt.exchange != row.tries[-1].exchange
    )


def sentence(row: Attempts) -> str:
    """Return `2 attempts: #1 status 429, asked again after 0.4 s, answered by #3`, unpunctuated."""
    first, *rest = row.tries
    parts = [
        f"#{first.exchange} {first.outcome}",
        *(f"{_asked(each)}: #{each.exchange} {each.outcome}" for each in rest),
    ]
    if row.answered:
        parts[-1] = f"{_asked(rest[-1])} and answered in #{rest[-1].exchange}"
    elif row.pending:
        parts[-1] = f"{_asked(rest[-1])} in #{rest[-1].exchange}, which is still going on"
    left = len(parts) - 2 * _ENDS
    if left > 1:
        parts = [*parts[:_ENDS], f"{left} more failed attempts", *parts[-_ENDS:]]
    failed = "" if row.answered or row.pending else ", all failed"
    ended = f"; then the app exited with {row.exit_code}" if row.exit_code is not None else ""
    return f"{count(len(row.tries), 'attempt')}{failed}: {', '.join(parts)}{ended}"


def again(attempt: Attempt) -> str:
    """Describe a later attempt on a timeline: `sent again after 0.4 s: status 429`."""
    how = f", {attempt.changed}" if attempt.changed else ""
    return f"sent again{_after(attempt)}{how}: {attempt.outcome}"


def _asked(attempt: Attempt) -> str:
    how = f" {attempt.changed}" if attempt.changed else ""
    return f"sent again{how}{_after(attempt)}"


def _after(attempt: Attempt) -> str:
    return "" if attempt.pause_ns is None else f" after {_seconds(attempt.pause_ns)}"


def _seconds(ns: int) -> str:
    return f"{ns / _NS:.2f} s" if ns < _NS // 10 else f"{ns / _NS:.1f} s"


def _key(digest: Digest) -> _Key:
    return digest.tape, digest.system, digest.prefixes[-1], digest.previous or ""


def _end(row: Sequence[Digest]) -> int:
    return row[-1].end_ns or 0


def had_ended(before: Digest, digest: Digest) -> bool:
    """Return whether `before` had ended when `digest` was requested, by time or else order."""
    if before.end_ns is None or digest.t_ns is None:
        return before.t_ns is None
    return before.end_ns <= digest.t_ns


def _attempts_in(row: Sequence[Digest], last: Digest) -> Attempts:
    end = row[-1]
    watch = end.watch
    exited = end.failed and end is last and watch is not None and watch.stop == CHILD_EXIT
    return Attempts(
        tries=tuple(_attempt(each, row[at - 1] if at else None) for at, each in enumerate(row)),
        answered=_is_answered(end),
        pending=not end.failed and not _is_answered(end),
        exit_code=watch.exit_code if watch and exited else None,
    )


def _is_answered(digest: Digest) -> bool:
    """Return whether an answer came and the tape does not end in the middle of it."""
    ended = digest.end_ns is not None or digest.t_ns is None or digest.lossy
    return ended and not digest.failed


def _attempt(digest: Digest, before: Digest | None) -> Attempt:
    timed = before is not None and before.end_ns is not None and digest.t_ns is not None
    pause = (digest.t_ns or 0) - (before.end_ns or 0) if before and timed else None
    changed = ""
    if before and before.stream != digest.stream:
        changed = "as a stream" if digest.stream else "without streaming"
    return Attempt(
        exchange=digest.exchange,
        line=digest.line,
        end_line=digest.end_line,
        t_ns=digest.t_ns,
        outcome=_outcome(digest),
        pause_ns=pause,
        changed=changed,
    )


def _outcome(digest: Digest) -> str:
    """Describe how an attempt ended, in a few words."""
    if not digest.failed:
        return "answered" if _is_answered(digest) else "still going on"
    if digest.status is not None and digest.status >= _ERROR:
        return f"status {digest.status}"
    if digest.left:
        return f"left by the client{_duration_text(digest)}"
    if digest.error is not None:
        return f"error in the answer ({excerpt(digest.error, _SHOWN)})"
    what = "the stream" if digest.stream else "the answer"
    return "no response" if digest.status is None else f"{what} broke off"


def _duration_text(digest: Digest) -> str:
    if digest.t_ns is None or digest.end_ns is None:
        return ""
    return f" after {_seconds(digest.end_ns - digest.t_ns)}"
