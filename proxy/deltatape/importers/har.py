"""Import an HTTP Archive, as browsers, Playwright and proxies save it: every entry an exchange.

Format: http://www.softwareishard.com/blog/har-12-spec/. Bodies are in it as text or as base64,
with their content-coding removed; a note says if a binary one that was saved as text lost bytes.
Where an archive has no body, but the rows of Chrome's EventStream tab (`_eventSourceMessages`), the
events are written anew from them; the rows have times, too. Where it has neither, or rows without
data, as in archives that Chrome calls sanitized, the response is left out rather than taken for an
empty one. The messages of WebSockets are in `_webSocketMessages`, as Chromium, Playwright and
mitmproxy write them, each with its time.

Programs list entries in an order of their own, so they are sorted by their start.
"""

import base64
import binascii
import contextlib
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from deltatape.diagnose.decode import decode
from deltatape.diagnose.exchange_parts import HTTP_MESSAGES, Part
from deltatape.errors import UsageError
from deltatape.importers.parts import (
    ImportedMessage,
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    PlainHeaders,
    build,
    build_socket,
    elapsed_ns,
    event_text,
    field_lines,
    seconds_of,
)
from deltatape.importers.traffic import describe
from deltatape.model.exchange import Exchange, Read
from deltatape.model.websocket import BINARY, TEXT, Side
from deltatape.printable import count, excerpt
from deltatape.wire.aws_eventstream import is_message
from deltatape.wire.framer import BYTE_ORDER_MARK
from deltatape.wire.json_value import parse, read_object

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"log\"\s*:")
_VERSION = re.compile(r"(?:HTTP/|h)?(1\.[01]|[0-9])(?:\.0)?", re.IGNORECASE)
_STATUSES = range(100, 1000)
_UNDONE = (b"content-encoding", b"content-length", b"transfer-encoding")
"""Codings that an archive has removed."""
_BEFORE = ("blocked", "dns", "connect", "send", "wait")
"""What an entry measures, in milliseconds, before the response's head came."""
_SOCKET = "websocket"
_SIDES = {"send": Side.CLIENT, "receive": Side.SERVER}
_MILLISECONDS = 1e11
"""Playwright's times of messages are in milliseconds, all others' in seconds."""
_LOST = "\ufffd"
_ZIP = b"PK\x03\x04"
_HAR = ".har"
_LARGEST = 256 * 1024 * 1024
"""Bytes of all files of a ZIP archive: as much as is read of any file."""
_WINDOWS = {
    ord(shown): byte
    for byte in range(0x80, 0xA0)
    if (shown := bytes([byte]).decode("cp1252", "ignore"))
}
"""Bytes by the characters that browsers show for them where no charset is named."""

Json = Mapping[str, object]


class HarImporter:
    """Imports a HAR file."""

    name = "a HAR"
    accepts = "an HTTP archive (HAR) with content"
    is_body = False
    holds = HTTP_MESSAGES | {Part.REASON, Part.HTTP, Part.FIELD_ORDER, Part.SOCKET}
    remark = (
        "Chrome's rows of the EventStream tab stand in for a body that is missing, with their times"
    )

    def claims(self, source: ImportSource) -> bool:
        data = source.only or b""
        if data.startswith(_ZIP):
            return any(name.endswith(_HAR) for name in _zipped(data))
        return _START.match(data) is not None and b'"entries"' in data

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or no entry has a response.
        """
        data = source.only or b""
        files: Mapping[str, bytes] = {}
        if data.startswith(_ZIP):
            files = _unzipped(source.name, data)
            data = next(content for name, content in files.items() if name.endswith(_HAR))
        data = data.removeprefix(BYTE_ORDER_MARK)
        archive = parse(data.decode(errors="replace"))
        if archive.error is not None:
            raise UsageError(f"{source.name}: is a HAR, but {describe(data)}; save it again")
        listed = _object(_object(archive.value).get("log")).get("entries")
        entries = [_object(entry) for entry in listed] if isinstance(listed, list) else []
        answered = [
            (seconds_of(entry.get("startedDateTime")), number, entry)
            for number, entry in enumerate(entries, 1)
            if _status(_object(entry.get("response"))) in _STATUSES
        ]
        if not answered:
            raise UsageError(
                f"{source.name}: none of the {len(entries)} entries of this HAR has a response; "
                "save the archive with response content"
            )
        answered.sort(key=lambda each: each[:2])
        begun = answered[0][0]
        exchanges = []
        for _, number, entry in answered:
            note = f"HAR: entry {number} of {len(entries)}"
            rows = _messages(entry, files)
            if rows is None:
                exchanges.append(_exchange(source.name, entry, note, files, begun))
            else:
                exchanges.append(_socket(source.name, entry, note, begun, rows))
        return exchanges


def _zipped(data: bytes) -> Sequence[str]:
    """Return the names in a ZIP archive; none if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return ()


def _unzipped(name: str, data: bytes) -> Mapping[str, bytes]:
    """Return the files in a ZIP archive: of Playwright, the HAR and each body.

    Raises:
        UsageError: it is damaged, encrypted, or has more than `_LARGEST` bytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            if sum(each.file_size for each in listed) > _LARGEST:
                raise UsageError(f"{name}: is a zipped HAR of more than {_LARGEST} bytes")
            # No file gives more than it says: zipfile reads no further.
            return {each.filename: archive.read(each) for each in listed}
    except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"{name}: is a zipped HAR, but damaged: {excerpt(str(error))}") from None


def _exchange(
    name: str, entry: Json, note: str, files: Mapping[str, bytes], begun: float
) -> Exchange:
    notes = [note]
    answer = _object(entry.get("response"))
    listed = entry.get("_eventSourceMessages")
    rows = [*map(_object, listed)] if isinstance(listed, list) else []
    if rows and "text" not in _object(answer.get("content")):
        body = _event_stream(rows, notes)
    elif entry.get("_resourceType") == _SOCKET:
        notes.append("HAR: the messages of the WebSocket are not in the archive")
        body = None
    else:
        body = _body(answer, notes, files)
    request = _request(_object(entry.get("request")))
    head = None if body is None else _response_head(answer)
    exchange = build(name, request, head, body or b"", notes)
    return _at_times(exchange, entry, rows, begun) if rows else exchange


def _messages(entry: Json, files: Mapping[str, bytes]) -> Sequence[Json] | None:
    """Return what went over a WebSocket; None if it is none, or that is not in the archive."""
    listed = entry.get("_webSocketMessages")
    if isinstance(listed, list):
        return [*map(_object, listed)]
    at = _object(_object(entry.get("response")).get("content")).get("_file")
    if entry.get("_resourceType") != _SOCKET or not isinstance(at, str) or at not in files:
        return None
    return [read_object(line) or {} for line in files[at].decode(errors="replace").splitlines()]


def _socket(name: str, entry: Json, note: str, begun: float, rows: Sequence[Json]) -> Exchange:
    """Return the exchange of a WebSocket.

    Args:
        name: the name of the file.
        entry: the entry of the handshake.
        note: about the entry.
        begun: when the first request of the archive did, in seconds; 0 if unknown.
        rows: what went over it.
    """
    notes = [note]
    messages = []
    for row in rows:
        side, opcode = _SIDES.get(_string(row.get("type"))), row.get("opcode")
        if side is None or opcode not in (TEXT, BINARY):
            continue
        time = row.get("time")
        if isinstance(time, int | float) and time > _MILLISECONDS:
            time /= 1000
        data = _string(row.get("data")).encode("utf-8", "replace")
        if opcode == BINARY:
            with contextlib.suppress(binascii.Error):
                data = base64.b64decode(data)
        messages.append(ImportedMessage(elapsed_ns(begun, time), side, opcode, data))
    if len(messages) < len(rows):
        left = count(len(rows) - len(messages), "row")
        notes.append(f"HAR: left out {left} of the WebSocket that are no messages")
    asked_ns = elapsed_ns(begun, seconds_of(entry.get("startedDateTime")))
    return build_socket(
        name,
        _request(_object(entry.get("request"))),
        _response_head(_object(entry.get("response"))),
        messages,
        program="the archive",
        asked_ns=asked_ns,
        answered_ns=asked_ns,
        notes=notes,
    )


def _event_stream(rows: Sequence[Json], notes: list[str]) -> bytes | None:
    """Return the events that the rows of the EventStream tab list; None if they lack the data."""
    if not all("data" in row for row in rows):
        notes.append(
            "HAR: the data of the events is not in the archive, as where Chrome leaves out what is"
            " sensitive: export it with sensitive data"
        )
        return None
    notes.append(
        f"HAR: the body was written anew from {count(len(rows), 'row')} of the EventStream tab,"
        " which has no comments and no line ends of the wire"
    )
    return "".join(
        event_text(
            _string(row.get("data")), _string(row.get("eventName")), _string(row.get("eventId"))
        )
        for row in rows
    ).encode("utf-8", "replace")


def _at_times(exchange: Exchange, entry: Json, rows: Sequence[Json], begun: float) -> Exchange:
    """Return an exchange whose events, if as many, came at the times of the rows."""
    ends = [event.end for event in decode(exchange).events]
    if len(ends) != len(rows) or exchange.response is None:
        return exchange
    asked_ns = elapsed_ns(begun, seconds_of(entry.get("startedDateTime")))
    came = [asked_ns + _waited_ns(entry), *(elapsed_ns(begun, row.get("time")) for row in rows)]
    answered_ns, *times = accumulate(came, max)
    body = exchange.body
    spans = pairwise((0, *ends[:-1], len(body)))
    return replace(
        exchange,
        request=replace(exchange.request, t_ns=asked_ns, t_end_ns=asked_ns),
        response=replace(exchange.response, t_ns=answered_ns),
        reads=tuple(
            Read(t_ns=t_ns, data=body[start:end], boundaries=None, line=None)
            for t_ns, (start, end) in zip(times, spans, strict=True)
        ),
    )


def _waited_ns(entry: Json) -> int:
    """Return how long the response's head took; what is not known counts nothing."""
    timings = _object(entry.get("timings"))
    return sum(elapsed_ns(0, timings.get(name)) // 1000 for name in _BEFORE)


def _request(request: Json) -> ImportedRequest:
    posted = _object(request.get("postData"))
    text = posted.get("text")
    body = text.encode("utf-8", "replace") if isinstance(text, str) else b""
    if posted.get("_encoding") == "base64":  # as `deltatape export` writes what is no text
        with contextlib.suppress(binascii.Error):
            body = base64.b64decode(body)
    return ImportedRequest(
        method=_text(request.get("method")) or "POST",
        url=_text(request.get("url")),
        http=_version(request),
        headers=tuple(_headers(request)),
        body=body,
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


def _body(response: Json, notes: list[str], files: Mapping[str, bytes]) -> bytes | None:
    """Return the body; None if the archive has none, though there was one."""
    content = _object(response.get("content"))
    text, remark = content.get("text"), content.get("comment")
    if isinstance(remark, str) and remark:
        notes.append(f"HAR: about the content: {excerpt(remark)}")
    if not isinstance(text, str):
        if content.get("size") == 0 or response.get("bodySize") == 0:
            return b""
        at = content.get("_file")
        if isinstance(at, str) and at in files:
            return files[at]
        place = f"; it is in {excerpt(at)}: embed the content" if isinstance(at, str) else ""
        notes.append(f"HAR: the response body is not in the archive{place}")
        return None
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text)
        except binascii.Error:
            notes.append("HAR: the body's base64 is damaged and was not decoded")
    return read_text(text, notes)


def read_text(text: str, notes: list[str]) -> bytes:
    """Return the body that is saved as `text`; what is lost or mended is added to `notes`."""
    if is_message(single := text.encode("latin-1", "replace")):
        return single  # each character is a byte
    if _LOST in text:
        notes.append("HAR: the body was saved as text; bytes that are not text are lost")
    mended = None if text.isascii() else _utf_8(text)
    if mended is not None:
        notes.append("HAR: the body was saved as if it were Latin-1; it was read as UTF-8")
        return mended
    return text.encode("utf-8", "replace")


def _utf_8(text: str) -> bytes | None:
    """Return the bytes that are shown as `text` by a program that takes UTF-8 for Latin-1.

    Chromium does so, and Playwright with it, where a media type names no charset, as that of
    server-sent events, which are always UTF-8.
    """
    try:
        data = text.translate(_WINDOWS).encode("latin-1")
        data.decode()
    except UnicodeError:
        return None
    return data


def _version(message: Json) -> str:
    found = _VERSION.fullmatch(_text(message.get("httpVersion")))
    return found[1] if found else "1.1"


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else ""
