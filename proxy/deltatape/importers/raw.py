"""A response body as it came: SSE text, NDJSON, JSON, or an AWS event stream, in one file.

Nothing in the body is changed. Without a description of the response, its media type is told by
how the body begins.
"""

import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace

from deltatape.importers._base import Answered, Asked, Material, PlainHeaders, build
from deltatape.importers.envelope import read_request, read_response
from deltatape.model.exchange import Exchange, header

_SSE_LINE = re.compile(rb"^(?:data|event|id|retry)?:", re.MULTILINE)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PRELUDE = 12
"""Total length, length of the headers, and the CRC-32 of both: four bytes each, big-endian."""


class Raw:
    """Takes any single file."""

    name = "raw body"

    def claims(self, material: Material) -> bool:
        """See `Importer.claims`."""
        return material.only is not None

    def read(self, material: Material) -> Exchange:
        """See `Importer.read`."""
        asked = read_request(material.name, material.request)
        answered = read_response(material.name, material.response)
        return from_parts(material.name, asked, answered, material.only or b"")


def from_parts(
    name: str, asked: Asked, answered: Answered, body: bytes, notes: Sequence[str] = ()
) -> Exchange:
    """An exchange of these parts; a missing media type is told by the body."""
    if header(answered.headers, "content-type") is not None:
        return build(name, asked, answered, body, notes)
    media_type = sniff(body)
    headers: PlainHeaders = (*answered.headers, (b"content-type", media_type.encode()))
    notes = (*notes, f"media type {media_type} told by the body")
    return build(name, asked, replace(answered, headers=headers), body, notes)


def sniff(body: bytes) -> str:
    """The media type of a response body, by its bytes alone."""
    if _is_event_stream_message(body):
        return "application/vnd.amazon.eventstream"
    text = body.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if text[:1] in (b"{", b"["):
        return _json_type(text)
    if _SSE_LINE.search(text):
        return "text/event-stream"
    return "application/octet-stream"


def _is_event_stream_message(body: bytes) -> bool:
    checksum = int.from_bytes(body[8:_PRELUDE])
    return len(body) >= _PRELUDE and zlib.crc32(body[:8]) == checksum


def _json_type(text: bytes) -> str:
    """NDJSON is told from JSON by a first line that is a value, with something after it."""
    first, _, rest = text.partition(b"\n")
    if rest.strip():
        try:
            json.loads(first)
        except (ValueError, RecursionError):
            return "application/json"
        return "application/x-ndjson"
    return "application/json"
