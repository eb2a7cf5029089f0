"""Import JSON lines of events, as `deltatape export --format jsonl` writes them.

Each line is an event of a response. The bodies are written anew from them, in the format that the
lines name: they have no comments and no line ends of the wire. Nothing of a request is known but
its URL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from deltatape.diagnose.exchange_parts import Part
from deltatape.errors import UsageError
from deltatape.importers.parts import (
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    build,
    event_text,
    media_type_of,
)
from deltatape.model.exchange import Exchange, Read
from deltatape.model.stream import Format
from deltatape.printable import count
from deltatape.wire.aws_eventstream import encode_headers, encode_message
from deltatape.wire.framer import BYTE_ORDER_MARK
from deltatape.wire.json_value import parse, read_object

_KEYS = frozenset({"exchange", "format", "event", "type", "data"})
_FORMATS: Mapping[object, Format] = {each.value: each for each in Format}
_STATUSES = range(200, 1000)
_OK = 200

Row = Mapping[str, object]


class EventLinesImporter:
    """Imports JSON lines of events."""

    name = "JSON lines of events"
    accepts = "JSON lines of events, as deltatape exports them"
    is_body = False
    holds = frozenset({Part.STATUS, Part.EVENTS, Part.EVENT_TIMES})
    remark = ""

    def claims(self, source: ImportSource) -> bool:
        first, _, _ = (source.only or b"").removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")
        return first.startswith(b"{") and _row(first.decode(errors="replace")) is not None

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: a line is no such event.
        """
        text = (source.only or b"").removeprefix(BYTE_ORDER_MARK).decode(errors="replace")
        exchanges: dict[object, list[Row]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            row = _row(line)
            if row is None:
                raise UsageError(
                    f"{source.name}: is {self.name}, but line {number} is torn or no event"
                )
            exchanges.setdefault(row["exchange"], []).append(row)
        return [_exchange(source.name, rows) for rows in exchanges.values()]


def _row(line: str) -> Row | None:
    value = read_object(line) or parse(line).value
    if not isinstance(value, dict) or not value.keys() >= _KEYS:
        return None
    return value if isinstance(value["exchange"], int) else None


def _exchange(name: str, rows: Sequence[Row]) -> Exchange:
    first = rows[0]
    form = _FORMATS.get(first["format"], Format.SSE)
    if form is Format.WEBSOCKET:
        form = Format.SSE
    events = [_event(form, row, at) for at, row in enumerate(rows)]
    if form is Format.JSON_ARRAY:
        events[-1] += b"]"
    status = first.get("status")
    code = status if isinstance(status, int) and status in _STATUSES else _OK
    headers = ((b"content-type", media_type_of(form).encode()),)
    exchange = build(
        name,
        ImportedRequest(url=_text(first.get("url"))),
        ImportedResponse(status=code, headers=headers),
        b"".join(events),
        [f"the body was written anew from {count(len(rows), 'event')}"],
    )
    times = [row.get("t_ns") for row in rows]
    start = times[0]
    reads = [
        Read(t_ns=time - start, data=event, boundaries=None, line=None)
        for time, event in zip(times, events, strict=True)
        if isinstance(time, int) and isinstance(start, int)
    ]
    return replace(exchange, reads=tuple(reads)) if len(reads) == len(events) else exchange


def _event(form: Format, row: Row, at: int) -> bytes:
    """Return an event in the form that it has in a body of this format."""
    data, kind = _text(row["data"]), _text(row["type"])
    encoded = data.encode("utf-8", "replace")
    if form is Format.SSE:
        return event_text(data, kind, _text(row.get("id"))).encode("utf-8", "replace")
    if form is Format.NDJSON:
        return encoded + b"\n"
    if form is Format.JSON_ARRAY:
        return (b"," if at else b"[") + encoded
    if form is Format.EVENTSTREAM:
        what = "exception" if row.get("exception") else "event"
        headers = {f":{what}-type": kind, ":message-type": what}
        return encode_message(encode_headers(headers), encoded)
    return encoded


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
