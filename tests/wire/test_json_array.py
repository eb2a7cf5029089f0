import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.wire.framer import UNIT_LIMIT
from deltatape.wire.json_array import JsonArrayDecoder
from helpers.framing import Framed, framed, noted
from helpers.json_values import json_values
from helpers.splits import cut, cuttings, each_alone, random_cuts

BOM = b"\xef\xbb\xbf"
DEEP = b"[" * 40 + b'{"a":["]}",{"b\\"":"\\\\"}]}' + b"]" * 40


def run(*pieces: bytes, limit: int = UNIT_LIMIT) -> Framed:
    return framed(JsonArrayDecoder(limit), pieces)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'[{"a":1},\r\n{"b":[2]}]\n', ['{"a":1}', '{"b":[2]}']),
        (b'[{\n  "a": "}]"\n}\n,\n{"b":"\\"}"}]', ['{\n  "a": "}]"\n}', '{"b":"\\"}"}']),
        (b'["a","b]\\\\",[],{}]', ['"a"', '"b]\\\\"', "[]", "{}"]),
        (b"[null, 12 ,true]", ["null", "12", "true"]),
        (b"[1]", ["1"]),
        (b" \n[ ] \r\n", []),
        (b"[]", []),
        (BOM + b'[{"a":1}]', ['{"a":1}']),
        ('[{"a":"…é"}]'.encode(), ['{"a":"…é"}']),
        (b"[" + DEEP + b"," + DEEP + b"]", [DEEP.decode()] * 2),
        (b'[{"a":"' + b"\\\\" * 9 + b'"}]', ['{"a":"' + "\\\\" * 9 + '"}']),
    ],
)
def test_an_element_is_an_event_however_the_bytes_are_cut(body: bytes, expected: list[str]) -> None:
    whole = run(body)
    assert whole.data() == expected
    assert whole.pending is None
    assert whole.kinds() == ["byte-order-mark"] * body.startswith(BOM)
    for pieces in cuttings(body, pairs=len(body) < 60):
        assert run(*pieces) == whole


def test_an_object_is_an_event_as_soon_as_its_last_byte_is_there() -> None:
    decoder = JsonArrayDecoder()
    assert decoder.feed(b'[{"a":1', 1, 10) == []
    (event,) = decoder.feed(b"}", 2, 20)
    assert (event.data, event.t_ns, event.line) == ('{"a":1}', 2, 20)
    assert decoder.feed(b',"x', 3, 30) == []
    (event,) = decoder.feed(b'"', 4, 40)
    assert (event.number, event.data, event.line) == (1, '"x"', 40)


def test_a_bare_word_is_an_event_at_the_delimiter_behind_it() -> None:
    decoder = JsonArrayDecoder()
    assert decoder.feed(b"[12", 1, 10) == []
    assert decoder.feed(b"3 ", 2, 20) == []
    (event,) = decoder.feed(b",", 3, 30)
    assert (event.data, event.place.span, event.line) == ("123", (1, 4), 30)


def test_the_span_of_an_event_is_its_source_without_what_separates() -> None:
    body = b'[ {"a":1} ,\r\n "x" , null ,[2]\n]'
    for event in run(body).events:
        assert body[slice(*event.place.span)].decode() == event.data
    assert [event.number for event in run(body).events] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("body", "expected", "bad"),
    [
        (b"[{} {}]", ["{}", "{}"], [b" "]),
        (b"[{}{}]", ["{}", "{}"], [b""]),
        (b"[,{}]", ["{}"], [b","]),
        (b"[{},,\n,{}]", ["{}", "{}"], [b",\n,"]),
        (b"[{},]", ["{}"], [b","]),
        (b"[{},\nno such host\n,{}]", ["{}", "{}"], [b"no such host"]),
        (b"[{}\nerror\n,{}]", ["{}", "{}"], [b"\nerror"]),
        (b"[a,b,,c}]", [], [b"a,b,,c}"]),
        (b"[1 2,3]", ["3"], [b"1 2"]),
        (b"[1{}]", ["1", "{}"], [b""]),
        (b"[{}] more ", ["{}"], [b"more "]),
        (b"[{}]]", ["{}"], [b"]"]),
        (b"<html>[{}]", [], [b"<html>[{}]"]),
        (b"\xef\xbb[{}]", [], [b"\xef\xbb[{}]"]),
        (b'[{}\xff,"\\', ["{}"], [b"\xff"]),
    ],
)
def test_bytes_outside_of_elements_are_noted_and_skipped(
    body: bytes, expected: list[str], bad: list[bytes]
) -> None:
    whole = run(body)
    assert whole.data() == expected
    assert [raw for kind, raw in noted(body, whole) if kind == "bad-message"] == bad
    for pieces in cuttings(body, pairs=True):
        assert run(*pieces) == whole


@pytest.mark.parametrize(
    ("body", "pending"),
    [
        (b"", None),
        (b"\xef\xbb", None),
        (b" [", None),
        (b'[{"a":1}', None),
        (b'[{"a":1},', None),
        (b'[{"a":1}, {"b":', '{"b":'),
        (b'[{"a":1},"b', '"b'),
        (b'[{"a":1},"b\\', '"b\\'),
        (b"[1, 2", "2"),
        (b"[[[[", "[[["),
    ],
)
def test_an_element_open_at_the_end_of_the_body_is_reported(
    body: bytes, pending: str | None
) -> None:
    whole = run(body)
    assert (whole.pending.data if whole.pending else None) == pending
    assert whole.kinds() == ["unterminated-event"]
    place = whole.anomalies[0].place
    assert place.span.end == len(body)
    if whole.pending:
        assert (whole.anomalies[0].event, place) == (len(whole.events), whole.pending.place)
        assert body[slice(*place.span)].decode() == pending
    for pieces in cuttings(body, pairs=True):
        assert run(*pieces) == whole


def test_bytes_that_are_not_text_are_replaced_and_noted() -> None:
    body = b'[{"a":1},{"b":"\xff"},"\xc3'
    whole = run(body)
    assert whole.events[1].data == '{"b":"\ufffd"}'
    assert noted(body, whole)[:2] == [("invalid-utf-8", b"\xff"), ("invalid-utf-8", b"\xc3")]
    assert [each.event for each in whole.anomalies] == [1, 2, 2]


@pytest.mark.parametrize(
    "body", [b'[{"a":12345},{}]', b'[ "123456789" ,{}]', b"[1234567890,{}]", b"[[[[[[[]]]]]],{}]"]
)
def test_an_element_beyond_the_limit_is_dropped_and_the_next_one_is_not(body: bytes) -> None:
    whole = run(body, limit=8)
    assert (whole.data(), whole.kinds()) == (["{}"], ["too-large"])
    assert body[slice(*whole.anomalies[0].place.span)] in body[1:-4]
    for pieces in cuttings(body):
        assert run(*pieces, limit=8) == whole


def test_an_unfinished_element_beyond_the_limit_is_not_pending() -> None:
    for body in (b'[{"a":12345', b"[1234567890"):
        whole = run(body, limit=8)
        assert (whole.pending, whole.kinds()) == (None, ["too-large", "unterminated-event"])
        assert run(*each_alone(body), limit=8) == whole


@pytest.mark.slow
@pytest.mark.parametrize("opener", [b"[", b'{"a":', b'[{"":['])
def test_nesting_without_end_costs_neither_stack_nor_repeated_work(opener: bytes) -> None:
    body = b"[" + opener * 100_000
    whole = run(body)
    assert whole.pending is not None
    assert len(whole.pending.data) == len(body) - 1
    assert run(*cut(body, [3, 7, 50_001])) == whole


PARTS = [b"[", b"]", b"{", b"}", b",", b'"', b"\\", b" ", b"\n", b"1", b"null", b'"a":', BOM]
BROKEN = st.lists(st.sampled_from(PARTS) | st.binary(max_size=2), max_size=40).map(
    lambda parts: b"[" + b"".join(parts)
)
VALUES = json_values(st.integers() | st.text(max_size=8), st.text(max_size=4), 12)


@pytest.mark.slow
@given(st.data())
def test_no_cutting_changes_what_any_bytes_decode_to(data: st.DataObject) -> None:
    body = data.draw(BROKEN)
    limit = data.draw(st.sampled_from([5, UNIT_LIMIT]))
    whole = run(body, limit=limit)
    assert run(*each_alone(body), limit=limit) == whole
    assert run(*cut(body, data.draw(random_cuts(len(body)))), limit=limit) == whole
    for event in whole.events:
        assert body[slice(*event.place.span)].decode(errors="replace") == event.data


@pytest.mark.slow
@given(
    values=st.lists(VALUES, max_size=5),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
    data=st.data(),
)
def test_every_array_comes_out_element_by_element(
    values: list[object], indent: int | None, *, ascii_only: bool, data: st.DataObject
) -> None:
    body = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode()
    pieces = cut(body, data.draw(random_cuts(len(body))))
    found = run(*pieces)
    assert ([json.loads(each) for each in found.data()], found.anomalies) == (values, [])
