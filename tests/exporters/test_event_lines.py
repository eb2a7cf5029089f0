import json

from deltatape.diagnose.rebuild import analyse
from deltatape.exporters import export
from deltatape.exporters.event_lines import EventLinesExporter
from deltatape.model.exchange import Exchange
from helpers.exchanges import from_bytes
from helpers.taped import taped


def lines(exchange: Exchange) -> list[dict[str, object]]:
    files = export([analyse(exchange)], EventLinesExporter(), "1").files
    return [json.loads(line) for line in files[""].splitlines()]


def test_an_event_is_a_line_with_its_time() -> None:
    first, second = lines(taped([(10, b"id: 4\nevent: a\ndata: 1\n\n"), (30, b"data: 2\n\n")]))
    assert first == {
        "exchange": 1,
        "url": "https://api.openai.com/v1/chat/completions",
        "status": 200,
        "format": "sse",
        "event": 0,
        "time": "2026-11-21T20:36:01.010000Z",
        "t_ns": 10_000_000,
        "type": "a",
        "id": "4",
        "data": "1",
    }
    assert (second["event"], second["type"], second["t_ns"]) == (1, "message", 30_000_000)


def test_without_times_there_are_none() -> None:
    (line,) = lines(from_bytes(b"data: 1\n\n"))
    assert (line["time"], line["t_ns"]) == (None, None)


def test_what_looks_like_a_key_is_overwritten() -> None:
    (line,) = lines(from_bytes(b"data: sk-" + b"fake" * 8 + b"\n\n"))
    assert "fake" not in str(line["data"])
