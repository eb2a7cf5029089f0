"""Rebuilds a response, streamed or not; also one of the Realtime API.

An event is what its data's `type` says; the event line repeats that and may be missing. Types that
are not known here are left out silently: the API gains some every month. `[DONE]`, which proxies
add, is ignored.

A stream may begin in the middle (`starting_after`): its first sequence number is not the first, and
it does not begin with `response.created`. Items that were opened before are not reported as
unannounced.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple, TypeAlias

from deltatape.dialects._calls import CallEndCause
from deltatape.dialects._delta_fast_path import DeltaFastPath, TextDelta
from deltatape.dialects._errors import error_message
from deltatape.dialects._json import (
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    get_index,
    get_object,
    get_str,
)
from deltatape.dialects._reply import SENTINEL, DialectPolicy, ReplyDraft
from deltatape.dialects.openai_responses.items import (
    PARTS,
    OutputItems,
    TextGroup,
    piece_of,
    shape_of,
)
from deltatape.model.reply import CallKind, Channel, Reply, TextFragment
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import read_object

FINISHES = frozenset({"completed", "incomplete", "failed", "cancelled"})
"""The final statuses; each has its own event."""
_ABNORMAL = FINISHES - {"completed"}
POLICY = DialectPolicy(abnormal=_ABNORMAL, explicit_end=True)
_PREFIX = "response."
_ERROR = "response.error"
"""An error in the middle, as gateways call it; the API calls it `error`."""
_CLIENTS = frozenset({CallKind.FUNCTION, CallKind.CUSTOM, CallKind.BUILT_IN})
"""Kinds of calls that the application runs."""
_TRANSCRIPT = "transcript"
_FAILURES = frozenset({"response.failed", _ERROR})
"""Events that may come instead of `response.created`."""

_CALL_PARTS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
    "response.mcp_call_arguments": ("mcp_call", "arguments"),
    "response.code_interpreter_call_code": ("code_interpreter_call", "code"),
}
"""By stem of an event's type: the item type of its call, and the member with whole arguments."""
_Place: TypeAlias = tuple[str, Channel, TextGroup]
"""The type of the items that have a text, where it goes, and what lists its parts."""
_TEXT_PARTS: Mapping[str, _Place] = {
    "response.output_text": ("message", Channel.TEXT, TextGroup.CONTENT),
    "response.refusal": ("message", Channel.REFUSAL, TextGroup.CONTENT),
    "response.reasoning_text": ("reasoning", Channel.REASONING, TextGroup.CONTENT),
    "response.reasoning_summary_text": ("reasoning", Channel.REASONING, TextGroup.SUMMARY),
}
_FIELDS = {Channel.REFUSAL: "refusal"}
"""Members with a whole text, if that is not `text`."""
_INDEX = {TextGroup.CONTENT: "content_index", TextGroup.SUMMARY: "summary_index"}


class ResponseForm(NamedTuple):
    """What differs between the APIs whose responses consist of output items."""

    terminator: str
    """The events that end a response."""
    ends: tuple[str, ...]
    """Their types. Where these do not name the status, the response does."""
    details: str
    """The member of a response that says why it is not complete."""
    transcripts: tuple[str, ...] = ()
    """Stems of the types of events with what audio says."""
    texts: tuple[str, ...] = ()
    """Further stems of the types of events with text."""


RESPONSES = ResponseForm(
    terminator="response.completed, response.incomplete or response.failed",
    ends=tuple(_PREFIX + status for status in sorted(FINISHES)),
    details="incomplete_details",
)
"""Names in the events of OpenAI Responses."""
_SPOKEN: _Place = ("message", Channel.TEXT, TextGroup.CONTENT)

_Handler: TypeAlias = Callable[["ResponsesReducer", Frame, Event], None]


class ResponsesReducer:
    """Rebuilds a response. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary, form: ResponseForm = RESPONSES) -> None:
        self._form = form
        self._reply = ReplyDraft(name, form.terminator, request, POLICY)
        self._choice = self._reply.choice()
        self._items = OutputItems(self._choice, request)
        self._handlers = self._handlers_by_type(form)
        self.fast_path = DeltaFastPath()
        self._number: int | None = None
        self._begun = False
        self._id: str | None = None
        self._request = request
        self._late_calls = False
        """Whether calls came after the end of the response."""

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        counted = self.fast_path.take_number()
        if counted is not None:
            self._number = counted
        frame = frame or read_object(event.data) or self._read_oddly(event)
        if frame is None:
            return
        kind = frame.get("type")
        if not isinstance(kind, str):
            kind = event.type
        handler = self._handlers.get(kind)
        if handler is None and not kind.startswith(_PREFIX):
            self._count(frame, event)
            self._take_other(frame, kind, event)
            return
        if not self._begun:
            self._begin(frame, kind, event)
        self._count(frame, event)
        if self._reply.terminal is not None:
            self._note_late(kind, handler, frame, event)
        elif handler is not None:
            handler(self, frame, event)

    def finish(self, *, cut: bool) -> Reply:
        del cut  # The status, and what is missing without one, tells more about the calls.
        self._items.settle()
        return self._reply.build(CallEndCause.CUT, terminated=self._reply.terminal is not None)

    @classmethod
    @cache
    def _handlers_by_type(cls, form: ResponseForm) -> Mapping[str, _Handler]:
        found: dict[str, _Handler] = {
            "response.created": cls._take_state,
            "response.queued": cls._take_state,
            "response.in_progress": cls._take_state,
            _ERROR: cls._take_error,
            "response.audio.delta": cls._take_audio,
            "response.output_audio.delta": cls._take_audio,
            "response.output_item.added": cls._announce,
            "response.output_item.done": cls._end_item,
            "response.content_part.done": partial(cls._end_part, group=TextGroup.CONTENT),
            "response.reasoning_summary_part.done": partial(cls._end_part, group=TextGroup.SUMMARY),
        }
        for stem, (kind, field) in _CALL_PARTS.items():
            found[f"{stem}.delta"] = partial(cls._add_arguments, kind=kind)
            found[f"{stem}.done"] = partial(cls._end_arguments, kind=kind, field=field)
        texts = {**_TEXT_PARTS, **dict.fromkeys((*form.texts, *form.transcripts), _SPOKEN)}
        for stem, place in texts.items():
            field = _TRANSCRIPT if stem in form.transcripts else _FIELDS.get(place[1], "text")
            found[f"{stem}.delta"] = partial(cls._add_text, place=place)
            found[f"{stem}.done"] = partial(cls._end_text, place=place, field=field)
        for kind in form.ends:
            found[kind] = partial(cls._take_end, named=kind.removeprefix(_PREFIX))
        return found

    def _read_oddly(self, event: Event) -> Frame | None:
        """Return the object in `event`, if it is not plainly an object with members."""
        if event.data.startswith(SENTINEL):
            return None
        frame = self._reply.read(event)
        if frame is None:
            self._begun = True  # It may have been response.created.
        return frame

    def _begin(self, frame: Frame, kind: str, event: Event) -> None:
        """Inspect the first event."""
        self._begun = True
        if kind == "response.created":
            return
        if get_index(frame, "sequence_number"):
            self._items.resumed = True
        elif kind not in _FAILURES and self._reply.error is None:
            self._choice.note_unexpected(
                "the stream does not begin with response.created", frame, event
            )

    def _count(self, frame: Frame, event: Event) -> None:
        number = frame.get("sequence_number")
        if type(number) is not int:
            return
        if number - 1 == self._number:
            self._number = number
            return
        if self._number is not None and frame.get("type") != "error":
            detail = f"the sequence number {number} comes after {self._number}"
            self._reply.notes.once("gap", "S007", detail, event.data, event)
        self._number = number

    def _note_late(self, kind: str, handler: _Handler | None, frame: Frame, event: Event) -> None:
        if handler is None:
            return
        item = get_object(frame, "item") or {}
        shape = shape_of(item, self._request)
        if kind in self._form.ends:
            self._reply.notes.once("end", "S004", "the response ends twice", event.data, event)
        elif shape is not None and shape.kind in _CLIENTS:
            self._late_calls = True
            name = get_str(item, "name") or get_str(item, "call_id")
            detail = f"the call {name!r} comes after the end of the response; it is not part of it"
            self._reply.notes.once(f"late {name}", "S010", detail, item, event)
        elif not self._late_calls:
            phrase = "events after the end of the response; they are not part of it"
            self._reply.note_unexpected(phrase, event.data, event)

    def _take_other(self, frame: Frame, kind: str, event: Event) -> None:
        """Handle an error, an unstreamed response, or an unknown event."""
        if frame.get("object") == "response" and "output" in frame:
            self._take_document(frame, event)
        elif kind == "error" or frame.get("error"):
            self._take_error(frame, event)
        elif kind == event.type == "message":
            self._reply.note_unexpected("an event without a type", frame, event)

    def _take_error(self, frame: Frame, event: Event) -> None:
        self._reply.fail(error_message(frame, "error") or event.type, frame, event)

    def _announce(self, frame: Frame, event: Event) -> None:
        self._items.announce(frame, event)

    def _end_item(self, frame: Frame, event: Event) -> None:
        self._items.end(frame, event)

    def _take_audio(self, frame: Frame, event: Event) -> None:
        del frame, event
        self._choice.media = True

    def _take_state(self, frame: Frame, event: Event) -> None:
        response = get_object(frame, "response")
        if response is None:
            self._reply.note_unexpected("an event about the response has none", frame, event)
            return
        self._take_facts(response, event)

    def _take_facts(self, response: Frame, event: Event) -> None:
        reply, identifier = self._reply, get_str(response, "id")
        reply.model = get_str(response, "model") or reply.model
        reply.usage = get_object(response, "usage") or reply.usage
        if identifier and self._id not in (None, identifier):
            phrase = "the id of the response changes"
            reply.note_unexpected(phrase, {"before": self._id, "now": identifier}, event)
        self._id = reply.id = identifier or self._id

    def _take_document(self, response: Frame, event: Event) -> None:
        self._take_facts(response, event)
        self._items.list(
            response.get("output"),
            event,
            MemberValue(WholeString(event.data), "output"),
            streamed=False,
        )
        status = get_str(response, "status") or "completed"
        if status in FINISHES:
            self._finish(response, status, event)

    def _take_end(self, frame: Frame, event: Event, named: str) -> None:
        """Handle the terminal event; its response may say more precisely how it ended."""
        response = get_object(frame, "response")
        if response is None:
            self._reply.note_unexpected("an event about the response has none", frame, event)
            response = {}
        self._take_facts(response, event)
        status = get_str(response, "status")
        named = named if named in FINISHES else status or "completed"
        self._take_output(response, named, event)
        self._finish(response, status if status in FINISHES else named, event)

    def _take_output(self, response: Frame, named: str, event: Event) -> None:
        """Handle the final snapshot."""
        source: JsonSource = MemberValue(WholeString(event.data), "response")
        came = bool(self._items)
        output = response.get("output")
        count = self._items.list(output, event, MemberValue(source, "output"), streamed=True)
        if named != "completed":
            return
        self._items.note_unfinished(event, listed=count > 0 and not self._items.resumed)
        if came and not count:
            detail = "the final response lists no output, but items came"
            self._reply.notes.add("S008", detail, event.data, event)

    def _finish(self, response: Frame, status: str, event: Event) -> None:
        self._reply.terminal = event
        details = get_object(response, self._form.details) or {}
        self._choice.finish(status, event, get_str(details, "reason"))
        error = get_object(response, "error") or get_object(details, "error")
        if status == "failed" and self._reply.error is None:
            message = error_message({"error": error or "the response failed"}, event.type)
            self._reply.fail(message or "", error or response, event)

    def _add_arguments(self, frame: Frame, event: Event, kind: str) -> None:
        item = self._items.with_part(frame, kind, event, call=True)
        delta = frame.get("delta")
        if not isinstance(delta, str):
            self._reply.note_unexpected("a delta is not a string", frame, event)
        else:
            item.add_arguments([(delta, event)])
            number = frame.get("sequence_number")
            self.fast_path.learn(event, frame, item.add_arguments, "delta", number)

    def _end_arguments(self, frame: Frame, event: Event, kind: str, field: str) -> None:
        item = self._items.with_part(frame, kind, event, call=True)
        text = get_str(frame, field)
        if text is None:
            self._reply.note_unexpected("the end of arguments has none", frame, event)
        else:
            item.end_arguments(text, get_str(frame, "name"), event)

    def _add_text(self, frame: Frame, event: Event, place: _Place) -> None:
        kind, channel, group = place
        item = self._items.with_part(frame, kind, event, call=False)
        delta = frame.get("delta")
        if not isinstance(delta, str):
            self._reply.note_unexpected("a delta is not a string", frame, event)
        elif delta:
            index = frame.get(_INDEX[group])
            if type(index) is not int or index < 0:
                index = get_index(frame, _INDEX[group]) or 0
            append = partial(_append_texts, item.texts.part(group, channel, index), channel)
            append([(delta, event)])
            self.fast_path.learn(event, frame, append, "delta", frame.get("sequence_number"))

    def _end_text(self, frame: Frame, event: Event, place: _Place, field: str) -> None:
        kind, channel, group = place
        text = get_str(frame, field)
        if text:
            item = self._items.with_part(frame, kind, event, call=False)
            index = get_index(frame, _INDEX[group]) or 0
            item.texts.end_part(group, index, piece_of(channel, text, event))

    def _end_part(self, frame: Frame, event: Event, group: TextGroup) -> None:
        part = get_object(frame, "part") or {}
        place = PARTS.get(get_str(part, "type") or "")
        if place is None:
            return
        channel, field = place
        kind = "reasoning" if channel is Channel.REASONING else "message"
        self._end_text({**frame, field: part.get(field)}, event, (kind, channel, group), field)


def _append_texts(
    pieces: list[TextFragment], channel: Channel, deltas: Sequence[TextDelta]
) -> None:
    pieces += [piece_of(channel, text, event) for text, event in deltas if text]
