"""What holds for every variation: what it says stays or fails, exact, repeatable, never raising."""

import hashlib
import random
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.reply import CallStatus, Reply
from deltatape.mutate import SeededChoices
from deltatape.vary._base import reply_content
from deltatape.vary.variation import HARMLESS, HOSTILE, VARIATIONS, Variation
from helpers.chat import FINISH
from helpers.corpus import every_case, needs_corpus
from helpers.defects import as_recorded
from helpers.mutated import (
    ONE,
    START,
    STEMS,
    TWO,
    WHOLE,
    WORDS,
    broken_gzip,
    chat,
    gzipped,
    imported,
    in_pieces,
    made,
    reads,
    recorded,
    varied,
)
from helpers.mutation import spoilt_bytes, spoilt_values
from helpers.taped import taped

RECORDED = tuple(recorded(stem) for stem in STEMS)
CODED = tuple(gzipped(each) for each in RECORDED)
BUILT = (ONE, TWO, WHOLE, WORDS)
ODD = (
    broken_gzip(),
    taped((), framing=None),
    taped(()),
    imported(b""),
    imported(b"<html>"),
    imported(b'{"a":1}', "application/json"),
)
EXCHANGES = (*RECORDED, *CODED[::3], *BUILT, *ODD)
_STEP = 30
"""Every so many cases of the corpus are varied; each variation begins at another one."""

each_variation = pytest.mark.parametrize("variation", VARIATIONS, ids=lambda each: each.name)
each_harmless = pytest.mark.parametrize("variation", HARMLESS, ids=lambda each: each.name)
each_hostile = pytest.mark.parametrize("variation", HOSTILE, ids=lambda each: each.name)


def test_each_variation_has_a_name_of_its_own() -> None:
    names = [each.name for each in VARIATIONS]
    assert len(names) == len(set(names))
    assert [each.harmless for each in VARIATIONS] == [True] * len(HARMLESS) + [False] * len(HOSTILE)


@each_variation
def test_a_variation_says_in_one_sentence_what_the_wire_shows(variation: Variation) -> None:
    assert variation.summary.endswith(".")
    assert "\n" not in variation.summary


@pytest.mark.slow
@each_harmless
def test_a_harmless_variation_keeps_the_content(variation: Variation) -> None:
    for place, exchange in enumerate(EXCHANGES):
        _assert_says_the_same(variation, exchange, _reply(place))


@pytest.mark.slow
@needs_corpus
@each_harmless
def test_a_harmless_variation_of_a_captured_stream_keeps_the_content(variation: Variation) -> None:
    start = HARMLESS.index(variation) % _STEP
    for case in every_case()[start::_STEP]:
        exchange = as_recorded(case.exchange)
        _assert_says_the_same(variation, exchange, rebuild(exchange))


@cache
def _reply(place: int) -> Reply:
    """What one of `EXCHANGES` says."""
    return rebuild(EXCHANGES[place])


def _assert_says_the_same(variation: Variation, exchange: Exchange, before: Reply) -> None:
    changed = variation.make(exchange, SeededChoices(7))
    if changed is None:
        return
    after = rebuild(changed)
    assert reply_content(after) == reply_content(before)
    assert after.usage == before.usage or variation.name == "late-usage"
    assert [call.arguments for call in after.tool_calls] == [
        call.arguments for call in before.tool_calls
    ] or variation.name == "json-escapes"
    assert _is_consistent(changed)
    assert changed.end is None or exchange.end is None or changed.end.reason is exchange.end.reason


@pytest.mark.slow
@each_hostile
def test_a_hostile_variation_changes_the_content(variation: Variation) -> None:
    places = 0
    for place, exchange in enumerate(EXCHANGES):
        changed = variation.make(exchange, SeededChoices(7))
        if changed is not None:
            places += 1
            assert reply_content(rebuild(changed)) != reply_content(_reply(place))
            assert _is_consistent(changed)
    assert places > 10


def _is_consistent(exchange: Exchange) -> bool:
    """Whether the end tells the body, reads are in order, and chunks end within them."""
    end, body = exchange.end, exchange.body
    told = end is None or (end.bytes, end.sha256) == (len(body), hashlib.sha256(body).hexdigest())
    times = [read.t_ns for read in exchange.reads] + ([end.t_ns] if end else [])
    return (
        told
        and times == sorted(times)
        and all(
            read.data and all(0 <= bound <= len(read.data) for bound in read.boundaries or ())
            for read in exchange.reads
        )
    )


@pytest.mark.slow
@each_variation
def test_the_same_seed_makes_the_same(variation: Variation) -> None:
    for one in (*RECORDED[:3], ONE):
        assert variation.make(one, SeededChoices(5)) == variation.make(one, SeededChoices(5))


@pytest.mark.slow
def test_every_recording_can_be_varied_in_many_ways() -> None:
    for exchange in RECORDED[::3]:
        harmless = [each.name for each in HARMLESS if each.make(exchange, SeededChoices(1))]
        hostile = [each.name for each in HOSTILE if each.make(exchange, SeededChoices(1))]
        assert len(harmless) >= 15
        assert len(hostile) >= 15


@pytest.mark.slow
@given(
    st.sampled_from((*RECORDED, *CODED, *BUILT)),
    st.lists(st.sampled_from(HARMLESS), min_size=2, max_size=4, unique_by=lambda each: each.name),
    st.integers(),
)
def test_harmless_variations_of_each_other_are_harmless(
    exchange: Exchange, variations: list[Variation], seed: int
) -> None:
    changed = exchange
    for variation in variations:
        changed = variation.make(changed, SeededChoices(seed)) or changed
    assert reply_content(rebuild(changed)) == reply_content(rebuild(exchange))
    assert _is_consistent(changed)


@each_variation
def test_a_variation_takes_any_bytes(variation: Variation) -> None:
    chance = random.Random(variation.name)
    for one in (*RECORDED[::2], ONE):
        for body in (spoilt_bytes(one.body, chance), spoilt_values(one, chance)):
            spoilt = replace(one, reads=reads(body) if body else ())
            changed = variation.make(spoilt, SeededChoices(3))
            assert changed is None or _is_consistent(replace(changed, end=None))


def test_an_answer_that_was_cut_stays_cut() -> None:
    for reason in (EndReason.UPSTREAM_CLOSED, None):
        cut = taped([(10, b"data: 1\n\nda")], reason=reason)
        for variation in HARMLESS:
            changed = variation.make(cut, SeededChoices(1))
            assert changed is None or changed.cut
            assert changed is None or len(decode(changed).events) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "variation",
    [each for each in HOSTILE if not each.name.startswith(("status", "corrupt"))],
    ids=lambda each: each.name,
)
def test_every_end_has_its_place_in_a_stream_with_text_and_calls(
    variation: Variation,
) -> None:
    after = made(variation.name, recorded("openai-chat"))
    kind = variation.name.partition("-")[0]
    reasons = {
        "cut": EndReason.UPSTREAM_CLOSED,
        "reset": EndReason.UPSTREAM_RESET,
        "stall": EndReason.STOPPED,
    }
    assert after.end
    assert after.end.reason is reasons.get(kind, EndReason.COMPLETE)
    assert (rebuild(after).error is not None) is (kind == "error")


def test_in_arguments_they_are_never_whole() -> None:
    for seed in range(30):
        (call,) = rebuild(made("end-in-arguments", ONE, seed)).tool_calls
        assert call.status is CallStatus.TRUNCATED


def test_behind_a_call_it_is_whole() -> None:
    (call,) = rebuild(made("end-after-call", ONE)).tool_calls
    assert call.arguments == '{"a":"b c"}'


def test_what_says_the_same_all_the_same_is_not_a_failure() -> None:
    """The finish reason came with the last fragment: a missing [DONE] loses nothing."""
    fragments = in_pieces('{"a":1}')
    last = fragments[-1]
    choices = last["choices"]
    assert isinstance(choices, list)
    choices[0]["finish_reason"] = "tool_calls"
    together = chat(START, *fragments)
    assert varied("cut-before-end", chat(START, *in_pieces('{"a":1}'), FINISH)) is not None
    assert varied("cut-before-end", together) is None or rebuild(together).terminated


def test_answers_have_their_status() -> None:
    statuses = []
    for variation in HOSTILE:
        if variation.name.startswith("status"):
            after = made(variation.name, ONE)
            assert after.response
            statuses.append(f"status-{after.response.status}")
    names = [each.name for each in HOSTILE if each.name.startswith("status")]
    assert statuses == names


def test_a_damaged_event_loses_what_it_brought() -> None:
    for variation in [each for each in HOSTILE if each.name.startswith("corrupt")]:
        after = made(variation.name, recorded("openai-chat"))
        assert len(after.body) == len(recorded("openai-chat").body)
