from dataclasses import replace
from typing import cast

import pytest

from deltatape.diagnose.exchange_parts import Part, value_of
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, MaskedCredential, Note
from deltatape.model.websocket import Side
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import USER, call, timed
from helpers.responses_socket import call as called
from helpers.responses_socket import question
from helpers.taped import taped
from helpers.websocket import ping, socket

SECRET = MaskedCredential(length=4, hash="0a0a0a0a")
OTHER = MaskedCredential(length=4, hash="0b0b0b0b")


def values(exchange: Exchange) -> dict[Part, object]:
    analysis = analyse(exchange)
    return {part: value_of(part, analysis) for part in Part}


def exchange() -> Exchange:
    found = timed((0.01, choice({"content": "hi"})), (0.02, FINISH), request={"messages": [USER]})
    return replace(found, request=replace(found.request, headers=((b"A", SECRET),)))


def test_every_part_has_a_value() -> None:
    found = values(exchange())
    assert found[Part.URL] == ("POST", "https://api.openai.com/v1/chat/completions")
    assert found[Part.REQUEST_HEADERS] == [(b"a", b"****")]
    assert found[Part.RESPONSE_HEADERS] == [(b"content-type", b"text/event-stream")]
    assert found[Part.EVENT_TIMES] == [0, 10_000_000]
    assert found[Part.MASKED] == ["0a0a0a0a"]
    assert found[Part.REPLY] == [("hi", "", [])]
    assert [part for part in Part if not found[part]] == [
        *(Part.TOOLS, Part.SOCKET, Part.CODED, Part.TRAILERS, Part.NOTES)
    ]


def test_a_websocket_has_messages_without_control_frames() -> None:
    sent = values(socket(question(), *called(1), (Side.SERVER, ping())))[Part.SOCKET]
    assert [side for side, _, _ in cast("list[tuple[Side, int, bytes]]", sent)] == [
        *(Side.CLIENT, *[Side.SERVER] * 7)
    ]


def test_values_differ_only_in_the_part_that_was_changed() -> None:
    before = exchange()
    request = before.request
    assert before.response is not None
    changed = {
        Part.REASON: replace(before, response=replace(before.response, reason=b"Fine")),
        Part.HTTP: replace(before, response=replace(before.response, http="1.0")),
        Part.MASKED: replace(before, request=replace(request, headers=((b"A", OTHER),))),
        Part.NOTES: replace(before, notes=(Note(t_ns=0, text="x"),)),
        Part.TRAILERS: replace(before, trailers=((b"A", b"1"),)),
        Part.ENDING: replace(before, end=None),
        Part.FIELD_ORDER: replace(before, request=replace(request, headers=((b"a", SECRET),))),
    }
    old = values(before)
    for part, after in changed.items():
        new = values(after)
        assert [each for each in Part if old[each] != new[each]] == [part]


def test_whoever_gives_the_result_of_a_call_is_the_tool() -> None:
    result = {"role": "tool", "tool_call_id": "c1", "content": "8 C"}
    found = timed((0.01, FINISH), request={"messages": [USER, result]})
    assert [said[0] for said in values(found)[Part.CONVERSATION]] == ["user", "tool"]  # type: ignore[attr-defined]


def test_an_exchange_without_a_response_has_no_value_of_it() -> None:
    found = values(taped([], framing=None))
    assert not found[Part.STATUS]
    assert not found[Part.REASON]
    assert not found[Part.RESPONSE_HEADERS]


@pytest.mark.parametrize("arguments", ['{"a":1}', '{"a": 1}'])
def test_calls_are_compared_exactly(arguments: str) -> None:
    body = sse(*call(arguments=arguments), FINISH)
    assert values(taped([(1, body)]))[Part.REPLY] == [("", "", [("c1", "get", arguments)])]
