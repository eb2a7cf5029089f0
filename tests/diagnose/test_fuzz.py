"""Any bytes in, no exception out: every dialect on spoilt streams, all rules included."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.dialects import DIALECTS
from deltatape.model.exchange import Exchange, Read
from deltatape.render.show import calls_json, events_json
from deltatape.store.reader import open_tape
from helpers.corpus import every_case, needs_corpus
from helpers.mutation import spoilt_bytes, spoilt_values

TAPES = sorted((Path(__file__).parents[2] / "recordings" / "dialects").glob("*.tape"))
RECORDED = {path.stem: next(iter(open_tape(path))) for path in TAPES}
TIMES = 40
TIMES_EACH = 2
PATHS = [
    *("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/completions", "/api/chat"),
    *("/v1beta/models/m:streamGenerateContent", "/v1beta/interactions", "/v2/chat", "/x"),
    *("/model/m/converse-stream", "/model/m/invoke-with-response-stream"),
]
MEDIA = [
    *("text/event-stream", "application/json", "application/x-ndjson", ""),
    "application/vnd.amazon.eventstream",
]


def survives(exchange: Exchange, body: bytes) -> None:
    """Everything that looks at an exchange takes it, and no rule gives up."""
    reads = (Read(t_ns=0, data=body, boundaries=None, line=None),) if body else ()
    analysis = analyse(replace(exchange, reads=reads))
    codes = {finding.code for finding in check_analysis(analysis)}
    assert "X001" not in codes
    digest = digest_analysis(analysis)
    assert not [one for one in check_conversation([digest, digest]) if one.code == "X001"]
    assert events_json(analysis)
    assert calls_json([analysis])


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_a_spoilt_recording_is_read_to_its_end(name: str) -> None:
    chance = random.Random(name)
    exchange = RECORDED[name]
    for _ in range(TIMES):
        survives(exchange, spoilt_bytes(exchange.body, chance))
        survives(exchange, spoilt_values(exchange, chance))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_cut_anywhere_is_read_to_its_end(name: str) -> None:
    exchange = RECORDED[name]
    for end in range(0, len(exchange.body), 23):
        survives(exchange, exchange.body[:end])


@pytest.mark.slow
@needs_corpus
def test_a_spoilt_captured_stream_is_read_to_its_end(subtests: pytest.Subtests) -> None:
    for case in every_case():
        with subtests.test(case.id):
            chance = random.Random(case.id)
            for _ in range(TIMES_EACH):
                survives(case.exchange, spoilt_bytes(case.body, chance))
                survives(case.exchange, spoilt_values(case.exchange, chance))


@pytest.mark.slow
@pytest.mark.parametrize(
    "dialect",
    [each for each in DIALECTS if any(stem.startswith(each.name) for stem in RECORDED)],
    ids=lambda dialect: dialect.name,
)
def test_a_request_of_any_shape_is_read(dialect: object) -> None:
    name = next(each.name for each in DIALECTS if each is dialect)
    exchange = next(each for stem, each in RECORDED.items() if stem.startswith(name))
    chance = random.Random(name)
    for _ in range(TIMES):
        spoilt = Exchange.from_body(exchange.request.body, content_type="", url="http://h/x")
        for body in (
            spoilt_bytes(exchange.request.body, chance),
            spoilt_values(spoilt, chance),
        ):
            survives(replace(exchange, request=replace(exchange.request, body=body)), exchange.body)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.binary(max_size=400), st.sampled_from(PATHS), st.sampled_from(MEDIA))
def test_random_bytes_are_read_to_their_end(body: bytes, path: str, media: str) -> None:
    made = Exchange.from_body(body, content_type=media, url=f"http://h{path}", request=body)
    survives(made, body)


BOMB = 30_000


@pytest.mark.slow
@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("unit", [b"[", b"{", b'{"a":', b"\n", b"data:\n\n", b'"', b"0", b"{}\n"])
def test_bombs_of_nesting_and_size_are_read_to_their_end(unit: bytes, media: str) -> None:
    body = unit * (BOMB // len(unit))
    for framed in (body, b"data: " + body + b"\n\n", b'[{"a":' + body):
        made = Exchange.from_body(framed, content_type=media, url="http://h/v1/messages")
        survives(made, framed)
