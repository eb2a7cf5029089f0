"""One choice of a chat completion under construction: text, calls, finish reason."""

from collections.abc import Mapping

from deltatape.dialects._json import as_array, as_object, get_str
from deltatape.dialects._judge import Ending
from deltatape.dialects._notes import Notes
from deltatape.dialects._source import Element, Elements, Member, Source
from deltatape.dialects.openai_chat.calls import ChoiceCalls
from deltatape.dialects.openai_chat.entry import read_entry, read_legacy
from deltatape.model.asked import Asked
from deltatape.model.reply import Choice, Observation
from deltatape.model.stream import Event
from deltatape.wire.json_value import join_pairs

_ABNORMAL = frozenset({"length", "content_filter", "error"})
"""Finish reasons after which a call need not be whole."""
_FINISHED_DELTAS = 3
"""Deltas after a finish reason from which on its repetition counts: "finish on every chunk"."""


class ChoiceDraft:
    """Takes the `choices[i]` objects of one index, streamed (`delta`) or whole (`message`)."""

    def __init__(self, index: int, asked: Asked) -> None:
        self.index = index
        self.notes = Notes()
        self.calls = ChoiceCalls(asked)
        self.finish_reason: str | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
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
                self.notes.once("message", "S006", detail, message, event)
            else:
                self._take_body(message, event, Member(source, "message"), streamed=False)
        if said and self.finish_reason is not None:
            self._deltas_after_finish += 1
        self._take_finish(choice.get("finish_reason"), event)

    def ending(self, *, done: bool) -> Ending:
        """What ended the choice's calls; `done` tells whether the stream's sentinel arrived."""
        if self.finish_reason is None:
            return Ending.NORMAL if done else Ending.CUT
        return Ending.CUT if self.finish_reason in _ABNORMAL else Ending.NORMAL

    def finish(self, *, done: bool) -> tuple[Choice, list[Observation]]:
        """The choice, judged, and what was noticed about it."""
        if self._finish_repeated and self._deltas_after_finish >= _FINISHED_DELTAS:
            detail = f"the finish reason {self.finish_reason!r} comes again and again"
            self.notes.once("again", "S004", detail, detail, self._finish_repeated)
        calls, observations = self.calls.finish(self.index, self.ending(done=done))
        choice = Choice(
            index=self.index,
            text=join_pairs("".join(self._text)),
            reasoning=join_pairs("".join(self._reasoning)),
            refusal=join_pairs("".join(self._refusal)),
            tool_calls=tuple(calls),
            finish_reason_raw=self.finish_reason,
        )
        return choice, self.notes.observations(self.index, None) + observations

    def _odd(self, phrase: str, value: object, event: Event) -> None:
        self.notes.once(phrase, "S006", phrase, value, event)

    def _object(
        self, holder: Mapping[str, object], key: str, event: Event
    ) -> Mapping[str, object] | None:
        found = as_object(holder.get(key))
        if found is None and holder.get(key) is not None:
            self._odd(f"{key} is no object", holder, event)
        return found

    def _take_body(
        self, body: Mapping[str, object], event: Event, source: Source, *, streamed: bool
    ) -> bool:
        """Takes a delta or a message; whether it said anything."""
        said = self._take_text(body, event)
        said |= self._take_calls(body, event, source, streamed=streamed)
        legacy = self._object(body, "function_call", event)
        if legacy is not None:
            self.calls.take_delta(read_legacy(legacy, event, Member(source, "function_call")))
            said = True
        return said

    def _take_text(self, body: Mapping[str, object], event: Event) -> bool:
        before = len(self._text) + len(self._reasoning) + len(self._refusal)
        self._take_content(body.get("content"), event)
        refusal = body.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refusal.append(refusal)
        # Two names for the same thing; gateways that send both send the same text.
        reasoning = get_str(body, "reasoning_content") or get_str(body, "reasoning")
        if reasoning:
            self._reasoning.append(reasoning)
        return len(self._text) + len(self._reasoning) + len(self._refusal) > before

    def _take_content(self, content: object, event: Event) -> None:
        """Takes text, or typed parts: `text`, `refusal`, and `thinking` with text or parts."""
        if isinstance(content, str):
            if content:
                self._text.append(content)
            return
        parts = as_array(content)
        if parts is None:
            if content is not None:
                self._odd("content is neither text nor a list of parts", content, event)
            return
        for value in parts:
            part = as_object(value)
            if part is None:
                self._odd("a part of content is no object", content, event)
                continue
            self._text += _strings(part.get("text"))
            self._refusal += _strings(part.get("refusal"))
            self._reasoning += _strings(part.get("thinking"))

    def _take_calls(
        self, body: Mapping[str, object], event: Event, source: Source, *, streamed: bool
    ) -> bool:
        value = body.get("tool_calls")
        entries = as_array(value)
        if entries is None:
            if value is not None:
                self._odd("tool_calls is no list", value, event)
            return False
        elements = Elements(Member(source, "tool_calls"))
        take = self.calls.take_delta if streamed else self.calls.take_whole
        for place, entry in enumerate(entries):
            found = as_object(entry)
            if found is None:
                self._odd("an entry of tool_calls is no object", value, event)
            else:
                take(read_entry(found, event, Element(elements, place)))
        return bool(entries)

    def _take_finish(self, reason: object, event: Event) -> None:
        if reason is None:
            return
        if not isinstance(reason, str) or not reason:
            phrase = 'finish_reason is ""' if reason == "" else "finish_reason is no string"
            self._odd(phrase, {"finish_reason": reason}, event)
            return
        if self.finish_reason is not None and reason != self.finish_reason:
            detail = f"a second finish reason: {self.finish_reason!r}, then {reason!r}"
            self.notes.once("other", "S004", detail, detail, event)
        elif reason == self.finish_reason and self._finish_repeated is None:
            self._finish_repeated = event
        self.finish_reason = reason


def _strings(value: object) -> list[str]:
    """The text of a part's field: a string, or parts with a `text` each."""
    if isinstance(value, str):
        return [value] if value else []
    parts = (as_object(part) for part in as_array(value) or ())
    return [text for part in parts if part is not None and (text := get_str(part, "text"))]
