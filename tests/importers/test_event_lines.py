import json

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.errors import UsageError
from deltatape.importers.event_lines import EventLinesImporter
from deltatape.model.stream import Format
from helpers.imported import imported, only, source

CHUNK = '{"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}'


def row(text: str = CHUNK, **changed: object) -> str:
    made = {
        "exchange": 1,
        "url": "https://api.example.com/v1/chat/completions",
        "status": 200,
        "format": "sse",
        "event": 0,
        "t_ns": None,
        "type": "message",
        "id": "",
        "data": text,
        **changed,
    }
    return json.dumps(made) + "\n"


def test_lines_are_the_events_of_their_exchange() -> None:
    text = row(t_ns=5) + "\n" + row(exchange=3, status=999999) + row("[DONE]", t_ns=15)
    first, second = imported(b"\xef\xbb\xbf" + text.encode())
    assert first.body == f"data: {CHUNK}\n\ndata: [DONE]\n\n".encode()
    assert [read.t_ns for read in first.reads] == [0, 10]
    assert first.request.path == "/v1/chat/completions"
    assert rebuild(first).text == "a"
    assert second.response is not None
    assert second.response.status == 200


def test_without_all_times_there_are_none() -> None:
    assert len(only((row(t_ns=5) + row("[DONE]")).encode()).reads) == 1


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (Format.NDJSON, b"{}\n{}\n"),
        (Format.JSON_ARRAY, b"[{},{}]"),
        (Format.JSON, b"{}{}"),
        (Format.WEBSOCKET, b"data: {}\n\ndata: {}\n\n"),  # an answer by itself, no upgrade
        ("other-day", b"data: {}\n\ndata: {}\n\n"),
    ],
)
def test_a_body_is_written_in_the_format_that_it_had(form: str, body: bytes) -> None:
    text = row("{}", format=form, status=101) * 2
    (exchange,) = EventLinesImporter().read(source(text.encode()))
    assert (exchange.body, exchange.upgraded) == (body, False)


def test_a_message_of_amazon_says_whether_it_is_an_exception() -> None:
    text = row("{}", format="aws-eventstream", type="chunk")
    text += row("{}", format="aws-eventstream", type="throttlingException", exception=True)
    (exchange,) = EventLinesImporter().read(source(text.encode()))
    assert b":event-type" in exchange.body
    assert b":exception-type" in exchange.body


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"exchange": 1}', row(exchange="1"), f"x{row()}"]
)
def test_other_lines_are_not_for_this_importer(text: str) -> None:
    assert not EventLinesImporter().claims(source(text.encode()))


@pytest.mark.parametrize("end", ['{"exchange":', "{}", "text"])
def test_a_torn_file_is_refused(end: str) -> None:
    with pytest.raises(UsageError, match="but line 3 is torn or no event"):
        imported((row() * 2 + end).encode())


def test_members_of_other_types_are_empty() -> None:
    (exchange,) = EventLinesImporter().read(source(row(data=7, url=7).encode()))
    assert exchange.body == b"data: \n\n"
