"""The events of a chat completion, streamed or whole, to one reply.

Nothing stops the reading: not a finish reason (usage and a second finish may follow), not an error
frame. Only deltas after `[DONE]` are left out, since every client has stopped there.
"""

from collections.abc import Mapping

from deltatape.dialects._chat.choice import ChatChoice
from deltatape.dialects._chat.sources import Sources
from deltatape.dialects._choice import Policy
from deltatape.dialects._json import as_array, as_object, get_index, get_str
from deltatape.dialects._judge import Ending
from deltatape.dialects._reply import ReplyDraft
from deltatape.model.asked import Asked
from deltatape.model.reply import Reply
from deltatape.model.stream import Event

TERMINATOR = "finish_reason and [DONE]"
_SENTINEL = "[DONE]"
POLICY = Policy(abnormal=frozenset({"length", "content_filter", "error"}), tool_word=True)


class ChatReducer:
    """Rebuilds a chat completion. See `Reducer`."""

    def __init__(self, name: str, asked: Asked, policy: Policy = POLICY) -> None:
        self._asked = asked
        self._reply = ReplyDraft(name, TERMINATOR, asked, policy)
        self._choices: dict[int, ChatChoice] = {}
        self._sources = Sources()
        self._done = False
        self._id = ""

    def feed(self, event: Event) -> None:
        """See `Reducer.feed`."""
        reply = self._reply
        if event.data.strip() == _SENTINEL:
            if not reply.terminal:
                reply.terminal = event
                self._done = reply.error is None
            return
        chunk = reply.read(event)
        if chunk is None:
            return
        reply.take_error(chunk, event)
        self._take_id(chunk, event)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            reply.usage = usage
        if not reply.model:
            reply.model = get_str(chunk, "model") or None
        self._take_choices(chunk, event)

    def _take_id(self, chunk: Mapping[str, object], event: Event) -> None:
        """All events of one answer have one id; an empty one says nothing."""
        found = chunk.get("id")
        if found == self._id or not isinstance(found, str) or not found:
            return
        if self._id:
            self._reply.odd("the id of the answer changes", found, event)
        self._id = found

    def finish(self, *, cut: bool) -> Reply:
        """See `Reducer.finish`."""
        del cut  # A finish reason or [DONE] tells more about the calls than the transport does.
        for choice in self._choices.values():
            choice.finish()
        reasons = [draft.finish_reason for draft in self._reply.choices]
        finished = bool(reasons) and not {None, "error"}.intersection(reasons)
        ending = Ending.NORMAL if self._done else Ending.CUT
        return self._reply.build(ending, terminated=self._done or finished)

    def _take_choices(self, chunk: Mapping[str, object], event: Event) -> None:
        value = chunk.get("choices")
        choices = as_array(value)
        if choices is None:
            if value is not None:
                self._reply.odd("choices is no list", chunk, event)
            elif self._reply.error is None and "usage" not in chunk:
                self._reply.odd("an object without choices", chunk, event)
            return
        if self._reply.terminal and choices:
            self._reply.odd("choices after [DONE]; they are not part of the answer", chunk, event)
            return
        for place, entry in enumerate(choices):
            choice = as_object(entry)
            if choice is None:
                self._reply.odd("a choice is no object", chunk, event)
            else:
                self._take_choice(choice, event, place)

    def _take_choice(self, choice: Mapping[str, object], event: Event, place: int) -> None:
        index = get_index(choice, "index")
        if index is None:
            index = place
        found = self._choices.get(index)
        if found is None:
            found = ChatChoice(self._reply.choice(index), self._asked, self._sources)
            self._choices[index] = found
        found.take(choice, event, place)
        if self._reply.error is None and choice.get("error"):
            self._reply.take_error(choice, event)
        if self._reply.error is None and choice.get("finish_reason") == "error":
            self._reply.take_error({"error": "finish_reason is 'error'"}, event)
