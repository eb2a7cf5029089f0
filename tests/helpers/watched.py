"""Exchanges of a tape that says how long it was watched."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange
from deltatape.model.tape_summary import TapeSummary
from helpers.chat import FINISH
from helpers.exchanges import USER, asks, call, conversation

NS = 1_000_000_000

CALLS = (asks(USER), [*call(), FINISH])
"""A request, and an answer with one call; for `conversation`. It ends after 0.5 s."""


def watched(
    exchanges: Iterable[Exchange],
    until_s: float,
    *,
    stop: str | None = "interrupted",
    exit_code: int | None = None,
    recording: bool = False,
) -> list[Exchange]:
    """`exchanges`, on a tape that was watched until then."""
    watch = TapeSummary(
        until_ns=round(until_s * NS), stop=stop, exit_code=exit_code, recording=recording
    )
    return [replace(each, watch=watch) for each in exchanges]


def watched_digests(
    *exchanges: tuple[dict[str, object], Sequence[object]],
    until_s: float,
    stop: str | None = "interrupted",
    exit_code: int | None = None,
) -> list[Digest]:
    """The digests of a conversation, ten seconds apart, that was watched until then."""
    tape = watched(conversation(*exchanges), until_s, stop=stop, exit_code=exit_code)
    return [digest(each) for each in tape]
