"""Reads one choice of a chat completion into a `ChoiceDraft`: text, calls, finish reason."""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from deltatape.dialects._chat.calls import ChoiceCalls
from deltatape.dialects._chat.entry import read_entry, read_legacy, signature_of
from deltatape.dialects._choice import ChoiceDraft
from deltatape.dialects._delta_fast_path import Say
from deltatape.dialects._json import as_array, as_object, get_str
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.model.reply import Channel, Thought
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

_PARTS = {"text": Channel.TEXT, "refusal": Channel.REFUSAL, "thinking": Channel.REASONING}
"""By field of a typed part, where its text goes."""
_TEXT, _REASONING, _REFUSAL = Channel.TEXT, Channel.REASONING, Channel.REFUSAL
"""Plain names: every delta needs one, and looking a member up takes as long as three more calls."""
_TEXTS = {
    "content": _TEXT,
    "refusal": _REFUSAL,
    "reasoning_content": _REASONING,
    "reasoning": _REASONING,
}
"""By member of a delta that may be a text, where that goes."""
_SAYING = (*_TEXTS, "audio", "images", "tool_calls", "function_call")
"""All members of a delta that may say something."""
_ASIDES = frozenset({"refusal", "audio", "images", "reasoning_content", "reasoning"})
"""What few deltas have."""
_FINISHED_DELTAS = 3
"""Deltas after a finish reason from which on its repetition counts: "finish on every chunk"."""


# Where the calls of an event stand in its text, for those whose arguments are no string.
#
# Hardly any event has such, so events are passed on as they are, and an event's text is taken apart
# only when somebody asks; a hostile one makes us ask thousands of times, so it is done once for
# all.

DELTA = "delta"
MESSAGE = "message"
BodyPlace: TypeAlias = tuple[int, str]
"""Where a body stands in an event: its choice's place in `choices`, and `DELTA` or `MESSAGE`."""


class JsonSources:
    """Finds the source text of values in one stream's events. The values must exist."""

    def __init__(self) -> None:
        self._event: Event | None = None
        self._choices = Elements(WholeString(""))
        self._place: BodyPlace | None = None
        self._calls = self._choices

    def body(self, event: Event, place: BodyPlace) -> JsonSource:
        """Return the source of a delta or a message."""
        if event is not self._event:
            self._event = event
            self._choices = Elements(MemberValue(WholeString(event.data), "choices"))
            self._place = None
        choice, key = place
        return MemberValue(Element(self._choices, choice), key)

    def call(self, event: Event, place: BodyPlace, position: int) -> JsonSource:
        """Return the source of element `position` of `tool_calls` of a delta or message."""
        body = self.body(event, place)
        if place != self._place:
            self._place = place
            self._calls = Elements(MemberValue(body, "tool_calls"))
        return Element(self._calls, position)


class ChatChoice:
    """Reads the `choices[i]` objects of one index, streamed (`delta`) or whole (`message`)."""

    def __init__(self, draft: ChoiceDraft, request: RequestSummary, sources: JsonSources) -> None:
        self._draft = draft
        self._calls = ChoiceCalls(draft, request)
        self._sources = sources
        self._deltas = 0
        self._deltas_after_finish = 0
        self._finish_repeated: Event | None = None

    def take(self, choice: Mapping[str, object], event: Event, place: int) -> None:
        """Take a choice object, element `place` of `choices` in the data of `event`.

        The delta comes before the finish reason of the same object: it is part of the answer.
        """
        delta = choice.get(DELTA)
        if isinstance(delta, dict):
            said = self._take_body(delta, event, (place, DELTA))
            self._deltas += said
        else:
            said = self._take_message(choice, event, place)
        if said and self._draft.finish_reason is not None:
            self._deltas_after_finish += 1
        reason = choice.get("finish_reason")
        if reason is not None:
            self._take_finish(reason, event)

    def said_only(self, choice: Mapping[str, object]) -> tuple[str, Say] | None:
        """Return the only member with text, and a function that appends more such text.

        Args:
            choice: what was taken last.
        """
        delta = choice.get(DELTA)
        if self._draft.finish_reason is not None or not isinstance(delta, dict):
            return None
        keys = [key for key in _SAYING if delta.get(key)]
        if len(keys) != 1:
            return None
        said, channel = delta[keys[0]], _TEXTS.get(keys[0])
        if channel is not None:
            say = partial(self._draft.say_more, channel)
            return (keys[0], say) if isinstance(said, str) else None
        call = self._calls.continued(said) if keys[0] == "tool_calls" else None
        return None if call is None else ("arguments", call.add_all)

    def finish(self) -> None:
        """Settle what only the end decides. Call once, after the last object."""
        if self._finish_repeated and self._deltas_after_finish >= _FINISHED_DELTAS:
            detail = f"the finish reason {self._draft.finish_reason!r} comes again and again"
            self._draft.notes.once("again", "S004", detail, detail, self._finish_repeated)
            self._draft.finishes_often = True
        self._calls.finish()

    def _take_message(self, choice: Mapping[str, object], event: Event, place: int) -> bool:
        """Take a choice object without a delta; return whether it contains anything."""
        self._object(choice, DELTA, event)
        if MESSAGE not in choice:
            return False
        message = self._object(choice, MESSAGE, event) or {}
        if self._deltas:
            detail = "a whole message follows deltas; it is not part of the answer"
            self._draft.notes.once("message", "S006", detail, message, event)
        else:
            self._take_body(message, event, (place, MESSAGE))
        return False

    def _object(
        self, holder: Mapping[str, object], key: str, event: Event
    ) -> Mapping[str, object] | None:
        found = as_object(holder.get(key))
        if found is None and holder.get(key) is not None:
            self._draft.note_unexpected(f"{key} is no object", holder, event)
        return found

    def _take_body(self, body: Mapping[str, object], event: Event, place: BodyPlace) -> bool:
        """Take the delta or the message at `place`; return whether it contains anything."""
        content = body.get("content")
        said = content is not None and self._take_content(content, event)
        if not _ASIDES.isdisjoint(body):
            said |= self._take_asides(body, event)
        entries = body.get("tool_calls")
        if entries is not None:
            said |= self._take_calls(entries, event, place)
        if "function_call" in body:
            said |= self._take_legacy(body, event, place)
        return said

    def _take_asides(self, body: Mapping[str, object], event: Event) -> bool:
        said = False
        refusal = body.get("refusal")
        if isinstance(refusal, str):
            said = self._say(_REFUSAL, refusal, event)
        if body.get("audio") or body.get("images"):
            self._draft.media = True
        # Two names for the same thing; gateways that send both send the same text.
        reasoning = get_str(body, "reasoning_content") or get_str(body, "reasoning")
        return self._say(_REASONING, reasoning, event) if reasoning else said

    def _say(self, channel: Channel, text: str, event: Event) -> bool:
        self._draft.say(channel, text, event)
        return text != ""

    def _take_content(self, content: object, event: Event) -> bool:
        """Take text or typed parts: `text`, `refusal`, and `thinking` with text or parts."""
        if isinstance(content, str):
            self._draft.say(_TEXT, content, event)
            return content != ""
        parts = as_array(content)
        if parts is None:
            self._draft.note_unexpected(
                "content is neither text nor a list of parts", content, event
            )
            return False
        said = False
        for value in parts:
            part = as_object(value)
            if part is None:
                self._draft.note_unexpected("a part of content is no object", content, event)
                continue
            for field, channel in _PARTS.items():
                said |= self._say(channel, _text_in(part.get(field)), event)
        return said

    def _take_calls(self, value: object, event: Event, place: BodyPlace) -> bool:
        entries = as_array(value)
        if entries is None:
            self._draft.note_unexpected("tool_calls is no list", value, event)
            return False
        take = self._calls.take_delta if place[1] == DELTA else self._calls.take_whole
        for position, one in enumerate(entries):
            found = as_object(one)
            if found is None:
                self._draft.note_unexpected("an entry of tool_calls is no object", value, event)
                continue
            entry = read_entry(found, event)
            if entry.unquoted:
                entry = entry.read_unquoted(self._sources.call(event, place, position))
            take(entry)
            signature = signature_of(found)
            if signature:
                self._draft.thoughts.append(Thought(signature=signature))
        return bool(entries)

    def _take_legacy(self, body: Mapping[str, object], event: Event, place: BodyPlace) -> bool:
        value = self._object(body, "function_call", event)
        if value is None:
            return False
        entry = read_legacy(value, event)
        if entry.unquoted:
            entry = entry.read_unquoted(
                MemberValue(self._sources.body(event, place), "function_call")
            )
        self._calls.take_delta(entry)
        return True

    def _take_finish(self, reason: object, event: Event) -> None:
        if not isinstance(reason, str) or not reason:
            phrase = 'finish_reason is ""' if reason == "" else "finish_reason is no string"
            self._draft.note_unexpected(phrase, {"finish_reason": reason}, event)
            return
        if reason == self._draft.finish_reason and self._finish_repeated is None:
            self._finish_repeated = event
        self._draft.finish(reason, event)


def _text_in(value: object) -> str:
    """Return the text of a part: a string, or parts with a `text` each."""
    if isinstance(value, str):
        return value
    parts = (as_object(part) for part in as_array(value) or ())
    return "".join(get_str(part, "text") or "" for part in parts if part is not None)
