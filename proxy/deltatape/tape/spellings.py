r"""How one credential may be spelled in bytes: as it is, in JSON strings, percent-encoded.

Encoders differ in what they escape beyond what they must: PHP `/`, Go `<>&`, Gson also `=` and
`'`, .NET also `+` and the quotes. JSON in a JSON string, such as the arguments of a tool call, is
escaped twice. A credential of letters, digits, `-`, `.` and `_` has one spelling in all of them.

Source: RFC 8259 section 7, RFC 3986 section 2, the URL standard's "application/x-www-form-
urlencoded".
"""

import re
from collections.abc import Iterator
from json.encoder import encode_basestring, encode_basestring_ascii
from urllib.parse import quote, quote_plus

_PLAIN = re.compile(rb"[A-Za-z0-9._-]*")
_ENCODED = re.compile(r"%[0-9A-F]{2}")

_HEX = re.compile(r"\\u[0-9a-f]{4}")

_LOWER = "\\u{:04x}"
_UPPER = "\\u{:04X}"

_ESCAPES = (
    {},
    str.maketrans({"/": "\\/"}),
    *(
        str.maketrans({char: form.format(ord(char)) for char in also})
        for also in ("<>&", "<>&='", "<>&'+`", "+/=")
        for form in (_LOWER, _UPPER)
    ),
)
"""What encoders escape in a JSON string although they need not."""


def spellings(credential: bytes) -> tuple[bytes, ...]:
    """Every usual spelling of `credential`, itself first, each once."""
    if _PLAIN.fullmatch(credential):
        return (credential,)
    try:
        text = credential.decode()
    except UnicodeDecodeError:
        text = credential.decode("latin-1")  # as HTTP libraries read header values
    found = dict.fromkeys((credential, text.encode()))
    for spelled in (*_in_json(text), *_in_urls(credential)):
        found[spelled.encode()] = None
    return tuple(found)


def _in_json(text: str) -> Iterator[str]:
    for quoted in (encode_basestring(text)[1:-1], encode_basestring_ascii(text)[1:-1]):
        for escapes in _ESCAPES:
            once = quoted.translate(escapes)
            yield once
            yield _HEX.sub(lambda match: f"\\u{match.group()[2:].upper()}", once)
            yield once.replace('\\"', "\\u0022")
            yield encode_basestring(once)[1:-1]
            yield encode_basestring_ascii(once)[1:-1]


def _in_urls(credential: bytes) -> Iterator[str]:
    encoded = [quote(credential, safe=safe) for safe in ("", "/", "!'()*", "*~")]
    for spelled in (*encoded, quote_plus(credential)):
        yield spelled
        yield _ENCODED.sub(lambda match: match.group().lower(), spelled)
