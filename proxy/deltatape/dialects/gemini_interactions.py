"""Gemini's Interactions API: an answer as steps that start, grow and stop.

Shapes: https://ai.google.dev/gemini-api/docs/interactions/streaming. Every event names itself in
`event_type`; steps are distinguished by `index`. An older form of the same has `content.*` events
for steps. Function calls have ids and stream their arguments as text; the status of the
interaction, at its completion, is the reason to finish.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from deltatape.dialects._base import Errors, Hints, Traits
from deltatape.dialects._calls import CallDraft, CallEndCause
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._errors import google_error
from deltatape.dialects._json import (
    Element,
    Elements,
    Frame,
    JsonSource,
    MemberValue,
    WholeString,
    as_object,
    get_array,
    get_index,
    get_object,
    get_objects,
    get_str,
)
from deltatape.dialects._reply import SENTINEL, ChoiceDraft, DialectPolicy, ReplyDraft
from deltatape.dialects._request import (
    JsonRequestBody,
    content_text,
    exact,
    make_message,
    objects_at,
    read_history,
    tool_specs,
)
from deltatape.model.reply import CallKind, Channel, Reply
from deltatape.model.request_summary import NOTHING_ASKED, Message, RepeatedCall, RequestSummary
from deltatape.model.stream import Event, Format

# Rebuilds an interaction, streamed or not.
#
# The terminal signal is the completion of the interaction; its status is the finish reason. An
# answer that is not streamed is the interaction itself; so is what a completion carries if no step
# came.


TERMINATOR = "interaction.completed"
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
        if event.data.strip() == SENTINEL:
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
                self._reply.note_unexpected("a step is not an object", interaction, event)
            elif step.get("type") != "user_input":
                self._steps.whole(step, event, Element(elements, place))

    def _take_status(
        self, interaction: Mapping[str, object], event: Event, *, is_last: bool
    ) -> None:
        reply = self._reply
        status = get_str(interaction, "status")
        if status is None or status in _UNFINISHED:
            if is_last and status is None and interaction.get("status") is not None:
                reply.note_unexpected("the status is not a string", interaction, event)
            return
        reply.choice().finish(status, event)
        reply.terminal = event
        if status == "failed" and reply.error is None:
            reply.fail("the interaction failed", interaction, event)


# The steps of an interaction: which call or text a step is, and what its deltas add.
#
# A call's arguments come as pieces of text (`arguments_delta`). At its start a step shows `{}`,
# which counts only if nothing follows; a call that comes as one object, streamed or in a document,
# has that object's source. Steps that the provider runs itself end in `_call`, and are not calls to
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
            self._add_content(kind, step, event)

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
            self._add_content(kind, delta, event)

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

    def _add_content(self, kind: str, holder: Mapping[str, object], event: Event) -> None:
        if kind in _TEXTS:
            self._choice.add_text(Channel.TEXT, _text(holder), event)
            parts = get_objects(holder, "content")
            self._choice.media |= any(get_str(part, "type") in _MEDIA for part in parts)
        elif kind in _MEDIA:
            self._choice.media = True
        elif kind in _THOUGHTS:
            self._choice.add_text(Channel.REASONING, _text(holder), event)


def _text(holder: Mapping[str, object]) -> str:
    """Return the text of a step or delta: its own, or its parts'."""
    own = get_str(holder, "text")
    if own is not None:
        return own
    inner = get_object(holder, "content")
    if inner is not None:
        return get_str(inner, "text") or ""
    parts = get_array(holder, "content") or get_array(holder, "summary")
    return content_text(parts)


# Reads the request of an interaction: model, tools, tool choice, input.
#
# The input is a text, one content or step, or a list of contents, steps or turns; each becomes a
# message. With `previous_interaction_id` the provider keeps the history, and only results are
# sent.
#
# Source: https://ai.google.dev/api/interactions-api.


_CHOICES = {"any": "required", "validated": "auto"}
_USER = "user"
_MODEL = "model"
_PATH = ("input",)


def read_request(body: bytes) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    found = read_history(body, _PATH, _messages)
    if found is None:
        return NOTHING_ASKED
    request = found.body.value
    return RequestSummary(
        known=True,
        model=get_str(request, "model") or get_str(request, "agent"),
        stream=request.get("stream") is True,
        tools=tool_specs(get_array(request, "tools")),
        tool_choice=_tool_choice(get_object(request, "generation_config") or {}),
        history=(*_opening(found.body), *found.entries),
        previous=get_str(request, "previous_interaction_id"),
    )


def _tool_choice(config: Mapping[str, object]) -> str | None:
    choice = config.get("tool_choice")
    allowed = get_object(as_object(choice) or {}, "allowed_tools")
    if allowed is not None:
        names = get_array(allowed, "tools")
        choice = get_str(allowed, "mode")
        if choice == "any" and len(names) == 1 and isinstance(names[0], str):
            return names[0]
    return _CHOICES.get(choice, choice) if isinstance(choice, str) else None


def _opening(request: JsonRequestBody) -> Iterator[Message]:
    value = request.value
    system = value.get("system_instruction")
    if isinstance(system, str):
        yield _plain_message("system", system, system)
    entry = value.get("input")
    if isinstance(entry, str):
        yield _plain_message(_USER, entry, entry)
    elif isinstance(entry, dict):
        yield _message(entry, _USER, MemberValue(request.source, "input"))


def _messages(entry: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    """Yield the messages of an entry."""
    role = get_str(entry, "role")
    contents = get_array(entry, "content")
    if role is None or all(_kind(each) == "text" for each in contents):
        yield _message(entry, role or _USER, source)
        return
    for each, where in objects_at(entry, "content", source):
        yield _message(each, role, where)


def _kind(value: object) -> str:
    return get_str(as_object(value) or {}, "type") or ""


def _message(entry: Mapping[str, object], role: str, source: JsonSource) -> Message:
    kind = _kind(entry)
    if kind in ("function_result", "tool_result"):
        call_id = get_str(entry, "call_id") or get_str(entry, "name") or ""
        text = content_text(entry.get("result")) or exact(entry, "result", source)
        return make_message("tool", text, entry, call_id=call_id)
    if kind == "function_call":
        call = RepeatedCall(
            id=get_str(entry, "id"),
            name=get_str(entry, "name"),
            arguments=exact(entry, "arguments", source),
        )
        return make_message(_MODEL, "", entry, calls=(call,))
    if kind in ("model_output", "thought") or kind.endswith(("_call", "_result")):
        role = _MODEL
    visible = "" if kind == "thought" else content_text(entry.get("content"))
    return _plain_message(role, visible or get_str(entry, "text") or "", entry)


def _plain_message(role: str, text: str, value: object) -> Message:
    return make_message(role, text, {"role": role, "said": value})


_MARKS = frozenset({"event_type", "object"})
_FAMILIES = ("interaction.", "step.", "content.")


def _error_event(status: int, message: str, form: Format) -> tuple[str, Mapping[str, object]]:
    del form
    return "error", {"event_type": "error", **google_error(status, message)}


class GeminiInteractions:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "gemini-interactions"
    traits: ClassVar[Traits] = Traits(
        provider="gemini",
        policy=POLICY,
        errors=Errors(document=google_error, event=_error_event),
        delta_keys=frozenset({"text", "arguments"}),
        closing_keys=frozenset({"signature"}),
        whole_types=("stop", "completed"),
    )

    def claims(self, hints: Hints) -> bool:
        if hints.members.isdisjoint(_MARKS):
            return False
        return any(map(_is_interaction, hints.first))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: also existing interactions, which can be streamed again."""
        parts = path.rstrip("/").split("/")
        return "interactions" in parts[-2:]

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> InteractionsReducer:
        return InteractionsReducer(self.name, request)


def _is_interaction(value: Mapping[str, object]) -> bool:
    kind = get_str(value, "event_type") or ""
    return kind.startswith(_FAMILIES) or value.get("object") == "interaction"
