"""Export the events of responses as JSON lines, one object per event, to be searched and counted.

    {"exchange": 1, "url": "https://...", "status": 200, "format": "sse", "event": 0,
     "time": "2026-11-21T20:36:01.500000Z", "t_ns": 61000000, "type": "message", "id": "",
      "data": "{...}"}

`t_ns` counts from the beginning of the tape, as everywhere; it and `time` are null where no times
were recorded. `data` is text, as the event has it. What looks like a key in it is overwritten, as
in `show --format json`.
"""

from collections.abc import Iterator, Mapping, Sequence

from deltatape.diagnose.exchange_parts import url_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.exporters.parts import json_text, time_of
from deltatape.importers.event_lines import EventLinesImporter
from deltatape.secret_text.search import without_secrets


class EventLinesExporter:
    """Exports JSON lines of events."""

    name = "jsonl"
    title = "events as JSON lines"
    holds = EventLinesImporter.holds
    remark = "also has the URLs; what looks like a key in the data is overwritten"
    is_folder = False

    def refuses(self, analysis: Analysis) -> str:
        return "" if analysis.stream.events else "without events"

    def files(self, analyses: Sequence[Analysis], version: str) -> Mapping[str, bytes]:  # noqa: ARG002
        lines = (line for analysis in analyses for line in _lines(analysis))
        return {"": "".join(lines).encode()}


def _lines(analysis: Analysis) -> Iterator[str]:
    exchange = analysis.exchange
    for event in analysis.stream.events:
        timed = exchange.timed or event.t_ns
        yield json_text(
            {
                "exchange": exchange.number,
                "url": url_of(exchange),
                "status": exchange.response.status if exchange.response else None,
                "format": analysis.stream.format,
                "event": event.number,
                "time": time_of(exchange, event.t_ns) if exchange.timed else None,
                "t_ns": event.t_ns if timed else None,
                "type": event.type,
                "id": event.id,
                "data": without_secrets(event.data),
                **({"exception": True} if event.exception else {}),
            },
            indent=None,
        )
