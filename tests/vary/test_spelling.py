import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.model.stream import Event
from deltatape.vary.spelling import escaped, reversed_members, spaced
from helpers.eventstream import message
from helpers.json_values import json_values
from helpers.mutated import STEMS, imported, made, pieces, recorded, varied

NDJSON = b'{"a":1}\n{"b":2}\n'
ARRAY = b'[{"a":1},{"b":2}]'
EVENTS = b'event: x\ndata: {"a":1}\n\ndata:{"b":2}\r\n\r\ndata: [DONE]\n\n'


def body(name: str, before: bytes, media: str = "text/event-stream") -> bytes:
    return made(name, imported(before, media)).body


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("crlf", EVENTS.replace(b"\r", b"").replace(b"\n", b"\r\n")),
        ("cr", EVENTS.replace(b"\r", b"").replace(b"\n", b"\r")),
        (
            "comments",
            (
                b': keep-alive\n\nevent: x\ndata: {"a":1}\n\n'
                b': keep-alive\n\ndata:{"b":2}\r\n\r\n: keep-alive\n\ndata: [DONE]\n\n'
            ),
        ),
        (
            "comments-inside",
            (
                b'event: x\n: inside\ndata: {"a":1}\n\n'
                b': inside\ndata:{"b":2}\r\n\r\n: inside\ndata: [DONE]\n\n'
            ),
        ),
        ("no-space", EVENTS.replace(b": ", b":")),
        ("space", EVENTS.replace(b"data:{", b"data: {")),
        (
            "ids",
            (
                b'retry: 3000\nid: 0\nevent: x\ndata: {"a":1}\n\n'
                b'id: 1\ndata:{"b":2}\r\n\r\nid: 2\ndata: [DONE]\n\n'
            ),
        ),
        (
            "event-message",
            (
                b'event: x\ndata: {"a":1}\n\n'
                b'event: message\ndata:{"b":2}\r\n\r\nevent: message\ndata: [DONE]\n\n'
            ),
        ),
        (
            "event-behind-data",
            EVENTS.replace(b'event: x\ndata: {"a":1}\n', b'data: {"a":1}\nevent: x\n'),
        ),
        ("data-lines", EVENTS.replace(b"{", b"{\ndata: ")),
        (
            "blanks",
            b'event: x\ndata: {"a":1}\n\n\n\ndata:{"b":2}\r\n\r\n\n\ndata: [DONE]\n\n',
        ),
    ],
)
def test_lines_are_written_differently(name: str, expected: bytes) -> None:
    assert body(name, EVENTS) == expected


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        ("crlf", NDJSON, b'{"a":1}\r\n{"b":2}\r\n'),
        ("crlf", b'{"a":1}\r\n{"b":2}\n', b'{"a":1}\r\n{"b":2}\r\n'),
        ("blanks", NDJSON, b'{"a":1}\n  {"b":2}\n'),
        ("blanks", ARRAY, b'[\n\n{"a":1},\n\n{"b":2}]'),
        ("no-final-line-end", NDJSON, b'{"a":1}\n{"b":2}'),
    ],
)
def test_lines_of_json_and_arrays_have_blanks_of_their_own(
    name: str, before: bytes, expected: bytes
) -> None:
    assert body(name, before, "application/json") == expected


def test_the_bytes_of_a_line_end_come_apart() -> None:
    assert pieces(made("split-crlf", imported(b"data: 1\n\n"))) == [b"data: 1\r", b"\n\r", b"\n"]
    assert pieces(made("split-crlf", imported(b"data: 1\r\n\r\n")))[0] == b"data: 1\r"
    assert varied("split-crlf", recorded("gemini-array")) is None


def test_an_unchanged_body_is_not_a_variation() -> None:
    for name, before in (
        ("no-space", b"data:1\n\n"),
        ("space", b"data: 1\n\n"),
        ("ids", b"id: 7\ndata: 1\n\n"),
        ("event-message", b"event: x\ndata: 1\n\n"),
        ("event-behind-data", b"data: 1\nevent: x\n\n"),
        ("event-behind-data", b"data: 1\n\n"),
        ("data-lines", b"data: [DONE]\n\n"),
        ("blanks", b"data: 1\n\n"),
    ):
        assert varied(name, imported(before)) is None


def test_a_second_space_belongs_to_the_data() -> None:
    assert varied("no-space", imported(b"data:  1\n\n")) is None


def types_and_data(events: tuple[Event, ...]) -> list[tuple[str, str]]:
    return [(event.type, "".join(event.data.split("\n")).strip()) for event in events]


NAMES = ("crlf", "cr", "comments", "comments-inside", "no-space", "ids", "data-lines")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "event-message", "event-behind-data", "blanks"])
@pytest.mark.parametrize("stem", STEMS)
def test_the_events_are_the_same(name: str, stem: str) -> None:
    before = recorded(stem)
    after = varied(name, before)
    if after is not None:
        assert types_and_data(decode(after).events) == types_and_data(decode(before).events)
        assert decode(after).anomalies == decode(before).anomalies == ()


BODY = 'data: {"choices":[],"a":"é"}\n\ndata: [DONE]\n\n'.encode()


def first_line(name: str) -> bytes:
    return made(name, imported(BODY)).body.partition(b"\n")[0]


def test_json_is_written_differently() -> None:
    assert first_line("json-blanks") == 'data: { "choices" : [] , "a" : "é" }'.encode()
    assert first_line("json-escapes") == b'data: {"choices":[],"a":"\\u00e9"}'
    assert first_line("json-order") == 'data: {"a":"é","choices":[]}'.encode()
    assert first_line("unknown-member") == (
        'data: {"choices":[],"a":"é","obfuscation":"abcdefgh"}'.encode()
    )


def test_binary_messages_are_padded_under_another_name() -> None:
    bare = message({":message-type": "event", ":event-type": "metadata"}, b'{"usage":{}}')
    after = made("unknown-member", imported(bare, "application/vnd.amazon.eventstream"))
    assert b'{"usage":{},"p":"abcdefgh"}' in after.body


def test_readers_that_refuse_unknown_members_get_none() -> None:
    assert varied("unknown-member", recorded("ai-sdk-ui")) is None


def test_a_member_of_that_name_stays_as_it_is() -> None:
    known = imported(b'data: {"choices":[],"obfuscation":"x"}\n\n')
    assert varied("unknown-member", known) is None


def test_binary_messages_have_a_header_that_nobody_knows() -> None:
    before = recorded("bedrock-converse")
    after = made("unknown-header", before)
    assert after.body.count(b"x-trace") == len(decode(before).events)
    assert decode(after).anomalies == ()
    assert varied("unknown-header", recorded("openai-chat")) is None


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = json_values(st.integers(-999, 999) | TEXTS, TEXTS, 12)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


@pytest.mark.slow
@given(OBJECTS, st.booleans())
def test_the_value_stays_the_same(value: dict[str, object], plain: bool) -> None:  # noqa: FBT001
    text = json.dumps(value, ensure_ascii=plain)
    for change in (spaced, escaped, reversed_members):
        assert json.loads(change(text)) == value


def test_blanks_stand_on_the_outermost_level_only() -> None:
    assert spaced('{"a":[1,{"b":2}],"c":"x,y"}') == '{  "a" : [1,{"b":2}] , "c" : "x,y"  }'.replace(
        "{  ", "{ "
    ).replace("  }", " }")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"\u00e9\U0001f326 a"', '"\\u00e9\\ud83c\\udf26 a"'),
        ('"\\u00e9"', '"\\u00e9"'),
        ('"\udcff"', '"\udcff"'),
    ],
)
def test_non_ascii_characters_are_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_members_are_reversed_unless_a_name_comes_twice() -> None:
    text = '{ "a": {"x":1,"y":[2,3]} , "b":"," }'
    assert reversed_members(text) == '{"b":",","a": {"x":1,"y":[2,3]}}'
    assert reversed_members('{"a":1,"a":2}') == '{"a":1,"a":2}'
    assert reversed_members("{}") == "{}"
