"""One choice of a chat completion, read into a `ChoiceDraft`: text, calls, finish reason."""

from collections.abc import Mapping

from deltatape.dialects._choice import ChoiceDraft
from deltatape.dialects._json import as_array, as_object, get_str
from deltatape.dialects._source import Element, Elements, Member, Source
from deltatape.dialects.openai_chat.calls import ChoiceCalls
from deltatape.dialects.openai_chat.entry import read_entry, read_legacy
from deltatape.model.asked import Asked
from deltatape.model.reply import Channel
from deltatape.model.stream import Event

_PARTS = {"text": Channel.TEXT, "refusal": Channel.REFUSAL, "thinking": Channel.REASONING}
"""By field of a typed part, where its text goes."""
_FINISHED_DELTAS = 3
"""Deltas after a finish reason from which on its repetition counts: "finish on every chunk"."""


class ChatChoice:
    """Takes the `choices[i]` objects of one index, streamed (`delta`) or whole (`message`)."""

    def __init__(self, draft: ChoiceDraft, asked: Asked) -> None:
        self._draft = draft
        self._calls = ChoiceCalls(draft, asked)
        self._deltas = 0
        self._deltas_after_finish = 0
        self._finish_repeated: Event | None = None

    def take(self, choice: Mapping[str, object], event: Event, source: Source) -> None:
        """Takes a choice object, which stands at `source` in the data of `event`.

        The delta comes before the finish reason of the same object: it is part of the answer.
        """
        said = False
        if self._object(choice, "delta", event) is not None or "message" not in choice:
            delta = self._object(choice, "delta", event) or {}
            said = self._take_body(delta, event, Member(source, "delta"), streamed=True)
            self._deltas += said
        else:
            message = self._object(choice, "message", event) or {}
            if self._deltas:
                detail = "a whole message follows deltas; it is not part of the answer"
                self._draft.notes.once("message", "S006", detail, message, event)
            else:
                self._take_body(message, event, Member(source, "message"), streamed=False)
        if said and self._draft.finish_reason is not None:
            self._deltas_after_finish += 1
        self._take_finish(choice.get("finish_reason"), event)

    def finish(self) -> None:
        """Settles what only the end tells. To be called once, after the last object."""
        if self._finish_repeated and self._deltas_after_finish >= _FINISHED_DELTAS:
            detail = f"the finish reason {self._draft.finish_reason!r} comes again and again"
            self._draft.notes.once("again", "S004", detail, detail, self._finish_repeated)
        self._calls.finish()

    def _object(
        self, holder: Mapping[str, object], key: str, event: Event
    ) -> Mapping[str, object] | None:
        found = as_object(holder.get(key))
        if found is None and holder.get(key) is not None:
            self._draft.odd(f"{key} is no object", holder, event)
        return found

    def _take_body(
        self, body: Mapping[str, object], event: Event, source: Source, *, streamed: bool
    ) -> bool:
        """Takes a delta or a message; whether it said anything."""
        said = self._take_text(body, event)
        said |= self._take_calls(body, event, source, streamed=streamed)
        legacy = self._object(body, "function_call", event)
        if legacy is not None:
            self._calls.take_delta(read_legacy(legacy, event, Member(source, "function_call")))
            said = True
        return said

    def _take_text(self, body: Mapping[str, object], event: Event) -> bool:
        said = self._take_content(body.get("content"), event)
        refusal = body.get("refusal")
        if isinstance(refusal, str):
            said |= self._say(Channel.REFUSAL, refusal, event)
        # Two names for the same thing; gateways that send both send the same text.
        reasoning = get_str(body, "reasoning_content") or get_str(body, "reasoning")
        return self._say(Channel.REASONING, reasoning or "", event) or said

    def _say(self, channel: Channel, text: str, event: Event) -> bool:
        self._draft.say(channel, text, event)
        return bool(text)

    def _take_content(self, content: object, event: Event) -> bool:
        """Takes text, or typed parts: `text`, `refusal`, and `thinking` with text or parts."""
        if isinstance(content, str):
            return self._say(Channel.TEXT, content, event)
        parts = as_array(content)
        if parts is None:
            if content is not None:
                self._draft.odd("content is neither text nor a list of parts", content, event)
            return False
        said = False
        for value in parts:
            part = as_object(value)
            if part is None:
                self._draft.odd("a part of content is no object", content, event)
                continue
            for field, channel in _PARTS.items():
                said |= self._say(channel, _text_in(part.get(field)), event)
        return said

    def _take_calls(
        self, body: Mapping[str, object], event: Event, source: Source, *, streamed: bool
    ) -> bool:
        value = body.get("tool_calls")
        entries = as_array(value)
        if entries is None:
            if value is not None:
                self._draft.odd("tool_calls is no list", value, event)
            return False
        elements = Elements(Member(source, "tool_calls"))
        take = self._calls.take_delta if streamed else self._calls.take_whole
        for place, entry in enumerate(entries):
            found = as_object(entry)
            if found is None:
                self._draft.odd("an entry of tool_calls is no object", value, event)
            else:
                take(read_entry(found, event, Element(elements, place)))
        return bool(entries)

    def _take_finish(self, reason: object, event: Event) -> None:
        if reason is None:
            return
        if not isinstance(reason, str) or not reason:
            phrase = 'finish_reason is ""' if reason == "" else "finish_reason is no string"
            self._draft.odd(phrase, {"finish_reason": reason}, event)
            return
        if reason == self._draft.finish_reason and self._finish_repeated is None:
            self._finish_repeated = event
        self._draft.finish(reason, event)


def _text_in(value: object) -> str:
    """The text of a part's field: a string, or parts with a `text` each."""
    if isinstance(value, str):
        return value
    parts = (as_object(part) for part in as_array(value) or ())
    return "".join(get_str(part, "text") or "" for part in parts if part is not None)
