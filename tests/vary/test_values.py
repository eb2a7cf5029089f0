import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.decode import decode
from deltatape.vary.values import escaped, reversed_members, spaced
from helpers.eventstream import message
from helpers.mutated import imported
from helpers.varied import made, of, varied

BODY = 'data: {"choices":[],"a":"é"}\n\ndata: [DONE]\n\n'.encode()


def body(name: str) -> bytes:
    return made(name, imported(BODY)).body.partition(b"\n")[0]


def test_json_is_written_otherwise() -> None:
    assert body("json-blanks") == 'data: { "choices" : [] , "a" : "é" }'.encode()
    assert body("json-escapes") == b'data: {"choices":[],"a":"\\u00e9"}'
    assert body("json-order") == 'data: {"a":"é","choices":[]}'.encode()
    assert body("unknown-member") == (
        'data: {"choices":[],"a":"é","obfuscation":"abcdefgh"}'.encode()
    )


def test_binary_messages_are_padded_under_another_name() -> None:
    bare = message({":message-type": "event", ":event-type": "metadata"}, b'{"usage":{}}')
    after = made("unknown-member", imported(bare, "application/vnd.amazon.eventstream"))
    assert b'{"usage":{},"p":"abcdefgh"}' in after.body


def test_readers_that_refuse_unknown_members_get_none() -> None:
    assert varied("unknown-member", of("ai-sdk-ui")) is None


def test_a_member_of_that_name_stays_as_it_is() -> None:
    known = imported(b'data: {"choices":[],"obfuscation":"x"}\n\n')
    assert varied("unknown-member", known) is None


def test_binary_messages_have_a_header_that_nobody_knows() -> None:
    before = of("bedrock-converse")
    after = made("unknown-header", before)
    assert after.body.count(b"x-trace") == len(decode(before).events)
    assert decode(after).anomalies == ()
    assert varied("unknown-header", of("openai-chat")) is None


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(OBJECTS, st.booleans())
@settings(max_examples=60, deadline=None)
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
def test_what_is_beyond_ascii_is_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_members_are_turned_round_unless_a_name_comes_twice() -> None:
    text = '{ "a": {"x":1,"y":[2,3]} , "b":"," }'
    assert reversed_members(text) == '{"b":",","a": {"x":1,"y":[2,3]}}'
    assert reversed_members('{"a":1,"a":2}') == '{"a":1,"a":2}'
    assert reversed_members("{}") == "{}"
