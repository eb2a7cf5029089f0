"""Tapes of sound recordings in which some values were replaced by hostile ones."""

import base64
import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, TypeAlias

from deltatape.tape.encode import json_text
from deltatape.tape.fields import bytes_from_json, bytes_to_json

STRINGS = (
    "", "\0", "\ud800", "\udfff\ud800", "\u202e", "İßﬁ", "a" * 5000, "(a+)+$", "[", "(?a)(?u)x",
    "\\",
    "(?i)a(?-i:b)", "{" * 3000, "[" * 100_000, '{"a":', '{"a":1}{"b":2}', "%s%n{}", "NaN", "1e999",
    "<tool_call>{", "```json\n{", "<|python_tag|>f(", "-----BEGIN PRIVATE KEY-----", "://a:b@",
    "&#0;", "&#xD800;", "&#1114112;", "%00%ff%", "\\u00", "\\ud83d", "\r\n\r\ndata: x",
    "data: [DONE]",
    "ff" * 40, "c2stZmFrZWZha2VmYWtlMDAwMDAw", "sk-fakefakefake000000",
    "ey" * 20 + ".ey" + "a" * 20,
    "9" * 5000, "-", "0x1", "2026-13-45T99:99:99Z", "Traceback (most recent call last):\n  File",
    "\x1b[2J", "::error::x", "]]>", "</script>", "|`*_", "/" * 200, "..", "\uffff", "\U0010ffff",
)  # fmt: skip
SCHEMAS: tuple[dict[str, object], ...] = (
    {"pattern": "("}, {"pattern": "(?a)(?u)x"}, {"pattern": "\\p{L}"}, {"pattern": "[[a]--[b]]"},
    {"pattern": "(a+)+$"}, {"patternProperties": {"(": {}, "\\d{2,1}": {}, "^(?<n>x)": {}}},
    {"$ref": "#"}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, {"$ref": 7},
    {"$ref": "http://127.0.0.1:9/x"}, {"type": ["string", None, 7]}, {"type": {}}, {"enum": "x"},
    {"properties": []}, {"properties": {"a": 7}}, {"required": "x"}, {"required": [7, None]},
    {"minLength": -1, "maxLength": "x"}, {"multipleOf": 0}, {"multipleOf": 1e-308},
    {"maximum": "x"},
    {"additionalProperties": "x"}, {"items": [1]}, {"items": 1, "prefixItems": {}}, {"allOf": {}},
    {"anyOf": [1, {"not": 1}]}, {"if": 1, "then": 2}, {"const": {"a": [None]}}, {"$defs": 1},
    {"format": 7}, {"uniqueItems": 1, "minItems": 1e400}, {"dependentRequired": [1]}, {"$id": "::"},
    {"$schema": "x:y"}, {"$dynamicRef": "#a"}, {"type": "object", "propertyNames": 1},
)  # fmt: skip


Container: TypeAlias = dict[str, object] | list[object]


def _deep() -> object:
    value: object = 1
    for _ in range(400):
        value = {"a": [value]}
    return value


VALUES: tuple[object, ...] = (
    *STRINGS, *SCHEMAS, True, False, None, 0, -1, 1e308, -0.0, 2**63, 10**30, [], {}, [[]], [None],
    {"": None},
    {"index": -1}, {"index": 10**9}, {"type": "x" * 300}, _deep(),
)  # fmt: skip


def scrambled(tape: bytes, random: Random) -> bytes:
    """Return a tape with some values of its bodies, heads and notes replaced."""
    header, *lines = tape.splitlines(keepends=True)
    changed = {number for number in range(len(lines)) if random.random() < _RATE}
    done = [header]
    joined: dict[tuple[int, str], list[bytes]] = {}
    for number, line in enumerate(lines):
        t_ns, exchange, code, payload = json.loads(line)
        if code in _BODIES:
            joined.setdefault((exchange, code), []).append(bytes_from_json(payload))
            continue
        if code in ("boundaries", "masked"):
            continue
        for wanted in [("request-end", "request-body"), ("end", "read")]:
            if code == wanted[0]:
                pieces = _pieces(joined.pop((exchange, wanted[1]), []), random)
                done += (_line(t_ns, exchange, wanted[1], bytes_to_json(each)) for each in pieces)
        if number in changed and code in _TEXTS:
            text = random.choice(STRINGS).replace("\n", " ")
            payload[_TEXTS[code]] = bytes_to_json(text.encode("utf-8", "replace"))
        done.append(_line(t_ns, exchange, code, payload))
    return b"".join(done)


_RATE = 0.2
_SCHEMAS = 0.5
_BODIES = ("request-body", "read")
_TEXTS = {"note": "text", "log": "line", "end": "detail", "response": "reason", "request": "target"}


def _line(t_ns: int, exchange: int, code: str, payload: object) -> bytes:
    return f"[{t_ns},{exchange},{json_text(code)},{json_text(payload)}]\n".encode()


def _pieces(pieces: list[bytes], random: Random) -> Iterator[bytes]:
    """Yield a body, read by read, with hostile values in its JSON, or hostile bytes."""
    body = b"".join(pieces)
    for part in _parts(body):
        changed = part
        if random.random() < _RATE or len(pieces) == 1:
            changed = _hostile(part, random)
        if random.random() < _RATE / 4:
            at = random.randrange(len(changed) + 1)
            changed = (
                changed[:at] + random.choice((b"", b"\xff", b"\r", b"\n\n", b"\0")) + changed[at:]
            )
        if random.random() < _RATE / 8:
            changed = changed * 2
        if changed:
            yield changed


def _parts(body: bytes) -> list[bytes]:
    """Return the events of a stream, or the whole body."""
    return [part + b"\n\n" for part in body.split(b"\n\n")] if b"\n\n" in body else [body]


def _hostile(part: bytes, random: Random) -> bytes:
    front, mark, text = part.rpartition(b"data: ") if b"data: " in part else (b"", b"", part)
    try:
        value = json.loads(text)
    except ValueError:
        noise = base64.b64encode(random.randbytes(6))
        return part[: random.randrange(len(part) + 1)] + noise
    value = _replaced(value, random)
    written = json.dumps(value, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    return front + mark + written + (b"\n\n" if part.endswith(b"\n\n") else b"")


def _replaced(value: object, random: Random) -> object:
    """Return `value` with one to three of its nodes replaced, or schemas changed."""
    for _ in range(random.randint(1, 3)):
        nodes = list(_containers(value))
        schemas = [each for each in nodes if isinstance(each, dict) and "properties" in each]
        if schemas and random.random() < _SCHEMAS:
            inner = [each for each in _containers(random.choice(schemas)) if isinstance(each, dict)]
            random.choice(inner).update(json.loads(json.dumps(random.choice(SCHEMAS))))
            continue
        places = [(node, key) for node in nodes for key in _keys(node)]
        if places:
            node, key = random.choice(places)
            node[key] = _any(random)
    return value


def _any(random: Random) -> object:
    found = json.dumps(random.choice(VALUES))
    return found if random.random() < _RATE else json.loads(found)


def _keys(node: Container) -> Iterable[Any]:
    return list(node) if isinstance(node, dict) else range(len(node))


def _containers(value: object) -> Iterator[Container]:
    """Yield the objects and arrays in `value`, itself included."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            yield node
            stack += node
