"""Find secrets in records that are no bodies: heads, notes, details, and unknown codes.

Each string of a payload is searched on its own. Credentials that the
format masks by their name are masked as a recorder would have done; all else is overwritten.

Works on the JSON of a payload, so that keys that this version does not know are kept.
"""

import base64
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from deltatape.model.exchange import MaskedCredential
from deltatape.redact.fillers import Fillers
from deltatape.redact.search import secrets
from deltatape.secret_text.escaped_text import overwrite
from deltatape.secret_text.prefilter import may_hold_secret
from deltatape.secret_text.search import Secret
from deltatape.tape.encode import json_text
from deltatape.tape.fields import (
    MalformedError,
    bytes_from_json,
    bytes_to_json,
    target_to_json,
    value_to_json,
)
from deltatape.tape.mask import Masker, credential_spans, must_be_masked

_PAIR = 2
_DEPTH_LIMIT = 100
_SHORT = 200
"""Characters of texts that come again and again: names and values of headers."""
_BYTES = (b"\\u00", b'"b64"')
"""What stands where a string may be no text, and needs a search of its own."""
_KEPT = frozenset(("side",))
"""Of the frames of WebSockets: whose it is."""


class PlainSecret(NamedTuple):
    """A secret in a record that is no body."""

    kind: str
    certain: bool
    where: str
    """A header's name, or a key of the payload."""


class RedactedPayload(NamedTuple):
    """A payload without secrets, and what was in it."""

    value: object
    hits: tuple[PlainSecret, ...]


class WrittenPayload(NamedTuple):
    """A payload of a known code as JSON."""

    value: object
    line: bytes
    """The line of its record."""


def is_harmless(written: WrittenPayload, masker: Masker) -> bool:
    """Return True only if `redact_payload` has no hits in a payload; its line is searched once."""
    value, line = written
    if not isinstance(value, dict) or any(mark in line for mark in _BYTES):
        return False
    headers = value.get("headers", ())
    texts: list[str] = []
    quotes = line.count(b'\\"')
    for pair in headers:
        match pair:
            case [str(name), str(text)] if len(text) <= _SHORT and _is_no_credential(name, text):
                texts.append(text)
                if '"' in text and _is_harmless_field(name, text):
                    quotes -= text.count('"')
            case [str(), {"masked": _}]:
                pass
            case _:
                return False
    if quotes:  # the strings in a string need a search of their own
        return False
    target = value.get("target", "")
    if not isinstance(target, str) or len(target) > _SHORT or not _is_plain_target(target):
        return False
    # What was seen is masked in headers alone.
    if texts and not masker.seen.clean(_encode("\n".join((*texts, "")))):
        return False
    return not may_hold_secret(line)


def redact_payload(value: object, masker: Masker) -> RedactedPayload:
    """Return the payload of a record that is no body, with its secrets overwritten."""
    hits: list[PlainSecret] = []
    if isinstance(value, dict):
        members: dict[object, object] = {}
        for key, member in value.items():
            if key == "headers" and isinstance(member, list):
                members[key] = _headers(member, masker, hits)
            elif key == "target":
                members[key] = _target(member, masker, hits)
            else:
                members[key] = _redact(member, key, hits)
        return RedactedPayload(members, tuple(hits))
    return RedactedPayload(_redact(value, "", hits), tuple(hits))


def _headers(pairs: list[object], masker: Masker, hits: list[PlainSecret]) -> list[object]:
    texts: list[str] = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != _PAIR or not isinstance(pair[0], str):
            break
        name, text = pair
        if isinstance(text, str):
            if len(text) > _SHORT or not _is_harmless_field(name, text):
                break
            texts.append(text)
        elif not isinstance(text, dict) or [*text] != ["masked"]:
            break
    else:
        if masker.seen.clean(_encode("\n".join((*texts, "")))):
            return pairs
    return [_header(each, masker, hits) for each in pairs]


@lru_cache(4096)
def _is_harmless_field(name: str, text: str) -> bool:
    """Return whether a header field is no credential and contains none."""
    return _is_no_credential(name, text) and not _secrets_of_short(text)


@lru_cache(4096)
def _is_no_credential(name: str, text: str) -> bool:
    return not must_be_masked(_encode(name), _encode(text))


def _header(pair: object, masker: Masker, hits: list[PlainSecret]) -> object:
    """Return `[name, value]`, masked by its name, else searched."""
    if not isinstance(pair, list) or len(pair) != _PAIR:
        return _redact(pair, "headers", hits)
    try:
        name, value = bytes_from_json(pair[0]), bytes_from_json(pair[1])
    except MalformedError:  # masked already
        return pair
    shown = name.decode("latin-1")
    masked = masker.headers(((name, value),))[0][1]
    if isinstance(masked, MaskedCredential):
        hits.append(PlainSecret("unmasked credential", certain=True, where=shown))
        return [pair[0], value_to_json(masked)]
    return [pair[0], _redact(pair[1], shown, hits)]


def _target(value: object, masker: Masker, hits: list[PlainSecret]) -> object:
    """Return a masked request target, or its parts."""
    if isinstance(value, str) and len(value) <= _SHORT and _is_harmless_target(value):
        return value
    parts = value if isinstance(value, list) else [value]
    masked = [part for one in parts for part in _mask_parameters(one, masker, hits)]
    masked = [_redact(part, "target", hits) for part in masked]
    return masked if isinstance(value, list) or len(masked) > 1 else masked[0]


@lru_cache(256)
def _is_harmless_target(text: str) -> bool:
    return _is_plain_target(text) and not _secrets_of_short(text)


@lru_cache(256)
def _is_plain_target(text: str) -> bool:
    return not any(start < end for start, end in credential_spans(_encode(text)))


def _mask_parameters(part: object, masker: Masker, hits: list[PlainSecret]) -> list[object]:
    """Return a part of a target in parts, with the values of credential parameters masked."""
    try:
        data = bytes_from_json(part)
    except MalformedError:  # masked already
        return [part]
    if not any(start < end for start, end in credential_spans(data)):
        return [part]
    hits.append(PlainSecret("unmasked credential", certain=True, where="target"))
    masked = target_to_json(masker.target(data))
    return masked if isinstance(masked, list) else [masked]


def _redact(value: object, where: str, hits: list[PlainSecret], depth: int = 0) -> object:
    """Return `value` with the secrets in its strings overwritten."""
    if depth > _DEPTH_LIMIT:
        found = secrets(json_text(value).encode())
        hits += _hits(found, where)
        return "*" if found else value
    match value:
        case str():
            return _text(value, where, hits)
        case {"b64": str(text), **rest} if not rest:
            return _encoded(value, text, where, hits)
        case list():
            return [_redact(element, where, hits, depth + 1) for element in value]
        case dict():
            return {
                _text(key, where, hits): _redact(member, where, hits, depth + 1)
                for key, member in value.items()
            }
        case _:
            return value


def fill_payload(value: object, fillers: Fillers, depth: int = 0) -> object:
    """Return the payload of an unknown code with fillers for all its strings."""
    match value:
        case str():
            data = value.encode("utf-8", "replace").decode("latin-1")
            return fillers.masked(data).encode("latin-1").decode()
        case list() if depth < _DEPTH_LIMIT:
            return [fill_payload(element, fillers, depth + 1) for element in value]
        case dict() if depth < _DEPTH_LIMIT:
            return {
                key: member if key in _KEPT else fill_payload(member, fillers, depth + 1)
                for key, member in value.items()
            }
        case list() | dict():
            return "*"
        case _:
            return value


def _text(text: str, where: str, hits: list[PlainSecret]) -> str:
    found = _secrets_of_short(text) if len(text) <= _SHORT else secrets(_encode(text))
    if not found:
        return text
    hits += _hits(found, where)
    return _without(_encode(text), found).decode("utf-8", "surrogatepass")


@lru_cache(4096)
def _secrets_of_short(text: str) -> tuple[Secret, ...]:
    return secrets(_encode(text))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _encoded(value: object, text: str, where: str, hits: list[PlainSecret]) -> object:
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return value
    found = secrets(data)
    hits += _hits(found, where)
    return bytes_to_json(_without(data, found)) if found else value


def _hits(found: tuple[Secret, ...], where: str) -> Iterator[PlainSecret]:
    return (PlainSecret(secret.kind, secret.certain, where) for secret in found)


def _without(data: bytes, found: tuple[Secret, ...]) -> bytes:
    return overwrite(data, (edit for secret in found for edit in secret.edits))
