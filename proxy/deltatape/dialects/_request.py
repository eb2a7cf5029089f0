"""Shared parts of request readers: JSON, texts in parts, tools, digests."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltatape.dialects._json import as_array, as_object, get_array, get_object, get_str
from deltatape.dialects._source_text import Element, Elements, JsonSource, MemberValue, WholeString
from deltatape.model.reply import Thought
from deltatape.model.request_summary import Message, RepeatedCall, ToolSpec
from deltatape.wire.json_value import parse, read_object

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class JsonRequestBody(NamedTuple):
    """A request body that is a JSON object, with its source."""

    value: Mapping[str, object]
    source: JsonSource


def read_body(body: bytes) -> JsonRequestBody | None:
    """Parse the JSON object `body`; return None if it is not one."""
    text = body.decode(errors="replace")
    value = read_object(text) or as_object(parse(text).value)
    return None if value is None else JsonRequestBody(value, WholeString(text))


def objects_at(
    holder: Mapping[str, object], key: str, source: JsonSource
) -> Iterator[tuple[Mapping[str, object], JsonSource]]:
    """Yield the objects in the array at `key`, each with its source."""
    elements = Elements(MemberValue(source, key))
    for place, value in enumerate(map(as_object, get_array(holder, key))):
        if value is not None:
            yield value, Element(elements, place)


def content_text(content: object) -> str:
    """Return the visible text of a message's content: a string, or text parts."""
    if isinstance(content, str):
        return content
    parts = (as_object(part) for part in as_array(content) or ())
    return "".join(get_str(part, "text") or "" for part in parts if part is not None)


def tool_spec(spec: Mapping[str, object], schema: str = "parameters") -> ToolSpec | None:
    """Return the tool that `spec` describes, with the schema under `schema`; None if unnamed."""
    name = get_str(spec, "name")
    return None if name is None else ToolSpec(name=name, parameters=get_object(spec, schema))


def tool_specs(entries: Iterable[object], schema: str = "parameters") -> tuple[ToolSpec, ...]:
    """Return the tools that the objects in `entries` describe. See `tool_spec`."""
    found = (tool_spec(entry, schema) for entry in map(as_object, entries) if entry is not None)
    return tuple(tool for tool in found if tool is not None)


def said(
    role: str,
    text: str,
    digested: object,
    *,
    calls: Iterable[RepeatedCall] = (),
    call_id: str | None = None,
    thoughts: Iterable[Thought] = (),
) -> Message:
    """Return a message of the history, with the digest of `digested`."""
    digest = message_digest(digested)
    return Message(
        role=role,
        text=text,
        calls=tuple(calls),
        call_id=call_id,
        digest=digest,
        thoughts=tuple(thoughts),
    )


def message_digest(message: object) -> str:
    """Return a hash of a message as canonical JSON."""
    return hashlib.sha256(_ENCODER.encode(message).encode()).hexdigest()


def exact(holder: Mapping[str, object], field: str, source: JsonSource) -> str:
    """Return the arguments in `field` as the application wrote them; "" if there are none.

    A string's text, else the exact source of the value; `holder` stands at `source`.
    """
    value = holder.get(field)
    return value if isinstance(value, str) else source_of(holder, field, source)


def source_of(holder: Mapping[str, object], field: str, source: JsonSource) -> str:
    """Return the exact source of the value in `field`, also of a string; "" if there is none.

    `holder` stands at `source`.
    """
    return "" if holder.get(field) is None else MemberValue(source, field).text
