import json
from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import analyse, rebuild
from deltatape.model.exchange import Exchange, Read
from deltatape.model.finding import Severity
from helpers.corpus import cases, needs_corpus
from helpers.responses import URL
from helpers.splits import cuttings, each_alone
from helpers.vectors import RESPONSES, Vector

EACH = pytest.mark.parametrize("vector", RESPONSES, ids=lambda vector: vector.name)
AT_LEAST = 20
"""Captured streams with calls of functions."""


def exchange(pieces: list[bytes]) -> Exchange:
    whole = Exchange.from_body(b"", content_type="text/event-stream", url=URL)
    reads = (Read(t_ns=0, data=piece, boundaries=None, line=None) for piece in pieces)
    return replace(whole, reads=tuple(reads))


def test_there_are_nineteen_vectors() -> None:
    assert len(RESPONSES) == 19


@EACH
def test_the_calls_of_every_vector_are_the_reference_under_any_cutting(vector: Vector) -> None:
    first = analyse(exchange([vector.body]))
    found = [(call.id, call.name, call.arguments) for call in first.reply.tool_calls]
    assert tuple(found) == vector.calls
    assert first.reply.tool_calls[0].status == vector.status
    assert first.reply.dialect == "openai-responses"
    assert analyse(exchange(each_alone(vector.body))).reply == first.reply
    for pieces in cuttings(vector.body):
        # The reply depends on nothing but the request and this.
        assert decode(exchange(pieces)) == first.stream


@EACH
def test_the_findings_of_every_vector_are_those_of_its_kind(vector: Vector) -> None:
    found = check(Exchange.from_body(vector.body, content_type="text/event-stream", url=URL))
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
