"""Dialects that begin, fill and end blocks, as steps: Anthropic's, Converse, Cohere's.

Messages on Bedrock carry the same events inside.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterable, Iterator

from deltatape.model.stream import Event
from deltatape.suspects.members import Object, member, number, objects, text_of, word
from deltatape.suspects.steps import Entry, Finish, Phase, Step
from deltatape.wire.json_value import read_object

_TOOL = "tool_use"


def block_steps(events: Iterable[Event]) -> Iterator[Step]:
    """The steps of a message."""
    calls: set[int | None] = set()
    for event in events:
        frame = _carried(read_object(event.data) or {})
        reader = _READERS.get(word(frame, "type") or "")
        steps = reader(frame, event.number) if reader else _converse(frame, event)
        for step in steps:
            if isinstance(step, Entry):
                if step.phase is Phase.START:
                    calls.add(step.index)
                elif step.phase is not Phase.WHOLE and step.index not in calls:
                    continue  # of a text, or of a tool that the provider runs
            yield step


def _carried(frame: Object) -> Object:
    """The event inside a message of Bedrock; `frame` itself if it carries none."""
    encoded = word(frame, "bytes")
    if encoded is None:
        return frame
    try:
        return read_object(b64decode(encoded, validate=True).decode(errors="replace")) or {}
    except (binascii.Error, ValueError):
        return {}


def _start(frame: Object, event: int) -> Iterator[Step]:
    block = member(frame, "content_block")
    if block.get("type") == _TOOL:
        yield _tool_use(block, event, Phase.START)._replace(index=number(frame, "index"))


def _tool_use(block: Object, event: int, phase: Phase) -> Entry:
    given = block.get("input")
    return Entry(
        event,
        phase,
        id=word(block, "id"),
        name=word(block, "name"),
        text=given if given is None or isinstance(given, str) else text_of(given),
    )


def _delta(frame: Object, event: int) -> Iterator[Step]:
    delta = member(frame, "delta")
    if delta.get("type") == "input_json_delta":
        index = number(frame, "index")
        yield Entry(event, Phase.DELTA, index=index, text=word(delta, "partial_json"))


def _stop(frame: Object, event: int) -> Iterator[Step]:
    yield Entry(event, Phase.CLOSE, index=number(frame, "index"))


def _message_delta(frame: Object, event: int) -> Iterator[Step]:
    reason = word(member(frame, "delta"), "stop_reason")
    if reason is not None:
        yield Finish(event, reason)


def _message(frame: Object, event: int) -> Iterator[Step]:
    for at, block in objects(frame, "content"):
        if block.get("type") == _TOOL:
            yield _tool_use(block, event, Phase.WHOLE)._replace(at=at)
    reason = word(frame, "stop_reason")
    if reason is not None:
        yield Finish(event, reason)


def _message_start(frame: Object, event: int) -> Iterator[Step]:
    yield from _message(member(frame, "message"), event)


def _converse(frame: Object, event: Event) -> Iterator[Step]:
    """The steps of an event of Converse, which its type names, or its only member."""
    kind = event.type
    if kind not in _CONVERSE:
        kind = next((key for key in frame if key in _CONVERSE), "")
        frame = member(frame, kind)
    index = number(frame, "contentBlockIndex")
    if kind == "contentBlockStart":
        use = member(member(frame, "start"), "toolUse")
        if use and use.get("type") != "server_tool_use":
            identifier, name = word(use, "toolUseId"), word(use, "name")
            yield Entry(event.number, Phase.START, index=index, id=identifier, name=name)
    elif kind == "contentBlockDelta":
        use = member(member(frame, "delta"), "toolUse")
        if use:
            yield Entry(event.number, Phase.DELTA, index=index, text=word(use, "input"))
    elif kind == "contentBlockStop":
        yield Entry(event.number, Phase.CLOSE, index=index)
    elif kind == "messageStop":
        yield Finish(event.number, word(frame, "stopReason") or "")


def _cohere_start(frame: Object, event: int) -> Iterator[Step]:
    yield _cohere(frame, event, Phase.START)


def _cohere_delta(frame: Object, event: int) -> Iterator[Step]:
    yield _cohere(frame, event, Phase.DELTA)


def _cohere(frame: Object, event: int, phase: Phase) -> Entry:
    call = member(member(member(frame, "delta"), "message"), "tool_calls")
    function = member(call, "function")
    return Entry(
        event,
        phase,
        index=number(frame, "index"),
        id=word(call, "id"),
        name=word(function, "name"),
        text=word(function, "arguments"),
    )


def _cohere_end(frame: Object, event: int) -> Iterator[Step]:
    yield Finish(event, word(member(frame, "delta"), "finish_reason") or "")


_READERS = {
    "content_block_start": _start,
    "content_block_delta": _delta,
    "content_block_stop": _stop,
    "message_delta": _message_delta,
    "message_start": _message_start,
    "message": _message,
    "tool-call-start": _cohere_start,
    "tool-call-delta": _cohere_delta,
    "tool-call-end": _stop,
    "message-end": _cohere_end,
}
_CONVERSE = frozenset({"contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"})
