"""Rebuilds a chat completion, streamed or not.

Nothing stops the reading: not a finish reason (usage and a second finish may follow), not an error
frame. Only deltas after `[DONE]` are left out, since every client has stopped there.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

from deltatape.dialects._calls import CallEndCause
from deltatape.dialects._chat.calls import ChoiceCalls, read_entry, read_legacy, signature_of
from deltatape.dialects._choice import ChoiceDraft, DialectPolicy
from deltatape.dialects._delta_fast_path import AppendTexts, DeltaFastPath
from deltatape.dialects._errors import may_fail
from deltatape.dialects._json import Frame, as_array, as_object, get_array, get_index, get_str
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.model.reply import Channel, Reply, Thought
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import read_object

# Reads one choice of a chat completion into a `ChoiceDraft`: text, calls, finish reason.


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
_CONTENT_MEMBERS = (*_TEXTS, "audio", "images", "tool_calls", "function_call")
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
            has_content = self._take_body(delta, event, (place, DELTA))
            self._deltas += has_content
        else:
            has_content = self._take_message(choice, event, place)
        if has_content and self._draft.finish_reason is not None:
            self._deltas_after_finish += 1
        reason = choice.get("finish_reason")
        if reason is not None:
            self._take_finish(reason, event)

    def only_text_member(self, choice: Mapping[str, object]) -> tuple[str, AppendTexts] | None:
        """Return the only member with text, and a function that appends more such text.

        Args:
            choice: what was taken last.
        """
        delta = choice.get(DELTA)
        if self._draft.finish_reason is not None or not isinstance(delta, dict):
            return None
        keys = [key for key in _CONTENT_MEMBERS if delta.get(key)]
        if len(keys) != 1:
            return None
        value, channel = delta[keys[0]], _TEXTS.get(keys[0])
        if channel is not None:
            append = partial(self._draft.add_texts, channel)
            return (keys[0], append) if isinstance(value, str) else None
        call = self._calls.continued(value) if keys[0] == "tool_calls" else None
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
        has_content = content is not None and self._take_content(content, event)
        if not _ASIDES.isdisjoint(body):
            has_content |= self._take_asides(body, event)
        entries = body.get("tool_calls")
        if entries is not None:
            has_content |= self._take_calls(entries, event, place)
        if "function_call" in body:
            has_content |= self._take_legacy(body, event, place)
        return has_content

    def _take_asides(self, body: Mapping[str, object], event: Event) -> bool:
        has_content = False
        refusal = body.get("refusal")
        if isinstance(refusal, str):
            has_content = self._add_text(_REFUSAL, refusal, event)
        if body.get("audio") or body.get("images"):
            self._draft.media = True
        # Two names for the same thing; gateways that send both send the same text.
        reasoning = get_str(body, "reasoning_content") or get_str(body, "reasoning")
        return self._add_text(_REASONING, reasoning, event) if reasoning else has_content

    def _add_text(self, channel: Channel, text: str, event: Event) -> bool:
        self._draft.add_text(channel, text, event)
        return text != ""

    def _take_content(self, content: object, event: Event) -> bool:
        """Take text or typed parts: `text`, `refusal`, and `thinking` with text or parts."""
        if isinstance(content, str):
            self._draft.add_text(_TEXT, content, event)
            return content != ""
        parts = as_array(content)
        if parts is None:
            self._draft.note_unexpected(
                "content is neither text nor a list of parts", content, event
            )
            return False
        has_content = False
        for value in parts:
            part = as_object(value)
            if part is None:
                self._draft.note_unexpected("a part of content is no object", content, event)
                continue
            for field, channel in _PARTS.items():
                has_content |= self._add_text(channel, _text_in(part.get(field)), event)
        return has_content

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


# Distinguishes chat completions, Mistral's and the older completions.


_MISTRAL_ID = re.compile(r"[0-9a-f]{32}\Z")
"""Most others' ids have a prefix or dashes."""
_OLD_MISTRAL_ID = re.compile(r"cmpl-[0-9a-f]{32}\Z")
"""What they were up to 2024; other servers have such ids, too, but other names of models."""
_MISTRAL_MODEL = re.compile(r"(?:open-)?(?:codestral|mi[sx]tral)-")
_NOT_MISTRAL = ("matched_stop", "system_fingerprint")
"""Members that others with ids like Mistral's have: SGLang and what is built on it, SiliconFlow."""
MARKS = frozenset({"object", "choices"})
"""Members of which a chunk, of chat or of the older completions, has one."""
DELTA_KEYS = frozenset(
    {
        *("content", "text", "refusal", "reasoning", "reasoning_content", "thinking"),
        *("arguments", "input"),
    }
)
"""See `Traits`."""
CLOSING_KEYS = frozenset({"finish_reason", "signature"})
"""See `Traits`."""
_BODIES = frozenset({"delta", "message"})
_CHOICE = frozenset({"delta", "message", "finish_reason", "index", "content_filter_results"})


def is_completion(chunk: Mapping[str, object]) -> bool:
    """Check whether `chunk` is an older completion: text without a delta or a message."""
    if chunk.get("object") == "text_completion":
        return True
    for choice in get_array(chunk, "choices"):
        if isinstance(choice, dict) and "text" in choice and _BODIES.isdisjoint(choice):
            return True
    return False


def is_chat(chunk: Mapping[str, object]) -> bool:
    """Check whether `chunk` is a chat completion of any provider."""
    named = str(chunk.get("object")).startswith("chat.completion")
    return (named or _has_choices(chunk)) and not is_completion(chunk)


def _has_choices(chunk: Mapping[str, object]) -> bool:
    """Whether the choices of `chunk` are none, or such of a model: polls have choices, too."""
    choices = as_array(chunk.get("choices"))
    if not choices:
        return choices is not None
    return any(not _CHOICE.isdisjoint(each) for each in map(as_object, choices) if each is not None)


def is_mistral(chunk: Mapping[str, object]) -> bool:
    """Return whether `chunk` is of a chat completion by Mistral."""
    if not _has_mistral_id(chunk):
        return False
    choices = [one for one in map(as_object, get_array(chunk, "choices")) if one is not None]
    others = any(key in holder for holder in (chunk, *choices) for key in _NOT_MISTRAL)
    # Those others may leave their members out where there is no choice.
    return is_chat(chunk) and bool(choices) and not others


def _has_mistral_id(chunk: Mapping[str, object]) -> bool:
    identifier, model = get_str(chunk, "id") or "", get_str(chunk, "model") or ""
    if _MISTRAL_ID.match(identifier):
        return True
    return bool(_OLD_MISTRAL_ID.match(identifier) and _MISTRAL_MODEL.match(model))


TERMINATOR = "finish_reason and [DONE]"
_SENTINEL = "[DONE]"
POLICY = DialectPolicy(abnormal=frozenset({"length", "content_filter", "error"}), tool_word=True)


class ChatReducer:
    """Rebuilds a chat completion. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary, policy: DialectPolicy = POLICY) -> None:
        self._request = request
        self._reply = ReplyDraft(name, TERMINATOR, request, policy)
        self._choices: dict[int, ChatChoice] = {}
        self._sources = JsonSources()
        self.fast_path = DeltaFastPath()
        self._done = False
        self._id = ""

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        reply = self._reply
        chunk = frame or read_object(event.data) or self._read_oddly(event)
        if chunk is None:
            return
        if may_fail(chunk, event):
            reply.take_error(chunk, event)
        if chunk.get("id") != self._id:
            self._take_id(chunk, event)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            reply.usage = usage
        if not reply.model:
            reply.model = get_str(chunk, "model") or None
        self._take_choices(chunk, event)

    def _read_oddly(self, event: Event) -> Mapping[str, object] | None:
        """Return the object in `event`, if it is not plainly an object with members."""
        if event.data.strip() != _SENTINEL:
            return self._reply.read(event)
        if not self._reply.terminal:
            self._reply.terminal = event
            self._done = self._reply.error is None
        return None

    def _take_id(self, chunk: Mapping[str, object], event: Event) -> None:
        """Check that all events of one answer have one id; an empty one does not count."""
        found = chunk.get("id")
        if not isinstance(found, str) or not found:
            return
        if self._id:
            self._reply.note_unexpected("the id of the answer changes", found, event)
        self._id = found

    def finish(self, *, cut: bool) -> Reply:
        del cut  # A finish reason or [DONE] tells more about the calls than the transport does.
        for choice in self._choices.values():
            choice.finish()
        reasons = [draft.finish_reason for draft in self._reply.choices]
        finished = bool(reasons) and not {None, "error"}.intersection(reasons)
        ending = CallEndCause.NORMAL if self._done else CallEndCause.CUT
        self._reply.id = self._id or None
        return self._reply.build(ending, terminated=self._done or finished)

    def _take_choices(self, chunk: Mapping[str, object], event: Event) -> None:
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            self._take_none(chunk, event)
            return
        if self._reply.terminal and choices:
            self._note_late(choices, chunk, event)
            return
        for place, choice in enumerate(choices):
            if not isinstance(choice, dict):
                self._reply.note_unexpected("a choice is no object", chunk, event)
                continue
            index = choice.get("index")
            found = self._choices.get(index) if type(index) is int else None
            if found is None:
                found = self._choice(choice, place)
            found.take(choice, event, place)
            if "error" in choice or choice.get("finish_reason") == "error":
                self._take_failure(choice, event)
            elif len(choices) == 1 and self.fast_path.learns and not may_fail(chunk, event):
                self._learn(chunk, choice, event, found)

    def _note_late(self, choices: Sequence[object], chunk: Frame, event: Event) -> None:
        """Note content after `[DONE]`."""
        deltas = [(as_object(one) or {}).get("delta") for one in choices]
        if any((as_object(delta) or {}).get("tool_calls") for delta in deltas):
            detail = "a call comes after [DONE]; it is not part of the answer"
            self._reply.notes.once("late", "S010", detail, chunk, event)
        else:
            self._reply.note_unexpected(
                "choices after [DONE]; they are not part of the answer", chunk, event
            )

    def _learn(self, chunk: Frame, choice: Frame, event: Event, found: ChatChoice) -> None:
        """Prepare the fast path if a chunk did nothing but add text."""
        learned = found.only_text_member(choice)
        if learned is not None:
            key, append = learned
            self.fast_path.learn(event, chunk, append, key)

    def _take_none(self, chunk: Mapping[str, object], event: Event) -> None:
        if chunk.get("choices") is not None:
            self._reply.note_unexpected("choices is no list", chunk, event)
        elif self._reply.error is None and "usage" not in chunk:
            self._reply.note_unexpected("an object without choices", chunk, event)

    def _choice(self, choice: Mapping[str, object], place: int) -> ChatChoice:
        """Return the choice of an element of `choices`."""
        index = get_index(choice, "index")
        if index is None:
            index = place
        found = self._choices.get(index)
        if found is None:
            found = ChatChoice(self._reply.choice(index), self._request, self._sources)
            self._choices[index] = found
        return found

    def _take_failure(self, choice: Mapping[str, object], event: Event) -> None:
        if self._reply.error is None and choice.get("error"):
            self._reply.take_error(choice, event)
        if self._reply.error is None and choice.get("finish_reason") == "error":
            self._reply.take_error({"error": "finish_reason is 'error'"}, event)
