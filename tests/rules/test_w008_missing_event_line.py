import json

from deltatape.model.exchange import Exchange
from helpers.exchanges import found, one

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
