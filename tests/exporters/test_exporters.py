import json
from dataclasses import replace

import pytest

from deltatape.diagnose.exchange_parts import Part, held, not_held, url_of
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import UsageError
from deltatape.exporters import EXPORTERS, export, lacking
from deltatape.exporters.parts import Exporter, json_text, moment, time_of
from deltatape.model.exchange import Exchange
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import pasted
from helpers.responses_socket import question
from helpers.taped import taped
from helpers.websocket import socket

ANSWER = sse(choice({"content": "hi"}), FINISH)
EVERY = pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.name)
BY_NAME = {each.name: each for each in EXPORTERS}


def streamed(**parts: object) -> Analysis:
    exchange = taped([(10, ANSWER[:9]), (30, ANSWER[9:])], **parts)  # type: ignore[arg-type]
    return analyse(exchange)


@EVERY
def test_a_format_says_what_it_cannot_hold_and_the_tape_has(exporter: Exporter) -> None:
    (note,) = export([streamed()], exporter, "1").notes
    assert note.startswith(f"not in {exporter.title}: ")
    told = note.partition(": ")[2].split(", ")
    assert told == [part.value for part in lacking([streamed()], exporter)]
    assert {"ending", "reads and their times"} <= set(told)
    assert "trailers and 1xx responses" not in told


@EVERY
def test_a_part_is_held_or_not(exporter: Exporter) -> None:
    assert held(exporter.holds).isdisjoint(not_held(exporter.holds))


def test_what_follows_from_a_lost_part_is_not_told() -> None:
    lost = not_held(BY_NAME["curl"].holds)
    assert Part.BODY in lost
    assert not {Part.EVENTS, Part.REPLY} & set(lost)
    assert Part.EVENTS in held(BY_NAME["har"].holds)


def test_an_import_has_little_to_lose() -> None:
    exchange = replace(pasted(choice({"content": "hi"}), FINISH))
    assert export([analyse(exchange)], BY_NAME["raw"], "1").notes == (
        "not in raw bodies: HTTP version",
    )


def test_what_a_format_cannot_have_is_left_out_and_counted() -> None:
    unanswered = analyse(taped([], framing=None))
    talk = analyse(socket(question()))
    made = export([unanswered, streamed(), talk], BY_NAME["vcr"], "1")
    assert made.exchanges == 1
    assert made.notes[0] == (
        "left out 1 exchange without a response and 1 exchange over a WebSocket"
    )
    with pytest.raises(UsageError, match="cannot hold 1 exchange over a WebSocket"):
        export([talk], BY_NAME["curl"], "1")
    with pytest.raises(UsageError, match="cannot hold 1 exchange without events"):
        export([unanswered], BY_NAME["jsonl"], "1")
    with pytest.raises(UsageError, match="cannot hold a tape without an exchange"):
        export([], BY_NAME["har"], "1")


def test_json_is_inert_on_terminals_and_in_ci() -> None:
    text = json_text({"a": "\x7f\x1b##[group]\x9b"})
    assert json.loads(text) == {"a": "\x7f\x1b##[group]\x9b"}
    assert text.isascii()
    assert not {"\x7f", "##"} & {text[at : at + size] for at in range(len(text)) for size in (1, 2)}


@pytest.mark.parametrize(
    ("recorded_at", "t_ns", "time"),
    [
        ("2026-11-21T20:36:01.000000000Z", 1_500_000_000, "2026-11-21T20:36:02.500000Z"),
        ("", 5, "1970-01-01T00:00:00.000000Z"),
        ("2026-13-21T20:36:01.000000000Z", 5, "1970-01-01T00:00:00.000000Z"),
        ("2026-11-21T20:36:01.000000000Z", 10**30, "1970-01-01T00:00:00.000000Z"),
    ],
)
def test_times_are_of_the_clock(recorded_at: str, t_ns: int, time: str) -> None:
    exchange: Exchange = replace(taped(), recorded_at=recorded_at)
    assert time_of(exchange, t_ns) == time
    assert moment(exchange, t_ns).tzinfo is not None


@pytest.mark.parametrize(
    ("upstream", "url"),
    [
        ("https://api.example.com/base", "https://api.example.com/base/v1"),
        ("", "/base/v1"),
        ("http://[x/base", "/base/v1"),
    ],
)
def test_a_url_has_the_path_of_the_upstream_once(upstream: str, url: str) -> None:
    assert url_of(taped(target=b"/base/v1", upstream=upstream)) == url
