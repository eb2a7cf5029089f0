import gzip
import json
from dataclasses import replace

import pytest

from deltatape.model.exchange import EndReason, Exchange, Headers
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.stream import Anomaly, AnomalyKind
from deltatape.rules.context import MOST_ALIKE
from deltatape.rules.framing import anomalies, is_torn
from helpers.chat import choice, sse
from helpers.contexts import context_of, findings_of
from helpers.eventstream import event
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, found, from_bytes, one, pasted, timed
from helpers.responses import added, codes, created, done, ended, findings, message, numbered, say


def test_a_stream_without_anomalies_gives_nothing() -> None:
    context = context_of(pasted(TEXT))
    kind = AnomalyKind.BYTE_ORDER_MARK
    assert not list(anomalies(context, kind, "what", "hint"))


def test_a_body_that_ends_inside_an_event_is_torn_in_every_format() -> None:
    message = event("x", 1)
    for body in (b"data: {}\n\ndata: {", b'{}\n{"a', b"[{},{", message + message[:30]):
        assert is_torn(context_of(from_bytes(body)).stream), body
    for body in (
        b"data: {}\n\n",
        b"{}\n{}",
        b"[{},",
        message + b"no message",
        b"data: {}\n\nid: 1",
    ):
        assert not is_torn(context_of(from_bytes(body)).stream), body


HALF = sse(FINISH_TEXT, done=False)[:-1]


def test_an_event_without_blank_line_at_the_end_of_a_taped_body_is_an_error() -> None:
    finding = one(timed((0.1, TEXT), (0.2, HALF)), "W001")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.UPSTREAM
    assert finding.evidence.startswith("data: {")


def test_a_pasted_stream_may_have_lost_its_last_line_on_the_way() -> None:
    finding = one(from_bytes(sse(TEXT, FINISH_TEXT)[:-1]), "W001")
    assert finding.severity is Severity.WARNING
    assert finding.blame is None


def test_a_half_sentinel_loses_nothing() -> None:
    exchange = timed((0.1, TEXT), (0.2, FINISH_TEXT), (0.3, b"data: [DONE]\n"))
    assert one(exchange, "W001").severity is Severity.WARNING


def test_bytes_that_are_no_event_at_all_are_reported_too() -> None:
    assert one(timed((0.1, TEXT), (0.2, b"da")), "W001").severity is Severity.WARNING


@pytest.mark.parametrize(
    ("body", "message", "severity"),
    [
        (b'{"a":1}\n{"a":', "ends inside a line, after 5 bytes", Severity.ERROR),
        (b'[{"a":1},{"a":', "ends inside an element, after 5 bytes", Severity.ERROR),
        (b'[{"a":1}', "ends before the end of the array", Severity.WARNING),
        (event("x", 1) + event("y", 2)[:20], "inside a message, after 20 bytes", Severity.ERROR),
    ],
)
def test_the_last_event_of_every_kind_of_stream_must_be_whole(
    body: bytes, message: str, severity: Severity
) -> None:
    finding = one(timed((0.1, body), headers=()), "W001")
    assert message in finding.message
    assert (finding.severity, finding.blame) == (severity, Blame.UPSTREAM)
    assert finding.span
    assert finding.span.end == len(body)
    assert one(from_bytes(body), "W001").severity is Severity.WARNING


@pytest.mark.parametrize(
    "body", [b'{"a":1}\n{"a":2}', b'[{"a":1}]', event("x", 1), b'{"a":1}\r\n{"a":2}\r\n']
)
def test_other_streams_need_no_blank_line(body: bytes) -> None:
    assert not found(timed((0.1, body), headers=()), "W001")


def test_a_cut_explains_a_half_event() -> None:
    exchange = timed((0.1, TEXT), (0.2, HALF))
    assert exchange.end
    cut = replace(exchange, end=replace(exchange.end, reason=EndReason.UPSTREAM_RESET))
    assert not found(cut, "W001")


def test_terminated_events_are_fine() -> None:
    assert not found(timed((0.1, TEXT), (0.2, FINISH_TEXT)), "W001")


def test_bytes_that_are_not_utf8_are_reported_once_with_their_number() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"a\xc3"}}]}\n\n'
    finding = one(from_bytes(body + body + sse(FINISH_TEXT)), "W002")
    assert "(and 1 more)" in finding.message
    assert "\\xc3" in finding.evidence


def test_a_character_in_two_reads_is_whole() -> None:
    body = 'data: {"choices":[{"index":0,"delta":{"content":"é"}}]}\n\n'.encode()
    assert not found(from_bytes(body + sse(FINISH_TEXT)), "W002")


@pytest.mark.parametrize(
    ("last", "reason", "reported"),
    [
        (b"caf\xc3", EndReason.UPSTREAM_CLOSED, False),
        (b"caf\xc3", EndReason.CLIENT_CLOSED, False),
        (b"caf\xc3", EndReason.COMPLETE, True),
        (b"caf\xff", EndReason.UPSTREAM_CLOSED, True),
        (b"caf\xc3f", EndReason.UPSTREAM_CLOSED, True),
    ],
)
def test_a_cut_explains_half_a_character_at_the_end(
    last: bytes, reason: EndReason, *, reported: bool
) -> None:
    half = b'data: {"choices":[{"index":0,"delta":{"content":"' + last
    exchange = timed((0.1, TEXT), (0.2, half))
    assert exchange.end
    cut = replace(exchange, end=replace(exchange.end, reason=reason))
    assert bool(found(cut, "W002")) is reported


BOM = b"\xef\xbb\xbf"


def test_a_byte_order_mark_before_the_first_event_is_reported() -> None:
    finding = one(from_bytes(BOM + sse(TEXT, FINISH_TEXT)), "W003")
    assert finding.span == (0, 3)


def test_a_stream_without_one_is_fine() -> None:
    assert not found(from_bytes(sse(TEXT, FINISH_TEXT)), "W003")


def test_a_comment_sent_as_data_is_reported() -> None:
    finding = one(pasted(TEXT, ": KEEP-ALIVE", FINISH_TEXT), "W004")
    assert finding.blame is Blame.UPSTREAM
    assert finding.event == 1
    assert finding.evidence == ": KEEP-ALIVE"


def test_two_objects_in_one_event_are_reported() -> None:
    assert one(pasted(TEXT, '{"choices":[]}{"choices":[]}', FINISH_TEXT), "W004")


@pytest.mark.slow
def test_a_defect_that_is_everywhere_is_not_reported_everywhere() -> None:
    findings = found(pasted(*["garbage"] * 20, FINISH_TEXT), "W004")
    assert len(findings) == MOST_ALIKE
    assert not findings[-1].message.endswith("more)")
    findings = found(pasted(*["garbage"] * 5000, FINISH_TEXT), "W004")
    assert len(findings) == MOST_ALIKE
    assert findings[-1].message.endswith("(and 4980 more)")


def test_the_sentinel_is_not_json_and_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "W004")


HTML = b"<html>Sign in to continue</html>"
WHOLE = b'{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}'


@pytest.mark.parametrize(
    ("body", "content_type", "what"),
    [
        (HTML, "text/html", "something else came (text/html, 32 bytes)"),
        (WHOLE, "application/json", "one JSON document came (application/json"),
        (b"", "text/event-stream", "an empty body came"),
    ],
)
def test_something_else_under_a_status_of_success_is_reported(
    body: bytes, content_type: str, what: str
) -> None:
    finding = one(from_bytes(body, asks(USER), content_type=content_type), "W005")
    assert what in finding.message


def test_a_response_without_content_type_is_named_so() -> None:
    assert (
        "no content type" in one(timed((0.1, HTML), request=asks(USER), headers=()), "W005").message
    )


def test_a_stream_that_was_asked_for_is_fine() -> None:
    assert not found(from_bytes(sse(TEXT, FINISH_TEXT), asks(USER)), "W005")


@pytest.mark.parametrize(
    "body", [b'{"a":1}\n{"a":2}\n', b'[{"a":1},\n{"a":2}]', b"[]", event("messageStart", {})]
)
def test_lines_of_json_arrays_and_binary_messages_are_streams(body: bytes) -> None:
    assert not found(from_bytes(body, asks(USER), content_type="application/json"), "W005")


def test_a_document_that_was_asked_for_is_fine() -> None:
    request = {**asks(USER), "stream": False}
    assert not found(from_bytes(WHOLE, request, content_type="application/json"), "W005")


def test_an_error_answer_is_not_a_stream_by_right() -> None:
    exchange = from_bytes(b"{}", asks(USER), 500, "application/json")
    assert not found(exchange, "W005")


def test_a_body_that_cannot_be_decoded_may_be_a_stream() -> None:
    head = ((b"Content-Type", b"text/event-stream"), (b"Content-Encoding", b"gzip"))
    exchange = timed((0.1, b"\x1f\x8b no gzip"), request=asks(USER), headers=head)
    assert not found(exchange, "W005")


def test_a_cut_explains_a_body_that_never_came() -> None:
    exchange = timed(request=asks(USER), end_s=1)
    assert exchange.end
    cut = replace(exchange, end=replace(exchange.end, reason=EndReason.UPSTREAM_CLOSED))
    assert not found(cut, "W005")


def test_a_body_that_has_not_begun_is_no_finding_yet() -> None:
    """The head comes first: the exchange goes on."""
    ended = from_bytes(b"", asks(USER))
    assert found(ended, "W005")
    assert not found(replace(ended, open=True), "W005")


START: dict[str, object] = {"type": "message_start", "message": {"id": "m", "content": []}}
STOP: dict[str, object] = {"type": "message_stop"}


def stream(*frames: dict[str, object], named: bool) -> Exchange:
    body = "".join(
        (f"event: {frame['type']}\n" if named else "") + f"data: {json.dumps(frame)}\n\n"
        for frame in frames
    )
    return Exchange.from_body(
        body.encode(), content_type="text/event-stream", url="http://127.0.0.1/v1/messages"
    )


def test_events_without_their_names_are_reported_once() -> None:
    finding = one(stream(START, STOP, named=False), "W008")
    assert (finding.event, finding.severity) == (0, "warning")
    assert finding.message == "events have no event line; the first is a 'message_start'"


def test_events_with_names_are_fine() -> None:
    assert not found(stream(START, STOP, named=True), "W008")


def test_lines_of_json_have_no_names_to_miss() -> None:
    body = f"{json.dumps(START)}\n{json.dumps(STOP)}\n".encode()
    lines = Exchange.from_body(
        body, content_type="application/x-ndjson", url="http://127.0.0.1/v1/messages"
    )
    assert not found(lines, "W008")


GZIP: Headers = ((b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip"))
BODY = sse(TEXT, FINISH_TEXT)


def test_plain_text_under_the_name_of_gzip_is_reported() -> None:
    finding = one(timed((0.1, BODY), headers=GZIP), "W009")
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("the body cannot be decoded")


def test_a_limit_of_the_analysis_is_nobodys_fault() -> None:
    context = context_of(pasted(TEXT))
    place = context.stream.events[0].place
    limit = Anomaly(kind=AnomalyKind.TOO_LARGE, detail="64 MiB", place=place, event=None)
    stream = replace(context.stream, anomalies=(limit,))
    (finding,) = findings_of("W009", replace(context, stream=stream))
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)


def test_a_body_that_fits_its_coding_is_fine() -> None:
    assert not found(timed((0.1, gzip.compress(BODY)), headers=GZIP), "W009")


def asked_under(coding: str, body: bytes) -> Exchange:
    base = timed((0.1, BODY), headers=GZIP[:1])
    headers = ((b"content-encoding", coding.encode()),)
    return replace(base, request=replace(base.request, headers=headers, body=body))


def test_a_request_that_cannot_be_decoded_is_reported_and_blames_nobody() -> None:
    finding = one(asked_under("gzip", gzip.compress(b'{"model": "m"}')[:-14]), "W009")
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)
    assert finding.message == (
        "the body of the request cannot be decoded: the gzip data is cut: its end is missing"
    )


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"{}")),
        ("gzip", b'{"model": "m"}'),
        ("utf-8", b'{"model": "m"}'),
        ("gzip", gzip.compress(b'{"model": "m"}')[:-1]),
        ("gzip", b"*" * 40),
        ("gzip", b""),
    ],
    ids=["coded", "plain", "charset", "nearly whole", "redacted", "empty"],
)
def test_a_request_that_can_be_read_or_was_redacted_is_fine(coding: str, body: bytes) -> None:
    assert not found(asked_under(coding, body), "W009")


def test_a_request_that_broke_off_is_not_said_to_be_damaged() -> None:
    broken = asked_under("gzip", gzip.compress(b'{"model": "m"}')[:-14])
    assert not found(replace(broken, request=replace(broken.request, t_end_ns=None)), "W009")


BINARY: Headers = ((b"Content-Type", b"application/vnd.amazon.eventstream"),)
DELTA = event("contentBlockDelta", {"delta": {"text": "caf\u00e9"}})
END_MESSAGE = event("messageStop", {"stopReason": "end_turn"})
DAMAGED = DELTA.replace(b"caf", b"cav")


def test_a_message_whose_checksum_is_wrong_is_reported_with_its_bytes() -> None:
    finding = one(timed((0.1, DELTA), (0.2, DAMAGED), (0.3, END_MESSAGE), headers=BINARY), "W010")
    assert (
        finding.message
        == "the body is corrupt: the checksum of a message (contentBlockDelta) is wrong"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert finding.confidence is Confidence.PROVEN
    assert finding.span == (len(DELTA), 2 * len(DELTA))
    assert '{"text":"cav' in finding.evidence
    assert finding.event is None


def test_a_stream_that_was_read_as_text_is_recognised() -> None:
    body = (DELTA + END_MESSAGE).decode(errors="replace").encode()
    finding = one(timed((0.1, body), headers=BINARY), "W010")
    assert "read the body as text" in finding.hint


def test_damage_all_over_is_reported_once() -> None:
    reads = [(0.1 * at, DAMAGED) for at in range(1, 6)]
    assert one(timed(*reads, headers=BINARY), "W010").message.endswith("(and 4 more)")


def test_text_between_the_elements_of_an_array_is_reported() -> None:
    body = b'[{"a":"\xef\xbf\xbd"}\nupstream connect error\xef\xbf\xbd\n,{"a":2}]'
    finding = one(timed((0.1, body), headers=()), "W010")
    assert "upstream connect error" in finding.evidence
    assert "names the server that wrote" in finding.hint


def test_a_file_may_have_been_damaged_on_its_way_here() -> None:
    exchange = from_bytes(DAMAGED, content_type="application/vnd.amazon.eventstream")
    assert one(exchange, "W010").blame is None


def test_whole_messages_are_fine() -> None:
    assert not found(timed((0.1, DELTA + END_MESSAGE), headers=BINARY), "W010")
    assert not found(timed((0.1, b'[{"a":1},\n{"a":2}]'), headers=()), "W010")


def test_an_empty_finish_reason_is_reported() -> None:
    assert one(pasted(choice({"content": "a"}, ""), FINISH_TEXT), "S006").event == 0


def test_a_known_grammar_is_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "S006")


EVENTS = numbered(created(), added(message()), say("Hi"), done(message("Hi")), ended(message("Hi")))


def test_a_missing_number_is_reported_once_with_both_numbers() -> None:
    found = [one for one in findings(*EVENTS[:1], *EVENTS[2:]) if one.code == "S007"]
    assert [(one.severity, one.message) for one in found] == [
        ("warning", "the sequence number 2 comes after 0")
    ]


def test_numbers_in_a_row_and_no_numbers_are_fine() -> None:
    assert codes(*EVENTS) == []
    bare = [{key: event[key] for key in event if key != "sequence_number"} for event in EVENTS]
    assert codes(*bare) == []
