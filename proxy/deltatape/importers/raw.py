"""Import a response body in one file: SSE text, NDJSON, JSON, or an AWS event stream.

Nothing in the body is changed. Without a description of the response, its media type is inferred
from the body.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from deltatape.diagnose.decode import format_of
from deltatape.importers._base import (
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    PlainHeaders,
    build,
)
from deltatape.importers.envelope import read_request, read_response
from deltatape.model.exchange import Exchange, header
from deltatape.model.stream import Format

_SSE_LINE = re.compile(rb"^(?:data|event|id|retry)?:", re.MULTILINE)
UNKNOWN = "application/octet-stream"
"""The media type of a body of no known format."""
_MEDIA_TYPES: Mapping[Format, str] = {
    Format.SSE: "text/event-stream",
    Format.NDJSON: "application/x-ndjson",
    Format.JSON_ARRAY: "application/json",
    Format.EVENTSTREAM: "application/vnd.amazon.eventstream",
    Format.JSON: "application/json",
    Format.OTHER: UNKNOWN,
}


class RawImporter:
    """Imports any single file."""

    name = "raw body"

    def claims(self, material: ImportSource) -> bool:
        return material.only is not None

    def read(self, material: ImportSource) -> Exchange:
        asked = read_request(material.name, material.request)
        answered = read_response(material.name, material.response)
        return from_parts(material.name, asked, answered, material.only or b"")


def from_parts(
    name: str,
    asked: ImportedRequest,
    answered: ImportedResponse,
    body: bytes,
    notes: Sequence[str] = (),
) -> Exchange:
    """Build an exchange of these parts; a missing media type is inferred from the body."""
    if header(answered.headers, "content-type") is not None:
        return build(name, asked, answered, body, notes)
    media_type = sniff(body)
    headers: PlainHeaders = (*answered.headers, (b"content-type", media_type.encode()))
    notes = (*notes, f"media type {media_type} told by the body")
    return build(name, asked, replace(answered, headers=headers), body, notes)


def sniff(body: bytes) -> str:
    """Infer the media type of a response body from its bytes alone."""
    form = format_of(body, "")
    if form is Format.OTHER and _SSE_LINE.search(body):
        form = Format.SSE  # behind something else
    return _MEDIA_TYPES[form]
