"""Messages in Amazon's event stream encoding, as its services send them."""

import json
from collections.abc import Mapping

from deltatape.wire.aws_eventstream import encode_headers, encode_message

STRING = 7
JSON = "application/json"


def header(name: str, kind: int, value: bytes) -> bytes:
    """One header; `value` is its encoding, with its length where its type has one."""
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def frame(headers: bytes, payload: bytes) -> bytes:
    """One message around encoded headers, with both checksums right."""
    return encode_message(headers, payload)


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message whose headers are all strings."""
    return encode_message(encode_headers(headers), payload)


def event(event_type: str, payload: object) -> bytes:
    """An event as Bedrock sends it; `payload` is its JSON value."""
    return message(
        {":event-type": event_type, ":content-type": JSON, ":message-type": "event"},
        json.dumps(payload, separators=(",", ":")).encode(),
    )


def exception(exception_type: str, text: str) -> bytes:
    """A modelled exception, such as `throttlingException`, with its message."""
    return message(
        {":exception-type": exception_type, ":content-type": JSON, ":message-type": "exception"},
        json.dumps({"message": text}, separators=(",", ":")).encode(),
    )


def error(error_code: str, text: str) -> bytes:
    """An error that no model of the service describes: it has no payload."""
    return message(
        {":error-code": error_code, ":error-message": text, ":message-type": "error"}, b""
    )
