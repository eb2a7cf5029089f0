"""Every captured stream of every dialect, against what the provider's own SDK made of it."""

import random
from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.dialects import DIALECTS
from deltatape.model.exchange import Read
from helpers.corpus import Case, differences, every_case, left_out, needs_corpus, rules
from helpers.hints import claimants
from helpers.splits import cut

NAMES = sorted({case.dialect for case in every_case()})

pytestmark = needs_corpus


@pytest.mark.slow
def test_a_captured_stream_is_rebuilt_as_the_vendors_sdk_does(subtests: pytest.Subtests) -> None:
    for case in every_case():
        with subtests.test(case.id):
            told = rules(case.dialect)
            found = {(case.id, aspect) for aspect in differences(case, analyse(case.exchange))}
            assert found == {key for key in told.different if key[0] == case.id}
            assert bool(case.raised) == (case.id in told.raised)


@pytest.mark.slow
def test_a_captured_stream_is_of_its_dialect_and_no_other_claims_it(
    subtests: pytest.Subtests,
) -> None:
    for case in every_case():
        with subtests.test(case.id):
            analysis = analyse(case.exchange)
            assert analysis.reply.dialect == case.dialect
            events = analysis.stream.events
            for seen in (events[:4], events):
                others = claimants(case.exchange, analysis.stream.format, seen)
                assert others in ([case.dialect], [])


@pytest.mark.slow
def test_a_captured_stream_is_rebuilt_the_same_from_any_reads(subtests: pytest.Subtests) -> None:
    for case in every_case():
        with subtests.test(case.id):
            rebuilds_the_same_from_any_reads(case)


def rebuilds_the_same_from_any_reads(case: Case) -> None:
    chance = random.Random(case.id)
    whole = analyse(case.exchange)
    for size in (1, 40):
        at = chance.sample(range(1, len(case.body)), min(size, len(case.body) - 1))
        reads = tuple(
            Read(t_ns=0, data=piece, boundaries=None, line=None) for piece in cut(case.body, at)
        )
        again = analyse(replace(case.exchange, reads=reads))
        assert (again.reply, again.stream) == (whole.reply, whole.stream)


@pytest.mark.parametrize("name", NAMES)
def test_rules_are_about_streams_that_exist(name: str) -> None:
    told = rules(name)
    streams = {case.id for case in every_case() if case.dialect == name}
    assert streams >= {*told.raised, *(stream for stream, _ in told.different)}


def test_the_corpus_is_of_known_dialects_and_little_is_left_out() -> None:
    assert set(NAMES) <= {dialect.name for dialect in DIALECTS}
    assert len(left_out()) <= len(every_case()) / 20
