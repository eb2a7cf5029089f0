"""Amazon's event stream encoding, to build bodies from.

Source: https://smithy.io/2.0/aws/amazon-eventstream.html
"""

import json
import struct
from collections.abc import Mapping
from zlib import crc32

STRING = 7
JSON = "application/json"


def header(name: str, kind: int, value: bytes) -> bytes:
    """One header; `value` is its encoding, with its length where its type has one."""
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def frame(headers: bytes, payload: bytes) -> bytes:
    """One message around encoded headers, with both checksums right."""
    total = 12 + len(headers) + len(payload) + 4
    prelude = struct.pack(">II", total, len(headers))
    prelude += struct.pack(">I", crc32(prelude))
    body = prelude + headers + payload
    return body + struct.pack(">I", crc32(body))


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message whose headers are all strings."""
    encoded = [
        header(name, STRING, struct.pack(">H", len(value.encode())) + value.encode())
        for name, value in headers.items()
    ]
    return frame(b"".join(encoded), payload)


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
