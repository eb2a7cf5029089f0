"""Import one entry of an HTTP Archive, as browsers and proxies save it.

Format: http://www.softwareishard.com/blog/har-12-spec/. Bodies stand in it as text or as base64,
with their content-coding removed; a note says if a binary one that was saved as text lost bytes.

An archive holds all that a page loaded. The last entry that a model answered is imported; else the
last one with a body. A note says which one it was.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import dialect_of
from deltatape.errors import UsageError
from deltatape.importers.parts import (
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    PlainHeaders,
    build,
    field_lines,
    read_request,
    read_response,
)
from deltatape.model.exchange import Exchange
from deltatape.wire.aws_eventstream import is_message
from deltatape.wire.framer import BYTE_ORDER_MARK
from deltatape.wire.json_value import parse

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"log\"\s*:")
_VERSION = re.compile(r"(?:HTTP/|h)?([0-9](?:\.[1-9])?)(?:\.0)?", re.IGNORECASE)
_STATUSES = range(100, 1000)
_UNDONE = (b"content-encoding", b"content-length", b"transfer-encoding")
"""Codings that an archive has removed."""
_LOST = "\ufffd"

Json = Mapping[str, object]


class HarImporter:
    """Imports a single HAR file."""

    name = "HAR"

    def claims(self, source: ImportSource) -> bool:
        data = source.only or b""
        return _START.match(data) is not None and b'"entries"' in data

    def read(self, source: ImportSource) -> Exchange:
        """See `Importer.read`.

        Raises:
            UsageError: no entry has a response.
        """
        text = (source.only or b"").removeprefix(BYTE_ORDER_MARK).decode(errors="replace")
        listed = _object(_object(parse(text).value).get("log")).get("entries")
        entries = [_object(entry) for entry in listed] if isinstance(listed, list) else []
        answered = [
            (number, entry)
            for number, entry in enumerate(entries, 1)
            if _status(_object(entry.get("response"))) in _STATUSES
        ]
        if not answered:
            raise UsageError(
                f"{source.name}: none of the {len(entries)} entries of this HAR has a response; "
                "save the archive with response content"
            )
        chosen: Exchange | None = None
        for number, entry in reversed(answered):
            note = f"HAR: entry {number} of {len(entries)}"
            exchange = _exchange(source, entry, note)
            if exchange.body and dialect_of(exchange, decode(exchange)) is not None:
                return exchange
            if chosen is None or (exchange.body and not chosen.body):
                chosen = exchange
        assert chosen
        return chosen


def _exchange(source: ImportSource, entry: Json, note: str) -> Exchange:
    """Return the exchange of an entry; the user's description has precedence."""
    notes = [note]
    answer = _object(entry.get("response"))
    body = _body(answer, notes)
    request = _request(_object(entry.get("request")))
    response = _response_head(answer)
    if source.request is not None:
        request = read_request(source.name, source.request)
    if source.response is not None:
        response = read_response(source.name, source.response)
    return build(source.name, request, response, body, notes)


def _request(request: Json) -> ImportedRequest:
    text = _object(request.get("postData")).get("text")
    return ImportedRequest(
        method=_text(request.get("method")) or "POST",
        url=_text(request.get("url")),
        http=_version(request),
        headers=tuple(_headers(request)),
        body=text.encode("utf-8", "replace") if isinstance(text, str) else b"",
    )


def _response_head(response: Json) -> ImportedResponse:
    headers: PlainHeaders = tuple(
        (name, value) for name, value in _headers(response) if name.lower() not in _UNDONE
    )
    media = _text(_object(response.get("content")).get("mimeType"))
    if media and not any(name.lower() == b"content-type" for name, _ in headers):
        headers += ((b"content-type", media.encode("utf-8", "replace")),)
    reason = _text(response.get("statusText")).encode("utf-8", "replace")
    return ImportedResponse(
        status=_status(response), reason=reason, http=_version(response), headers=headers
    )


def _status(response: Json) -> int:
    """Return the status; 0, as in archives, if there was no response."""
    status = response.get("status")
    return status if isinstance(status, int) else 0


def _headers(message: Json) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields, without the pseudo-headers of HTTP/2."""
    found = message.get("headers")
    for field in map(_object, found if isinstance(found, list) else ()):
        name, value = _text(field.get("name")), field.get("value")
        if name and not name.startswith(":"):
            for line in field_lines(value if isinstance(value, str) else ""):
                yield name.encode("utf-8", "replace"), _text(line).encode("utf-8", "replace")


def _body(response: Json, notes: list[str]) -> bytes:
    content = _object(response.get("content"))
    text = content.get("text")
    if not isinstance(text, str):
        notes.append("HAR: the entry has no response body")
        return b""
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text)
        except binascii.Error:
            notes.append("HAR: the body's base64 is damaged and was not decoded")
    if is_message(single := text.encode("latin-1", "replace")):
        return single  # each character is a byte
    if _LOST in text:
        notes.append("HAR: the body was saved as text; bytes that are not text are lost")
    return text.encode("utf-8", "replace")


def _version(message: Json) -> str:
    found = _VERSION.fullmatch(_text(message.get("httpVersion")))
    return found[1] if found else "1.1"


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else ""
