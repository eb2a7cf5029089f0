"""The forms in which request bodies are compared.

As bytes, where the boundary of a multipart body, which clients make up, does not count. As JSON
where it is some: then key order, spacing and how a number is written (`1`, `1.0`) do not count.
Two digests stand for the value as it is and for what is left without volatile fields.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from deltatape.wire.json_path import Step, drop

Paths: TypeAlias = Sequence[tuple[Step, ...]]


class _NotJson:
    """The value of a body that is not JSON."""


NOT_JSON: Final = _NotJson()

_BOUNDARY = re.compile(rb"--([^\r\n]{1,70})\r\n")
_DIGEST_BYTES = 16
_EXACT_FLOAT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyForms:
    """Digests of a body's JSON value."""

    canonical: bytes
    reduced: bytes
    """Of what is left without volatile fields."""


def exact_form(body: bytes) -> bytes:
    """Return the body's bytes; a multipart body (RFC 2046 section 5.1.1) with an empty boundary."""
    found = _BOUNDARY.match(body)
    if found is None or not body.rstrip(b"\r\n").endswith(b"--%b--" % found[1]):
        return body
    return body.replace(b"--%b" % found[1], b"--")


def forms_of(body: bytes, volatile: Paths) -> BodyForms | None:
    """Return the forms of a body; None if it is not JSON."""
    value = json_value(body)
    if value is NOT_JSON:
        return None
    canonical = reduced = _digest(value)
    if volatile:
        reduce(value, volatile)
        reduced = _digest(value)
    return BodyForms(canonical=canonical, reduced=reduced)


def json_value(body: bytes) -> object:
    """Return the value of a body; `NOT_JSON` if there is none or it is nested too deeply."""
    try:
        value: object = json.loads(body, parse_float=_number)
        json.dumps(value)  # writes less deep than it reads
    except (ValueError, RecursionError):
        return NOT_JSON
    return value


def reduce(value: object, volatile: Paths) -> None:
    """Remove volatile fields from a value, in place."""
    for path in volatile:
        drop(value, path)


def _number(text: str) -> float:
    """Read `1.0` as `1`: the same number, which other languages write so."""
    value = float(text)
    return int(value) if abs(value) < _EXACT_FLOAT and value.is_integer() else value


def _digest(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()
