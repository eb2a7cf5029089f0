"""What holds for every mutator: named as its row, in place, exact, repeatable, never raising."""

import hashlib
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.dialects import DIALECTS
from deltatape.model.exchange import Exchange
from deltatape.mutate import MUTATORS, Mutator, SeededChoices
from helpers.corpus import needs_corpus
from helpers.defects import BUILT, Row, healthy, rows, trials
from helpers.mutated import ONE, STEMS, TWO, chat, imported, in_pieces, reads, recorded
from helpers.mutation import spoilt_bytes, spoilt_values

RECORDED = {stem: recorded(stem) for stem in STEMS}
PARTS = (
    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},'
    b'{"functionCall":{}}]},"finishReason":"STOP"}]}\n\n'
)
FREE = {"type": "object", "properties": {}}
EXCHANGES = (*RECORDED.values(), ONE, TWO, chat(*in_pieces("{}"), schema=FREE), imported(PARTS))
OF_OTHERS = [row for row in rows() if not row.suspect]

each_mutator = pytest.mark.parametrize("mutator", MUTATORS, ids=lambda mutator: mutator.name)


def test_every_row_has_a_mutator_of_its_name_or_a_suspect() -> None:
    assert [row.number for row in rows()] == list(range(1, len(rows()) + 1))
    expected = {row.number: row.name for row in OF_OTHERS}
    made = {mutator.row: mutator.name for mutator in MUTATORS}
    assert made == expected, "tests/defects.yaml and the mutators differ"
    assert len(MUTATORS) == len(expected)


@each_mutator
def test_a_mutator_can_change_the_streams_of_a_dialect(mutator: Mutator) -> None:
    assert set(mutator.dialects) <= {dialect.name for dialect in DIALECTS}
    assert mutator.dialects


@each_mutator
def test_a_mutator_says_in_one_sentence_what_the_wire_shows(mutator: Mutator) -> None:
    assert mutator.summary.endswith(".")
    assert "\n" not in mutator.summary


@pytest.mark.slow
@each_mutator
def test_a_mutator_changes_something_somewhere(mutator: Mutator) -> None:
    assert [one for one in EXCHANGES if mutator.mutate(one, SeededChoices(1))]


@pytest.mark.slow
@each_mutator
def test_the_same_seed_makes_the_same(mutator: Mutator) -> None:
    for one in EXCHANGES:
        assert mutator.mutate(one, SeededChoices(5)) == mutator.mutate(one, SeededChoices(5))


@pytest.mark.slow
@each_mutator
def test_what_the_defect_does_not_concern_stays(mutator: Mutator) -> None:
    """Events keep their order and bytes but for those that are rewritten, and reads their times."""
    for one in EXCHANGES:
        made = mutator.mutate(one, SeededChoices(3))
        if made is None:
            continue
        assert made.request == one.request
        assert made.id == one.id
        assert _is_whole(made)
        for old, new in zip(decode(one).events, decode(made).events, strict=False):
            if old.data != new.data:
                break
            assert _raw(one, old.place.span) == _raw(made, new.place.span) or (
                mutator.name in {"sse-no-event-line", "sse-last-event-unterminated"}
            )


def _raw(exchange: Exchange, span: tuple[int, int]) -> bytes:
    return exchange.body[slice(*span)]


def _is_whole(exchange: Exchange) -> bool:
    """Whether the end tells the body, and boundaries are within their reads."""
    end, body = exchange.end, exchange.body
    told = end is None or (end.bytes, end.sha256) == (len(body), hashlib.sha256(body).hexdigest())
    return told and all(
        read.data and all(0 <= bound <= len(read.data) for bound in read.boundaries or ())
        for read in exchange.reads
    )


@pytest.mark.slow
@pytest.mark.parametrize("row", OF_OTHERS, ids=lambda row: row.name)
def test_a_defect_is_caught_and_a_trap_fires_no_error(row: Row) -> None:
    """Without the corpus, so that whoever adds a mutator sees it hold."""
    found = [trial for trial in trials(row) if trial.healthy.origin == BUILT]
    assert found
    if row.trap:
        assert not [trial for trial in found if trial.errors]
    elif row.codes:
        fired = [sorted({each.code for each in trial.findings}) for trial in found]
        assert any(trial.as_expected for trial in found), f"expected {row.codes}, found {fired}"


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("row", OF_OTHERS, ids=lambda row: row.name)
def test_in_captured_streams_a_trap_fires_no_error_and_a_defect_is_caught(row: Row) -> None:
    found = [trial for trial in trials(row) if trial.healthy.origin != BUILT]
    if row.trap:
        assert not [trial for trial in found if trial.errors]
    elif row.codes and found:
        assert [trial for trial in found if trial.caught]


@pytest.mark.slow
def test_there_are_healthy_streams_of_every_dialect_that_streams_arguments() -> None:
    dialects = {one.dialect for one in healthy() if one.origin == BUILT}
    streamed = {"openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse"}
    assert dialects >= streamed


@pytest.mark.slow
@given(
    st.sampled_from(EXCHANGES),
    st.lists(st.sampled_from(MUTATORS), min_size=1, max_size=4),
    st.integers(),
)
def test_any_mutator_takes_what_any_other_has_made(
    exchange: Exchange, mutators: list[Mutator], seed: int
) -> None:
    for mutator in mutators:
        exchange = mutator.mutate(exchange, SeededChoices(seed)) or exchange
    assert _is_whole(exchange)


@each_mutator
def test_a_mutator_takes_any_bytes(mutator: Mutator) -> None:
    chance = random.Random(mutator.row)
    for one in EXCHANGES:
        for body in (spoilt_bytes(one.body, chance), spoilt_values(one, chance)):
            spoilt = replace(one, reads=reads(body) if body else ())
            made = mutator.mutate(spoilt, SeededChoices(mutator.row))
            assert made is None or _is_whole(made)
