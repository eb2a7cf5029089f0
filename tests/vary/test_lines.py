import pytest

from deltatape.diagnose.decode import decode
from deltatape.model.stream import Event
from helpers.mutated import imported
from helpers.varied import STEMS, made, of, pieces, varied

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
def test_lines_are_written_otherwise(name: str, expected: bytes) -> None:
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
    assert varied("split-crlf", of("gemini-array")) is None


def test_what_is_so_already_has_no_place() -> None:
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


def call_entries(events: tuple[Event, ...]) -> list[tuple[str, str]]:
    return [(event.type, "".join(event.data.split("\n")).strip()) for event in events]


NAMES = ("crlf", "cr", "comments", "comments-inside", "no-space", "ids", "data-lines")


@pytest.mark.parametrize("name", [*NAMES, "event-message", "event-behind-data", "blanks"])
@pytest.mark.parametrize("stem", STEMS)
def test_the_events_are_the_same(name: str, stem: str) -> None:
    before = of(stem)
    after = varied(name, before)
    if after is not None:
        assert call_entries(decode(after).events) == call_entries(decode(before).events)
        assert decode(after).anomalies == decode(before).anomalies == ()
