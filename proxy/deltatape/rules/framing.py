"""The bytes of a stream and its events: framing, encoding, events without a meaning."""

import codecs
from collections.abc import Iterator
from dataclasses import replace

from deltatape.model.exchange import header
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.stream import Anomaly, AnomalyKind, Format, Place, Span, Stream
from deltatape.rules.context import Claim, RuleContext, observed
from deltatape.rules.loss import is_left
from deltatape.rules.rule import (
    Subject,
    exchange_rule,
    observed_rule,
)
from deltatape.wire.json_value import parse

STREAMS = frozenset({Format.SSE, Format.NDJSON, Format.JSON_ARRAY, Format.EVENTSTREAM})
"""Formats of bodies that arrive event by event."""


def is_torn(stream: Stream) -> bool:
    """Return whether the body ends inside an event. Binary messages leave nothing pending."""
    return stream.pending is not None or (
        stream.format is Format.EVENTSTREAM
        and any(each.kind is AnomalyKind.UNTERMINATED_EVENT for each in stream.anomalies)
    )


def is_undecoded(stream: Stream) -> bool:
    """Return whether the body's decoder stopped early, so that something may be missing."""
    return any(
        each.kind in {AnomalyKind.BAD_CONTENT_CODING, AnomalyKind.TOO_LARGE}
        for each in stream.anomalies
    )


def anomalies(context: RuleContext, kind: AnomalyKind, what: str, hint: str) -> Iterator[Claim]:
    """Report all anomalies of `kind` as one claim, placed at the first."""
    found = [
        each
        for each in context.stream.anomalies
        if each.kind is kind and not _is_cut_character(context, each)
    ]
    if not found:
        return
    first = found[0]
    start, end = first.place.span
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    detail = "" if first.detail in what else f": {first.detail}"
    yield Claim(
        message=f"{what}{detail}{more}",
        hint=hint,
        blame=Blame.UPSTREAM,
        confidence=context.seen,
        event=first.event,
        place=first.place,
        evidence=context.stream.body[start:end].decode("utf-8", "backslashreplace"),
    )


_INSIDE = {
    Format.SSE: (
        "inside an event, after {} bytes of it: clients that follow the SSE"
        " standard discard the event"
    ),
    Format.NDJSON: (
        "inside a line, after {} bytes of it: the line is not a JSON value, and"
        " clients raise an error"
    ),
    Format.JSON_ARRAY: (
        "inside an element, after {} bytes of it: clients discard it or raise an error"
    ),
    Format.EVENTSTREAM: (
        "inside a message, after {} bytes of it: clients discard it or raise an error"
    ),
}
_UNCLOSED = "before the end of the array: clients that parse it as a whole raise an error"


@exchange_rule("W001", "unterminated-event", Severity.ERROR, at_end=True, about=Subject.ANOMALIES)
def unterminated_event(context: RuleContext) -> Iterator[Claim]:
    """Report a body that ends before the blank line that dispatches its last event."""
    if context.exchange.cut:
        return
    for anomaly in context.stream.anomalies:
        if anomaly.kind is not AnomalyKind.UNTERMINATED_EVENT:
            continue
        start, end = anomaly.place.span
        yield Claim(
            message=f"the body ends {_where_it_ends(context, anomaly).format(end - start)}",
            hint=(
                "the server must end every event (server-sent events with an empty line);"
                " the client can flush its parser at the end of the body"
            ),
            blame=Blame.UPSTREAM if context.exchange.timed else None,
            confidence=Confidence.LIKELY,
            severity=_unterminated_severity(context, anomaly),
            event=anomaly.event,
            place=anomaly.place,
            evidence=context.stream.body[start:end].decode("utf-8", "backslashreplace"),
        )


def _is_cut_character(context: RuleContext, anomaly: Anomaly) -> bool:
    """Return whether the end of the connection cut a character: that is no second defect."""
    start, end = anomaly.place.span
    body = context.stream.body
    if not context.exchange.cut or anomaly.kind is not AnomalyKind.INVALID_UTF8 or end != len(body):
        return False
    try:
        codecs.utf_8_decode(body[start:end], "strict", False)  # noqa: FBT003 - not the last bytes
    except UnicodeDecodeError:
        return False
    return True


def _where_it_ends(context: RuleContext, anomaly: Anomaly) -> str:
    """Return where the body ends, with a placeholder for the size of the event."""
    return _UNCLOSED if _is_between(context, anomaly) else _INSIDE[context.stream.format]


def _unterminated_severity(context: RuleContext, anomaly: Anomaly) -> Severity:
    """Return a warning for a sentinel, and for a pasted stream: pasting easily loses the end."""
    stream = context.stream
    data = stream.pending.data if stream.pending else ""
    sentinel = stream.format is Format.SSE and "{" not in data
    harmless = not context.exchange.timed or sentinel or _is_between(context, anomaly)
    return Severity.WARNING if harmless else Severity.ERROR


def _is_between(context: RuleContext, anomaly: Anomaly) -> bool:
    """Return whether only the end of an array is missing."""
    return context.stream.format is Format.JSON_ARRAY and anomaly.event is None


@exchange_rule("W002", "invalid-utf8", Severity.WARNING, about=Subject.ANOMALIES)
def invalid_utf8(context: RuleContext) -> Iterator[Claim]:
    """Report bytes that are not UTF-8."""
    return anomalies(
        context,
        AnomalyKind.INVALID_UTF8,
        "not UTF-8",
        "the server must not split characters; in the client, decode with errors replaced",
    )


@exchange_rule(
    "W003", "byte-order-mark", Severity.WARNING, survives_loss=True, about=Subject.ANOMALIES
)
def byte_order_mark(context: RuleContext) -> Iterator[Claim]:
    """Report a byte order mark at the start of the stream."""
    return anomalies(
        context,
        AnomalyKind.BYTE_ORDER_MARK,
        "a byte order mark precedes the first event",
        "remove it at the server: it makes clients lose the first event",
    )


@exchange_rule("W004", "event-not-json", Severity.ERROR)
def event_not_json(context: RuleContext) -> Iterator[Claim]:
    """Report an event that is not JSON where the dialect allows nothing else."""
    hint = "read the evidence: it often names the server or gateway that wrote it"
    last = len(context.stream.events) - 1
    for each in observed(context, "W004", hint):
        if not (each.event == last and is_left(context.exchange)):
            yield each  # a client that leaves may cut an event anywhere


@exchange_rule("W005", "not-a-stream", Severity.ERROR, survives_loss=True)
def not_a_stream(context: RuleContext) -> Iterator[Claim]:
    """Report a successful answer that is not a stream although one was requested."""
    exchange, stream = context.exchange, context.stream
    if not context.request.stream or not context.successful or exchange.response is None:
        return
    never_came = exchange.cut or exchange.open
    if stream.format in {*STREAMS, Format.WEBSOCKET} if stream.body else never_came:
        return  # a stream, or a body that never came because of a cut, or not yet
    if is_undecoded(stream):
        return
    media = header(exchange.response.headers, "content-type")
    kind = media.decode("latin-1") if media else "no content type"
    what = "one JSON document" if stream.format is Format.JSON else "something else"
    yield Claim(
        message=(
            "the request asks for a stream, but"
            f" {what if stream.body else 'an empty body'} came ({kind},"
            f" {len(stream.body)} bytes): stream parsers find no event in it"
        ),
        hint=(
            "find out what answered: a sign-in page, a wrong path, or a server that does"
            " not stream here"
        ),
        blame=Blame.UPSTREAM,
        confidence=context.seen,
        place=Place(Span(0, len(stream.body)), exchange.response.t_ns, exchange.response.line),
        evidence=stream.body[:400].decode("utf-8", "backslashreplace"),
    )


@exchange_rule("W008", "missing-event-line", Severity.WARNING, about=Subject.OBSERVATIONS)
def missing_event_line(context: RuleContext) -> Iterator[Claim]:
    """Report server-sent events without the names that their dialect uses."""
    if context.stream.format is Format.SSE:
        yield from observed(
            context,
            "W008",
            "configure the gateway to keep the event lines, or use the type in the data",
        )


@exchange_rule("W009", "bad-content-coding", Severity.ERROR)
def bad_content_coding(context: RuleContext) -> Iterator[Claim]:
    """Report a body that does not fit its content coding."""
    hint = "send accept-encoding: identity; look for a proxy that changes the body"
    yield from anomalies(
        context, AnomalyKind.BAD_CONTENT_CODING, "the body cannot be decoded", hint
    )
    limit = "the analysis stops at a limit; the tape has the whole body"
    for found in anomalies(
        context, AnomalyKind.TOO_LARGE, "the body was not read completely", limit
    ):
        yield replace(found, severity=Severity.WARNING, blame=None)
    yield from _bad_request_coding(context)


def _bad_request_coding(context: RuleContext) -> Iterator[Claim]:
    """Report a request whose body cannot be read: its history and its tools are unknown."""
    request = context.exchange.request
    cut = context.exchange.timed and request.t_end_ns is None
    overwritten = not request.content.strip(b"*")
    if not request.content_fault or cut or overwritten:
        return
    # Some clients name a charset as the coding, or one that they do not use; servers ignore it.
    if parse(request.content.decode(errors="replace")).error is None:
        return
    yield Claim(
        message=f"the body of the request cannot be decoded: {request.content_fault}",
        hint="deltatape does not know what it says; if the answer is an error, neither does the"
        " provider: look at what compresses the requests",
        blame=None,
        confidence=context.seen,
        severity=Severity.WARNING,
    )


_WRITER = "read the evidence: it often names the server that wrote into the stream"
_REPLACEMENT = "\ufffd".encode()
_AS_TEXT = "a proxy read the body as text and wrote it back: configure it to pass bytes"


@exchange_rule("W010", "corrupt-message", Severity.ERROR, about=Subject.ANOMALIES)
def corrupt_message(context: RuleContext) -> Iterator[Claim]:
    """Report bytes that belong to no message, or a message with a wrong checksum."""
    binary = context.stream.format is Format.EVENTSTREAM
    as_text = binary and any(_REPLACEMENT in each for each in _bad_bytes(context))
    hint = _AS_TEXT if as_text else _WRITER
    for found in anomalies(context, AnomalyKind.BAD_MESSAGE, "the body is corrupt", hint):
        # A file of binary messages may well have been damaged on its way here.
        yield found if context.exchange.timed else replace(found, blame=None)


def _bad_bytes(context: RuleContext) -> Iterator[bytes]:
    for anomaly in context.stream.anomalies:
        if anomaly.kind is AnomalyKind.BAD_MESSAGE:
            yield context.stream.body[slice(*anomaly.place.span)]


observed_rule(
    "S006",
    "unexpected-event",
    Severity.WARNING,
    "in the client, ignore what the API does not define",
)
observed_rule(
    "S007", "sequence-gap", Severity.WARNING, "look for a gateway that drops or repeats events"
)
