import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.tape import encode
from deltatape.tape.decode import CODES, decode_header, decode_lines, decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import BodyRead, Idle
from deltatape.tape.record import ReadRecord, Record, Shard, Unknown
from helpers.json_values import json_values
from helpers.tapes import HEADER, whole_tape

DIGITS = "9" * 5000

LOGGED = (
    b'[170,1,"masked",{"spans":[[0,8,"ab12cd34"],[9,17,"ab12cd34"]]}]\n'
    b'[170,0,"log",{"stream":"stderr","line":"an error"}]\n'
    b'[180,0,"log",{"stream":"stdout","line":{"b64":"/w=="}}]\n'
    b'[190,1,"parsed",{"tool":"deltatape 0.1.0","dialect":"openai-chat","events":2,"calls":0,'
    b'"finish":"stop","form":1,"sha256":"08"}]\n'
    b'[200,2,"frame",{"side":"client","opcode":1,"mask":"37fa213d","data":"Hello"}]\n'
)


def test_a_record_of_every_code_is_read_and_written_as_the_same_line() -> None:
    lines = (whole_tape() + LOGGED).splitlines(keepends=True)[1:]
    assert {decode_record(line).payload.code for line in lines} == set(CODES)
    for line in lines:
        record = decode_record(line)
        assert encode.payload_record(record.t_ns, record.exchange, record.payload) == line


def test_a_header_is_read_and_written_as_the_same_line() -> None:
    line = encode.header_line(HEADER)
    assert decode_header(line) == HEADER
    assert encode.header_line(decode_header(line)) == line


@pytest.mark.parametrize("name", [None, "weather"])
def test_a_shard_is_read_and_written_as_the_same_line(name: str | None) -> None:
    shard = Shard(recording="R", index=2, count=3, begun_ns=4, name=name)
    line = encode.header_line(replace(HEADER, shard=shard))
    assert decode_header(line).shard == shard
    assert encode.header_line(decode_header(line)) == line
    assert line.endswith(
        b'"shard":{"recording":"R","index":2,"count":3,"begun_ns":4%b}}\n'
        % (b',"name":"weather"' if name else b"")
    )


@pytest.mark.parametrize(("index", "count"), [(0, 2), (3, 2), (1, 0)])
def test_a_shard_that_is_none_of_its_recording_is_refused(index: int, count: int) -> None:
    line = encode.header_line(replace(HEADER, shard=Shard(recording="", index=index, count=count)))
    with pytest.raises(MalformedError, match=f"shard {index} of {count}: 1 to the count"):
        decode_header(line)


def test_what_may_differ_is_read_and_written_as_the_same_line() -> None:
    line = encode.header_line(replace(HEADER, volatile=("date", "a.b")))
    assert decode_header(line).volatile == ("date", "a.b")
    assert line.endswith(b',"volatile":["date","a.b"]}\n')
    assert b"volatile" not in encode.header_line(HEADER)


@pytest.mark.parametrize("value", ['"date"', "[1]", "null"])
def test_what_may_differ_is_a_list_of_texts(value: str) -> None:
    line = encode.header_line(HEADER).replace(b"}\n", f',"volatile":{value}}}\n'.encode())
    with pytest.raises(MalformedError, match="where a list of strings is expected"):
        decode_header(line)


def test_unknown_header_keys_are_ignored_and_the_tool_may_be_missing() -> None:
    header = decode_header(
        b'{"mood":[],"deltatape":1,"id":"A","recorded_at":"2026","source":"mitm"}'
    )
    assert (header.id, header.tool, header.source) == ("A", "", "mitm")


@pytest.mark.parametrize("code", ["frames", "from-the-future", ""])
def test_codes_that_are_not_known_are_kept(code: str) -> None:
    record = decode_record(b'[1,2,"%b",{"x":[1]}]' % code.encode())
    assert record.payload == Unknown(code=code, value={"x": [1]})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "no JSON at character 0"),
        (b"nonsense", "no JSON at character 0"),
        (b"[1,2", "no JSON at character 4"),
        (b'[0,1,"read",NaN]', "NaN is no JSON"),
        (b'[0,1,"read","\xff"]', "no UTF-8 at byte 13"),
        (b"[" * 200_000, "nested too deep"),
        (f'[{DIGITS},1,"idle",{{}}]'.encode(), "a number too large"),
        (b"{}", "[t, exchange, code, payload] is expected"),
        (b"[1,2,3]", "[t, exchange, code, payload] is expected"),
        (b'[-1,1,"idle",{}]', "time -1"),
        (b'[1.5,1,"idle",{}]', "time 1.5"),
        (b'[true,1,"idle",{}]', "time true"),
        (b'[9223372036854775808,1,"idle",{}]', "time 9223372036854775808"),
        (b'[1,-1,"idle",{}]', "exchange -1"),
        (b'[1,null,"idle",{}]', "exchange null"),
        (b"[1,1,7,{}]", "code 7"),
        (b'[1,1,"idle",[]]', "idle: [] where an object is expected"),
    ],
)
def test_what_is_no_record_is_refused_with_what_was_seen(line: bytes, problem: str) -> None:
    with pytest.raises(MalformedError) as caught:
        decode_record(line)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"machine x password fake", 'a tape starts with {"deltatape":1,...}'),
        (b"[]", 'a tape starts with {"deltatape":1,...}'),
        (b'{"log":{"version":"1.2"}}', "a tape starts with"),
        (b'{"deltatape":2}', "format version 2; this deltatape reads 1"),
        (b'{"deltatape":true}', "format version true"),
        (b'{"deltatape":1}', '"id" is null: a string is expected'),
        (
            b'{"deltatape":1,"id":"A","recorded_at":"","source":"x"}',
            '"source" is "x": one of gateway, mitm, import is expected',
        ),
    ],
)
def test_what_is_no_header_is_refused_with_what_was_seen(line: bytes, problem: str) -> None:
    with pytest.raises(MalformedError) as caught:
        decode_header(line)
    assert problem in str(caught.value)
    assert "password" not in str(caught.value)  # the file may be any


JSON = json_values(st.integers() | st.text(max_size=5), st.text(max_size=8))


READ = b'[12,3,"read","a\\n\\u00e9\\"]"]'


def short(line: bytes) -> ReadRecord | Record | None:
    """What `line` is the short way; None if it is left to the one who looks in full."""
    for _, record in decode_lines([(7, line)], lambda *_: ()):
        return record
    return None


@pytest.mark.parametrize(
    "line",
    [
        READ,
        b'[ 12,3, "read","a"]',
        '[0,0,"read","é😀\\"\\n"]'.encode(),
        '[0,0,"read","é\\u00e9\\u4e2d"]'.encode(),
        '[0,0,"read","é\\\\u00e9"]'.encode(),
    ],
)
def test_the_usual_line_of_a_read_is_read_the_short_way_and_the_same(line: bytes) -> None:
    record = decode_record(line)
    assert isinstance(record.payload, BodyRead)
    assert short(line + b"\n") == (record.t_ns, record.exchange, record.payload.data)


def test_lines_of_every_code_are_read_the_short_way_and_the_same() -> None:
    lines = (whole_tape() + LOGGED).splitlines(keepends=True)[1:]
    found = decode_lines(enumerate(lines, 2), lambda *_: ())
    for line, (number, record) in zip(lines, found, strict=True):
        full = decode_record(line)
        assert lines[number - 2] == line
        assert record[:2] == full[:2]
        assert record[2] in (full.payload, getattr(full.payload, "data", None))


@pytest.mark.parametrize(
    "line",
    [
        READ,
        READ[:-1] + b"\n",
        READ[:-3] + b"\n",
        READ + b" \n",
        READ + b"\r\n",
        b" " + READ + b"\n",
        b'[012,3,"read","a"]\n',
        b'[12,-1,"read","a"]\n',
        b'[12,true,"read","a"]\n',
        b'[1.5,3,"read","a"]\n',
        b'[9223372036854775808,3,"read","a"]\n',
        b'[12,9223372036854775808,"read","a"]\n',
        b'[12,3,"note",{"text":NaN}]\n',
        b'[12,3,"note",7]\n',
        '[12,3,"note",{"text":"é"}]\n'.encode(),
        b'[12,3,"read","\xff"]\n',
        b'[12,3,"read","\\ud800"]\n',
        b'[12,3,"read","\\x"]\n',
        b'[12,3,"read","a\tb"]\n',
        b'[12,3,"read","a","b"]\n',
        b"[12,3,7,{}]\n",
        b"[12,3,[],{}]\n",
        b'{"a":1,"b":2,"c":3,"d":4}\n',
        b'"abcd"\n',
        b"7\n",
        b"[" * 200_000 + b"\n",
        b"\n",
        b"",
    ],
)
def test_other_lines_are_left_to_the_one_who_looks_in_full(line: bytes) -> None:
    assert short(line) is None
    record = Record(t_ns=1, exchange=2, payload=Idle())
    numbers: list[int] = []

    def look(number: int, seen: bytes) -> list[Record]:
        assert seen == line
        numbers.append(number)
        return [record]

    after = READ + b"\n"
    found = list(decode_lines([(7, line), (8, after)], look))
    assert (found, numbers) == ([(7, record), (8, short(after))], [7])


@given(st.binary(max_size=30))
def test_what_is_read_the_short_way_is_what_a_full_look_sees(text: bytes) -> None:
    line = b'[12,3,"read","' + text + b'"]\n'
    read = short(line)
    if read is not None:
        payload = decode_record(line).payload
        assert isinstance(payload, BodyRead)
        assert payload.data == read[2]


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(line: bytes) -> None:
    for decode in (decode_record, decode_header):
        with contextlib.suppress(MalformedError):
            decode(line)


@given(st.sampled_from(sorted(CODES)), JSON)
def test_any_payload_is_read_or_refused(code: str, payload: object) -> None:
    line = encode.payload_record(0, 1, Unknown(code=code, value=payload))
    with contextlib.suppress(MalformedError):
        assert decode_record(line).payload.code == code
