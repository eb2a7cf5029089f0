"""Schemas as most tools have them, and values that such a schema surely allows.

Nearly every call fits its tool's schema, and nearly every schema says no more than the types of its
properties and which of them are required. The library takes ten times as long to agree, and as long
as a short tape to be loaded, so it is asked only where the answer here is not a plain yes: what is
wrong, it has to say itself.

Invariant: where the answer is yes, `_schema.validate` finds no violation, leaves nothing out, and
takes fewer than `_STEPS` steps for each character of schema and value, as long as these are no more
than `_CHARACTERS`: each keyword is applied once, but for `items`, which has no keyword but a type.
"""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from deltatape.rules.settings import Settings
from deltatape.wire.json_value import parse

if TYPE_CHECKING:
    from deltatape.rules._schema import SchemaResult

Fits: TypeAlias = Callable[[object], bool]
"""Whether a value is surely allowed."""

_CHARACTERS = 2500
_STEPS = 8
_REMEMBERED = 256
"""How many schemas are remembered: applications repeat theirs."""
_DRAFTS = (
    None,
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2020-12/schema",
)
"""In which the keywords of simple schemas mean the same."""
_IGNORED = frozenset(
    {"title", "description", "default", "example", "examples", "nullable", "deprecated", "format"}
)
"""Keywords that forbid nothing: nobody checks formats, and `nullable` allows more."""
_SCALARS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_OF_OBJECTS = frozenset({"type", "properties", "required", "additionalProperties"})
_NOTHING: dict[str, object] = {}


def outcome_of(
    schema: Mapping[str, object], text: str, settings: Settings
) -> "SchemaResult | None":
    """What `schema` says against `text`, whole JSON; None if nothing."""
    size = len(text)
    value = parse(text).value if size <= settings.schema_characters else None
    if value is not None and surely_allows(schema, value, size, settings):
        return None
    from deltatape.rules._schema import SchemaResult, validate  # noqa: PLC0415 - takes long, seldom used

    if size > settings.schema_characters:
        limit = f"arguments of more than {settings.schema_characters} characters"
        return SchemaResult(violations=(), unchecked=(limit,))
    found = validate(schema, value, settings)
    return found if found.violations or found.unchecked else None


def surely_allows(
    schema: Mapping[str, object], value: object, characters: int, settings: Settings
) -> bool:
    """Whether `schema` is a simple one that allows `value`. False where it is not sure.

    Args:
        schema: of a tool.
        value: the arguments.
        characters: of the JSON text of `value`.
        settings: how far to look.
    """
    text = json.dumps(schema)
    characters += len(text)
    if characters > min(_CHARACTERS, settings.schema_characters):
        return False
    fits = _known(text) if characters * _STEPS <= settings.schema_steps else None
    return fits is not None and fits(value)


@lru_cache(maxsize=_REMEMBERED)
def _known(text: str) -> Fits | None:
    schema = json.loads(text)
    return simple(schema) if schema.pop("$schema", None) in _DRAFTS else None


def simple(schema: object) -> Fits | None:
    """What `schema` surely allows; None if it is no simple one, or none at all."""
    if not isinstance(schema, dict):
        return None
    keywords = schema.keys() - _IGNORED
    kind = schema.get("type")
    if kind == "object" and keywords <= _OF_OBJECTS:
        return _object(schema)
    if kind == "array" and keywords == {"type", "items"}:
        return _array(schema["items"])
    if kind == "string" and keywords == {"type", "enum"}:
        return _word(schema["enum"])
    return _scalar(kind) if keywords == {"type"} else None


def _scalar(kind: object) -> Fits | None:
    found = [_SCALARS.get(str(each)) for each in (kind if isinstance(kind, list) else [kind])]
    if None in found:
        return None
    # By exact type: a truth value is an int here, and no number there.
    types = frozenset(each for known in found for each in known or ())
    return lambda value: type(value) in types


def _word(words: object) -> Fits | None:
    if not _is_words(words):
        return None
    return lambda value: isinstance(value, str) and value in words


def _array(items: object) -> Fits | None:
    bare = isinstance(items, dict) and items.keys() - _IGNORED == {"type"}
    fits = _scalar(items["type"]) if isinstance(items, dict) and bare else None
    if fits is None:
        return None
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _object(schema: Mapping[str, object]) -> Fits | None:
    found, required = schema.get("properties", _NOTHING), schema.get("required", [])
    more = schema.get("additionalProperties", True)
    if not isinstance(found, dict) or not _is_words(required):
        return None
    known = {key: simple(inner) for key, inner in found.items()}
    properties = {key: fits for key, fits in known.items() if fits is not None}
    if len(properties) < len(known) or not isinstance(more, bool):
        return None

    def fits(value: object) -> bool:
        if not isinstance(value, dict) or not all(key in value for key in required):
            return False
        for key, inner in value.items():
            known = properties.get(key)
            if not (more if known is None else known(inner)):
                return False
        return True

    return fits


def _is_words(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)
