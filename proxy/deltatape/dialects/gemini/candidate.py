"""One candidate of a response, read into a `ChoiceDraft`: text, thoughts, calls, finish reason.

A part is text, a thought (`"thought": true`), a call, or something that the provider ran itself
(`executableCode`, `toolCall`) and its result. Parts of other kinds are passed over: new ones come
every few months. Signatures of thoughts are kept of calls alone: only these must come back.
"""

from collections.abc import Mapping

from deltatape.dialects._choice import ChoiceDraft
from deltatape.dialects._json import as_array, as_object, get_object, get_str
from deltatape.dialects._source import Element, Elements, Member, Source
from deltatape.dialects.gemini.calls import CandidateCalls
from deltatape.model.reply import CallKind, Channel
from deltatape.model.stream import Event
from deltatape.model.thought import Thought

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
    """Takes the `candidates[i]` objects of one index."""

    def __init__(self, draft: ChoiceDraft) -> None:
        self._draft = draft
        self._calls = CandidateCalls(draft)

    def take(self, candidate: Mapping[str, object], event: Event, source: Source) -> None:
        """Takes a candidate object, which stands at `source` in the data of `event`."""
        content = candidate.get("content")
        if isinstance(content, dict):
            self._take_parts(content.get("parts"), event, source)
        elif content is not None:
            self._draft.odd("content is no object", candidate, event)
        self._take_finish(candidate, event)

    def finish(self) -> None:
        """Settles what only the end tells. To be called once, after the last object."""
        reason = self._draft.finish_reason
        self._calls.finish(ended=reason is not None and reason not in ABNORMAL)

    def _take_parts(self, value: object, event: Event, source: Source) -> None:
        parts = as_array(value)
        if parts is None:
            if value is not None:
                self._draft.odd("parts is no list", value, event)
            return
        elements = Elements(Member(Member(source, "content"), "parts"))
        for place, each in enumerate(parts):
            part = as_object(each)
            if part is None:
                self._draft.odd("a part is no object", value, event)
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
            self._draft.odd("text is no string", part, event)
        elif not _MEDIA.isdisjoint(part) and part.get("thought") is not True:
            self._draft.media = True
        call = part.get("functionCall")
        if isinstance(call, dict):
            source = Member(Element(elements, place), "functionCall")
            signature = get_str(part, "thoughtSignature") or ""
            if signature:
                self._draft.thoughts.append(Thought(signature=signature))
            self._calls.take(call, event, source, signed=bool(signature))
        elif call is not None:
            self._draft.odd("functionCall is no object", part, event)
        for key, name in _SERVER_PARTS.items():
            if key in part:
                self._take_server_call(part, (key, name), event, Element(elements, place))

    def _take_server_call(
        self, part: Mapping[str, object], kind: tuple[str, str], event: Event, source: Source
    ) -> None:
        """Takes a call that needs no answer: its arguments are `args`, or the whole object."""
        key, name = kind
        call = get_object(part, key)
        if call is None:
            return
        draft = self._draft.open(CallKind.SERVER, event)
        draft.ended = event
        draft.identify(get_str(call, "id"), name or get_str(call, "toolType"))
        place = Member(source, key)
        if name:
            draft.add(place.text, event)
        elif call.get("args") is not None:
            draft.add(Member(place, "args").text, event)

    def _take_finish(self, candidate: Mapping[str, object], event: Event) -> None:
        reason = candidate.get("finishReason")
        if reason is None:
            return
        if type(reason) is int:
            reason = str(reason)
        if not isinstance(reason, str):
            self._draft.odd("finishReason is no string", candidate, event)
        elif reason not in _UNSPECIFIED:
            detail = None if reason in _STOP else get_str(candidate, "finishMessage")
            self._draft.finish(reason, event, detail)
