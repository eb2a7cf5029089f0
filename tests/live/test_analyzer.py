"""Exchanges that are analysed one by one, each with those before it."""

from dataclasses import replace

import pytest

from deltatape.live import analyzer
from deltatape.live.analyzer import LiveAnalyzer
from deltatape.model.exchange import Exchange
from deltatape.model.tape_summary import TapeSummary
from helpers.exchanges import CALL_REPLY, TEXT_REPLY, USER, asks, assistant, conversation, result

FIRST = (asks(USER), CALL_REPLY)
REPEATED = (USER, assistant(("c1", "get", "")), result("c1"))
CHANGED = (asks(*REPEATED), TEXT_REPLY)
ORPHAN = (asks(USER, result("c1")), TEXT_REPLY)


def codes(*work: tuple[str | None, Exchange]) -> list[list[str]]:
    """The codes that each exchange is reported with; by the name of its tape."""
    live = LiveAnalyzer()
    results = [live.analyse(name, exchange) for name, exchange in work]
    return [[finding.code for finding in each.findings] for each in results]


def test_what_a_request_made_of_an_earlier_reply_is_reported_with_it_and_once() -> None:
    later = asks(*REPEATED, {"role": "assistant", "content": "hi"}, USER)
    exchanges = conversation(FIRST, CHANGED, (later, TEXT_REPLY))
    found = codes(*((None, exchange) for exchange in exchanges))
    assert "C002" in found[1]
    assert "C002" not in found[0] + found[2]


def test_what_a_request_s_own_history_shows_is_reported_once() -> None:
    exchanges = conversation(FIRST, ORPHAN, ORPHAN)
    found = codes(*((None, exchange) for exchange in exchanges))
    assert "C004" in found[1]
    assert "C004" not in found[2]  # the same request again


def test_a_conversation_goes_on_after_a_rotation_but_not_on_a_tape_of_another_name() -> None:
    first, second = conversation(FIRST, CHANGED)
    assert "C002" in codes((None, first), (None, replace(second, tape="rotated.tape")))[1]
    assert "C002" not in codes((None, first), ("other", second))[1]


def test_the_names_in_use_are_remembered_the_idle_ones_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(analyzer, "MAX_IN_ALL", 2)
    first, second = conversation(FIRST, CHANGED)
    kept = codes(("a", first), ("a", second), ("a", second))
    assert "C002" in kept[1]
    dropped = codes(("a", first), ("b", first), ("c", first), ("a", second))
    assert "C002" not in dropped[-1]


def test_requests_are_in_the_order_of_their_numbers_however_they_end() -> None:
    first, second = conversation(FIRST, CHANGED)
    assert all("C002" not in each for each in codes((None, second), (None, first)))


def test_a_reply_that_was_never_answered_is_reported_when_its_tape_ends() -> None:
    live = LiveAnalyzer()
    (first,) = conversation(FIRST)
    live.analyse(None, first)
    watch = TapeSummary(until_ns=10**12, stop="sigint")
    assert [finding.code for finding in live.silences(None, first.tape, watch)] == ["D003"]
    assert live.silences(None, "other.tape", watch) == ()
    assert live.silences("other", first.tape, watch) == ()
