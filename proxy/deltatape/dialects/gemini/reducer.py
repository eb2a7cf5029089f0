"""Rebuilds a generateContent answer, streamed or not.

The terminal signal is a finish reason in every candidate. A prompt that is blocked gets no
candidates: that is an error here, and the end. Finish reasons that say that the model's call was
not usable are errors, too: the call is lost, the client has nothing to run.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from deltatape.dialects._calls import CallDraft, CallEndCause
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import (
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    SoleMember,
    WholeString,
    as_array,
    as_object,
    get_array,
    get_index,
    get_object,
    get_str,
)
from deltatape.dialects._reply import ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.model.reply import CallKind, Channel, Reply, Thought
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.wire.json_path import PlaceStep, parse_place
from deltatape.wire.json_value import join_pairs

# The function calls of one candidate: whole, streamed, and repeated ones.
#
# A part with a name opens a call. A whole one carries its `args`; without them it has none, which
# is how an empty object is written here: its arguments are `{}`. A streamed one has `willContinue`
# or `partialArgs`; parts without a name continue it. It ends with an empty part, with a part that
# says nothing more of `willContinue`, with the next name, or with the finish reason; what the end
# of the stream cuts stays a beginning. The `arguments` of a streamed call are JSON text that is
# built from its values (`PartialArguments`); its fragments are the pieces on the wire, the
# `partialArgs` arrays.
#
# Two equal calls are two calls, also where only the first has a thought signature: of parallel
# calls, only the first part is signed. An equal call with an id that was there is the same (T020).
#
# Sources: https://ai.google.dev/api/caching#FunctionCall,
# https://ai.google.dev/gemini-api/docs/thought-signatures, and for `partialArgs`
# https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling.


_NO_ARGUMENTS = "{}"


# Arguments that are streamed as values with paths, as JSON text.
#
# `{"jsonPath": "$.a[0].b", "stringValue": "x"}` says where a value is. The strings of one path
# are joined, every other kind of value replaces what was there. The text is built once, at the end,
# in the order in which the values came first, without whitespace; numbers keep their source.

_HALF_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class _Leaf:
    """A value that is neither object nor array."""

    strings: list[str] = field(default_factory=list)
    source: str = ""
    """The JSON source of a value that is not a string; "" for strings."""
    is_open: bool = False
    """Whether more of a string is to come."""

    def write(self) -> str:
        if self.source:
            return self.source
        return _quoted(join_pairs("".join(self.strings)))


@dataclass(slots=True)
class _Branch:
    """An object or an array."""

    is_array: bool
    members: "dict[PlaceStep, _Node]" = field(default_factory=dict)


_Node: TypeAlias = _Leaf | _Branch


class PartialArguments:
    """The arguments of one call under construction."""

    def __init__(self) -> None:
        self._root = _Branch(is_array=False)
        self._leaves: dict[str, _Leaf] = {}

    def put_string(self, path: str, text: str, *, is_open: bool) -> bool:
        """Append `text` to the string at `path`; return whether a value is possible there.

        Args:
            path: a JSONPath.
            text: the piece.
            is_open: whether more of it follows.
        """
        leaf = self._leaf(path)
        if leaf is not None:
            leaf.source = ""
            leaf.strings.append(text)
            leaf.is_open = is_open
        return leaf is not None

    def put(self, path: str, source: str) -> bool:
        """Set the value at `path` to the JSON text `source`; return whether that is possible."""
        leaf = self._leaf(path)
        if leaf is not None:
            leaf.source = source
            leaf.strings.clear()
            leaf.is_open = False
        return leaf is not None

    @property
    def has_gaps(self) -> bool:
        """Check whether an array lacks an element before its last; the text closes such gaps."""
        pending: list[_Branch] = [self._root]
        while pending:
            branch = pending.pop()
            if branch.is_array and max(map(int, branch.members)) >= len(branch.members):
                return True
            pending += (each for each in branch.members.values() if isinstance(each, _Branch))
        return False

    def text(self) -> str:
        """Return the complete arguments."""
        return self._written()[0]

    def beginning(self) -> str:
        """Return the arguments so far, not closed; "" if nothing came."""
        text, last = self._written()
        text = text.rstrip("]}")
        if last is not None and last.is_open:
            text = text.removesuffix('"')
        return text if last else ""

    def _leaf(self, path: str) -> _Leaf | None:
        """Return the value at `path`, created if missing; None if impossible."""
        leaf = self._leaves.get(path)
        if leaf is None:
            steps = parse_place(path)
            leaf = self._grow(steps) if steps else None
            if leaf is not None:
                self._leaves[path] = leaf
        return leaf

    def _grow(self, steps: tuple[PlaceStep, ...]) -> _Leaf | None:
        node: _Node = self._root
        for step, following in zip(steps, (*steps[1:], None), strict=True):
            if isinstance(node, _Leaf) or node.is_array != isinstance(step, int):
                return None
            child = node.members.get(step)
            if child is None:
                child = _Leaf() if following is None else _Branch(isinstance(following, int))
                node.members[step] = child
            node = child
        return node if isinstance(node, _Leaf) else None

    def _written(self) -> tuple[str, _Leaf | None]:
        """Return the JSON text, and the value written last."""
        out: list[str] = []
        last = _write(self._root, out)
        return "".join(out), last


def _write(node: _Node, out: list[str]) -> _Leaf | None:
    """Append the JSON text of `node` to `out`; return the last value in it."""
    if isinstance(node, _Leaf):
        out.append(node.write())
        return node
    last = None
    steps = sorted(node.members, key=int) if node.is_array else list(node.members)
    out.append("[" if node.is_array else "{")
    for place, step in enumerate(steps):
        out.append("," if place else "")
        out.append("" if node.is_array else f"{_quoted(str(step))}:")
        last = _write(node.members[step], out)
    out.append("]" if node.is_array else "}")
    return last


def _quoted(text: str) -> str:
    """Return `text` as a JSON string, with escapes for lone surrogates."""
    return json.dumps(text, ensure_ascii=_HALF_PAIR.search(text) is not None)


class _Streamed:
    """A call that arrives in fragments."""

    def __init__(self, draft: CallDraft) -> None:
        self.draft = draft
        self.arguments = PartialArguments()
        self.whole: str | None = None
        """All arguments at once, which count more than the pieces."""

    def close(self, *, ended: bool) -> None:
        """Settle the arguments, complete or not."""
        arguments = self.arguments
        if arguments.has_gaps:
            detail = "an array of the arguments lacks elements before its last one"
            self.draft.note("gap", "S006", detail, arguments.text(), self.draft.latest)
        if self.whole is not None:
            self.draft.settle(self.whole)
        else:
            self.draft.settle(arguments.text() if ended else arguments.beginning())


class CandidateCalls:
    """Assigns `functionCall` parts to the calls of `choice`."""

    def __init__(self, choice: ChoiceDraft) -> None:
        self._choice = choice
        self._streamed: _Streamed | None = None
        """The streamed call that a part without a name continues."""
        self._open = False
        """Whether it has not ended."""
        self._by_id: dict[str, CallDraft] = {}
        """Whole calls, by id."""

    def take(self, call: Mapping[str, object], event: Event, source: JsonSource) -> None:
        """Handle the `functionCall` of a part.

        Args:
            call: the object.
            event: what carried it.
            source: its position in the data of the event.
        """
        name = get_str(call, "name") or ""
        if "name" in call and not name:
            self._choice.note_unexpected("a functionCall has no name", call, event)
        pieces = get_array(call, "partialArgs")
        goes_on = call.get("willContinue") is True
        streamed = bool(pieces) or goes_on
        if name and not self._is_continued(call):
            self._close()
            if streamed:
                self._begin(call, event)
                self._continue(call, event, source)
            else:
                self._take_whole(call, event, source)
        elif streamed or self._open:
            if self._streamed is None:
                self._begin(call, event)
            self._continue(call, event, source)
        elif call.get("args") is not None:
            self._take_whole(call, event, source)
        elif self._streamed is None:
            self._choice.note_unexpected("a functionCall that says nothing", call, event)

    def finish(self, *, ended: bool) -> None:
        """Settle the open call. Call once, after the last part.

        Args:
            ended: whether a finish reason says that the answer is complete.
        """
        if self._streamed is not None and self._open:
            self._streamed.close(ended=ended)

    def _is_continued(self, call: Mapping[str, object]) -> bool:
        """Check whether `call`, which has a name, repeats name and id of the open call."""
        streamed, identifier = self._streamed, get_str(call, "id")
        return self._open and streamed is not None and identifier in streamed.draft.ids

    def _begin(self, call: Mapping[str, object], event: Event) -> None:
        draft = self._choice.open(CallKind.FUNCTION, event)
        draft.identify(get_str(call, "id"), get_str(call, "name"))
        self._streamed = _Streamed(draft)

    def _continue(self, call: Mapping[str, object], event: Event, source: JsonSource) -> None:
        streamed = self._streamed
        assert streamed is not None
        self._open = True
        goes_on = call.get("willContinue") is True
        if call.get("partialArgs") is not None:
            pieces = WholeString(_exact(source, "partialArgs", event))
            goes_on |= self._take_pieces(streamed, call, event, pieces)
            streamed.draft.add(pieces.text, event)
        if call.get("args"):
            streamed.whole = _exact(source, "args", event)
            streamed.draft.add(streamed.whole, event)
        if not goes_on:
            streamed.draft.ended = event
            self._close()

    def _take_pieces(
        self, streamed: _Streamed, call: Mapping[str, object], event: Event, source: JsonSource
    ) -> bool:
        """Handle `partialArgs` at `source`; return whether one of them continues."""
        elements = Elements(source)
        goes_on = False
        for place, each in enumerate(get_array(call, "partialArgs")):
            piece = as_object(each)
            if piece is None:
                streamed.draft.note("piece", "S006", "a partialArg is not an object", call, event)
                continue
            goes_on |= piece.get("willContinue") is True
            if not _put(streamed.arguments, piece, Element(elements, place)):
                detail = f"no value can stand at {piece.get('jsonPath')!r:.100}"
                streamed.draft.note("path", "S006", detail, piece, event)
        return goes_on

    def _close(self) -> None:
        if self._streamed is not None and self._open:
            self._streamed.close(ended=True)
        self._open = False

    def _take_whole(self, call: Mapping[str, object], event: Event, source: JsonSource) -> None:
        name, identifier = get_str(call, "name") or "", get_str(call, "id")
        has_args = call.get("args") is not None
        text = _exact(source, "args", event) if has_args else _NO_ARGUMENTS
        draft = CallDraft(None, CallKind.FUNCTION, event)
        draft.announced = True
        draft.ended = event
        draft.identify(identifier, name)
        draft.add(text if has_args else "", event)
        draft.settle(text)
        if self._is_sent_again(draft, text):
            return
        self._choice.calls.append(draft)
        if identifier and self._by_id.setdefault(identifier, draft) is not draft:
            detail = f"the id {identifier!r} is used for another call"
            draft.note("shared", "T010", detail, call, event)

    def _is_sent_again(self, draft: CallDraft, text: str) -> bool:
        """Check whether a complete call with the arguments `text` repeats one; note it there."""
        same = self._by_id.get(draft.first_id or "")
        if same is None or same.name != draft.name or not draft.repeats(same):
            return False
        detail = f"the call {draft.first_id!r} is sent again"
        same.note("again", "T020", detail, text, draft.opened)
        return True


def _exact(source: JsonSource, key: str, event: Event) -> str:
    """Return the source of the existing value at `key` of the object at `source`."""
    return SoleMember(event.data, key, MemberValue(source, key)).text


def _put(arguments: PartialArguments, piece: Mapping[str, object], source: JsonSource) -> bool:
    """Set one value; return whether its path is possible. One without value only announces."""
    path = get_str(piece, "jsonPath")
    if path is None:
        return False
    text = get_str(piece, "stringValue")
    if text is not None:
        return arguments.put_string(path, text, is_open=piece.get("willContinue") is True)
    if isinstance(piece.get("numberValue"), int | float):
        return arguments.put(path, MemberValue(source, "numberValue").text)
    if isinstance(piece.get("boolValue"), bool):
        return arguments.put(path, "true" if piece["boolValue"] else "false")
    return arguments.put(path, "null") if "nullValue" in piece else True


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
            self._draft.note_unexpected("content is not an object", candidate, event)
        self._take_finish(candidate, event)

    def finish(self) -> None:
        """Settle what only the end decides. Call once, after the last object."""
        reason = self._draft.finish_reason
        self._calls.finish(ended=reason is not None and reason not in ABNORMAL)

    def _take_parts(self, value: object, event: Event, source: JsonSource) -> None:
        parts = as_array(value)
        if parts is None:
            if value is not None:
                self._draft.note_unexpected("parts is not a list", value, event)
            return
        elements = Elements(MemberValue(MemberValue(source, "content"), "parts"))
        for place, each in enumerate(parts):
            part = as_object(each)
            if part is None:
                self._draft.note_unexpected("a part is not an object", value, event)
            else:
                self._take_part(part, event, elements, place)

    def _take_part(
        self, part: Mapping[str, object], event: Event, elements: Elements, place: int
    ) -> None:
        text = part.get("text")
        if isinstance(text, str):
            channel = Channel.REASONING if part.get("thought") is True else Channel.TEXT
            self._draft.add_text(channel, text, event)
        elif text is not None:
            self._draft.note_unexpected("text is not a string", part, event)
        elif not _MEDIA.isdisjoint(part) and part.get("thought") is not True:
            self._draft.media = True
        call = part.get("functionCall")
        if isinstance(call, dict):
            source = MemberValue(Element(elements, place), "functionCall")
            signature = get_str(part, "thoughtSignature") or ""
            if signature:
                self._draft.thoughts.append(Thought(signature=signature))
            self._calls.take(call, event, source)
        elif call is not None:
            self._draft.note_unexpected("functionCall is not an object", part, event)
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
            self._draft.note_unexpected("finishReason is not a string", candidate, event)
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
        finished = self._reply.finished
        ending = CallEndCause.NORMAL if finished else CallEndCause.CUT
        return self._reply.build(ending, terminated=finished or self._blocked)

    def _take_candidates(
        self, frame: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        value = frame.get("candidates")
        candidates = as_array(value)
        if candidates is None:
            if value is not None:
                self._reply.note_unexpected("candidates is not a list", frame, event)
            return
        elements = Elements(MemberValue(source, "candidates"))
        for place, each in enumerate(candidates):
            candidate = as_object(each)
            if candidate is None:
                self._reply.note_unexpected("a candidate is not an object", frame, event)
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
        detail = f"the prompt was blocked: {reason}" + (f": {message}" if message else "")
        self._reply.fail(detail, feedback, event)
