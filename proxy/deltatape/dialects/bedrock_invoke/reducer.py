"""Unwraps a model's events from Amazon's messages and passes them to that model's reducer.

Which language it is shows in the first object that has the mark of one; what comes before waits for
it. To the reducer of the language, an event is what the model sent: its text is the decoded one,
its number and place are those of the message that carried it.

Amazon adds members of its own to the model's objects: metrics of the whole call, and what a
guardrail did.
"""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace

from deltatape.dialects._anthropic.reducer import MessageReducer, is_document, is_event
from deltatape.dialects._base import Reducer
from deltatape.dialects._chat.reducer import ChatReducer
from deltatape.dialects._chat.shape import is_chat
from deltatape.dialects._cohere_v1 import is_v1, v1_table
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import Frame, as_object, get_object, get_str
from deltatape.dialects._table import TableReducer
from deltatape.dialects.bedrock_invoke.flat import FlatReducer, shape_of
from deltatape.dialects.bedrock_invoke.nova import NovaReducer, is_nova
from deltatape.model.reply import Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse

CHUNK = "chunk"
"""The type of the messages that carry the model's words."""
_AMAZON = "amazon-bedrock-"
_METRICS = "amazon-bedrock-invocationMetrics"
_GUARDRAIL = "amazon-bedrock-guardrailAction"
_INTERVENED = "INTERVENED"


class InvokeReducer:
    """Rebuilds the reply of a model on Bedrock. See `Reducer`.

    Events are taken out of what carries them one by one: what the inner reducer learns is not used.
    """

    fast_path = NO_FAST_PATH

    def __init__(self, name: str, request: RequestSummary) -> None:
        self._name = name
        self._request = request
        self._inner: Reducer | None = None
        self._waiting: list[Event] = []
        self._metrics: Mapping[str, object] | None = None
        self._intervened = False

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        del frame  # Mostly another one is inside.
        if not event.exception:
            event = _carried(event)
            if _AMAZON in event.data:
                self._take_amazons(event)
        if self._inner is None:
            self._waiting.append(event)
            self._choose(event)
        else:
            self._inner.feed(event)

    def finish(self, *, cut: bool) -> Reply:
        if self._inner is None:
            self._start(FlatReducer(self._name, self._request, None))
        assert self._inner
        reply = self._inner.finish(cut=cut)
        if self._intervened:
            first, *others = reply.choices
            first = replace(first, finish_detail=first.finish_detail or "guardrail_intervened")
            reply = replace(reply, choices=(first, *others))
        return replace(reply, usage=reply.usage or self._metrics)

    def _choose(self, event: Event) -> None:
        """Detect the format of `event`."""
        frame = None if event.exception else as_object(parse(event.data).value)
        if frame is None:
            return
        if is_event(frame) or is_document(frame):
            self._start(MessageReducer(self._name, self._request))
        elif is_nova(frame):
            self._start(NovaReducer(self._name, self._request))
        elif is_v1(frame):
            self._start(TableReducer(v1_table(self._name), self._request))
        elif (shape := shape_of(frame)) is not None:
            self._start(FlatReducer(self._name, self._request, shape))
        elif is_chat(frame):
            self._start(ChatReducer(self._name, self._request))

    def _start(self, inner: Reducer) -> None:
        self._inner = inner
        for event in self._waiting:
            inner.feed(event)
        self._waiting = []

    def _take_amazons(self, event: Event) -> None:
        frame = as_object(parse(event.data).value) or {}
        self._metrics = get_object(frame, _METRICS) or self._metrics
        self._intervened |= frame.get(_GUARDRAIL) == _INTERVENED


def _carried(event: Event) -> Event:
    """Return the wrapped event; `event` itself if it wraps none."""
    outer = as_object(parse(event.data).value) if event.type == CHUNK else None
    encoded = None if outer is None else get_str(outer, "bytes")
    if encoded is None:
        return event
    try:
        text = b64decode(encoded, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        text = encoded  # no JSON, and noted as such
    return event._replace(type=CHUNK, data=text, id="", retry=None, exception=False)
