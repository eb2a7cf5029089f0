"""The parts that payloads are made of: bytes, header fields, request targets, checked fields.

Each has one JSON form, so that a record that is read and written again is the same line. Other
values raise `MalformedError` with the value seen and what would be accepted.

Format: recordings/README.md, "Bytes" and "Masked values".
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import NamedTuple, TypeVar

from deltatape.model.exchange import Headers, HeaderValue, MaskedCredential, MaskedSpan

_HASH = re.compile("[0-9a-f]{8}")
MAX_INT = 2**63 - 1
"""The largest number on a tape, also the last time that a record can have."""
_SHOWN = 60
_PAIR = 2

SHORT_BYTES = 1024
"""The longest name and value together, in bytes, for which a result is cached."""
REMEMBERED = 2048
"""For how many fields, and request lines."""

Field = tuple[bytes, HeaderValue]
"""A header field."""
E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


class MalformedError(ValueError):
    """An invalid line; the text says why, without file and line."""


def seen(value: object) -> str:
    """Return `value` as short ASCII JSON for a message; never raises."""
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _is_count(value: int) -> bool:
    """Return whether `value` is from 0 to 2^63-1; `true` is an `int` in Python, but not in JSON."""
    return type(value) is int and 0 <= value <= MAX_INT


def bytes_to_json(data: bytes) -> object:
    """Return a string if and only if `data` is UTF-8, else `{"b64": ...}`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def bytes_from_json(value: object) -> bytes:
    """Return the bytes behind a string or `{"b64": ...}`."""
    try:
        match value:
            case str():
                return value.encode()
            case {"b64": str(text)}:
                return base64.b64decode(text, validate=True)
            case _:
                pass
    except ValueError as error:
        raise MalformedError(f"{seen(value)} holds no bytes: {error}") from error
    raise MalformedError(f'{seen(value)} where a string or {{"b64": "..."}} is expected')


def value_to_json(value: HeaderValue) -> object:
    """Return a header value or a part of a target."""
    if isinstance(value, MaskedCredential):
        return {"masked": {"length": value.length, "hash": value.hash}}
    return bytes_to_json(value)


def value_from_json(value: object) -> HeaderValue:
    """Read a header value, masked or not."""
    match value:
        case {"masked": {"length": int(length), "hash": str(digest)}}:
            if not _is_count(length) or not _HASH.fullmatch(digest):
                raise MalformedError(f"{seen(value)}: length >= 0 and 8 hex digits are expected")
            return MaskedCredential(length=length, hash=digest)
        case _:
            return bytes_from_json(value)


def line_from_json(value: object) -> bytes:
    """Read bytes that are a part of a line of HTTP: a player must not send two lines for one."""
    data = bytes_from_json(value)
    _one_line(data)
    return data


def _has_break(value: bytes) -> bool:
    """Return whether `value` has a CR, LF or NUL; quicker than a regular expression."""
    return b"\r" in value or b"\n" in value or b"\0" in value


def _one_line(value: HeaderValue) -> HeaderValue:
    if isinstance(value, bytes) and _has_break(value):
        raise MalformedError(f"{seen(value.decode('latin-1'))} where no CR, LF or NUL is expected")
    return value


def headers_to_json(headers: Headers) -> object:
    """Return `[[name, value], ...]` in wire order."""
    try:
        # Nearly all are text, and every exchange has dozens: they take no call of ours.
        return [
            [name.decode(), value.decode() if isinstance(value, bytes) else value_to_json(value)]
            for name, value in headers
        ]
    except UnicodeDecodeError:
        return [[bytes_to_json(name), value_to_json(value)] for name, value in headers]


def headers_from_json(value: object) -> Headers:
    """Read header fields, `[name, value]` each."""
    if not isinstance(value, list):
        raise MalformedError(f"{seen(value)} where a list of [name, value] is expected")
    if set(map(type, value)) == {list}:
        try:
            # Nearly all are text, and every exchange has dozens: they take no call of ours.
            found = tuple(
                [
                    (
                        name.encode(),
                        field.encode() if type(field) is str else value_from_json(field),
                    )
                    for name, field in value
                ]
            )
        except (AttributeError, ValueError):
            pass
        else:
            parts = [part for pair in found for part in pair if type(part) is bytes]
            if not _has_break(b"".join(parts)):
                return found
    for pair in value:
        if not isinstance(pair, list) or len(pair) != _PAIR:
            raise MalformedError(f"{seen(pair)} where [name, value] is expected")
    return tuple((line_from_json(name), _one_line(value_from_json(field))) for name, field in value)


class FieldMemory(dict[Field, T]):
    """What a function returns for each header field; remembered for those that are short."""

    def __init__(self, make: Callable[[Field], T]) -> None:
        self._make = make

    def __missing__(self, field: Field) -> T:
        made = self._make(field)
        name, value = field
        if isinstance(value, bytes) and len(name) + len(value) <= SHORT_BYTES:
            if len(self) >= REMEMBERED:
                self.clear()
            self[field] = made
        return made


def spans_from_json(value: object) -> tuple[MaskedSpan, ...]:
    """Ascending, disjoint `[start, end, hash]` of what was masked."""
    if not isinstance(value, list):
        raise MalformedError(f"{seen(value)} where a list of [start, end, hash] is expected")
    found: list[MaskedSpan] = []
    at = 0
    for span in value:
        match span:
            case [int(start), int(end), str(digest)] if _HASH.fullmatch(digest):
                if not (_is_count(start) and _is_count(end) and at <= start < end):
                    raise MalformedError(f"{seen(span)}: ascending [start, end) are expected")
                found.append((start, end, digest))
                at = end
            case _:
                raise MalformedError(f"{seen(span)} where [start, end, hash] is expected")
    return tuple(found)


def target_to_json(target: tuple[HeaderValue, ...]) -> object:
    """Return a string when nothing is masked, else the list of parts."""
    parts = [_part_to_json(part) for part in target]
    return parts[0] if len(parts) == 1 and isinstance(target[0], bytes) else parts


def _part_to_json(part: HeaderValue) -> object:
    # A target is ASCII by RFC 9112; text beyond it would hide which bytes were sent.
    if isinstance(part, bytes) and not part.isascii():
        return {"b64": base64.b64encode(part).decode()}
    return value_to_json(part)


def target_from_json(value: object) -> tuple[HeaderValue, ...]:
    """Read a request target, in parts if some are masked."""
    if isinstance(value, list):
        return tuple(_one_line(value_from_json(part)) for part in value)
    return (line_from_json(value),)


class Fields(NamedTuple):
    """The object of a payload, read field by field."""

    of: Mapping[str, object]

    @classmethod
    def read(cls, value: object) -> "Fields":
        """Return `value` as an object with fields."""
        if not isinstance(value, dict):
            raise MalformedError(f"{seen(value)} where an object is expected")
        return cls(value)

    def number(self, name: str) -> int:
        """Return an integer >= 0."""
        value = self.of.get(name)
        if type(value) is not int or not 0 <= value <= MAX_INT:
            raise MalformedError(
                f'"{name}" is {seen(value)}: an integer from 0 to 2^63-1 is expected'
            )
        return value

    def maybe_number(self, name: str) -> int | None:
        """Return an integer, or None when absent."""
        if name not in self.of:
            return None
        value = self.of[name]
        if type(value) is not int or abs(value) > MAX_INT:
            raise MalformedError(f'"{name}" is {seen(value)}: an integer is expected')
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string, `default` if absent; lone surrogates become U+FFFD."""
        value = self.of.get(name, default)
        if not isinstance(value, str):
            raise MalformedError(f'"{name}" is {seen(value)}: a string is expected')
        return value if value.isascii() else _printable(value)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.of.get(name)
        if not isinstance(value, bool):
            raise MalformedError(f'"{name}" is {seen(value)}: true or false is expected')
        return value

    def choice(self, name: str, kind: type[E]) -> E:
        """Return a member of the enumeration `kind`."""
        value = self.of.get(name)
        found: E | None = _members(kind).get(value) if isinstance(value, str) else None
        if found is not None:
            return found
        raise MalformedError(f'"{name}" is {seen(value)}: one of {", ".join(kind)} is expected')


@cache
def _members(kind: type[E]) -> Mapping[str, E]:
    return {member.value: member for member in kind}


def _printable(text: str) -> str:
    """Return `text` with U+FFFD for lone surrogates, so that it can be encoded."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# Loads the codec now: later there may be no file descriptor left to do it with.
_printable("\ufffd")
