"""A reply under construction: the parts that all dialects share.

A reducer reads events through `read`, fills choices, and leaves errors, odd shapes and the
building of the `Reply` to this.
"""

from collections.abc import Mapping

from deltatape.dialects._calls import CallEndCause, ObservationLog
from deltatape.dialects._choice import ChoiceDraft, DialectPolicy
from deltatape.dialects._errors import error_message, may_fail
from deltatape.dialects._json import EVIDENCE_LIMIT, as_object
from deltatape.model.reply import Observation, Reply, ToolResult
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse, read_object


class ReplyDraft:
    """A reply under construction.

    Args:
        name: the dialect.
        terminator: its terminal signal, in words.
        request: what the reply answers.
        policy: what the dialect promises of its calls.
    """

    def __init__(
        self, name: str, terminator: str, request: RequestSummary, policy: DialectPolicy
    ) -> None:
        self.notes = ObservationLog()
        self.usage: Mapping[str, object] | None = None
        self.model: str | None = None
        self.error: str | None = None
        self.terminal: Event | None = None
        """The event that was the terminal signal."""
        self.results: list[ToolResult] = []
        self.results_due = False
        self.repeated_text: str | None = None
        """All of the text, as the terminal event repeats it."""
        self.id: str | None = None
        """What the provider calls this answer."""
        self._name = name
        self._terminator = terminator
        self._request = request
        self._policy = policy
        self._choices: dict[int, ChoiceDraft] = {}

    def read(self, event: Event) -> Mapping[str, object] | None:
        """Return the JSON object in `event`; note anything else and return None."""
        return read_object(event.data) or self._read_oddly(event)

    def _read_oddly(self, event: Event) -> Mapping[str, object] | None:
        """Handle data that is not an object, is empty, or has text around the object."""
        parsed = parse(event.data)
        if parsed.error is not None:
            detail = f"the data is not JSON: {parsed.error}"
            self.notes.add("W004", detail, event.data[:EVIDENCE_LIMIT], event)
            if event.type == "error" or event.exception:
                self.take_error({"error": event.data or "an error event without data"}, event)
            return None
        frame = as_object(parsed.value)
        if frame is None:
            self.note_unexpected("the data is no JSON object", parsed.value, event)
        return frame

    def note_unexpected(self, phrase: str, value: object, event: Event) -> None:
        """Note an unexpected shape, once per phrase."""
        self.notes.once(phrase, "S006", phrase, value, event)

    def take_error(self, frame: Mapping[str, object], event: Event) -> bool:
        """Record any error in `frame`; return whether there was one."""
        if not may_fail(frame, event):
            return False
        message = error_message(frame, event.type)
        if message is None and event.exception:
            message = error_message({"error": frame}, event.type) or event.type
        if message is None:
            return False
        self.fail(message, frame, event)
        return True

    def fail(self, message: str, frame: object, event: Event) -> None:
        """Note that `frame` is an error in place of the rest of the answer."""
        self.error = self.error or message
        self.notes.add("S005", f"an error instead of an answer: {message}", frame, event)

    def choice(self, index: int = 0) -> ChoiceDraft:
        """Return the choice with that index."""
        found = self._choices.get(index)
        if found is None:
            found = self._choices[index] = ChoiceDraft(index, self._request, self._policy)
        return found

    def restart(self, index: int = 0) -> ChoiceDraft:
        """Replace the choice with that index by a new one."""
        self._choices.pop(index, None)
        return self.choice(index)

    @property
    def choices(self) -> list[ChoiceDraft]:
        """The choices in the order of their index."""
        return [self._choices[index] for index in sorted(self._choices)]

    def build(self, ending: CallEndCause, *, terminated: bool) -> Reply:
        """Return the finished reply.

        Args:
            ending: what ended the stream; the finish reason of a choice may tell worse.
            terminated: whether the dialect's terminal signal arrived.
        """
        observations: list[Observation] = self.notes.observations(0, None)
        choices = []
        for draft in self.choices or [self.choice()]:
            choice, noticed = draft.build(ending)
            choices.append(choice)
            observations += noticed
        return Reply(
            dialect=self._name,
            choices=tuple(choices),
            usage=self.usage,
            model=self.model,
            error=self.error,
            terminated=terminated,
            terminator=self._terminator,
            observations=tuple(sorted(observations, key=lambda one: one.event or 0)),
            tool_word=self._policy.tool_word,
            terminal_event=self.terminal.number if self.terminal else None,
            from_app=self._policy.app,
            results=tuple(self.results),
            results_due=self.results_due,
            repeated_text=self.repeated_text,
            id=self.id,
        )
