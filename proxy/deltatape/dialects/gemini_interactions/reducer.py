"""Rebuilds an interaction, streamed or not.

The terminal signal is the completion of the interaction; its status is the finish reason. An answer
that is not streamed is the interaction itself; so is what a completion carries if no step came.
"""

from collections.abc import Mapping

from deltatape.dialects._call_end import CallEndCause
from deltatape.dialects._calls import CallDraft
from deltatape.dialects._choice import ChoiceDraft, DialectPolicy
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import Frame, as_object, get_array, get_index, get_object, get_str
from deltatape.dialects._reply import ReplyDraft
from deltatape.dialects._request import content_text, exact
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

TERMINATOR = "interaction.completed"
_SENTINEL = "[DONE]"
_UNFINISHED = frozenset({"in_progress", "queued"})
POLICY = DialectPolicy(
    abnormal=frozenset(
        {"budget_exceeded", "cancelled", "failed", "incomplete", "requires_continuation"}
    ),
    explicit_end=True,
)
_COMPLETIONS = frozenset({"interaction.completed", "interaction.complete"})
_STARTS = {"step.start": "step", "content.start": "content"}
"""By type of event, where the beginning of a step is."""
_DELTAS = frozenset({"step.delta", "content.delta"})
_STOPS = frozenset({"step.stop", "content.stop"})


class InteractionsReducer:
    """Rebuilds an interaction. See `Reducer`."""

    fast_path = NO_FAST_PATH

    def __init__(self, name: str, request: RequestSummary) -> None:
        self._reply = ReplyDraft(name, TERMINATOR, request, POLICY)
        self._steps = Steps(self._reply.choice())
        self._has_steps = False

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        if event.data.strip() == _SENTINEL:
            return
        frame = frame or self._reply.read(event)
        if frame is None:
            return
        kind = get_str(frame, "event_type")
        if kind in _DELTAS:
            delta, source = self._inside(frame, "delta", event)
            self._steps.delta(get_index(frame, "index"), delta, event, source)
        elif kind is not None and kind in _STARTS:
            step, source = self._inside(frame, _STARTS[kind], event)
            self._steps.start(get_index(frame, "index"), step, event, source)
        elif kind in _STOPS:
            self._steps.stop(get_index(frame, "index"), event)
        else:
            self._take_interaction(frame, event)

    def finish(self, *, cut: bool) -> Reply:
        del cut  # The status tells more about the calls than the transport does.
        self._steps.finish()
        done = self._reply.terminal is not None
        return self._reply.build(CallEndCause.NORMAL if done else CallEndCause.CUT, terminated=done)

    def _inside(
        self, frame: Mapping[str, object], key: str, event: Event
    ) -> tuple[Mapping[str, object], JsonSource]:
        """Return an event's part about a step, with its source; empty if there is none."""
        self._has_steps = True
        found = get_object(frame, key)
        if found is None:
            self._reply.note_unexpected(f"an event without {key}", frame, event)
        return found or {}, MemberValue(WholeString(event.data), key)

    def _take_interaction(self, frame: Mapping[str, object], event: Event) -> None:
        """Handle an event about the whole interaction, an error, or a document."""
        reply = self._reply
        kind = get_str(frame, "event_type")
        reply.take_error(frame, event)
        source: JsonSource = WholeString(event.data)
        inner = frame
        if kind is not None:
            found = get_object(frame, "interaction")
            if found is not None:
                inner, source = found, MemberValue(source, "interaction")
        usage = get_object(inner, "usage")
        if usage is not None:
            reply.usage = usage
        reply.model = reply.model or get_str(inner, "model") or get_str(inner, "agent") or None
        reply.id = reply.id or get_str(inner, "id") or None
        is_whole = kind is None or kind in _COMPLETIONS
        if is_whole and not self._has_steps:
            self._take_steps(inner, event, source)
        self._take_status(inner, event, is_last=is_whole)

    def _take_steps(
        self, interaction: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        key = "steps" if "steps" in interaction else "outputs"
        elements = Elements(MemberValue(source, key))
        for place, each in enumerate(get_array(interaction, key)):
            step = as_object(each)
            if step is None:
                self._reply.note_unexpected("a step is no object", interaction, event)
            elif step.get("type") != "user_input":
                self._steps.whole(step, event, Element(elements, place))

    def _take_status(
        self, interaction: Mapping[str, object], event: Event, *, is_last: bool
    ) -> None:
        reply = self._reply
        status = get_str(interaction, "status")
        if status is None or status in _UNFINISHED:
            if is_last and status is None and interaction.get("status") is not None:
                reply.note_unexpected("the status is no string", interaction, event)
            return
        reply.choice().finish(status, event)
        reply.terminal = event
        if status == "failed" and reply.error is None:
            reply.fail("the interaction failed", interaction, event)


# The steps of an interaction: which call or text a step is, and what its deltas add.
#
# A call's arguments come as pieces of text (`arguments_delta`). At its start a step shows `{}`,
# which counts only if nothing follows; a call that comes as one object, streamed or in a document,
# has that object's source. Steps that the provider runs itself end in `_call`, and are no calls to
# answer.

_CALL = "function_call"
_MCP_CALL = "mcp_server_tool_call"
_SERVER_CALL = "_call"
_PIECES = "arguments_delta"
_TEXTS = frozenset({"text", "model_output"})
_MEDIA = frozenset({"image", "audio", "video", "document"})
_THOUGHTS = frozenset({"thought", "thought_summary"})


class Steps:
    """Reads the steps of one interaction into `choice`."""

    def __init__(self, choice: ChoiceDraft) -> None:
        self._choice = choice
        self._calls: dict[int | None, CallDraft] = {}
        self._shown: dict[int, tuple[CallDraft, str, Event]] = {}
        """By identity of calls without pieces: the arguments that their step showed."""

    def start(
        self, index: int | None, step: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        """Handle the start of a step, at `source` in the data of `event`."""
        kind = get_str(step, "type") or ""
        self._calls.pop(index, None)
        if kind.endswith(_SERVER_CALL):
            self._open(index, kind, step, event, source)
        else:
            self._say(kind, step, event)

    def delta(
        self, index: int | None, delta: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        """Handle the growth of a step, at `source` in the data of `event`."""
        kind = get_str(delta, "type") or ""
        if kind == _PIECES:
            self._continue(index, delta, event, source)
        elif kind.endswith(_SERVER_CALL):
            call = self._calls.get(index)
            if call is None:
                self._open(index, kind, delta, event, source)
            else:
                call.identify(get_str(delta, "id"), get_str(delta, "name"))
                self._show(call, delta, event, source)
        else:
            self._say(kind, delta, event)

    def stop(self, index: int | None, event: Event) -> None:
        """Handle the end of a step."""
        call = self._calls.get(index)
        if call is not None:
            call.ended = event

    def whole(self, step: Mapping[str, object], event: Event, source: JsonSource) -> None:
        """Handle a step of an answer that is not streamed."""
        self.start(None, step, event, source)
        self.stop(None, event)

    def finish(self) -> None:
        """Settle the arguments of calls. Call once, after the last event."""
        for call, text, event in self._shown.values():
            if not call.fragments and (call.ended is not None or text != "{}"):
                call.add(text, event)

    def _open(
        self,
        index: int | None,
        kind: str,
        step: Mapping[str, object],
        event: Event,
        source: JsonSource,
    ) -> None:
        is_ours = kind == _CALL
        theirs = CallKind.MCP if kind == _MCP_CALL else CallKind.SERVER
        call = self._choice.open(CallKind.FUNCTION if is_ours else theirs, event, index)
        call.announced = True
        name = get_str(step, "name")
        call.identify(get_str(step, "id"), name if is_ours or name else kind)
        self._calls[index] = call
        self._show(call, step, event, source)

    def _show(
        self, call: CallDraft, step: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        text = exact(step, "arguments", source)
        if text:
            self._shown[id(call)] = (call, text, event)

    def _continue(
        self, index: int | None, delta: Mapping[str, object], event: Event, source: JsonSource
    ) -> None:
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = self._choice.open(CallKind.FUNCTION, event, index)
            call.note("start", "S006", "arguments of a call that never started", delta, event)
        elif call.ended is not None:
            call.note("ended", "S006", "arguments after the end of the call", delta, event)
        call.add(exact(delta, "arguments", source), event)

    def _say(self, kind: str, holder: Mapping[str, object], event: Event) -> None:
        if kind in _TEXTS:
            self._choice.say(Channel.TEXT, _text(holder), event)
            parts = map(as_object, get_array(holder, "content"))
            self._choice.media |= any(part and get_str(part, "type") in _MEDIA for part in parts)
        elif kind in _MEDIA:
            self._choice.media = True
        elif kind in _THOUGHTS:
            self._choice.say(Channel.REASONING, _text(holder), event)


def _text(holder: Mapping[str, object]) -> str:
    """Return the text of a step or delta: its own, or that of its parts."""
    own = get_str(holder, "text")
    if own is not None:
        return own
    inner = get_object(holder, "content")
    if inner is not None:
        return get_str(inner, "text") or ""
    parts = get_array(holder, "content") or get_array(holder, "summary")
    return content_text(parts)
