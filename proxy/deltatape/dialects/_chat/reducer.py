"""Rebuilds a chat completion, streamed or not.

Nothing stops the reading: not a finish reason (usage and a second finish may follow), not an error
frame. Only deltas after `[DONE]` are left out, since every client has stopped there.
"""

from collections.abc import Mapping, Sequence

from deltatape.dialects._call_end import CallEndCause
from deltatape.dialects._chat.choice import ChatChoice, JsonSources
from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._delta_fast_path import DeltaFastPath
from deltatape.dialects._errors import may_fail
from deltatape.dialects._json import Frame, as_object, get_index, get_str
from deltatape.dialects._reply import ReplyDraft
from deltatape.model.reply import Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import read_object

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
        said = found.said_only(choice)
        if said is not None:
            key, say = said
            self.fast_path.learn(event, chunk, say, key)

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
