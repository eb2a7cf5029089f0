"""Import rows copied from the EventStream tab of a browser: type, data and time, parted by tabs.

Chrome's columns are Id (in later versions), Type, Data and Time. The events are written anew: the
tab has no comments and no line ends of the wire. A time is that of the browser's clock.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from deltatape.diagnose.exchange_parts import Part
from deltatape.importers.parts import (
    ImportSource,
    build,
    event_text,
    read_request,
    read_response,
)
from deltatape.model.exchange import Exchange, Read
from deltatape.printable import count

_ROW = re.compile(
    r"(?:([^\t]*)\t)?([\w.:-]+)\t([^\t].*)\t"
    r"(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d{1,6}))?(?: ?[APap][Mm])?"
)
_TITLES = re.compile(r"(?:Id\t)?Type\tData\tTime", re.IGNORECASE)
_DAY_NS = 86_400_000_000_000


class EventRowsImporter:
    """Imports rows of the EventStream tab."""

    name = "rows of a browser's EventStream tab"
    accepts = "rows of a browser's EventStream tab (type, data, time)"
    is_body = True
    holds = frozenset({Part.EVENTS, Part.EVENT_TIMES})
    remark = "`--request` and `--response` describe the rest"

    def claims(self, source: ImportSource) -> bool:
        return bool(_rows(source.only or b""))

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        rows = _rows(source.only or b"")
        events = [event_text(row[3], row[2], row[1] or "").encode() for row in rows]
        note = (
            f"EventStream: the body was written anew from {count(len(rows), 'row')},"
            " which have no comments and no line ends of the wire"
        )
        exchange = build(
            source.name,
            read_request(source.request_name, source.request),
            read_response(source.response_name, source.response),
            b"".join(events),
            [note],
        )
        reads = []
        at_ns = first_ns = _clock_ns(rows[0])
        for row, event in zip(rows, events, strict=True):
            at_ns += (_clock_ns(row) - at_ns) % _DAY_NS
            reads.append(Read(t_ns=at_ns - first_ns, data=event, boundaries=None, line=None))
        return [replace(exchange, reads=tuple(reads))]


def _rows(data: bytes) -> list[re.Match[str]]:
    """Return the rows, if the text is nothing else."""
    if b"\t" not in data or b"\0" in data:
        return []
    lines = data.decode(errors="replace").lstrip("\ufeff").splitlines()
    lines = [line for line in lines if line.strip() and not _TITLES.fullmatch(line)]
    found = list(map(_ROW.fullmatch, lines))
    return [row for row in found if row] if all(found) else []


def _clock_ns(row: re.Match[str]) -> int:
    seconds = (int(row[4]) * 60 + int(row[5])) * 60 + int(row[6])
    return seconds * 1_000_000_000 + int((row[7] or "0").ljust(9, "0"))
