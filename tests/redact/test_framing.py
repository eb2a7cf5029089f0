import pytest

from deltatape.redact.framing import framed
from deltatape.redact.layers import Edit, View


@pytest.mark.parametrize("text", ['{"a":1}', " \r\n[1]", "\xef\xbb\xbf{"])
def test_json_is_one_event_that_is_the_whole_body(text: str) -> None:
    frame = framed(View(text))
    assert (frame.view.text, frame.events, frame.is_stream) == (text, ((0, len(text)),), False)


@pytest.mark.parametrize("feed", ["\n", "\r\n", "\r"])
def test_the_data_of_events_is_put_together_without_the_rest(feed: str) -> None:
    lines = ["event: x", "data: 1", "data:2", "", "", ": comment", "id: 3", "data", "", "data: 4"]
    body = View(feed.join(lines))
    frame = framed(body)
    events = [frame.view.text[start:end] for start, end in frame.events]
    assert (events, frame.is_stream) == (["1\n2\n", "\n", "4\n"], True)
    (edit,) = frame.view.down([Edit(2, "9")])
    assert body.text[edit.start] == "2"


def test_a_byte_order_mark_hides_no_data() -> None:
    assert framed(View("\xef\xbb\xbfdata: 1\n\n")).view.text == "1\n"


@pytest.mark.parametrize("text", ["", "just text\n", "<html>"])
def test_what_is_neither_has_no_events(text: str) -> None:
    assert framed(View(text)).events == ()
