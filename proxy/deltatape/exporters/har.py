"""Export an HTTP archive, for browsers' developer tools and the programs that read such archives.

Format: http://www.softwareishard.com/blog/har-12-spec/, version 1.2. Members with an underscore are
extensions: `_webSocketMessages` is Chrome's, `_encoding` of a request's body is ours, since the
format has no place for one that is no text. Bodies have their content-coding undone, as everywhere
in archives; `timings` has what was measured.
"""

import base64
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from deltatape.diagnose.decode import media_type
from deltatape.diagnose.exchange_parts import semantic_fields, url_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.diagnose.websocket import read_socket
from deltatape.exporters.parts import json_text, moment, text_of, time_of
from deltatape.importers.har import HarImporter, read_text
from deltatape.model.exchange import Exchange, Headers, Request, ResponseHead, header
from deltatape.model.websocket import TEXT, Side
from deltatape.wire.websocket import is_control

_MS_NS = 1_000_000
_REDIRECTS = range(300, 400)
Json = dict[str, object]


class HarExporter:
    """Exports a HAR file."""

    name = "har"
    title = "an HTTP archive (HAR 1.2)"
    holds = HarImporter.holds
    remark = "also has the times of request and response, and of the messages of a WebSocket"
    is_folder = False

    def refuses(self, _: Analysis) -> str:
        return ""

    def files(self, analyses: Sequence[Analysis], version: str) -> Mapping[str, bytes]:
        archive = {
            "log": {
                "version": "1.2",
                "creator": {"name": "deltatape", "version": version},
                "entries": [_entry(analysis.exchange) for analysis in analyses],
            }
        }
        return {"": json_text(archive).encode()}


def _entry(exchange: Exchange) -> Json:
    request, response = exchange.request, exchange.response
    timings = _timings(exchange)
    entry: Json = {
        "startedDateTime": time_of(exchange, request.t_ns),
        "time": sum(timings.values()),
        "request": _request(request, url_of(exchange)),
        "response": _response(response, exchange.content) if response else _no_response(exchange),
        "cache": {},
        "timings": timings,
    }
    if exchange.upgraded:
        entry["_resourceType"] = "websocket"
        entry["_webSocketMessages"] = _messages(exchange)
    return entry


def _timings(exchange: Exchange) -> dict[str, float]:
    """Return how long sending, waiting and receiving took, in milliseconds."""
    request = exchange.request
    sent_ns = request.t_ns if request.t_end_ns is None else request.t_end_ns
    answered_ns = exchange.response.t_ns if exchange.response else sent_ns
    last_ns = exchange.reads[-1].t_ns if exchange.reads else answered_ns
    marks = {"send": sent_ns - request.t_ns, "wait": answered_ns - sent_ns}
    marks["receive"] = last_ns - answered_ns
    return {name: max(ns, 0) / _MS_NS for name, ns in marks.items()}


def _request(request: Request, url: str) -> Json:
    written: Json = {
        "method": request.method,
        "url": url,
        "httpVersion": f"HTTP/{request.http}",
        "cookies": [],
        "headers": _fields(request.headers),
        "queryString": [
            {"name": name, "value": value}
            for name, value in parse_qsl(url.partition("?")[2], keep_blank_values=True)
        ],
        "headersSize": -1,
        "bodySize": len(request.body),
    }
    if request.content:
        kind = text_of(header(request.headers, "content-type") or b"")
        written["postData"] = {"mimeType": kind, **_posted(request.content)}
    return written


def _posted(content: bytes) -> Json:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"text": base64.b64encode(content).decode(), "_encoding": "base64"}


def _response(response: ResponseHead, content: bytes) -> Json:
    moved = header(response.headers, "location") or b""
    return {
        "status": response.status,
        "statusText": text_of(response.reason),
        "httpVersion": f"HTTP/{response.http}",
        "cookies": [],
        "headers": _fields(response.headers),
        "content": {
            "size": len(content),
            "mimeType": media_type(response.headers),
            **_content(content),
        },
        "redirectURL": text_of(moved) if response.status in _REDIRECTS else "",
        "headersSize": -1,
        "bodySize": -1,
    }


def _no_response(exchange: Exchange) -> Json:
    """Return what browsers write where no response came."""
    detail = exchange.end.detail or exchange.end.reason.value if exchange.end else ""
    return {
        "status": 0,
        "statusText": "",
        "httpVersion": "",
        "cookies": [],
        "headers": [],
        "content": {"size": 0, "mimeType": "x-unknown"},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
        "_error": detail,
    }


def _content(content: bytes) -> Json:
    """Return a body as text, or as base64 where readers would take the text for other bytes."""
    text = content.decode(errors="replace")
    if read_text(text, []) == content:
        return {"text": text}
    return {"text": base64.b64encode(content).decode(), "encoding": "base64"}


def _fields(headers: Headers) -> list[Json]:
    """Return the fields; those about bytes on the wire would contradict the body."""
    return [
        {"name": text_of(name), "value": text_of(value)} for name, value in semantic_fields(headers)
    ]


def _messages(exchange: Exchange) -> list[Json]:
    """Return the messages of a WebSocket, as Chrome writes them: its times are in seconds."""
    return [
        {
            "type": "send" if message.side is Side.CLIENT else "receive",
            "time": moment(exchange, message.t_end_ns).timestamp(),
            "opcode": message.opcode,
            "data": message.data.decode(errors="replace")
            if message.opcode == TEXT
            else base64.b64encode(message.data).decode(),
        }
        for message in read_socket(exchange).messages
        if not is_control(message.opcode)
    ]
