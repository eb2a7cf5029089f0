"""The events of a chat completion, streamed or whole, to one reply.

Nothing stops the reading: not a finish reason (usage and a second finish may follow), not an error
frame. Only deltas after `[DONE]` are left out, since every client has stopped there.
"""

from collections.abc import Mapping

from deltatape.dialects._errors import error_message
from deltatape.dialects._json import (
    EVIDENCE_LIMIT,
    as_array,
    as_object,
    get_index,
    get_object,
    get_str,
)
from deltatape.dialects._notes import Notes
from deltatape.dialects._source import Element, Elements, Member, Source, Whole
from deltatape.dialects.openai_chat.choice import ChoiceDraft
from deltatape.model.asked import Asked
from deltatape.model.reply import Observation, Reply
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse

TERMINATOR = "finish_reason and [DONE]"
_SENTINEL = "[DONE]"


class ChatReducer:
    """Rebuilds a chat completion. See `Reducer`."""

    def __init__(self, name: str, asked: Asked) -> None:
        self._name = name
        self._asked = asked
        self._notes = Notes()
        self._choices: dict[int, ChoiceDraft] = {}
        self._usage: Mapping[str, object] | None = None
        self._model: str | None = None
        self._error: str | None = None
        self._done = False
        self._done_after_error = False

    def feed(self, event: Event) -> None:
        """See `Reducer.feed`."""
        if event.data.strip() == _SENTINEL:
            if not self._done:
                self._done = True
                self._done_after_error = self._error is not None
            return
        parsed = parse(event.data)
        if parsed.error is not None:
            detail = f"the data is not JSON: {parsed.error}"
            self._notes.add("W004", detail, event.data[:EVIDENCE_LIMIT], event)
            if event.type == "error":
                self._take_error({"error": event.data or "an error event without data"}, event)
            return
        chunk = as_object(parsed.value)
        if chunk is None:
            self._odd("the data is no JSON object", parsed.value, event)
            return
        self._take_error(chunk, event)
        usage = get_object(chunk, "usage")
        if usage is not None:
            self._usage = usage
        self._model = self._model or get_str(chunk, "model") or None
        self._take_choices(chunk, event)

    def finish(self, *, cut: bool) -> Reply:
        """See `Reducer.finish`."""
        del cut  # A finish reason or [DONE] tells more about the calls than the transport does.
        done = self._done and not self._done_after_error
        drafts = [self._choices[index] for index in sorted(self._choices)]
        finished = bool(drafts) and all(
            draft.finish_reason not in (None, "error") for draft in drafts
        )
        observations: list[Observation] = self._notes.observations(0, None)
        choices = []
        for draft in drafts or [ChoiceDraft(0, self._asked)]:
            choice, noticed = draft.finish(done=done)
            choices.append(choice)
            observations += noticed
        return Reply(
            dialect=self._name,
            choices=tuple(choices),
            usage=self._usage,
            model=self._model,
            error=self._error,
            terminated=done or finished,
            terminator=TERMINATOR,
            observations=tuple(sorted(observations, key=lambda one: one.event or 0)),
        )

    def _odd(self, phrase: str, value: object, event: Event) -> None:
        self._notes.once(phrase, "S006", phrase, value, event)

    def _take_error(self, frame: Mapping[str, object], event: Event) -> None:
        message = error_message(frame, event.type)
        if message is not None:
            self._error = self._error or message
            self._notes.add("S005", f"an error instead of an answer: {message}", frame, event)

    def _take_choices(self, chunk: Mapping[str, object], event: Event) -> None:
        value = chunk.get("choices")
        choices = as_array(value)
        if choices is None:
            if value is not None:
                self._odd("choices is no list", chunk, event)
            elif self._error is None and "usage" not in chunk:
                self._odd("an object without choices", chunk, event)
            return
        if self._done and choices:
            self._odd("choices after [DONE]; they are not part of the answer", chunk, event)
            return
        elements = Elements(Member(Whole(event.data), "choices"))
        for place, entry in enumerate(choices):
            choice = as_object(entry)
            if choice is None:
                self._odd("a choice is no object", chunk, event)
                continue
            index = get_index(choice, "index")
            self._take_choice(
                place if index is None else index, choice, event, Element(elements, place)
            )

    def _take_choice(
        self, index: int, choice: Mapping[str, object], event: Event, source: Source
    ) -> None:
        draft = self._choices.get(index)
        if draft is None:
            draft = self._choices[index] = ChoiceDraft(index, self._asked)
        draft.take(choice, event, source)
        if self._error is None and choice.get("error"):
            self._take_error(choice, event)
        if self._error is None and choice.get("finish_reason") == "error":
            self._take_error({"error": "finish_reason is 'error'"}, event)
