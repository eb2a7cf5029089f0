"""The responses of a session of OpenAI Realtime, each with the request that asked for it.

The server keeps the conversation: a client changes the session (`session.update`), adds items
(`conversation.item.create`) and asks for a response (`response.create`), or the server answers when
a user has spoken. Responses may overlap: each event names its own.

Strategy: a request is written in the form of OpenAI Responses, from the session's settings and the
items since the last response, so that it is read like any other. It continues that response, which
the server keeps. Not reported are interrupted responses, unanswered calls (users hang up, and tools
end calls), and errors about anything but a request for a response: in healthy sessions, too, a
client cancels responses that have already ended.

Spec: https://platform.openai.com/docs/guides/realtime-conversations
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from deltatape.model.exchange import Exchange
from deltatape.model.stream import Event
from deltatape.model.websocket import Message
from deltatape.wire.json_value import parse, read_object

SESSION = ("session.", "conversation.", "input_audio_buffer.")
"""How types of events begin that no other protocol on WebSockets has."""
_RESPONSE, _CREATED, _DONE = "response.", "response.created", "response.done"
_NEVER = "none"
"""The conversation of responses that are not part of any."""
_SETTINGS = ("model", "instructions", "tools", "tool_choice")
_INVALID = "invalid_request_error"

Object = Mapping[str, object]


def object_of(text: str) -> Object:
    """Return the JSON object that a message is; empty if it is none."""
    value = read_object(text) or parse(text).value
    return value if isinstance(value, dict) else {}


@dataclass(slots=True, kw_only=True)
class RealtimeResponse:
    """A response, and the request for it."""

    body: bytes
    """The request, in the form of one for OpenAI Responses."""
    t_ns: int
    """When it was asked for, or began, if the server began by itself."""
    line: int | None
    status: int | None = None
    """The status of the error that came instead of a response."""
    ended: bool = False
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A `response.create` without a response so far."""

    event: Object
    t_ns: int
    line: int | None
    items: list[object]
    """What the client had added to the conversation since the last response."""

    @property
    def settings(self) -> Object:
        return _part(self.event, "response")


class RealtimeSession:
    """A session, message by message.

    Attributes:
        responses: in the order in which they began.
    """

    def __init__(self, exchange: Exchange) -> None:
        query = parse_qs(exchange.request.target_bytes.decode("latin-1").partition("?")[2])
        self.responses: list[RealtimeResponse] = []
        self._name = f"session {exchange.id}"
        self._session: dict[str, object] = {"model": query.get("model", [None])[0]}
        self._items: list[object] = []
        self._asked: list[_Asked] = []
        self._by_id: dict[object, RealtimeResponse] = {}
        self._last: object = None  # the id of the last response in the conversation
        self._calls: dict[object, set[object]] = {}  # by the id of a response, those it made

    def add_request(self, message: Message) -> None:
        """Read a text of the client."""
        event = object_of(message.data.decode(errors="replace"))
        kind = event.get("type")
        if kind == "session.update":
            self._set(_part(event, "session"))
        elif kind == "conversation.item.create":
            self._items.append(event.get("item"))
        elif kind == "response.create":
            asked = _Asked(event=event, t_ns=message.t_ns, line=message.line, items=[*self._items])
            self._asked.append(asked)

    def add_event(self, event: Event) -> None:
        """Read a text of the server."""
        value = object_of(event.data)
        kind = value.get("type")
        if kind in ("session.created", "session.updated"):
            self._set(_part(value, "session"))
        elif kind == "error":
            self._fail(_part(value, "error"), event)
        elif isinstance(kind, str) and kind.startswith(_RESPONSE):
            response = self._response(value, event)
            response.events.append(event)
            response.ended |= kind == _DONE
            self._note_calls(value)

    def _set(self, session: Object) -> None:
        self._session |= {key: session[key] for key in _SETTINGS if session.get(key) is not None}

    def _response(self, value: Object, event: Event) -> RealtimeResponse:
        """Return the response that an event is of; a new one if it is the first."""
        about = _part(value, "response")
        identifier = value.get("response_id") or about.get("id")
        known = self._by_id.get(identifier)
        if known is not None and value.get("type") != _CREATED:
            return known
        asked = self._take_asked(about)
        settings: Object = asked.settings if asked is not None else {}
        response = RealtimeResponse(
            body=self._request(settings, self._items if asked is None else asked.items),
            t_ns=event.t_ns if asked is None else asked.t_ns,
            line=event.line if asked is None else asked.line,
        )
        if settings.get("conversation") != _NEVER and "input" not in settings:
            used = len(self._items if asked is None else asked.items)
            self._items = self._items[used:]
            for each in self._asked:
                each.items = each.items[used:]
            self._last = identifier
        self._by_id[identifier] = response
        self.responses.append(response)
        return response

    def _take_asked(self, response: Object) -> _Asked | None:
        """Return the request for a response: that with its metadata, else the first without."""
        wanted = response.get("metadata") or None
        alike = [one for one in self._asked if (one.settings.get("metadata") or None) == wanted]
        if not alike:
            return None
        self._asked.remove(alike[0])
        return alike[0]

    def _request(self, settings: Object, items: Sequence[object]) -> bytes:
        """Return a request in the form of one for OpenAI Responses."""
        own = {key: settings[key] for key in _SETTINGS if settings.get(key) is not None}
        body: dict[str, object] = {**self._session, **own, "stream": True}
        if isinstance(settings.get("input"), list):
            body["input"] = settings["input"]
        elif settings.get("conversation") != _NEVER:
            body |= {"input": [*items], **self._earlier(items)}
        else:
            body |= {"input": [], **self._earlier(())}
        return json.dumps(body).encode()

    def _earlier(self, items: Sequence[object]) -> Object:
        """Return what the request continues: a response, if it answers all that this one called.

        A client may send results one by one, and others meanwhile.
        """
        if self._last is None:
            return {}
        answered = {one.get("call_id") for one in items if isinstance(one, dict)}
        if self._calls.get(self._last, set()) <= answered:
            return {"previous_response_id": self._last}
        return {"conversation": self._name}

    def _note_calls(self, value: Object) -> None:
        item = _part(value, "item")
        if item.get("type") == "function_call" and item.get("call_id"):
            called = self._calls.setdefault(value.get("response_id"), set())
            called.add(item.get("call_id"))

    def _fail(self, error: Object, event: Event) -> None:
        """Read an error: it may be about a request for a response, which then gets none."""
        cause = error.get("event_id")
        about = [one for one in self._asked if cause and one.event.get("event_id") == cause]
        for asked in about:
            self._asked.remove(asked)
            failed = RealtimeResponse(
                body=self._request(asked.settings, asked.items),
                t_ns=asked.t_ns,
                line=asked.line,
                status=400 if error.get("type") == _INVALID else 500,
                ended=True,
            )
            failed.events.append(event)
            self.responses.append(failed)


def _part(value: Object, name: str) -> Object:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
