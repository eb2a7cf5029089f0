"""An error that stands in an event stream without being an event: a bare JSON document.

Gateways of Google and others put the error body that they would have answered with into a stream
that has begun, line by line as it is. For the standard each such line is a field that nobody knows,
and is dropped; official clients that look at raw lines raise it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltatape.dialects import error_message
from deltatape.model.reply import Observation, Reply
from deltatape.model.stream import Anomaly, AnomalyKind, Place, Span, Stream
from deltatape.wire.json_value import parse

_CODE = "S005"
_LONGEST = 64 * 1024
"""Bytes of such an error; what is longer is none."""
_SHOWN = 200


def with_stray_error(reply: Reply, stream: Stream) -> Reply:
    """`reply`, with the error that `stream` holds outside of its events, if there is one."""
    for place, text in _documents(stream):
        value = parse(text).value
        message = error_message(value, "") if isinstance(value, dict) else None
        if message is not None:
            noticed = Observation(
                code=_CODE,
                detail=f"an error instead of an answer, as bare JSON: {message}",
                evidence=text[:_SHOWN],
                event=None,
                place=place,
            )
            every = (*reply.observations, noticed)
            return replace(reply, error=reply.error or message, observations=every)
    return reply


def _documents(stream: Stream) -> Iterator[tuple[Place, str]]:
    """The runs of dropped lines that look like a JSON object, as texts."""
    for run in _runs(stream):
        start, end = run[0].place.span.start, run[-1].place.span.end
        if end - start <= _LONGEST and stream.body[start : start + 1] == b"{":
            place = run[-1].place._replace(span=Span(start, end))
            yield place, stream.body[start:end].decode(errors="replace")


def _runs(stream: Stream) -> Iterator[Sequence[Anomaly]]:
    """The unknown fields, those on neighbouring lines together."""
    run: list[Anomaly] = []
    for anomaly in stream.anomalies:
        if anomaly.kind is not AnomalyKind.UNKNOWN_FIELD:
            continue
        if run and stream.body[run[-1].place.span.end : anomaly.place.span.start].strip(b"\r\n"):
            yield run
            run = []
        run.append(anomaly)
    if run:
        yield run
