import pytest

from deltatape.redact.escaped_text import LayeredView, Overwrite
from deltatape.redact.framing import framed


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
