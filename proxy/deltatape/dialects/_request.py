"""What the requests of all dialects have in common: JSON, texts in parts, tools, digests."""

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from deltatape.dialects._json import as_array, as_object, get_object, get_str
from deltatape.dialects._source import Member, Source, Whole
from deltatape.model.asked import ToolSpec
from deltatape.wire.json_value import parse


class RequestBody(NamedTuple):
    """A request's body that is a JSON object, and where it stands."""

    value: Mapping[str, object]
    source: Source


def read_body(body: bytes) -> RequestBody | None:
    """The JSON object that `body` is; None if it is none."""
    text = body.decode(errors="replace")
    value = as_object(parse(text).value)
    return None if value is None else RequestBody(value, Whole(text))


def content_text(content: object) -> str:
    """The visible text of a message's content: a string, or the text parts of an array."""
    if isinstance(content, str):
        return content
    parts = (as_object(part) for part in as_array(content) or ())
    return "".join(get_str(part, "text") or "" for part in parts if part is not None)


def tool_spec(spec: Mapping[str, object], schema: str = "parameters") -> ToolSpec | None:
    """The tool that `spec` describes, its JSON Schema under the key `schema`; None if unnamed."""
    name = get_str(spec, "name")
    return None if name is None else ToolSpec(name=name, parameters=get_object(spec, schema))


def message_digest(message: object) -> str:
    """A hash of a message as canonical JSON."""
    whole = json.dumps(message, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(whole.encode()).hexdigest()


def exact(holder: Mapping[str, object], field: str, source: Source) -> str:
    """The arguments in `field` as the application wrote them; "" if there are none.

    A string's text, else the exact source of the value; `holder` stands at `source`.
    """
    value = holder.get(field)
    if value is None:
        return ""
    return value if isinstance(value, str) else Member(source, field).text
