import json

import pytest

from deltatape.mutate._units import BinaryMessage, is_array, is_sse, kinds, units_of
from deltatape.wire.aws_eventstream import EventStreamDecoder
from deltatape.wire.json_edit import at
from helpers.eventstream import message

SSE = b': hi\n\nevent: a\ndata:{"x": 1}\nid: 7\n\nretry: 1\ndata: [DONE]\r\n\r\n'
HEADERS = {":message-type": "event", ":event-type": "chunk"}


def test_a_server_sent_event_is_rewritten_in_its_data_alone() -> None:
    first, last = units_of(SSE)
    assert (first.text, first.type, first.value) == ('{"x": 1}', "a", {"x": 1})
    first.put(("x",), "2")
    assert first.on_wire() == b'event: a\ndata:{"x": 2}\nid: 7\n\n'
    assert last.on_wire() == b"retry: 1\ndata: [DONE]\r\n\r\n"


def test_an_event_can_be_renamed_where_it_has_a_name() -> None:
    first, last = units_of(SSE)
    first.rename("b")
    last.rename("b")
    assert first.on_wire() == b'event: b\ndata:{"x": 1}\nid: 7\n\n'
    assert last.on_wire() == b"retry: 1\ndata: [DONE]\r\n\r\n"
    first.unnamed()
    assert first.on_wire() == b'data:{"x": 1}\nid: 7\n\n'


def test_data_in_several_lines_or_without_utf_8_is_let_alone() -> None:
    assert units_of(b"data: 1\ndata: 2\n\ndata: \xff\n\n") == []


def test_a_line_and_an_element_are_rewritten() -> None:
    for body in (b'{"x":1} \n{"x":2}\n', b'[{"x":1},\r\n{"x":2}]', b'{"x":1}\n{"x":2}'):
        units = units_of(body)
        assert [at(unit.value, "x") for unit in units] == [1, 2]
        units[1].put(("x",), "3")
        assert units[1].on_wire().strip() == b'{"x":3}'


def test_a_message_is_sealed_anew() -> None:
    body = message(HEADERS, b'{"x":1}')
    (unit,) = units_of(body)
    assert unit.on_wire() == body
    unit.put(("x",), "22")
    unit.rename("other")
    assert unit.on_wire() == message(HEADERS, b'{"x":22}')


def test_what_a_message_carries_is_rewritten_in_its_base64() -> None:
    body = message(HEADERS, b'{"bytes":"eyJ4IjoxfQ==","p":"ab"}')
    (unit,) = units_of(body)
    assert unit.value == {"x": 1}
    other = unit.like()
    other.put(("x",), "2")
    (event,) = EventStreamDecoder().feed(other.on_wire(), 0, None)
    assert json.loads(event.data) == {"bytes": "eyJ4IjoyfQ==", "p": "ab"}


@pytest.mark.parametrize("carried", [b"eyJ4Ijo", b"eyJ4IjoxfR=="])
def test_base64_that_would_not_come_out_the_same_is_let_alone(carried: bytes) -> None:
    payload = b'{"bytes":"%b"}' % carried
    (unit,) = units_of(message(HEADERS, payload))
    assert unit.text.encode() == payload


def test_what_is_no_json_has_no_value_and_is_not_edited() -> None:
    unit = units_of(SSE)[1]
    unit.put(("x",), "1")
    unit.drop(("x",))
    unit.append(("x",), "1")
    assert (unit.value, unit.text, unit.source(("x",))) == (None, "[DONE]", "")


def test_a_string_is_spelled_like_the_event_around_it() -> None:
    plain, other = units_of(b'data: {"x":"a"}\n\ndata: {"x":"\xc3\xa9"}\n\n')
    for unit in (plain, other):
        unit.put_text(("x",), "ö")
    assert (plain.text, other.text) == ('{"x":"\\u00f6"}', '{"x":"ö"}')


def test_an_element_is_added_to_an_array() -> None:
    (unit,) = units_of(b'data: {"x":[1]}\n\n')
    unit.append(("x",), "2")
    assert unit.text == '{"x":[1,2]}'


def test_bytes_that_are_no_utf_8_stay_as_they_are() -> None:
    (unit, _) = units_of(b'{"x":"\xff","y":1}\n{}\n')
    unit.put(("y",), "2")
    assert unit.on_wire() == b'{"x":"\xff","y":2}\n'


def test_the_framing_is_told_by_the_first_byte() -> None:
    assert is_array(b" [1]")
    assert is_sse(SSE)
    assert not is_sse(message(HEADERS, b""))
    assert isinstance(units_of(message(HEADERS, b"{}"))[0], BinaryMessage)


def test_units_are_found_by_the_type_in_their_data() -> None:
    units = units_of(b'data: {"type":"a"}\n\ndata: [1]\n\ndata: {"type":2}\n\n')
    assert kinds(units) == {"a": units[:1]}


def test_a_unit_tells_where_its_data_is() -> None:
    (unit,) = units_of(b"event: x\ndata: 12\n\n")
    assert unit.raw[slice(*unit.data_span)] == b"12"
