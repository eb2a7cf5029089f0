"""Import a file of flows that mitmproxy saved (`-w`, `save.file`): every HTTP flow an exchange.

Format: tagged netstrings, one dictionary per flow
(https://github.com/mitmproxy/mitmproxy/blob/main/mitmproxy/io/tnetstring.py): `5:hello,` is bytes,
`;` text, `#` an integer, `^` a float, `!` a boolean, `~` null, `]` a list, `}` a dictionary. Bodies
have their content-coding; of responses that mitmproxy streamed it keeps none. It says when a
request began, but not when the pieces of a response came. Of a WebSocket it keeps whole messages,
each with its time, and who closed it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

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
)
from deltatape.model.exchange import Exchange
from deltatape.model.websocket import BINARY, CLOSE, TEXT, Side
from deltatape.printable import count, excerpt
from deltatape.wire.websocket import closure_data

_START = re.compile(rb"[1-9][0-9]{1,11}:[1-9][0-9]?:[a-z_]+;")
_LENGTH = re.compile(rb"(0|[1-9][0-9]{0,11}):")
_OLDEST = 8
"""The version of the format from which on names are text (mitmproxy 5)."""
_DEEPEST = 50
_STATUSES = range(100, 1000)
_DATA = (TEXT, BINARY)
_PORTS = {"http": 80, "https": 443}

Flow = Mapping[object, object]


class FlowsImporter:
    """Imports a file of flows."""

    name = "flows of mitmproxy"
    accepts = "flows that mitmproxy saved"
    is_body = False
    holds = HTTP_MESSAGES | {Part.REASON, Part.HTTP, Part.FIELD_ORDER, Part.CODED, Part.SOCKET}
    remark = "as `-w FILE` saves them, version 5 and later; no body of a streamed response"

    def claims(self, source: ImportSource) -> bool:
        data = source.only or b""
        return _START.match(data) is not None and b"7:version;" in data

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or of a version that is not known.
        """
        flows: list[Flow] = []
        data, at = memoryview(source.only or b""), 0
        try:
            while at < len(data):
                value, at = _value(data, at, len(data), _DEEPEST)
                flows.append(_object(value))
        except ValueError as error:
            raise UsageError(
                f"{source.name}: is a file of mitmproxy that is torn or damaged after"
                f" {count(len(flows), 'flow')}: {excerpt(str(error))}"
            ) from None
        for flow in flows:
            version = flow.get("version")
            if not isinstance(version, int) or version < _OLDEST:
                raise UsageError(
                    f"{source.name}: is a file of mitmproxy of version {excerpt(str(version))};"
                    f" from {_OLDEST} on is accepted: save it with a later mitmproxy"
                )
        flows = [flow for flow in flows if isinstance(flow.get("request"), dict)]
        flows.sort(key=_start)
        begun = _start(flows[0]) if flows else 0
        return [_exchange(source.name, flow, begun) for flow in flows]


def _value(data: memoryview, at: int, stop: int, depth: int) -> tuple[object, int]:
    """Return the value at `at`, and where it ends.

    Raises:
        ValueError: there is none before `stop`; the message says what is wrong.
    """
    length = _LENGTH.match(data, at, stop)
    if length is None:
        raise ValueError(f"no length at byte {at}")
    begin = length.end()
    end = begin + int(length[1])
    if end >= stop:
        raise ValueError(f"the value at byte {at} goes beyond the end")
    tag, content = chr(data[end]), data[begin:end]
    match tag:
        case "]" | "}" if depth:
            items = list(_values(data, begin, end, depth - 1))
            if tag == "]":
                return items, end + 1
            pairs = zip(items[::2], items[1::2], strict=False)
            return {_text(key): one for key, one in pairs}, end + 1
        case ",":
            return bytes(content), end + 1
        case ";":
            return str(content, "utf-8"), end + 1
        case "#":
            return int(bytes(content)), end + 1
        case "^":
            return float(bytes(content)), end + 1
        case "!":
            return bytes(content) == b"true", end + 1
        case "~":
            return None, end + 1
        case _:
            raise ValueError(f"no value ends at byte {end}")


def _values(data: memoryview, at: int, stop: int, depth: int) -> Iterator[object]:
    while at < stop:
        value, at = _value(data, at, stop, depth)
        yield value


def _start(flow: Flow) -> float:
    """Return when the request began, in seconds."""
    value = _object(flow.get("request")).get("timestamp_start")
    return value if isinstance(value, float) else 0


def _exchange(name: str, flow: Flow, begun: float) -> Exchange:
    asked, answer = _object(flow.get("request")), _object(flow.get("response"))
    notes = []
    problem = _object(flow.get("error")).get("msg")
    if isinstance(problem, str):
        notes.append(f"mitmproxy: the flow ended with an error: {excerpt(problem)}")
    request = ImportedRequest(
        method=_text(asked.get("method")) or "POST",
        url=_url(asked),
        http=_version(asked),
        headers=_headers(asked),
        body=_bytes(asked.get("content")),
    )
    status = answer.get("status_code")
    if not isinstance(status, int) or status not in _STATUSES:
        return build(name, request, None, b"", [*notes, "mitmproxy: the flow has no response"])
    response = ImportedResponse(
        status=status,
        reason=_bytes(answer.get("reason")),
        http=_version(answer),
        headers=_headers(answer),
    )
    socket = flow.get("websocket")
    if isinstance(socket, dict):
        return build_socket(
            name,
            request,
            response,
            _messages(socket, begun, notes),
            program="mitmproxy",
            asked_ns=elapsed_ns(begun, asked.get("timestamp_start")),
            answered_ns=elapsed_ns(begun, answer.get("timestamp_start")),
            notes=notes,
        )
    if answer.get("content") is None:
        streamed = "mitmproxy: the response body was not saved, since it was streamed"
        return build(name, request, None, b"", [*notes, streamed])
    return build(name, request, response, _bytes(answer.get("content")), notes)


def _messages(socket: Flow, begun: float, notes: list[str]) -> list[ImportedMessage]:
    """Return what went over a WebSocket; what was not passed on is added to `notes`."""
    listed = socket.get("messages")
    messages = []
    dropped = 0
    for each in listed if isinstance(listed, list) else ():
        match each:
            case [_, _, _, _, True, *_]:
                dropped += 1
            case [int() as opcode, bool() as asked, bytes() as data, time, *_] if opcode in _DATA:
                side = Side.CLIENT if asked else Side.SERVER
                messages.append(ImportedMessage(elapsed_ns(begun, time), side, opcode, data))
    if dropped:
        notes.append(f"mitmproxy: left out {count(dropped, 'message')} that it did not pass on")
    code, reason = socket.get("close_code"), socket.get("close_reason")
    closing = closure_data(code if isinstance(code, int) else None, _text(reason))
    if closing is not None:
        side = Side.CLIENT if socket.get("closed_by_client") else Side.SERVER
        end_ns = elapsed_ns(begun, socket.get("timestamp_end"))
        messages.append(ImportedMessage(end_ns, side, CLOSE, closing))
    return messages


def _url(request: Flow) -> str:
    scheme, port = _text(request.get("scheme")), request.get("port")
    fields = {name.lower(): value for name, value in _headers(request)}
    place = _text(request.get("authority")) or _text(fields.get(b"host"))
    if not place:
        place = _text(request.get("host"))
        place += f":{port}" if port != _PORTS.get(scheme) else ""
    return f"{scheme or 'https'}://{place}{_text(request.get('path'))}"


def _headers(message: Flow) -> PlainHeaders:
    found = message.get("headers")
    fields = found if isinstance(found, list) else []
    return tuple(
        (field[0], field[1])
        for field in fields
        if isinstance(field, list) and [type(part) for part in field] == [bytes, bytes]
    )


def _version(message: Flow) -> str:
    return _text(message.get("http_version")).removeprefix("HTTP/").removesuffix(".0") or "1.1"


def _object(value: object) -> Flow:
    return value if isinstance(value, dict) else {}


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else _text(value).encode("utf-8", "replace")


def _text(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text if isinstance(text, str) and text.isprintable() else ""
