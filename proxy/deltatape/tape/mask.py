"""Keeps credentials out of tapes: which header fields and query parameters carry them, and a hash.

A masked value leaves its length in bytes and eight hex digits of HMAC-SHA256 under a key of the
user's own: enough to tell "the same key as before?", not enough to guess it. Masking goes by
name, since a value that looks harmless may still be a credential.

Only what is written is masked, never what is forwarded. Source: `HEADERS` and `QUERY` follow what
providers, gateways and clouds document as credentials.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from deltatape.model.exchange import Headers, HeaderValue, Masked

HEADERS = frozenset(
    {
        "api-key",
        "apikey",
        "authorization",
        "cookie",
        "openai-organization",
        "openai-project",
        "set-cookie",
        "x-apikey",
    }
)
"""Lower case, with hyphens; together with every name that ends in one of `SUFFIXES`."""

QUERY = frozenset(
    {
        "accesstoken",
        "api-key",
        "apikey",
        "auth",
        "authorization",
        "jwt",
        "key",
        "password",
        "secret",
        "sig",
        "signature",
        "token",
        "x-amz-credential",
        "x-amz-signature",
        "x-goog-credential",
        "x-goog-signature",
    }
)
"""Lower case, with hyphens for underscores; together with `SUFFIXES`."""

SUFFIXES = ("-token", "-secret", "-key", "-auth", "-authorization", "-password")

HARMLESS = frozenset(
    {
        "cache-key",
        "continuation-token",
        "idempotency-key",
        "next-page-token",
        "next-token",
        "page-token",
        "sec-websocket-key",
        "surrogate-key",
        "x-cache-key",
        "x-idempotency-key",
    }
)
"""Names with such an ending that carry no credential and are needed to understand a tape."""

URL_HEADERS = frozenset({"content-location", "link", "location", "referer", "refresh"})
"""Header fields that repeat URLs, and with them what is secret in those."""

_HASH_DIGITS = 8

_USERINFO = re.compile(rb"://([^/?#&\s<>]*)@")
# `;`, `?` and `#` do not end a value, but clients that glue two query strings together, or use
# `;` as a separator, hide a parameter behind them.
_PARAMETER = re.compile(rb"[^;?#]+")


def is_credential_header(name: bytes) -> bool:
    """Whether a header field of this name (any case) carries a credential."""
    return _is_listed(name, HEADERS)


def is_credential_parameter(name: bytes) -> bool:
    """Whether a query parameter of this name (any case, percent-encoded or not) carries one."""
    return _is_listed(unquote_to_bytes(name.replace(b"+", b" ")).strip(), QUERY)


def _is_listed(name: bytes, names: frozenset[str]) -> bool:
    plain = name.decode("latin-1").lower().replace("_", "-")
    return plain not in HARMLESS and (plain in names or plain.endswith(SUFFIXES))


def credential_spans(target: bytes) -> Iterator[tuple[int, int]]:
    """Where credentials are in a request target or URL: ascending, disjoint `[start, end)`.

    That is URL userinfo, and the values of credential query parameters, each up to its `&`. Takes
    time in proportion to the length, whatever the bytes.
    """
    query = target.find(b"?") + 1 or len(target)
    yield from (match.span(1) for match in _USERINFO.finditer(target, 0, query))
    while query < len(target):
        end = target.find(b"&", query)
        end = len(target) if end < 0 else end
        yield from _parameter_spans(target, query, end)
        query = end + 1


def _parameter_spans(target: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Credentials between two `&` of a query."""
    for part in _PARAMETER.finditer(target, start, end):
        name, equals, _ = part.group().partition(b"=")
        if equals and is_credential_parameter(name):
            yield part.start() + len(name) + 1, end
            return
        yield from (match.span(1) for match in _USERINFO.finditer(target, *part.span()))


class Masker:
    """Masks under one key: the same credential has the same hash on every tape of this key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def value(self, value: bytes) -> Masked:
        """`value`, unreadable."""
        digest = hmac.new(self._key, value, hashlib.sha256).hexdigest()
        return Masked(length=len(value), hash=digest[:_HASH_DIGITS])

    def headers(self, headers: Headers) -> Headers:
        """`headers` with the values of credential fields masked; order and names are kept."""
        return tuple(
            (name, self.value(value))
            if isinstance(value, bytes) and _must_be_masked(name, value)
            else (name, value)
            for name, value in headers
        )

    def target(self, target: bytes) -> tuple[HeaderValue, ...]:
        """`target` in parts, credentials masked: one part when there are none."""
        parts: list[HeaderValue] = []
        at = 0
        for start, end in credential_spans(target):
            parts.append(target[at:start])
            parts.append(self.value(target[start:end]))
            at = end
        if at < len(target) or not parts:
            parts.append(target[at:])
        return tuple(parts)


def _must_be_masked(name: bytes, value: bytes) -> bool:
    if is_credential_header(name):
        return True
    if name.lower().decode("latin-1") not in URL_HEADERS:
        return False
    return _USERINFO.search(value) is not None or any(credential_spans(value))


def without_userinfo(url: str) -> str:
    """`url` without the `user:password@` in its authority."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}" if separator else url
