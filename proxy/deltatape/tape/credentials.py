"""The credentials themselves, taken out of the header fields and URLs that carry them.

A field's value is more than the credential: `Bearer X`, `name=X; Path=/`, base64 of `user:X`. In
bodies and logs only X comes back.

Source: RFC 9110 section 11.6.2 (schemes), RFC 7617 (Basic), RFC 6265 (cookies), RFC 3986 section
3.2.1 (user information).
"""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from deltatape.tape.literals import LEAST

_PARAMETER = re.compile(
    rb"\b(?:credential|response|signature|token)\s*=\s*\"?([^\",;\s/]+)", re.IGNORECASE
)
"""Of schemes with several parameters, such as AWS4-HMAC-SHA256 and Digest."""

_WORD = re.compile(rb"[A-Za-z_-]{0,15}")

_URL_ENDS = re.compile(rb"[\s<>\"]")


def in_field(name: bytes, value: bytes) -> Iterator[bytes]:
    """The credentials in a header field that carries some; `name` in any case."""
    match name.lower():
        case b"cookie":
            for pair in value.split(b";"):
                yield _cookie(pair)
        case b"set-cookie":
            yield _cookie(value.partition(b";")[0])
        case field if field.endswith((b"authorization", b"auth")):
            yield from _in_scheme(value.strip())
        case _:
            scheme, _, rest = value.strip().partition(b" ")
            yield rest.strip() if scheme.lower() == b"bearer" else value.strip()


def _cookie(pair: bytes) -> bytes:
    """The value, unless it is a word such as `production`: that would be masked everywhere."""
    value = pair.partition(b"=")[2].strip(b' \t"')
    return b"" if _WORD.fullmatch(value) else value


def _in_scheme(value: bytes) -> Iterator[bytes]:
    scheme, _, rest = value.partition(b" ")
    credential = rest.strip() or scheme
    yield credential
    if len(credential) < LEAST:
        yield value  # no scheme, perhaps
    yield from (match.group(1) for match in _PARAMETER.finditer(rest))
    if scheme.lower() == b"basic":
        try:
            user, _, password = base64.b64decode(credential + b"==").partition(b":")
        except binascii.Error:
            return
        yield password or user


def in_url(url: bytes, start: int, end: int) -> Iterator[bytes]:
    """The credential that stands in `url` at `[start, end)`, as it is and percent-decoded."""
    value = url[start:end]
    if url.endswith(b"://", 0, start):
        user, _, password = value.partition(b":")
        value = password or user
    # A URL may stand in a header field among other things.
    for found in (value, _URL_ENDS.split(value, 1)[0]):
        yield found
        yield unquote_to_bytes(found)
        yield unquote_to_bytes(found.replace(b"+", b" "))
