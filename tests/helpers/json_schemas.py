"""The published JSON Schemas: documents are valid, print no unknown key, and miss none."""

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema
import jsonschema_rs
from referencing import Registry
from referencing.jsonschema import DRAFT202012

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
NAMES = ("findings", "diff", "why", "show", "ls", "exchanges", "trends", "steps")

Key: TypeAlias = tuple[str, str]
"""A key that a schema names: where its object is defined, and the key."""
_Place: TypeAlias = tuple[str, Mapping[str, Any]]
"""A part of a schema and the file that it stands in."""


@cache
def schema(name: str) -> dict[str, Any]:
    """Return `docs/NAME.schema.json`."""
    found: dict[str, Any] = json.loads((DOCS / f"{name}.schema.json").read_bytes())
    return found


def validate(name: str, document: object) -> None:
    """Raise unless `document` is valid and has no key but those that the schema names."""
    if not _quick_validator(name).is_valid(document):
        _validator(name).validate(document)  # it takes thirty times as long, and says what is wrong


@cache
def _quick_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    registry = jsonschema_rs.Registry([(f"json-schema:///{file}", part) for file, part in _files()])
    reference = {"$ref": f"json-schema:///{name}.schema.json"}
    return jsonschema_rs.Draft202012Validator(reference, registry=registry)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    files = [(file, DRAFT202012.create_resource(part)) for file, part in _files()]
    registry = Registry().with_resources(files)
    reference = {"$ref": f"{name}.schema.json"}
    return jsonschema.Draft202012Validator(reference, registry=registry)


def _files() -> list[tuple[str, dict[str, Any]]]:
    return [(f"{each}.schema.json", _strict(each)) for each in NAMES]


def _strict(name: str) -> dict[str, Any]:
    """Return the schema without leave for other keys."""
    strict = copy.deepcopy(schema(name))
    for part in _parts(strict):
        if "properties" in part:
            part["additionalProperties"] = False
    return strict


def _parts(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from _parts(member)
    elif isinstance(value, list):
        for element in value:
            yield from _parts(element)


def described(name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each key that a schema names, and what it says of it."""
    for part in _parts(schema(name)):
        properties = part.get("properties", {})
        yield from properties.items()


def keys(name: str) -> set[Key]:
    """Return the keys of a schema's own objects."""
    return {
        (_title(part), key) for part in _parts(schema(name)) for key in part.get("properties", ())
    }


def printed(name: str, document: object) -> set[Key]:
    """Return the keys of a schema's own objects that a valid document has."""
    return {
        (where, key) for file, where, key in _printed(name, schema(name), document) if file == name
    }


def _printed(file: str, part: Mapping[str, Any], value: object) -> Iterator[tuple[str, str, str]]:
    if "$ref" in part:
        yield from _printed(*_target(file, part["$ref"]), value)
    for each in (*part.get("anyOf", ()), *part.get("oneOf", ())):
        if "$ref" in each:
            target = _target(file, each["$ref"])
            if _fits(target[1], value):
                yield from _printed(*target, value)
    if isinstance(value, dict):
        for key, rules in part.get("properties", {}).items():
            if key in value:
                yield file, _title(part), key
                yield from _printed(file, rules, value[key])
    elif isinstance(value, list) and "items" in part:
        for element in value:
            yield from _printed(file, part["items"], element)


def _target(file: str, reference: str) -> _Place:
    other, _, pointer = reference.partition("#")
    file = other.removesuffix(".schema.json") or file
    found: Any = schema(file)
    for step in pointer.split("/")[1:]:
        found = found[step]
    return file, found


def _fits(part: Mapping[str, Any], value: object) -> bool:
    """Return whether `value` is an object with the required keys of `part`, or no object."""
    return not isinstance(value, dict) or set(part.get("required", ())) <= value.keys()


def _title(part: Mapping[str, Any]) -> str:
    """Name an object of a schema by its keys: no two have the same."""
    return " ".join(part["properties"])
