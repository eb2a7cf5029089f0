"""Rebuilds a generateContent answer, streamed or not.

The terminal signal is a finish reason in every candidate. A prompt that is blocked gets no
candidates: that is an error here, and the end. Finish reasons that say that the model's call was
not usable are errors, too: the call is lost, the client has nothing to run.
"""

from collections.abc import Mapping

from deltatape.dialects._call_end import CallEndCause
from deltatape.dialects._choice import ChoiceDraft, DialectPolicy
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import Frame, as_array, as_object, get_index, get_object, get_str
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.dialects.gemini.calls import CandidateCalls
from deltatape.model.reply import CallKind, Channel, Reply, Thought
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

TERMINATOR = "finishReason"


# One candidate of a response, read into a `ChoiceDraft`: text, thoughts, calls, finish reason.
#
# A part is text, a thought (`"thought": true`), a call, or something that the provider ran itself
# (`executableCode`, `toolCall`) and its result. Parts of other kinds are passed over: new ones come
# every few months. Signatures of thoughts are kept of calls alone: only these must come back.

ABNORMAL = frozenset(
    {
        "BLOCKLIST",
        "CONTINUATION",
        "ESCALATION",
        "IMAGE_OTHER",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MAX_TOKENS",
        "MISSING_THOUGHT_SIGNATURE",
        "MODEL_ARMOR",
        "NO_IMAGE",
        "OTHER",
        "PROHIBITED_CONTENT",
        "PUP_LIMITED_DISABLED",
        "RECITATION",
        "SAFETY",
        "SPII",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
        *map(str, range(2, 40)),
    }
)
"""Finish reasons, by name or as the numbers of the enumeration, that end an answer early."""
_STOP = ("STOP", "1")
_UNSPECIFIED = ("", "FINISH_REASON_UNSPECIFIED", "0")
_SERVER_PARTS = {"executableCode": "executable_code", "toolCall": ""}
"""Parts that are calls which the provider runs itself, and what they are called."""
_MEDIA = frozenset({"inlineData", "fileData"})


class Candidate:
    """Reads the `candidates[i]` objects of one index."""

    def __init__(self, draft: ChoiceDraft) -> None:
        self._draft = draft
        self._calls = CandidateCalls(draft)

    def take(self, candidate: Mapping[str, object], event: Event, source: JsonSource) -> None:
        """Take a candidate object at `source` in the data of `event`."""
        content = candidate.get("content")
        if isinstance(content, dict):
            self._take_parts(content.get("parts"), event, source)
        elif content is not None:
            self._draft.note_unexpected("content is no object", candidate, event)
        self._take_finish(candidate, event)

    def finish(self) -> None:
        """Settle what only the end decides. Call once, after the last object."""
        reason = self._draft.finish_reason
        self._calls.finish(ended=reason is not None and reason not in ABNORMAL)

    def _take_parts(self, value: object, event: Event, source: JsonSource) -> None:
        parts = as_array(value)
        if parts is None:
            if value is not None:
                self._draft.note_unexpected("parts is no list", value, event)
            return
        elements = Elements(MemberValue(MemberValue(source, "content"), "parts"))
        for place, each in enumerate(parts):
            part = as_object(each)
            if part is None:
                self._draft.note_unexpected("a part is no object", value, event)
            else:
                self._take_part(part, event, elements, place)

    def _take_part(
        self, part: Mapping[str, object], event: Event, elements: Elements, place: int
    ) -> None:
        text = part.get("text")
        if isinstance(text, str):
            channel = Channel.REASONING if part.get("thought") is True else Channel.TEXT
            self._draft.say(channel, text, event)
        elif text is not None:
            self._draft.note_unexpected("text is no string", part, event)
        elif not _MEDIA.isdisjoint(part) and part.get("thought") is not True:
            self._draft.media = True
        call = part.get("functionCall")
        if isinstance(call, dict):
            source = MemberValue(Element(elements, place), "functionCall")
            signature = get_str(part, "thoughtSignature") or ""
            if signature:
                self._draft.thoughts.append(Thought(signature=signature))
            self._calls.take(call, event, source, signed=bool(signature))
        elif call is not None:
            self._draft.note_unexpected("functionCall is no object", part, event)
        for key, name in _SERVER_PARTS.items():
            if key in part:
                self._take_server_call(part, (key, name), event, Element(elements, place))

    def _take_server_call(
        self, part: Mapping[str, object], kind: tuple[str, str], event: Event, source: JsonSource
    ) -> None:
        """Take a call without a result: its arguments are `args`, or the whole object."""
        key, name = kind
        call = get_object(part, key)
        if call is None:
            return
        draft = self._draft.open(CallKind.SERVER, event)
        draft.ended = event
        draft.identify(get_str(call, "id"), name or get_str(call, "toolType"))
        place = MemberValue(source, key)
        if name:
            draft.add(place.text, event)
        elif call.get("args") is not None:
            draft.add(MemberValue(place, "args").text, event)

    def _take_finish(self, candidate: Mapping[str, object], event: Event) -> None:
        reason = candidate.get("finishReason")
        if reason is None:
            return
        if type(reason) is int:
            reason = str(reason)
        if not isinstance(reason, str):
            self._draft.note_unexpected("finishReason is no string", candidate, event)
        elif reason not in _UNSPECIFIED:
            detail = None if reason in _STOP else get_str(candidate, "finishMessage")
            self._draft.finish(reason, event, detail)


POLICY = DialectPolicy(abnormal=ABNORMAL, ids=False, finishes_often=True)
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

    fast_path = NO_FAST_PATH

    def __init__(self, name: str, request: RequestSummary) -> None:
        self._reply = ReplyDraft(name, TERMINATOR, request, POLICY)
        self._candidates: dict[int, Candidate] = {}
        self._blocked = False

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        reply = self._reply
        frame = frame or reply.read(event)
        if frame is None:
            return
        reply.take_error(frame, event)
        source: JsonSource = WholeString(event.data)
        inner = get_object(frame, "response")
        if inner is not None:
            frame, source = inner, MemberValue(source, "response")
            reply.take_error(frame, event)
        usage = get_object(frame, "usageMetadata")
        if usage is not None:
            reply.usage = usage
        reply.model = reply.model or get_str(frame, "modelVersion") or None
        reply.id = reply.id or get_str(frame, "responseId") or None
        self._take_candidates(frame, event, source)
        self._take_feedback(frame, event)

    def finish(self, *, cut: bool) -> Reply:
        del cut  # A finish reason tells more about the calls than the transport does.
        for candidate in self._candidates.values():
            candidate.finish()
        drafts = self._reply.choices
        finished = bool(drafts) and all(draft.finish_reason is not None for draft in drafts)
        ending = CallEndCause.NORMAL if finished else CallEndCause.CUT
        return self._reply.build(ending, terminated=finished or self._blocked)

    def _take_candidates(
        self, frame: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        value = frame.get("candidates")
        candidates = as_array(value)
        if candidates is None:
            if value is not None:
                self._reply.note_unexpected("candidates is no list", frame, event)
            return
        elements = Elements(MemberValue(source, "candidates"))
        for place, each in enumerate(candidates):
            candidate = as_object(each)
            if candidate is None:
                self._reply.note_unexpected("a candidate is no object", frame, event)
                continue
            index = get_index(candidate, "index")
            self._take_candidate(
                place if index is None else index, candidate, event, Element(elements, place)
            )

    def _take_candidate(
        self, index: int, candidate: Mapping[str, object], event: Event, source: JsonSource
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
