"""Every vector of chat completions and responses, against the reference and under any cutting."""

import json
from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import analyse, rebuild
from deltatape.model.exchange import Exchange, Read
from deltatape.model.finding import Severity
from deltatape.model.reply import CallStatus, Reply
from helpers import chat, responses
from helpers.corpus import cases, needs_corpus
from helpers.splits import cuttings, each_alone
from helpers.vectors import RESPONSES, VECTORS, Vector

STATUS_CODES = {
    CallStatus.TRUNCATED: {"T001", "T003"},
    CallStatus.EMPTY_SUSPECT: {"T001"},
    CallStatus.DOUBLE_ENCODED: {"T006"},
}
AT_LEAST = 20
"""Captured streams with calls of functions."""


def exchange(pieces: list[bytes], url: str) -> Exchange:
    empty = Exchange.from_body(b"", content_type="text/event-stream", url=url)
    reads = (Read(t_ns=0, data=piece, boundaries=None, line=None) for piece in pieces)
    return replace(empty, reads=tuple(reads))


def evidence(reply: Reply) -> set[str]:
    """The finding codes that a reply shows, by observation, status, finish reason or error."""
    found = {seen.code for seen in reply.observations}
    for call in reply.tool_calls:
        found |= STATUS_CODES.get(call.status, set())
    expected = "tool_calls" if reply.tool_calls else "stop"
    if reply.finish_reason_raw not in (expected, "function_call"):
        found |= {"S002", "S003"}
    return found if reply.terminated else found | {"S001"}


def test_there_are_nineteen_vectors_of_responses() -> None:
    assert len(RESPONSES) == 19


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vector", "url", "dialect"),
    [
        *((vector, chat.URL, None) for vector in VECTORS),
        *((vector, responses.URL, "openai-responses") for vector in RESPONSES),
    ],
    ids=lambda value: value.name if isinstance(value, Vector) else "",
)
def test_the_calls_of_every_vector_are_the_reference_under_any_cutting(
    vector: Vector, url: str, dialect: str | None
) -> None:
    first = analyse(exchange([vector.body], url))
    found = [(call.id, call.name, call.arguments) for call in first.reply.tool_calls]
    assert tuple(found) == vector.calls
    if dialect is not None:
        assert first.reply.tool_calls[0].status == vector.status
        assert first.reply.dialect == dialect
    assert analyse(exchange(each_alone(vector.body), url)).reply == first.reply
    for pieces in cuttings(vector.body):
        # The reply depends on nothing but the request and this.
        assert decode(exchange(pieces, url)) == first.stream


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_a_defective_vector_shows_its_code_and_the_others_show_no_repair(vector: Vector) -> None:
    reply = analyse(exchange([vector.body], chat.URL)).reply
    if vector.kind == "defective":
        assert evidence(reply) & vector.codes
    else:
        assert reply.observations == ()


@pytest.mark.parametrize("vector", RESPONSES, ids=lambda vector: vector.name)
def test_the_findings_of_every_vector_are_those_of_its_kind(vector: Vector) -> None:
    found = check(exchange([vector.body], responses.URL))
    if vector.kind == "defective":
        assert {finding.code for finding in found} & vector.codes
    elif vector.kind == "trap":
        assert not [one for one in found if one.severity is Severity.ERROR]
    else:
        assert not found


def arguments_at(body: bytes, kind: str) -> list[object]:
    """What a client reads that takes the arguments of functions from events of that `kind`."""
    found = []
    for line in body.decode().splitlines():
        event = json.loads(line[5:]) if line.startswith("data: {") else {}
        if event.get("type") == kind and event["item"]["type"] == "function_call":
            found.append(event["item"]["arguments"])
    return found


@pytest.mark.slow
@needs_corpus
def test_arguments_taken_at_output_item_added_are_empty_on_real_streams() -> None:
    wrong = 0
    for case in cases("openai-responses"):
        if case.raised:
            continue
        calls = rebuild(case.exchange).tool_calls
        truth = [call.arguments for call in calls if call.kind == "function"]
        if not truth:
            continue
        early = arguments_at(case.body, "response.output_item.added")
        assert early == [""] * len(truth), case.id
        assert "" not in truth, case.id
        assert arguments_at(case.body, "response.output_item.done") == truth, case.id
        wrong += 1
    assert wrong >= AT_LEAST
