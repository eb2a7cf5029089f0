"""The documented client over captured streams: it must be the reference, or all are accused."""

import random

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.dialects import DIALECTS
from deltatape.model.exchange import Exchange
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import Symptom
from deltatape.suspects import delivered, matrix, suspects_of
from deltatape.suspects.delivered import FAMILIES
from deltatape.suspects.search import equal
from deltatape.suspects.simulation import ClientRunner
from helpers.corpus import Case, cases, needs_corpus
from helpers.mutation import spoilt_bytes, spoilt_values

_SEED = 6


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize(
    "dialect", [each.name for each in DIALECTS if each.traits.shape in FAMILIES]
)
def test_the_documented_client_is_the_reference(dialect: str) -> None:
    found = [*cases(dialect)]
    assert found
    for case in found:
        analysis = analyse(case.exchange)
        stream = delivered(case.exchange, analysis.stream, analysis.reply, analysis.request)
        if stream.family is not None:
            runner = ClientRunner(stream)
            assert equal(runner.documented().calls, stream.calls, runner.ids), case.id


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize(
    "dialect", [each.name for each in DIALECTS if each.traits.shape in FAMILIES]
)
def test_no_application_that_repeats_what_came_is_suspected(dialect: str) -> None:
    for case in cases(dialect):
        analysis = analyse(case.exchange)
        stream = delivered(case.exchange, analysis.stream, analysis.reply, analysis.request)
        assert suspects_of(stream, Symptom(calls=stream.calls)) == (), case.id


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize(
    "dialect", [each.name for each in DIALECTS if each.traits.shape in FAMILIES]
)
def test_spoilt_streams_raise_nothing(dialect: str) -> None:
    chance = random.Random(_SEED)
    found = [*cases(dialect)]
    for case in chance.sample(found, min(len(found), 3)):
        for body in (spoilt_bytes(case.body, chance), spoilt_values(case.exchange, chance)):
            _try(case, body)


def _try(case: Case, body: bytes) -> None:
    exchange = Exchange.from_body(
        body,
        content_type=_media(case),
        url=case.exchange.request.upstream + case.exchange.request.path,
    )
    analysis = analyse(exchange)
    stream = delivered(exchange, analysis.stream, analysis.reply, analysis.request)
    matrix(stream)
    other = RepeatedCall(id="x", name="y", arguments="{")
    suspects_of(stream, Symptom(calls=(other,), errors=("Unexpected end of JSON input",)))


def _media(case: Case) -> str:
    response = case.exchange.response
    assert response
    return dict(response.headers)[b"content-type"].decode()  # type: ignore[union-attr]
