"""The events of a generateContent answer, streamed or whole, to one reply.

The terminal signal is a finish reason in every candidate. A prompt that is blocked gets no
candidates: that is an error here, and the end. Finish reasons that say that the model's call was
not usable are errors, too: the call is lost, the client has nothing to run.
"""

from collections.abc import Mapping

from deltatape.dialects._alike import NEVER_ALIKE
from deltatape.dialects._choice import Policy
from deltatape.dialects._json import Frame, as_array, as_object, get_index, get_object, get_str
from deltatape.dialects._judge import Ending
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._source import Element, Elements, Member, Source, Whole
from deltatape.dialects.gemini.candidate import ABNORMAL, Candidate
from deltatape.model.asked import Asked
from deltatape.model.reply import Reply
from deltatape.model.stream import Event

TERMINATOR = "finishReason"
_POLICY = Policy(abnormal=ABNORMAL, ids=False, finishes_often=True)
_FAILURES = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)
"""Finish reasons by which the provider says that what the model made is of no use."""


class GeminiReducer:
    """Rebuilds an answer of Gemini. See `Reducer`."""

    alike = NEVER_ALIKE

    def __init__(self, name: str, asked: Asked) -> None:
        self._reply = ReplyDraft(name, TERMINATOR, asked, _POLICY)
        self._candidates: dict[int, Candidate] = {}
        self._blocked = False

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        """See `Reducer.feed`."""
        reply = self._reply
        frame = frame or reply.read(event)
        if frame is None:
            return
        reply.take_error(frame, event)
        source: Source = Whole(event.data)
        inner = get_object(frame, "response")
        if inner is not None:
            frame, source = inner, Member(source, "response")
            reply.take_error(frame, event)
        usage = get_object(frame, "usageMetadata")
        if usage is not None:
            reply.usage = usage
        reply.model = reply.model or get_str(frame, "modelVersion") or None
        reply.id = reply.id or get_str(frame, "responseId") or None
        self._take_candidates(frame, event, source)
        self._take_feedback(frame, event)

    def finish(self, *, cut: bool) -> Reply:
        """See `Reducer.finish`."""
        del cut  # A finish reason tells more about the calls than the transport does.
        for candidate in self._candidates.values():
            candidate.finish()
        drafts = self._reply.choices
        finished = bool(drafts) and all(draft.finish_reason is not None for draft in drafts)
        ending = Ending.NORMAL if finished else Ending.CUT
        return self._reply.build(ending, terminated=finished or self._blocked)

    def _take_candidates(self, frame: Mapping[str, object], event: Event, source: Source) -> None:
        value = frame.get("candidates")
        candidates = as_array(value)
        if candidates is None:
            if value is not None:
                self._reply.odd("candidates is no list", frame, event)
            return
        elements = Elements(Member(source, "candidates"))
        for place, each in enumerate(candidates):
            candidate = as_object(each)
            if candidate is None:
                self._reply.odd("a candidate is no object", frame, event)
                continue
            index = get_index(candidate, "index")
            self._take_candidate(
                place if index is None else index, candidate, event, Element(elements, place)
            )

    def _take_candidate(
        self, index: int, candidate: Mapping[str, object], event: Event, source: Source
    ) -> None:
        draft = self._reply.choice(index)
        found = self._candidates.get(index)
        if found is None:
            found = self._candidates[index] = Candidate(draft)
        found.take(candidate, event, source)
        reason = draft.finish_reason
        if reason is None or candidate.get("finishReason") is None:
            return
        self._reply.terminal = event
        if reason in _FAILURES and self._reply.error is None:
            detail = draft.finish_detail
            self._reply.fail(f"{reason}: {detail}" if detail else reason, candidate, event)

    def _take_feedback(self, frame: Mapping[str, object], event: Event) -> None:
        feedback = get_object(frame, "promptFeedback")
        reason = feedback.get("blockReason") if feedback is not None else None
        if feedback is None or not reason or self._blocked:
            return
        self._blocked = True
        self._reply.terminal = event
        message = get_str(feedback, "blockReasonMessage")
        told = f"the prompt was blocked: {reason}" + (f": {message}" if message else "")
        self._reply.fail(told, feedback, event)
