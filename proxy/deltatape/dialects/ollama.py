"""Ollama's own API: one JSON object per line, complete calls, arguments as objects, often no ids.

Shapes: https://github.com/ollama/ollama/blob/main/docs/api.md (`/api/chat`, `/api/generate`). The
calls of all lines belong to one message; clients that assign the list instead of appending to it
lose the earlier ones. A stream ends with `"done": true`; an error is a line of its own.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from deltatape.dialects._base import Errors, EventShape, Hints, Traits
from deltatape.dialects._calls import CallEndCause
from deltatape.dialects._chat_request import read_request
from deltatape.dialects._delta_fast_path import DeltaFastPath
from deltatape.dialects._errors import may_fail
from deltatape.dialects._json import (
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    as_array,
    as_object,
    get_index,
    get_object,
    get_str,
)
from deltatape.dialects._reply import ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.dialects._request import exact
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event, Format

TERMINATOR = 'a line with "done": true'
_POLICY = DialectPolicy(abnormal=frozenset({"length", "load", "unload"}), ids=False)
_PATHS = ("/api/chat", "/api/generate")
_METRICS = ("prompt_eval_count", "eval_count", "total_duration", "load_duration")
_BODIES = ("message", "response")
_TEXT, _REASONING = Channel.TEXT, Channel.REASONING
_TEXTS = {"response": _TEXT, "content": _TEXT, "thinking": _REASONING}
"""By text member of a line or of its message: the channel of the text."""
_LINE_CONTENT = ("response", "thinking")
_MESSAGE_CONTENT = ("content", "thinking", "images", "tool_calls")
"""All members that may say something."""
_HEAD = ("model", "created_at")


def _error(status: int, message: str) -> Mapping[str, object]:
    del status
    return {"error": message}


class Ollama:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "ollama"
    traits: ClassVar[Traits] = Traits(
        provider="ollama",
        shape=EventShape.LINES,
        formats=frozenset({Format.NDJSON, Format.JSON}),
        policy=_POLICY,
        shared_paths=_PATHS,
        errors=Errors(document=_error),
        delta_keys=frozenset({"content", "thinking"}),
        closing_keys=frozenset({"done", "done_reason"}),
    )

    def claims(self, hints: Hints) -> bool:
        if hints.format not in (Format.NDJSON, Format.JSON):
            return False
        return any(map(_is_ours, hints.first))

    def serves(self, path: str) -> bool:
        return path.rstrip("/").endswith(_PATHS)

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """See `Dialect.read_request`: it streams unless it says that it does not."""
        del path
        return read_request(body, streams=True, nameless=True)

    def reducer(self, request: RequestSummary) -> "OllamaReducer":
        return OllamaReducer(self.name, request)


class OllamaReducer:
    """Rebuilds an answer of Ollama. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary) -> None:
        self.fast_path = DeltaFastPath()
        self._reply = ReplyDraft(name, TERMINATOR, request, _POLICY)

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        reply = self._reply
        line = frame or reply.read(event)
        if line is None:
            return
        if may_fail(line, event):
            reply.take_error(line, event)
        if not reply.model:
            reply.model = get_str(line, "model") or None
        draft = reply.choice()
        draft.add_text(_TEXT, get_str(line, "response") or "", event)
        draft.add_text(_REASONING, get_str(line, "thinking") or "", event)
        message = get_object(line, "message")
        if message is not None:
            _take_message(draft, message, event)
        if line.get("done") is True:
            reply.terminal = reply.terminal or event
            reply.usage = {key: line[key] for key in _METRICS if key in line} or None
            reason = get_str(line, "done_reason")
            if reason:
                draft.finish(reason, event)
        elif self.fast_path.learns and not may_fail(line, event):
            self._learn(line, message or {}, event)

    def _learn(self, line: Frame, message: Frame, event: Event) -> None:
        """Prepare the fast path if a line did nothing but add text."""
        members = [(key, line[key]) for key in _LINE_CONTENT if line.get(key)]
        members += [(key, message[key]) for key in _MESSAGE_CONTENT if message.get(key)]
        if len(members) == 1:
            key, text = members[0]
            channel = _TEXTS.get(key)
            if channel is not None and isinstance(text, str):
                append = partial(self._reply.choice().add_texts, channel)
                self.fast_path.learn(event, line, append, key)

    def finish(self, *, cut: bool) -> Reply:
        del cut  # The last line tells more than the transport does.
        done = self._reply.terminal is not None
        return self._reply.build(CallEndCause.NORMAL if done else CallEndCause.CUT, terminated=done)


def _is_ours(one: Mapping[str, object]) -> bool:
    """Check whether `one` is a line of an answer; it names its model."""
    is_line = isinstance(one.get("done"), bool) and any(body in one for body in _BODIES)
    return is_line and any(key in one for key in _HEAD)


def _take_message(draft: ChoiceDraft, message: Mapping[str, object], event: Event) -> None:
    draft.add_text(_TEXT, get_str(message, "content") or "", event)
    draft.add_text(_REASONING, get_str(message, "thinking") or "", event)
    draft.media = draft.media or bool(message.get("images"))
    value = message.get("tool_calls")
    entries = as_array(value)
    if entries is None:
        if value is not None:
            draft.note_unexpected("tool_calls is not a list", value, event)
        return
    elements = Elements(MemberValue(MemberValue(WholeString(event.data), "message"), "tool_calls"))
    for place, each in enumerate(entries):
        entry = as_object(each)
        if entry is None:
            draft.note_unexpected("an entry of tool_calls is not an object", value, event)
        else:
            _take_call(draft, entry, event, Element(elements, place))


def _take_call(
    draft: ChoiceDraft, entry: Mapping[str, object], event: Event, source: JsonSource
) -> None:
    function = get_object(entry, "function") or {}
    call = draft.open(CallKind.FUNCTION, event, get_index(function, "index"))
    call.identify(get_str(entry, "id"), get_str(function, "name"))
    if get_str(function, "arguments"):
        detail = "the arguments are a string with JSON in it instead of JSON"
        call.note("quoted", "T006", detail, entry, event)
    call.add(exact(function, "arguments", MemberValue(source, "function")), event)
