"""Conversations that are checked as their exchanges end."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.conversation import ConversationHistory, read_backs, turns, whole_turn
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.exchange import Tap
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS
from deltatape.store.reader import open_tape
from helpers.exchanges import CALL_REPLY, TEXT_REPLY, USER, asks, assistant, conversation, result

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
OTHER: dict[str, object] = {"role": "user", "content": "Something else?"}
FIRST = (asks(USER), CALL_REPLY)
CHANGED = (asks(USER, assistant(("c1", "get", "")), result("c1")), TEXT_REPLY)


def on_latest(digests: Sequence[Digest]) -> tuple[Finding, ...]:
    """The findings on the last request, of all exchanges at once."""
    found = turns(digests, read_backs(digests))
    own = [turn for turn in found if turn.digest is digests[-1]]
    return tuple(finding for turn in own for finding in whole_turn(turn, DEFAULTS))


@pytest.mark.slow
def test_findings_are_those_of_all_exchanges_that_are_held_at_once(
    subtests: pytest.Subtests,
) -> None:
    for path in sorted(RECORDINGS.rglob("*.tape")):
        if path.parent.name == "conformance":  # damaged on purpose
            continue
        with subtests.test(str(path.relative_to(RECORDINGS))):
            whole, short = ConversationHistory(), ConversationHistory(window=2)
            digests = [digest(exchange) for exchange in open_tape(path)]
            for place, each in enumerate(digests):
                assert whole.add(each) == on_latest(digests[: place + 1])
                assert short.add(each) == on_latest(short.digests)
                assert min(place + 1, 2) <= len(short) <= 8


def test_an_exchange_in_front_of_the_app_is_compared_with_none() -> None:
    first, changed = map(digest, conversation(FIRST, CHANGED))
    history = ConversationHistory()
    history.add(first)
    assert history.add(replace(changed, tap=Tap.APP)) == ()
    assert "C002" in [each.code for each in history.add(changed)]


def test_an_exchange_is_compared_with_those_that_are_held() -> None:
    first, other, changed = map(digest, conversation(FIRST, (asks(OTHER), TEXT_REPLY), CHANGED))
    for others, found in ((0, True), (1, True), (6, True), (7, False)):
        history = ConversationHistory(window=2)
        history.add(first)
        for _ in range(others):
            history.add(other)
        assert ("C002" in [each.code for each in history.add(changed)]) is found
