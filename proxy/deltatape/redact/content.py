"""Find which strings of a body are content, and replace them by fillers.

Everything that is not known to be structure is content, so that unknown fields do not leak.
Structure is: ids, types, roles, models, tool names, finish reasons and the like, and tools' JSON
Schemas except their prose. Object keys are kept; within arguments only those that a request's tools
define.

In bodies that are not JSON everything is content; in event streams only the data; in Amazon's
messages also unknown headers.
"""

import bisect
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltatape.redact.eventstream import unfold
from deltatape.redact.fillers import Fillers
from deltatape.redact.json_strings import Channel, FramedBody, Leaf, framed, leaves
from deltatape.secret_text.escaped_text import LayeredView, Overwrite, overwrite, plain, unescaped
from deltatape.wire.json_value import parse

_STRUCTURE = frozenset(
    (
        "id",
        "object",
        "type",
        "role",
        "model",
        "name",
        "status",
        "code",
        "param",
        "event",
        "event_type",
        "format",
        "mode",
        "effort",
        "detail",
        "provider",
        "finish_reason",
        "finishReason",
        "native_finish_reason",
        "stop_reason",
        "stopReason",
        "completionReason",
        "done_reason",
        "incomplete_details",
        "tool_call_id",
        "toolCallId",
        "tool_use_id",
        "toolUseId",
        "toolName",
        "call_id",
        "item_id",
        "response_id",
        "responseId",
        "message_id",
        "messageId",
        "interaction_id",
        "previous_response_id",
        "system_fingerprint",
        "service_tier",
        "tool_choice",
        "encoding_format",
        "reasoning_effort",
        "verbosity",
        "truncation",
        "media_type",
        "mime_type",
        "mimeType",
        "modelVersion",
        "response_format",
        "modalities",
        "voice",
        "include",
        "created_at",
    )
)
"""Keys whose strings, and whose lists of strings, say what a message is and not what it says."""

_SCHEMAS = frozenset(
    (
        "parameters",
        "input_schema",
        "inputSchema",
        "schema",
        "json_schema",
        "responseSchema",
        "response_schema",
        "parametersJsonSchema",
    )
)
"""Keys whose value is a JSON Schema."""

_PROSE = frozenset(("description", "title", "default", "example", "examples", "$comment"))
"""Keys of a JSON Schema, and of a tool, that hold prose."""

_WHOLE = frozenset(("arguments", "args", "input", "metadata", "tool_input", "response", "bytes"))
"""Keys of values that are content as a whole: keys, numbers and strings."""

_PEOPLE = frozenset(("user", "system", "developer"))
"""Roles whose `name` is a person's and not a tool's."""

_TOOLS = ("tools", "functions", "response_format", "text", "generationConfig")
_WORDS = frozenset(("enum", "const", "required", "name"))
_DONE = "[DONE]"
_DEPTH_LIMIT = 64


class _Content(NamedTuple):
    channel: Channel
    start: int
    end: int
    whole: bool


def mask(data: bytes, fillers: Fillers) -> tuple[Overwrite, ...]:
    """Return the changes that replace the content of a body by fillers."""
    unfolded = unfold(data)
    if unfolded is None:
        body = LayeredView(data.decode("latin-1"))
        frame = framed(body)
        return _mask(frame, fillers) if frame.events else _filled(body, fillers)
    view = LayeredView(unfolded.plain.decode("latin-1"))
    edits = list(_mask(unfolded.framed(view), fillers))
    for span in unfolded.prose:
        edits += _filled(view.on(plain(view.text, [span])), fillers)
    return unfolded.edits(unfolded.folded(overwrite(unfolded.plain, edits)))


def _mask(frame: FramedBody, fillers: Fillers) -> tuple[Overwrite, ...]:
    channels: dict[Channel, list[tuple[int, int]]] = {}
    edits: list[Overwrite] = []
    for content in _contents(frame):
        if content.whole:
            piece = plain(frame.view.text, [(content.start, content.end)])
            edits += _filled(frame.view.on(piece), fillers)
        else:
            channels.setdefault(content.channel, []).append((content.start, content.end))
    for slices in channels.values():
        edits += _filled(frame.view.on(unescaped(frame.view.text, slices)), fillers)
    return tuple(edits)


def vocabulary(request: bytes) -> frozenset[str]:
    """Return the words that the tools of a request define: keys, enumerated values, names."""
    value = parse(request.decode(errors="replace")).value
    if not isinstance(value, Mapping):
        return frozenset()
    words = (word for key in _TOOLS for word in _words(value.get(key), "", 0))
    return frozenset(word.encode(errors="replace").decode("latin-1") for word in words)


def _words(value: object, key: str, depth: int) -> Iterator[str]:
    if depth > _DEPTH_LIMIT:
        return
    if isinstance(value, str) and key in _WORDS:
        yield value
    elif isinstance(value, list):
        for element in value:
            yield from _words(element, key, depth + 1)
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield name
            yield from _words(member, name, depth + 1)


def _filled(view: LayeredView, fillers: Fillers) -> tuple[Overwrite, ...]:
    masked = fillers.masked(view.text)
    return tuple(view.down([Overwrite(0, masked)])) if masked != view.text else ()


def _contents(frame: FramedBody) -> Iterator[_Content]:
    """Yield the content in a body, in order."""
    text = frame.view.text
    for start, end in frame.events:
        found = list(leaves(text, start, end, _WHOLE))
        if not found:
            # No string: `[DONE]`, a number, or text that is not JSON.
            data = text[start:end].strip()
            if data and data != _DONE and data[0] not in "{[":
                yield _Content(("bare", start), start, end, whole=False)
        wholes = _outermost(leaf for leaf in found if leaf.whole and _is_whole(text, leaf))
        yield from (_Content((), *span, whole=True) for span in wholes)
        for leaf in found:
            place = bisect.bisect_right(wholes, leaf.start, key=lambda span: span[0]) - 1
            inside = place >= 0 and leaf.start < wholes[place][1]
            if not (leaf.whole or inside or _is_structure(leaf)):
                yield _Content(leaf.channel, leaf.start, leaf.end, whole=False)


def _outermost(wholes: Iterable[Leaf]) -> list[tuple[int, int]]:
    """Return the outermost of the spans, ascending."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted((leaf.start, leaf.end) for leaf in wholes):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans


def _is_whole(text: str, leaf: Leaf) -> bool:
    """Return whether an object or array is arguments, and not a message of the same name."""
    opening = text[leaf.start]
    if leaf.key == "bytes":
        return opening == "["
    if leaf.key == "response":
        return leaf.node.key in ("functionResponse", "function_response")
    return opening == "{"


def _is_structure(leaf: Leaf) -> bool:
    name = leaf.name
    if name in _PROSE:
        return False
    if any(node.key in _SCHEMAS for node in leaf.node.chain()):
        return True
    if name == "name" and leaf.node.marks.get("role") in _PEOPLE:
        return False
    return name in _STRUCTURE
