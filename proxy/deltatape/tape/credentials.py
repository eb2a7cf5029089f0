"""Extracts credentials from the header fields and URLs that carry them.

A field's value is more than the credential: `Bearer X`, `name=X; Path=/`, base64 of `user:X`.
Bodies and logs repeat only X. The result may be an ordinary word, see `is_word`.

Source: RFC 9110 section 11.6.2 (schemes), RFC 7617 (Basic), RFC 6265 (cookies), RFC 3986 section
3.2.1 (user information).
"""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from deltatape.tape.seen_credentials import LEAST

_PARAMETER = re.compile(
    rb"\b(?:credential|response|signature|token)\s*=\s*\"?([^\",;\s/]+)", re.IGNORECASE
)
"""Secret parameters of schemes such as AWS4-HMAC-SHA256 and Digest."""

_BEARER = re.compile(rb"(?i:bearer)\s+([^\s\",]+)")

_CHALLENGES = (b"authentication-info", b"authenticate")
"""Suffixes of header fields with a challenge: a realm follows `Bearer` there, not a token."""

_SUBPROTOCOL = re.compile(
    rb"(?:-key|-token|-secret|bearer\.authorization\.k8s\.io)\.([^\s,]+)", re.IGNORECASE
)
"""Browsers can send a WebSocket's credential in no other field: `NAME.X` among its subprotocols."""

_SCHEMES = frozenset({b"basic", b"bearer", b"token"})

_WORD = re.compile(rb"[A-Za-z_-]{0,15}")

_URL_ENDS = (re.compile(rb"[\s<>\"]"), re.compile(rb"[\s<>\";?#/]"))
"""The characters after a URL in a header field; those after a parameter, for most programs."""


def is_word(value: bytes) -> bool:
    """Check whether `value` is an ordinary word such as `postgres`, `production` or `not-needed`.

    Such a credential protects nothing, and masking every occurrence would make a tape unreadable.
    """
    return _WORD.fullmatch(value) is not None


def basic(user: bytes, password: bytes) -> tuple[bytes, ...]:
    """Return the forms of a password: itself, and base64 of `user:password`."""
    pair = user + b":" + password
    forms = (base64.b64encode(pair), base64.urlsafe_b64encode(pair))
    return tuple(dict.fromkeys((password, *forms, *(form.rstrip(b"=") for form in forms))))


def in_field(name: bytes, value: bytes) -> Iterator[bytes]:
    """Yield the credentials in a header field that carries some; `name` in any case."""
    match name.lower():
        case b"cookie" | b"cookie2":
            for pair in value.split(b";"):
                yield _cookie(pair)
        case b"set-cookie" | b"set-cookie2":
            yield _cookie(value.partition(b";")[0])
        case field if field.endswith((b"authorization", b"auth")):
            yield from _in_scheme(value.strip())
        case _:
            scheme, rest = _split(value)
            yield rest if scheme == b"bearer" else value.strip()
            if b"," in value:
                yield from (part.strip() for part in value.split(b","))


def in_other_field(name: bytes, value: bytes) -> Iterator[bytes]:
    """Yield credentials in a header field whose name does not reveal one."""
    lower = name.lower()
    if lower == b"sec-websocket-protocol":
        yield from (match.group(1) for match in _SUBPROTOCOL.finditer(value))
    elif not lower.endswith(_CHALLENGES):
        match = _BEARER.fullmatch(value.strip())
        if match and not is_word(match.group(1)):
            yield match.group(1)


def _cookie(pair: bytes) -> bytes:
    return pair.partition(b"=")[2].strip(b' \t"')


def _split(value: bytes) -> tuple[bytes, bytes]:
    """Return the scheme in lower case, and what follows it; both may be empty."""
    parts = [*value.split(maxsplit=1), b"", b""]
    return parts[0].lower(), parts[1].strip()


def _in_scheme(value: bytes) -> Iterator[bytes]:
    scheme, rest = _split(value)
    credential = rest or value
    yield credential
    if len(credential) < LEAST and scheme not in _SCHEMES:
        yield value  # perhaps a credential with a space, and no scheme
    yield from (match.group(1) for match in _PARAMETER.finditer(rest))
    if scheme == b"basic":
        try:
            user, _, password = base64.b64decode(credential + b"==").partition(b":")
        except binascii.Error:
            return
        yield password or user


def in_url(url: bytes, start: int, end: int) -> Iterator[bytes]:
    """Yield the credential in `url` at `[start, end)`, raw and percent-decoded."""
    value = url[start:end]
    if url.endswith(b"://", 0, start):
        user, _, password = value.partition(b":")
        value = password or user
    # A header field may contain a URL among other things.
    for found in dict.fromkeys((value, *(ends.split(value, 1)[0] for ends in _URL_ENDS))):
        yield found
        yield unquote_to_bytes(found)
        yield unquote_to_bytes(found.replace(b"+", b" "))
