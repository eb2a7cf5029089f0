import json

import pytest

from deltatape.redact.json_strings import Leaf, framed, leaves, string_places
from deltatape.secret_text.escaped_text import LayeredView, Overwrite


def found(text: str, whole: frozenset[str] = frozenset()) -> list[Leaf]:
    return list(leaves(text, 0, len(text), whole))


def texts(text: str) -> list[tuple[str, str]]:
    return [(leaf.name, text[leaf.start : leaf.end]) for leaf in found(text)]


def test_every_string_value_is_a_leaf_with_the_nearest_key() -> None:
    text = r'{"a": "x\"y", "b": [1, "z", ["w"]], "c": {"d": null, "e": ""}}'
    assert texts(text) == [("a", r"x\"y"), ("b", "z"), ("b", "w"), ("e", "")]


def test_broken_text_gives_what_it_has() -> None:
    assert texts('{"a": "b') == [("a", "b")]
    assert texts('{"a": "b\\') == [("a", "b")]
    assert texts('}]"x" "y') == [("", "x"), ("", "y")]
    assert texts('{"a" "b" , "c": "d"') == [("a", "b"), ("c", "d")]
    assert texts("") == []


def test_nesting_beyond_the_limit_is_read_flat() -> None:
    deep = '{"a":' * 100 + '"x"' + "}" * 100 + ', "y"'
    assert ("a", "x") in texts(deep)


def test_fragments_of_one_text_share_a_channel_by_index() -> None:
    def delta(index: int, text: str) -> Leaf:
        chunk = {
            "choices": [{"delta": {"tool_calls": [{"function": {"a": text}, "index": index}]}}]
        }
        return found(json.dumps(chunk))[0]

    assert delta(0, "x").channel == delta(0, "y").channel
    assert delta(0, "x").channel != delta(1, "x").channel
    assert delta(0, "x").trail == delta(1, "x").trail


def test_events_of_another_type_or_output_are_other_channels() -> None:
    def event(kind: str, output: int) -> Leaf:
        return found(json.dumps({"type": kind, "output_index": output, "delta": "x"}))[-1]

    assert event("a", 0).channel == event("a", 0).channel
    assert len({event("a", 0).channel, event("b", 0).channel, event("a", 1).channel}) == 3


def test_elements_of_an_outermost_array_are_events() -> None:
    first, second = found('[{"text": "a"}, {"text": "b"}]')
    assert first.channel == second.channel
    first, second = found('{"m": [{"text": "a"}, {"text": "b"}]}')
    assert first.channel != second.channel
    assert [leaf.channel for leaf in found('["a"]')] == [((None, ()), 0)]


def test_objects_can_be_asked_for_as_a_whole() -> None:
    text = '{"input": {"a": "b"}, "c": [{"input": ["x"]}]}'
    whole = [
        text[leaf.start : leaf.end] for leaf in found(text, frozenset({"input"})) if leaf.whole
    ]
    assert whole == ['{"a": "b"}', '["x"]']


def test_the_role_of_an_object_is_known_beside_its_strings() -> None:
    leaf = found('{"name": "x", "role": "user"}')[0]
    assert leaf.node.marks == {"role": "user"}


@pytest.mark.parametrize("text", ['{"a":1}', " \r\n[1]", "\xef\xbb\xbf{"])
def test_json_is_one_event_that_is_the_whole_body(text: str) -> None:
    frame = framed(LayeredView(text))
    assert (frame.view.text, frame.events, frame.is_stream) == (text, ((0, len(text)),), False)


@pytest.mark.parametrize("feed", ["\n", "\r\n", "\r"])
def test_the_data_of_events_is_put_together_without_the_rest(feed: str) -> None:
    lines = ["event: x", "data: 1", "data:2", "", "", ": comment", "id: 3", "data", "", "data: 4"]
    body = LayeredView(feed.join(lines))
    frame = framed(body)
    events = [frame.view.text[start:end] for start, end in frame.events]
    assert (events, frame.is_stream) == (["1\n2\n", "\n", "4\n"], True)
    (edit,) = frame.view.down([Overwrite(2, "9")])
    assert body.text[edit.start] == "2"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a":1}\n{"b":2}\n', ['{"a":1}\n', '{"b":2}\n']),
        ('\xef\xbb\xbf{"a":1} \r\n\n[2]\r\n{"b', ['\xef\xbb\xbf{"a":1} \r\n', "[2]\r\n", '{"b']),
        ('{"torn\n{"a":1}\n \n {"b":2}', ['{"torn\n', '{"a":1}\n', ' {"b":2}']),
        ('{"a":1}\nerror\n{"b":2}\n{"c":3}', ['{"a":1}\n', "error\n", '{"b":2}\n', '{"c":3}']),
    ],
)  # fmt: skip
def test_each_of_json_lines_is_an_event(text: str, lines: list[str]) -> None:
    frame = framed(LayeredView(text))
    assert ([text[start:end] for start, end in frame.events], frame.is_stream) == (lines, True)


@pytest.mark.parametrize(
    "text",
    [
        '[\n{"a":1},\n{"b":2}\n]\n',
        '[\n{"a":1}\n,\n{"b":2}\n]\n',
        '{"a":\n{"b":1}\n}\n',
        '{"a":1}\nerror\n',
        "[\n[1],\n[2]]",
    ],
)
def test_a_document_of_many_lines_is_one_event(text: str) -> None:
    assert framed(LayeredView(text)).events == ((0, len(text)),)


@pytest.mark.parametrize("text", ['[{"a":1}', ' [\r\n{"a":1}]', "\xef\xbb\xbf[ {"])
def test_an_array_of_objects_is_a_stream(text: str) -> None:
    frame = framed(LayeredView(text))
    assert (frame.events, frame.is_stream) == (((0, len(text)),), True)


def test_a_byte_order_mark_hides_no_data() -> None:
    assert framed(LayeredView("\xef\xbb\xbfdata: 1\n\n")).view.text == "1\n"


@pytest.mark.parametrize("text", ["", "just text\n", "<html>"])
def test_what_is_neither_has_no_events(text: str) -> None:
    assert framed(LayeredView(text)).events == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '{"type":"a","x":{"index":1,"s":"b"},"y":["c","d"]}',
        '{"x":"a","type":"t"}',
        '{"toolCallId":"one","delta":"a"}{"toolCallId":"two","delta":"b"}',
        '{"type" : ["a","b"], "s":"c"}',
        '{"a" "b" "c":"d"}',
        '["a":1,"b"]',
        '"a":"b"',
        '{"a":"cut',
        '{"a":"\\"",  "\\"b":"c\\\\"}',
        '{"a":["' + '","'.join(["b"] * 3000) + '"]}',
    ],
)
@pytest.mark.parametrize("is_stream", [True, False])
def test_strings_have_the_channels_of_leaves_whatever_is_remembered(
    text: str, *, is_stream: bool
) -> None:
    for padded in (text, f"[{text}]", text):
        found = string_places(padded, 0, len(padded), is_stream=is_stream)
        every = list(leaves(padded, 0, len(padded)))
        assert [(each.start, each.end) for each in found] == [(e.start, e.end) for e in every]
        assert [each.trail for each in found] == [each.trail for each in every]
        if is_stream:
            assert [each.channel for each in found] == [each.channel for each in every]
