"""Calls, retries and requests that repeat."""

import itertools
from collections.abc import Iterator, Sequence

from deltatape.model.digest import DeliveredCall, Digest
from deltatape.model.finding import Blame, ComparedPlace, Confidence, Excluded, Severity
from deltatape.model.rule_settings import Settings
from deltatape.model.turn import RepeatedIdenticalCall, SameRequest, Turn
from deltatape.printable import excerpt
from deltatape.rules._call_references import against_request, looks_up, tools_of
from deltatape.rules.context import NS, Claim
from deltatape.rules.rule import (
    SeenTurn,
    measured_turn_rule,
    turn_rule,
)


@measured_turn_rule("C006", "tool-loop", Severity.INFO)
def tool_loop(seen: SeenTurn) -> Iterator[Claim]:
    """Report the same call again and again, or calls without end."""
    turn, settings = seen
    for again in turn.again:
        if _is_reported(again.times, settings.loop_calls):
            yield _loop(_same_call(again), again.call, _first_call(turn, again))
    if _is_reported(turn.silent_calls, settings.loop_turns):
        message = (
            f"{turn.silent_calls} replies in a row called tools without any text for the"
            f" user; this one calls {tools_of(turn.digest.calls)}"
        )
        yield _loop(message, turn.digest.calls[0], None)


def _loop(message: str, call: DeliveredCall, first: ComparedPlace | None) -> Claim:
    return Claim(
        message=message,
        hint="limit the number of turns; send the last request without tools",
        blame=None,
        confidence=Confidence.PROVEN,
        evidence=call.arguments or "(no arguments)",
        against=first,
    )


def _is_reported(times: int, limit: int) -> bool:
    """Return whether the count is the limit or a power of two times it."""
    share, rest = divmod(times, limit)
    return rest == 0 and share > 0 and share & (share - 1) == 0


def _same_call(again: RepeatedIdenticalCall) -> str:
    call = again.call
    first = f" (first in #{again.first})" if again.first is not None else ""
    return (
        f"{excerpt(call.name or f'call {call.index}', 60)} is called with the same arguments"
        f" {again.times} times since the user last spoke{first}"
    )


def _first_call(turn: Turn, again: RepeatedIdenticalCall) -> ComparedPlace | None:
    if again.first is None:
        return None
    return ComparedPlace(
        tape=turn.digest.tape,
        exchange=again.first,
        line=None,
        span=None,
        request_span=None,
        evidence="",
    )


_GROWTH = 1.3
"""The least factor by which a retry pause grows; clients add jitter."""
_PAUSE_NS = 200_000_000
"""The least first pause that counts as waiting."""
_POLLING_S = 5
"""Who asks as rarely as that waits for a server that starts, or for a limit to be lifted."""


@measured_turn_rule("C008", "retry-storm", Severity.WARNING)
def retry_storm(seen: SeenTurn) -> Iterator[Claim]:
    """Report the same request again and again after failures."""
    turn, settings = seen
    storm = _storm(turn, settings)
    if len(storm) < settings.retries or not _is_reported(len(storm), settings.retries):
        return
    if _backs_off(storm) or _waits(storm):
        return
    first = storm[0]
    seconds = ((turn.digest.t_ns or 0) - (first.t_ns or 0)) / NS
    outcomes = ", ".join(map(_outcome, storm[:-1][-8:]))
    yield Claim(
        message=f"the same request came {len(storm)} times in {seconds:.1f} s, each"
        f" time after the previous one had failed (from #{first.exchange} on):"
        f" {outcomes}",
        hint="retry in one layer only, a few times, with increasing pauses",
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        evidence=storm[-2].error or "",
        against=against_request(first, first.error or ""),
    )


def _storm(turn: Turn, settings: Settings) -> Sequence[Digest]:
    """Return this exchange and the failed attempts before it, one after the other, in time."""
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


def _waits(storm: Sequence[Digest]) -> bool:
    """Return whether each pause is as long as the provider requested, or long anyway."""
    return all(
        (after.t_ns or 0) - (before.t_ns or 0) >= (before.wait_s or _POLLING_S) * NS
        for before, after in itertools.pairwise(storm)
    )


def _backs_off(storm: Sequence[Digest]) -> bool:
    """Return whether each pause is clearly longer than the one before, as it should be."""
    pairs = itertools.pairwise(storm)
    pauses = [(after.t_ns or 0) - (before.end_ns or 0) for before, after in pairs]
    growing = (long >= _GROWTH * short for short, long in itertools.pairwise(pauses))
    return len(pauses) > 1 and pauses[0] >= _PAUSE_NS and all(growing)


def _outcome(digest: Digest) -> str:
    if digest.status is None:
        return "no response"
    return str(digest.status) if digest.status >= 400 else "cut off"  # noqa: PLR2004 - errors


@turn_rule("C010", "forced-tool-choice-loop", Severity.WARNING)
def forced_tool_choice_loop(turn: Turn) -> Iterator[Claim]:
    """Report a request that still forces a call although the result is there."""
    digest = turn.digest
    if turn.forced_again or not turn.forced_to_loop:
        return
    useless = any(looks_up(each.call) for each in turn.again)
    yield Claim(
        message=(
            "the request has tool results but still tool_choice"
            f" {excerpt(digest.tool_choice or '', 60)!r}: the model cannot answer, it"
            f" must call {tools_of(digest.calls)} again"
        ),
        hint="set tool_choice back to auto in requests with tool results"
        if useless
        else "if the model should be able to answer, set tool_choice back to auto in requests with"
        " tool results",
        blame=Blame.APP,
        confidence=Confidence.LIKELY if useless else Confidence.POSSIBLE,
        evidence=digest.calls[0].arguments or "(no arguments)",
        excluded=(
            Excluded(
                "the run ends with a call of a special tool",
                "every tool that the request allows has already been called",
            ),
            Excluded(
                "the model must correct a call, or make another one",
                "it makes the same call again, of a tool that looks something up, and no result"
                " reports an error",
            ),
        )
        if useless
        else (),
    )


_TWICE = 2
_SOON = 0.05


@turn_rule("C018", "request-repeated", Severity.INFO)
def request_repeated(turn: Turn) -> Iterator[Claim]:
    """Report a request that was answered and comes again."""
    same, digest = turn.same, turn.digest
    if same is None or same.times & (same.times - 1):
        return
    step = bool(digest.results) and same.ended and same.times == _TWICE and not same.rerun
    first = same.first
    yield Claim(
        message=_request_again(turn, same),
        hint="if this is not intended: send the request in one place only, and wait for the answer",
        blame=Blame.APP if step else None,
        confidence=Confidence.POSSIBLE if step else Confidence.PROVEN,
        severity=Severity.WARNING if step else None,
        evidence=digest.history[-1].content if digest.history else "",
        against=against_request(first, first.summary),
    )


def _request_again(turn: Turn, same: SameRequest) -> str:
    first, digest = same.first, turn.digest
    results = " with the same tool results" if digest.results else ""
    if same.times > _TWICE:
        return f"the same request{results} came {same.times} times, first as #{first.exchange}"
    when = "after it had been answered completely" if same.ended else "before its answer had ended"
    waited = ""
    if digest.t_ns is not None and first.t_ns is not None:
        seconds = (digest.t_ns - first.t_ns) / NS
        waited = f" {seconds:.1f} s later" if seconds >= _SOON else " at once"
    return f"the request of #{first.exchange} came again{results}{waited}, {when}"
