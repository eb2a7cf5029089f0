from dataclasses import replace

import pytest

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Read
from deltatape.model.reply import CallStatus, Reply
from helpers.splits import cuttings, each_alone
from helpers.vectors import VECTORS, Vector

STATUS_CODES = {
    CallStatus.TRUNCATED: {"T001", "T003"},
    CallStatus.EMPTY_SUSPECT: {"T001"},
    CallStatus.DOUBLE_ENCODED: {"T006"},
}
EACH = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)


def exchange(pieces: list[bytes]) -> Exchange:
    whole = Exchange.from_body(
        b"", content_type="text/event-stream", url="http://127.0.0.1/v1/chat/completions"
    )
    reads = (Read(t_ns=0, data=piece, boundaries=None, line=None) for piece in pieces)
    return replace(whole, reads=tuple(reads))


def evidence(reply: Reply) -> set[str]:
    """The finding codes that a reply shows, by observation, status, finish reason or error."""
    found = {seen.code for seen in reply.observations}
    for call in reply.tool_calls:
        found |= STATUS_CODES.get(call.status, set())
    expected = "tool_calls" if reply.tool_calls else "stop"
    if reply.finish_reason_raw not in (expected, "function_call"):
        found |= {"S002", "S003"}
    return found if reply.terminated else found | {"S001"}


@EACH
def test_the_calls_of_every_vector_are_the_reference_under_any_cutting(vector: Vector) -> None:
    first = analyse(exchange([vector.body]))
    found = [(call.id, call.name, call.arguments) for call in first.reply.tool_calls]
    assert tuple(found) == vector.calls
    assert analyse(exchange(each_alone(vector.body))).reply == first.reply
    for pieces in cuttings(vector.body):
        # The reply depends on nothing but the request and this.
        assert decode(exchange(pieces)) == first.stream


@EACH
def test_a_defective_vector_shows_its_code_and_the_others_show_no_repair(vector: Vector) -> None:
    reply = analyse(exchange([vector.body])).reply
    if vector.kind == "defective":
        assert evidence(reply) & vector.codes
    else:
        assert reply.observations == ()
