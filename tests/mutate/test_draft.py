import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import DeliveryProgress, EndReason, Exchange, Framing, Read
from deltatape.mutate._draft import (
    BinaryMessage,
    BodyEdit,
    MutableExchange,
    OffsetMap,
    edited,
    is_array,
    is_sse,
    narrowed,
    tidy,
    units_of,
)
from deltatape.wire.aws_eventstream import EventStreamDecoder
from deltatape.wire.json_edit import at
from helpers.eventstream import message
from helpers.mutated import ONE, STEMS, draft_of, imported, reads, recorded
from helpers.taped import taped


def result(made: MutableExchange) -> Exchange:
    """What a draft that has changes comes to."""
    found = made.result()
    assert found is not None
    return found


@pytest.mark.parametrize("stem", STEMS)
def test_what_is_not_changed_is_not_a_result(stem: str) -> None:
    assert draft_of(recorded(stem)).result() is None


def test_a_coded_body_and_none_at_all_cannot_be_changed() -> None:
    headers = ((b"Content-Encoding", b"gzip"),)
    assert MutableExchange.of(taped(headers=headers)) is None
    assert MutableExchange.of(taped(headers=((b"content-encoding", b"identity"),)))
    assert MutableExchange.of(taped(framing=None, reads=(), boundaries=[(1,)][:0])) is None
    assert MutableExchange.of(replace(imported(b"data: 1\n\n"), response=None))


@given(st.sampled_from(STEMS), st.data())
def test_a_changed_event_leaves_all_others_and_their_reads_as_they_were(
    stem: str, data: st.DataObject
) -> None:
    before = recorded(stem)
    made = draft_of(before)
    place = data.draw(st.integers(0, len(made.units) - 1))
    unit = made.units[place]
    unit.text = '{"new":1}'
    after = result(made)
    size = len(unit.raw)
    start = unit.start or 0
    rest = len(before.body) - start - size
    assert after.body[:start] == before.body[:start]
    assert after.body[len(after.body) - rest :] == before.body[start + size :]
    events = zip(decode(before).events, decode(after).events, strict=True)
    assert [number for number, (old, new) in enumerate(events) if old.data != new.data] == [place]
    touched = {read.t_ns for read in _holding(before, start, start + size)}
    assert [read for read in after.reads if read.t_ns not in touched] == [
        read for read in before.reads if read.t_ns not in touched
    ]


def _holding(exchange: Exchange, start: int, end: int) -> list[Read]:
    found, at = [], 0
    for read in exchange.reads:
        if at < end and at + len(read.data) > start:
            found.append(read)
        at += len(read.data)
    return found


@pytest.mark.parametrize("stem", STEMS)
def test_the_end_tells_the_new_body(stem: str) -> None:
    made = draft_of(recorded(stem))
    made.units[-1].removed = True
    after = result(made)
    assert after.end
    assert after.end.bytes == len(after.body)
    assert after.end.sha256 == hashlib.sha256(after.body).hexdigest()
    assert [event.data for event in decode(after).events] == [
        event.data for event in decode(recorded(stem)).events[:-1]
    ]


def test_a_length_in_the_head_is_that_of_the_new_body() -> None:
    headers = ((b"Content-Length", b"9"), (b"x", b"9"))
    before = taped([(1, b"data: 1\n\n")], headers=headers, framing=Framing.LENGTH)
    made = draft_of(before)
    made.units[0].text = "12"
    after = result(made)
    assert after.response
    assert after.response.headers == ((b"Content-Length", b"10"), (b"x", b"9"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: 1\n\ndata: 2\n\n", b"data: 0\n\ndata: 1\n\ndata: 3\n\ndata: 2\n\n"),
        (b'["1",\r\n"2"]', b'[0,"1",3,\r\n"2"]'),
        (b"{}\n{}\n", b"0\n{}\n3\n{}\n"),
    ],
)
def test_events_are_added_in_the_framing_of_the_body(body: bytes, expected: bytes) -> None:
    made = draft_of(body)
    first = made.units[0]
    before, after, gone = first.like(), first.like(), first.like()
    before.text, after.text = "0", "3"
    gone.removed = True
    made.add_before(first, before)
    made.add_after(first, after, gone)
    assert result(made).body == expected


@pytest.mark.parametrize(
    ("place", "expected"), [(0, b"[2,\n3 ]"), (1, b"[1, 3 ]"), (2, b"[1, 2 ]")]
)
def test_an_element_goes_with_its_comma(place: int, expected: bytes) -> None:
    made = draft_of(b"[{}, {},\n{} ]")
    for number, unit in enumerate(made.units):
        unit.text = str(number + 1)
    made.units[place].removed = True
    assert result(made).body == expected


def test_the_only_element_goes_alone() -> None:
    made = draft_of(b"[{}]")
    made.units[0].removed = True
    assert result(made).body == b"[]"


def test_a_body_is_cut_behind_an_event_and_its_reads_are_gone() -> None:
    pieces = b"data: 1\n\nda", b"ta: 2\n\n", b"data: 3\n\n"
    before = replace(ONE, reads=reads(*pieces), delivered=(DeliveryProgress(t_ns=1, bytes=20),))
    made = draft_of(before)
    made.cut_after(made.units[0], reason=EndReason.UPSTREAM_RESET)
    after = result(made)
    assert [read.data for read in after.reads] == [b"data: 1\n\n"]
    assert after.delivered[0].bytes == len(b"data: 1\n\n")
    assert after.end
    assert before.end
    assert after.end.reason is EndReason.UPSTREAM_RESET
    assert after.end.t_ns == before.end.t_ns - 2 * 10**9


def test_a_new_last_event_stands_where_the_body_is_cut() -> None:
    made = draft_of(b"data: 1\n\ndata: 2\n\n")
    new = made.units[0].like()
    new.text = "3"
    made.cut_after(made.units[0])
    made.add_after(made.units[0], new)
    assert result(made).body == b"data: 1\n\ndata: 3\n\n"


def test_an_exchange_without_a_head_has_none_afterwards() -> None:
    made = draft_of(replace(ONE, response=None))
    made.units[0].removed = True
    assert result(made).response is None


def test_reads_can_come_at_other_times() -> None:
    before = replace(ONE, reads=reads(b"data: 1\n\n", b"data: 2\n\n"))
    made = draft_of(before)
    made.retime(lambda read: read.t_ns * 2 + 5)
    after = result(made)
    assert [read.t_ns for read in after.reads] == [5, 2 * 10**9 + 5]
    assert after.body == before.body


def test_a_body_of_which_nothing_is_left_ends_all_the_same() -> None:
    made = draft_of(replace(ONE, reads=reads(b"data: 1\n\n")))
    made.units[0].removed = True
    after = result(made)
    assert after.reads == ()
    assert after.end
    assert after.end.bytes == 0


def test_the_body_behind_its_last_event_can_be_left_out() -> None:
    made = draft_of(b"data: 1\n\ndata: 2\n\n: bye\n")
    assert made.is_sse
    assert made.tail() == b"data: 2\n\n: bye\n"
    made.shorten(6)
    assert result(made).body == b"data: 1\n\ndata: 2\n\n"


def test_elements_at_the_end_of_an_array_go_with_their_commas() -> None:
    for gone, left in (((1, 2), b"[1]"), ((0, 1), b"[3]"), ((0, 1, 2), b"[]"), ((2,), b"[1, 2]")):
        made = draft_of(b"[1, 2, 3]")
        for place in gone:
            made.units[place].removed = True
        assert result(made).body == left


def read(data: bytes, **others: object) -> Read:
    """A read of `data`."""
    return Read(t_ns=0, data=data, boundaries=None, line=None, **others)  # type: ignore[arg-type]


def test_edits_are_put_in_order_and_do_not_overlap() -> None:
    edits = tidy([BodyEdit(5, 9, b"x"), BodyEdit(2, 7, b""), BodyEdit(2, 2, b"y")])
    assert edits == [BodyEdit(2, 2, b"y"), BodyEdit(2, 7, b""), BodyEdit(7, 9, b"x")]
    assert edited(b"0123456789", edits) == b"01yx9"


@given(st.binary(max_size=6), st.binary(max_size=6))
def test_the_smallest_edit_makes_the_new_bytes(old: bytes, new: bytes) -> None:
    edit = narrowed(3, old, new)
    assert edited(b"..." + old + b"...", [edit]) == b"..." + new + b"..."
    assert edit.end - edit.start <= len(old)
    assert edit != narrowed(3, old, old) or old == new


def test_bytes_stay_in_their_read() -> None:
    moved = OffsetMap([BodyEdit(2, 3, b"xyz"), BodyEdit(4, 4, b"!")])
    body = b"01xyz3!4567"
    first = moved.read(read(b"0123"), 0, body)
    second = moved.read(read(b"4567"), 4, body)
    assert first
    assert second
    assert (first.data, second.data) == (b"01xyz3!", b"4567")


def test_what_replaces_a_border_belongs_to_the_left() -> None:
    moved = OffsetMap([BodyEdit(3, 5, b"ab")])
    assert [moved.at(offset) for offset in (0, 3, 4, 5, 8)] == [0, 3, 5, 5, 8]


def test_what_is_inserted_at_the_beginning_belongs_to_the_first_read() -> None:
    moved = OffsetMap([BodyEdit(0, 0, b"new")])
    assert moved.at(0) == 0
    assert moved.at(1) == 4


def test_chunks_and_masked_spans_move_along() -> None:
    moved = OffsetMap([BodyEdit(1, 2, b""), BodyEdit(4, 5, b"")])
    before = Read(
        t_ns=0, data=b"012345", boundaries=(2, 6), line=1, masked=((3, 4, "aa"), (4, 5, "bb"))
    )
    after = moved.read(before, 0, b"0235")
    assert after
    assert after.boundaries == (1, 4)
    assert after.masked == ((2, 3, "aa"),)


def test_a_read_without_bytes_is_gone() -> None:
    assert OffsetMap([BodyEdit(2, 4, b"")]).read(read(b"23"), 2, b"01") is None


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
    first.rename("")
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


def test_what_is_not_json_has_no_value_and_is_not_edited() -> None:
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


def test_the_framing_is_described_by_the_first_byte() -> None:
    assert is_array(b" [1]")
    assert is_sse(SSE)
    assert not is_sse(message(HEADERS, b""))
    assert isinstance(units_of(message(HEADERS, b"{}"))[0], BinaryMessage)


def test_units_are_found_by_the_type_in_their_data() -> None:
    made = draft_of(b'data: {"type":"a"}\n\ndata: [1]\n\ndata: {"type":2}\n\n')
    assert made.of_type("a") == made.units[:1]


def test_a_unit_tells_where_its_data_is() -> None:
    (unit,) = units_of(b"event: x\ndata: 12\n\n")
    assert unit.raw[slice(*unit.data_span)] == b"12"
