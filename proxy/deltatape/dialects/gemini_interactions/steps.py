"""The steps of an interaction: which call or text a step is, and what its deltas add.

A call's arguments come as pieces of text (`arguments_delta`). At its start a step shows `{}`, which
counts only if nothing follows; a call that comes as one object, streamed or in a document, has that
object's source. Steps that the provider runs itself end in `_call`, and are no calls to answer.
"""

from collections.abc import Mapping

from deltatape.dialects._calls import CallDraft
from deltatape.dialects._choice import ChoiceDraft
from deltatape.dialects._json import as_object, get_array, get_object, get_str
from deltatape.dialects._request import content_text, exact
from deltatape.dialects._source import Source
from deltatape.model.reply import CallKind, Channel
from deltatape.model.stream import Event

_CALL = "function_call"
_MCP_CALL = "mcp_server_tool_call"
_SERVER_CALL = "_call"
_PIECES = "arguments_delta"
_TEXTS = frozenset({"text", "model_output"})
_MEDIA = frozenset({"image", "audio", "video", "document"})
_THOUGHTS = frozenset({"thought", "thought_summary"})


class Steps:
    """Takes the steps of one interaction into `choice`."""

    def __init__(self, choice: ChoiceDraft) -> None:
        self._choice = choice
        self._calls: dict[int | None, CallDraft] = {}
        self._shown: dict[int, tuple[CallDraft, str, Event]] = {}
        """By identity of calls without pieces: the arguments that their step showed."""

    def start(
        self, index: int | None, step: Mapping[str, object], event: Event, source: Source
    ) -> None:
        """Takes the beginning of a step, which stands at `source` in the data of `event`."""
        kind = get_str(step, "type") or ""
        self._calls.pop(index, None)
        if kind.endswith(_SERVER_CALL):
            self._open(index, kind, step, event, source)
        else:
            self._say(kind, step, event)

    def delta(
        self, index: int | None, delta: Mapping[str, object], event: Event, source: Source
    ) -> None:
        """Takes what a step grows by, which stands at `source` in the data of `event`."""
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
        """Takes the end of a step."""
        call = self._calls.get(index)
        if call is not None:
            call.ended = event

    def whole(self, step: Mapping[str, object], event: Event, source: Source) -> None:
        """Takes a step of an answer that is not streamed."""
        self.start(None, step, event, source)
        self.stop(None, event)

    def finish(self) -> None:
        """Settles the arguments of calls. To be called once, after the last event."""
        for call, text, event in self._shown.values():
            if not call.fragments and (call.ended is not None or text != "{}"):
                call.add(text, event)

    def _open(
        self,
        index: int | None,
        kind: str,
        step: Mapping[str, object],
        event: Event,
        source: Source,
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
        self, call: CallDraft, step: Mapping[str, object], event: Event, source: Source
    ) -> None:
        text = exact(step, "arguments", source)
        if text:
            self._shown[id(call)] = (call, text, event)

    def _continue(
        self, index: int | None, delta: Mapping[str, object], event: Event, source: Source
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
    """The text of a step or delta: its own, or that of the parts it consists of."""
    own = get_str(holder, "text")
    if own is not None:
        return own
    inner = get_object(holder, "content")
    if inner is not None:
        return get_str(inner, "text") or ""
    parts = get_array(holder, "content") or get_array(holder, "summary")
    return content_text(parts)
