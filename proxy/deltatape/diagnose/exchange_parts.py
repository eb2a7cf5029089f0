"""The parts of an exchange that a file format holds or loses, each with a value to compare.

An exporter names the parts that its format holds. What is told to the user, docs/formats.md and the
tests (`import(export(tape))` has equal values) follow from that.
"""

import enum
from collections.abc import Callable, Mapping

from deltatape.diagnose.rebuild import Analysis
from deltatape.diagnose.websocket import read_socket
from deltatape.model.exchange import Exchange, Headers, MaskedCredential
from deltatape.model.reply import ToolCall
from deltatape.model.request_summary import Message
from deltatape.urls import split_url
from deltatape.wire.websocket import is_control

_FRAMING_FIELDS = (b"content-encoding", b"content-length", b"transfer-encoding")
"""They describe bytes on the wire, which most formats do not have."""


class Part(enum.StrEnum):
    """A part, named as users are told about it."""

    URL = "method and URL"
    REQUEST_HEADERS = "request fields"
    REQUEST_BODY = "request body"
    CONVERSATION = "messages of the request"
    TOOLS = "tools of the request"
    STATUS = "status"
    REASON = "reason phrase"
    RESPONSE_HEADERS = "response fields"
    BODY = "response body"
    EVENTS = "events"
    REPLY = "text and tool calls of the answer"
    SOCKET = "messages of a WebSocket"
    HTTP = "HTTP version"
    FIELD_ORDER = "order of fields"
    CODED = "coded bytes"
    READS = "reads and their times"
    EVENT_TIMES = "times of events"
    CHUNKS = "ends of chunks"
    TRAILERS = "trailers and 1xx responses"
    ENDING = "ending"
    MASKED = "hashes of masked credentials"
    NOTES = "recorder's notes"


MESSAGES = frozenset({Part.CONVERSATION, Part.TOOLS, Part.REPLY})
"""What a log or a trace holds of an exchange: messages, and nothing of the wire."""


IMPLIED: Mapping[Part, frozenset[Part]] = {
    Part.REQUEST_BODY: frozenset({Part.CONVERSATION, Part.TOOLS}),
    Part.BODY: frozenset({Part.EVENTS, Part.REPLY}),
    Part.EVENTS: frozenset({Part.REPLY}),
    Part.READS: frozenset({Part.EVENT_TIMES}),
}
"""What follows from a part, and need not be named beside it."""


HTTP_MESSAGES = frozenset(
    {
        Part.URL,
        Part.REQUEST_HEADERS,
        Part.REQUEST_BODY,
        Part.STATUS,
        Part.RESPONSE_HEADERS,
        Part.BODY,
    }
)
"""What everything holds that knows a request and a response of HTTP."""


def held(parts: frozenset[Part]) -> frozenset[Part]:
    """Return `parts` with those that they imply; see `IMPLIED`."""
    return parts.union(*(IMPLIED.get(part, ()) for part in parts))


def not_held(parts: frozenset[Part]) -> list[Part]:
    """Return the other parts, in their order, without those that another of them implies."""
    lost = set(Part) - held(parts)
    follows = frozenset[Part]().union(*(IMPLIED.get(part, ()) for part in lost))
    return [part for part in Part if part in lost - follows]


def value_of(part: Part, analysis: Analysis) -> object:
    """Return the value of a part, in a form to compare; a false one if the exchange has none."""
    return _VALUES[part](analysis)


def url_of(exchange: Exchange) -> str:
    """Return the URL of a request, asterisks for masked credentials."""
    request = exchange.request
    parts = split_url(request.upstream)
    origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
    return origin + request.target_bytes.decode("utf-8", "replace")


def shown(value: bytes | MaskedCredential) -> bytes:
    """Return the value of a header field, asterisks for a credential."""
    return value if isinstance(value, bytes) else b"*" * value.length


def semantic_fields(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header fields without those that describe bytes on the wire."""
    return tuple(
        (name, shown(value)) for name, value in headers if name.lower() not in _FRAMING_FIELDS
    )


def _url(analysis: Analysis) -> object:
    return analysis.exchange.request.method, url_of(analysis.exchange)


def _fields(headers: Headers) -> object:
    return sorted((name.lower(), value) for name, value in semantic_fields(headers))


def _response_fields(analysis: Analysis) -> Headers:
    response = analysis.exchange.response
    return response.headers if response else ()


def _status(analysis: Analysis) -> object:
    response = analysis.exchange.response
    return response.status if response else None


def _reason(analysis: Analysis) -> object:
    response = analysis.exchange.response
    return response.reason if response else None


def _events(analysis: Analysis) -> object:
    return [(event.type, event.data) for event in analysis.stream.events]


def _event_times(analysis: Analysis) -> object:
    times = [event.t_ns for event in analysis.stream.events]
    return [time - times[0] for time in times] if len(set(times)) > 1 else []


def _conversation(analysis: Analysis) -> object:
    return [
        (_speaker(message), message.text, message.calls, message.call_id)
        for message in analysis.request.history
    ]


def _speaker(message: Message) -> str:
    """Return who speaks, in the words of OpenAI Chat."""
    if message.call_id is not None:
        return "tool"
    return "assistant" if message.role == "model" else message.role


def _tools(analysis: Analysis) -> object:
    return [(tool.name, tool.parameters) for tool in analysis.request.tools]


def _reply(analysis: Analysis) -> object:
    choices = [
        (choice.text, choice.reasoning, [*map(_call, choice.tool_calls)])
        for choice in analysis.reply.choices
    ]
    return [each for each in choices if any(each)]


def _call(call: ToolCall) -> object:
    return call.id, call.name, call.arguments


def _socket(analysis: Analysis) -> object:
    messages = read_socket(analysis.exchange).messages if analysis.exchange.upgraded else ()
    return [(each.side, each.opcode, each.data) for each in messages if not is_control(each.opcode)]


def _http(analysis: Analysis) -> object:
    response = analysis.exchange.response
    return analysis.exchange.request.http, response.http if response else None


def _field_order(analysis: Analysis) -> object:
    asked = semantic_fields(analysis.exchange.request.headers)
    return [asked, semantic_fields(_response_fields(analysis))]


def _coded(analysis: Analysis) -> object:
    exchange = analysis.exchange
    return [
        body
        for body, content in (
            (exchange.request.body, exchange.request.content),
            (exchange.body, exchange.content),
        )
        if body != content
    ]


def _reads(analysis: Analysis) -> object:
    exchange = analysis.exchange
    return [(read.t_ns, read.data) for read in exchange.reads] if exchange.timed else []


def _chunks(analysis: Analysis) -> object:
    exchange = analysis.exchange
    return [read.boundaries for read in exchange.reads if read.boundaries] * exchange.timed


def _trailers(analysis: Analysis) -> object:
    exchange = analysis.exchange
    return [*exchange.trailers, *exchange.informational]


def _ending(analysis: Analysis) -> object:
    end = analysis.exchange.end
    return (end.reason, end.detail) if end else None


def _masked(analysis: Analysis) -> object:
    exchange = analysis.exchange
    values = [*exchange.request.target, *(value for _, value in exchange.request.headers)]
    values += [value for _, value in _response_fields(analysis)]
    hashes = [value.hash for value in values if isinstance(value, MaskedCredential)]
    spans = [*exchange.request.masked, *(span for read in exchange.reads for span in read.masked)]
    return hashes + [ident for _, _, ident in spans]


def _notes(analysis: Analysis) -> object:
    return [note.text for note in analysis.exchange.notes]


_VALUES: Mapping[Part, Callable[[Analysis], object]] = {
    Part.URL: _url,
    Part.REQUEST_HEADERS: lambda analysis: _fields(analysis.exchange.request.headers),
    Part.REQUEST_BODY: lambda analysis: analysis.exchange.request.content,
    Part.STATUS: _status,
    Part.REASON: _reason,
    Part.RESPONSE_HEADERS: lambda analysis: _fields(_response_fields(analysis)),
    Part.BODY: lambda analysis: analysis.exchange.content,
    Part.EVENTS: _events,
    Part.EVENT_TIMES: _event_times,
    Part.CONVERSATION: _conversation,
    Part.TOOLS: _tools,
    Part.REPLY: _reply,
    Part.SOCKET: _socket,
    Part.HTTP: _http,
    Part.FIELD_ORDER: _field_order,
    Part.CODED: _coded,
    Part.READS: _reads,
    Part.CHUNKS: _chunks,
    Part.TRAILERS: _trailers,
    Part.ENDING: _ending,
    Part.MASKED: _masked,
    Part.NOTES: _notes,
}
