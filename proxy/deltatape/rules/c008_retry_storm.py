"""C008: the same request again and again after failures."""

import itertools
from collections.abc import Iterator, Sequence
from typing import ClassVar

from deltatape.model.digest import Digest
from deltatape.model.finding import Against, Blame, Confidence, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._base import NS
from deltatape.rules._conversation import TurnClaim, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

_GROWTH = 1.3
"""By how much a pause grows at least; clients add some chance."""
_PAUSE_NS = 200_000_000
"""The first pause of who waits at all."""


class RetryStorm:
    """An application repeats a request that failed, too often in too short a time.

    ## What it does
    Counts attempts of the same request, with the same history, one after the other: each came when
    the one before it had failed, by an error or because it broke off. Reports the fifth within a
    minute, and each time that the number has doubled. Requests that are sent side by side are no
    retries, nor are pauses reported that grow each time, or are as long as the provider asks for.

    ## Why is this bad
    What has failed four times in a row mostly fails again: the provider limits the rate, or refuses
    the request. Retries without growing pauses keep a limit from being lifted, cost money where
    answers broke off, and make the user wait for nothing. Often two layers retry, each in good
    faith: three attempts of the SDK times three of the framework are nine.

    ## Innocent explanations
    - Several users, or processes, send the same request at the same time.
    - The pauses grow, and the number of attempts is limited.
    - The pauses are those that the provider asks for with `retry-after`, in seconds.

    ## Example
    ```
    #4 to #8, the same 12 messages: 429, 429, 429, 429, 429 within 3.1 s
    ```

    ## Fix
    Retry in one layer only, twice or three times, with pauses that grow and that heed
    `retry-after`. Do not retry what is refused (400, 422).

    ## References
    - https://platform.openai.com/docs/guides/rate-limits
    - https://docs.anthropic.com/en/api/rate-limits
    - https://www.rfc-editor.org/rfc/rfc9110.html#name-retry-after
    """

    code: ClassVar[str] = "C008"
    name: ClassVar[str] = "retry-storm"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        storm = _storm(turn, settings)
        if len(storm) < settings.retries or not _is_new(len(storm), settings.retries):
            return
        if _backs_off(storm) or _heeds(storm):
            return
        first = storm[0]
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the same request came {len(storm)} times in {_seconds(storm):.1f} s, each"
                f" time after the one before had failed (#{first.exchange} and on):"
                f" {_outcomes(storm)}",
                hint="retry in one layer only, a few times, with pauses that grow",
                blame=Blame.APP,
                confidence=Confidence.LIKELY,
                severity=self.severity,
                evidence=storm[-2].error or "",
                against=Against(
                    tape=first.tape,
                    exchange=first.exchange,
                    line=first.line,
                    span=None,
                    asked=None,
                    evidence=excerpt(first.error or ""),
                ),
            ),
        )


def _storm(turn: Turn, settings: Settings) -> Sequence[Digest]:
    """This exchange and the failed attempts before it, one after the other, within the time."""
    last = turn.digest
    storm = [last]
    for attempt in reversed(turn.attempts):
        next_ns, end_ns = storm[-1].t_ns, attempt.end_ns
        if next_ns is None or end_ns is None or last.t_ns is None or attempt.t_ns is None:
            break
        if end_ns > next_ns or last.t_ns - attempt.t_ns > settings.retries_time_s * NS:
            break
        storm.append(attempt)
    return storm[::-1]


def _heeds(storm: Sequence[Digest]) -> bool:
    """Whether each pause is at least as long as the provider asked for."""
    pairs = itertools.pairwise(storm)
    return all(
        before.wait_s and (after.t_ns or 0) - (before.t_ns or 0) >= before.wait_s * NS
        for before, after in pairs
    )


def _backs_off(storm: Sequence[Digest]) -> bool:
    """Whether each pause is clearly longer than the one before, as it should be."""
    pairs = itertools.pairwise(storm)
    pauses = [(after.t_ns or 0) - (before.end_ns or 0) for before, after in pairs]
    growing = (long >= _GROWTH * short for short, long in itertools.pairwise(pauses))
    return len(pauses) > 1 and pauses[0] >= _PAUSE_NS and all(growing)


def _is_new(times: int, limit: int) -> bool:
    """At the limit, and whenever that has doubled."""
    share, rest = divmod(times, limit)
    return rest == 0 and share & (share - 1) == 0


def _seconds(storm: Sequence[Digest]) -> float:
    return ((storm[-1].t_ns or 0) - (storm[0].t_ns or 0)) / NS


def _outcomes(storm: Sequence[Digest]) -> str:
    return ", ".join(_outcome(each) for each in storm[:-1][-8:])


def _outcome(digest: Digest) -> str:
    if digest.status is None:
        return "no response"
    return str(digest.status) if digest.status >= 400 else "broke off"  # noqa: PLR2004 - errors
