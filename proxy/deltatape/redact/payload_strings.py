"""Find secrets in records that are no bodies: heads, notes, details, and unknown codes.

Each string of a payload is searched on its own. Credentials that the
format masks by their name are masked as a recorder would have done; all else is overwritten.

Works on the JSON of a payload, so that keys that this version does not know are kept.
"""

import base64
import re
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from deltatape.model.exchange import MaskedCredential
from deltatape.redact.fillers import Fillers
from deltatape.redact.search import secrets
from deltatape.secret_text.escaped_text import overwrite
from deltatape.secret_text.search import Secret
from deltatape.tape.encode import json_text
from deltatape.tape.fields import (
    Field,
    MalformedError,
    bytes_from_json,
    bytes_to_json,
    target_to_json,
    value_to_json,
)
from deltatape.tape.mask import Masker, credential_spans, must_be_masked
from deltatape.tape.payload import (
    ClientRecord,
    DeliveredSoFar,
    EndRecord,
    Informational,
    ParsedAs,
    RemarkRecord,
    RequestHeadRecord,
    ResponseStart,
    Stop,
    Trailers,
)
from deltatape.tape.record import Payload

_PAIR = 2
_DEPTH_LIMIT = 100
_SHORT = 200
"""Characters of texts that come again and again: names and values of headers."""
_ODD = re.compile(rb'["\x00-\x08\x0b-\x1f]')
"""Characters of texts that contain strings, and of binary messages."""
_KEPT = frozenset(("side",))
"""Members of WebSocket frames that are not redacted: the side that sent it."""


class PlainSecret(NamedTuple):
    """A secret in a record that is no body."""

    kind: str
    certain: bool
    where: str
    """A header's name, or a key of the payload."""


PlainText: TypeAlias = bytes | Field
"""A text of a payload, or a header field."""


class RedactedPayload(NamedTuple):
    """A payload without secrets, and what was in it."""

    value: object
    hits: tuple[PlainSecret, ...]


def plain_texts(
    payload: Payload, masker: Masker, cleared: Container[PlainText]
) -> list[PlainText] | None:
    """Return the texts and header fields of a payload that have to be searched.

    `redact_payload` has no hits unless there is a secret in one of them, see `joined_texts`. None:
    it has to be asked.

    Args:
        payload: the payload of a record that is no body.
        masker: knows which credentials were seen.
        cleared: what has no secret.
    """
    texts = _texts(payload)
    if texts is None:
        return None
    found: list[PlainText] = [text for text in map(_as_bytes, texts) if text not in cleared]
    headers = getattr(payload, "headers", ())
    fields = [field for field in headers if field not in cleared]
    for name, value in fields:
        if isinstance(value, bytes) and (len(value) > _SHORT or must_be_masked(name, value)):
            return None
    # What was seen is masked in headers alone.
    if masker.seen.version and not masker.seen.clean(joined_texts(headers) + b"\n"):
        return None
    found += fields
    # Strings in a string, or binary messages.
    if _ODD.search(joined_texts(found)):
        odd = [each for each in found if _ODD.search(joined_texts((each,)))]
        if any(map(_has_secrets, map(joined_texts, zip(odd, strict=True)))):
            return None
        found = [each for each in found if each not in odd]
    return found


def _texts(payload: Payload) -> tuple[str | bytes, ...] | None:
    """Return the texts of a payload without its headers; None if others may be in it."""
    match payload:
        case RequestHeadRecord(watched=None, target=(bytes(target),)) if _is_plain_target(target):
            return payload.id, payload.method, target, payload.upstream, payload.http
        case ResponseStart() | Informational():
            return payload.reason, payload.http
        case EndRecord() if not payload.recorder:
            return payload.sha256, payload.detail
        case ParsedAs():
            return payload.tool, payload.dialect, payload.finish, payload.sha256
        case RemarkRecord():
            return (payload.text,)
        case Stop():
            return (payload.reason,)
        case Trailers() | ClientRecord() | DeliveredSoFar():
            return ()
        case _:
            return None


def joined_texts(texts: Iterable[PlainText]) -> bytes:
    """Return texts, and the values of header fields, line by line."""
    parts = [each if isinstance(each, bytes) else each[1] for each in texts]
    return b"\n".join([part for part in parts if isinstance(part, bytes)])


def _as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else _encode(text)


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
    return _is_no_credential(name, text) and not _secrets_of_short(_encode(text))


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
    return _is_plain_target(_encode(text)) and not _secrets_of_short(_encode(text))


@lru_cache(256)
def _is_plain_target(target: bytes) -> bool:
    return not any(start < end for start, end in credential_spans(target))


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
    found = _secrets_of_short(_encode(text)) if len(text) <= _SHORT else secrets(_encode(text))
    if not found:
        return text
    hits += _hits(found, where)
    return _without(_encode(text), found).decode("utf-8", "surrogatepass")


@lru_cache(4096)
def _secrets_of_short(data: bytes) -> tuple[Secret, ...]:
    return secrets(data)


def _has_secrets(data: bytes) -> bool:
    return bool(_secrets_of_short(data) if len(data) <= _SHORT else secrets(data))


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
