"""What holds for every variation: what it says stays or fails, exact, repeatable, never raising."""

import hashlib
import random
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.reply import Reply
from deltatape.mutate import SeededChoices
from deltatape.vary._base import said
from deltatape.vary.variation import HARMLESS, HOSTILE, VARIATIONS, Variation
from helpers.corpus import every_case, needs_corpus
from helpers.defects import as_recorded
from helpers.mutated import ONE, TWO, WHOLE, WORDS, pasted, reads
from helpers.mutation import spoilt_bytes, spoilt_values
from helpers.taped import taped
from helpers.varied import STEMS, broken_gzip, gzipped, of

RECORDED = tuple(of(stem) for stem in STEMS)
CODED = tuple(gzipped(each) for each in RECORDED)
BUILT = (ONE, TWO, WHOLE, WORDS)
ODD = (
    broken_gzip(),
    taped((), framing=None),
    taped(()),
    pasted(b""),
    pasted(b"<html>"),
    pasted(b'{"a":1}', "application/json"),
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


@each_harmless
def test_what_a_harmless_variation_says_stays(variation: Variation) -> None:
    for place, exchange in enumerate(EXCHANGES):
        _assert_says_the_same(variation, exchange, _reply(place))


@needs_corpus
@each_harmless
def test_what_captured_streams_say_stays(variation: Variation) -> None:
    start = HARMLESS.index(variation) % _STEP
    for case in every_case()[start::_STEP]:
        exchange = as_recorded(case.exchange)
        _assert_says_the_same(variation, exchange, rebuild(exchange))


@cache
def _reply(place: int) -> Reply:
    """What one of `EXCHANGES` says."""
    return rebuild(EXCHANGES[place])


def _assert_says_the_same(variation: Variation, exchange: Exchange, before: Reply) -> None:
    made = variation.make(exchange, SeededChoices(7))
    if made is None:
        return
    after = rebuild(made)
    assert said(after) == said(before)
    assert after.usage == before.usage or variation.name == "late-usage"
    assert [call.arguments for call in after.tool_calls] == [
        call.arguments for call in before.tool_calls
    ] or variation.name == "json-escapes"
    assert _is_consistent(made)
    assert made.end is None or exchange.end is None or made.end.reason is exchange.end.reason


@each_hostile
def test_what_fails_says_something_else(variation: Variation) -> None:
    places = 0
    for place, exchange in enumerate(EXCHANGES):
        made = variation.make(exchange, SeededChoices(7))
        if made is not None:
            places += 1
            assert said(rebuild(made)) != said(_reply(place))
            assert _is_consistent(made)
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


@each_variation
def test_the_same_seed_makes_the_same(variation: Variation) -> None:
    for one in (*RECORDED[:3], ONE):
        assert variation.make(one, SeededChoices(5)) == variation.make(one, SeededChoices(5))


def test_every_recording_can_be_varied_in_many_ways() -> None:
    for exchange in RECORDED[::3]:
        harmless = [each.name for each in HARMLESS if each.make(exchange, SeededChoices(1))]
        hostile = [each.name for each in HOSTILE if each.make(exchange, SeededChoices(1))]
        assert len(harmless) >= 15
        assert len(hostile) >= 15


@given(
    st.sampled_from((*RECORDED, *CODED, *BUILT)),
    st.lists(st.sampled_from(HARMLESS), min_size=2, max_size=4),
    st.integers(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_harmless_variations_of_each_other_are_harmless(
    exchange: Exchange, variations: list[Variation], seed: int
) -> None:
    made = exchange
    for variation in variations:
        made = variation.make(made, SeededChoices(seed)) or made
    assert said(rebuild(made)) == said(rebuild(exchange))
    assert _is_consistent(made)


@each_variation
def test_a_variation_takes_any_bytes(variation: Variation) -> None:
    chance = random.Random(variation.name)
    for one in (*RECORDED[::2], ONE):
        for body in (spoilt_bytes(one.body, chance), spoilt_values(one, chance)):
            spoilt = replace(one, reads=reads(body) if body else ())
            made = variation.make(spoilt, SeededChoices(3))
            assert made is None or _is_consistent(replace(made, end=None))


def test_an_answer_that_was_cut_stays_cut() -> None:
    for reason in (EndReason.UPSTREAM_CLOSED, None):
        cut = taped([(10, b"data: 1\n\nda")], reason=reason)
        for variation in HARMLESS:
            made = variation.make(cut, SeededChoices(1))
            assert made is None or made.cut
            assert made is None or len(decode(made).events) == 1
