"""Exchanges that are analysed one by one, each with those before it."""

from pathlib import Path

import pytest

from deltatape.live import analyzer
from deltatape.live.analyzer import LiveAnalyzer
from deltatape.model.exchange import Exchange
from deltatape.model.tape_summary import TapeSummary
from deltatape.store.reader import open_tape
from helpers.exchanges import CALL_REPLY, TEXT_REPLY, USER, asks, assistant, conversation, result

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
FIRST = (asks(USER), CALL_REPLY)
REPEATED = (USER, assistant(("c1", "get", "")), result("c1"))
CHANGED = (asks(*REPEATED), TEXT_REPLY)
ORPHAN = (asks(USER, result("c1")), TEXT_REPLY)


def codes(*work: tuple[str | None, int, Exchange]) -> list[list[str]]:
    """The codes that each exchange is reported with; by name and key of its tape."""
    live = LiveAnalyzer()
    results = [live.analyse(name, key, exchange) for name, key, exchange in work]
    return [[finding.code for finding in each.findings] for each in results]


def test_what_a_request_made_of_an_earlier_reply_is_reported_with_it_and_once() -> None:
    later = asks(*REPEATED, {"role": "assistant", "content": "hi"}, USER)
    exchanges = conversation(FIRST, CHANGED, (later, TEXT_REPLY))
    found = codes(*((None, 1, exchange) for exchange in exchanges))
    assert "C002" in found[1]
    assert "C002" not in found[0] + found[2]


def test_what_a_request_s_own_history_shows_is_reported_once() -> None:
    exchanges = conversation(FIRST, ORPHAN, ORPHAN)
    found = codes(*((None, 1, exchange) for exchange in exchanges))
    assert "C004" in found[1]
    assert "C004" not in found[2]  # the same request again


def test_a_conversation_goes_on_after_a_rotation_but_not_on_a_tape_of_another_name() -> None:
    first, second = conversation(FIRST, CHANGED)
    assert "C002" in codes((None, 1, first), (None, 2, second))[1]
    assert "C002" not in codes((None, 1, first), ("other", 2, second))[1]


def test_only_the_latest_names_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer, "MAX_NAMES", 2)
    first, second = conversation(FIRST, CHANGED)
    kept = codes(("a", 1, first), ("b", 2, first), ("a", 1, second))
    assert "C002" in kept[-1]
    dropped = codes(("a", 1, first), ("b", 2, first), ("c", 3, first), ("a", 1, second))
    assert "C002" not in dropped[-1]


@pytest.mark.parametrize(
    "path", sorted(RECORDINGS.rglob("*.tape")), ids=lambda path: str(path.relative_to(RECORDINGS))
)
def test_what_is_left_out_of_a_first_question_makes_no_difference(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = [(None, 1, exchange) for exchange in open_tape(path)]
    found = codes(*work)
    monkeypatch.setattr(analyzer, "related", lambda digests, _: digests)
    assert codes(*work) == found


def test_requests_are_in_the_order_of_their_numbers_however_they_end() -> None:
    first, second = conversation(FIRST, CHANGED)
    assert all("C002" not in each for each in codes((None, 1, second), (None, 1, first)))


def test_a_reply_that_was_never_answered_is_reported_when_its_tape_ends() -> None:
    live = LiveAnalyzer()
    live.analyse(None, 1, *conversation(FIRST))
    watch = TapeSummary(until_ns=10**12, stop="sigint")
    assert [finding.code for finding in live.silences(None, 1, watch)] == ["D003"]
    assert live.silences(None, 2, watch) == ()
    assert live.silences("other", 1, watch) == ()
