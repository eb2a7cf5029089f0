r"""How one credential may be spelled in bytes: as it is, in JSON strings, percent-encoded.

Encoders differ in what they escape beyond what they must: PHP `/`, Go `<>&`, Gson also `=` and
`'`, .NET also `+` and the quotes. JSON in a JSON string, such as the arguments of a tool call, is
escaped twice. A credential of letters, digits, `-`, `.` and `_` has one spelling in all of them.

Source: RFC 8259 section 7, RFC 3986 section 2, the URL standard's "application/x-www-form-
urlencoded".
"""

import re
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring, encode_basestring_ascii

LONG = 256
"""Credentials of more bytes, where they are seen by the dozen, are looked for in fewer spellings:
as the usual encoders write them."""

GIANT = 1024
"""Of still more bytes: as they are."""

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

_HEX = re.compile(r"\\u[0-9a-f]{4}")

_LOWER = "\\u{:04x}"
_UPPER = "\\u{:04X}"

_Table = tuple[tuple[str, str], ...]

_NOTHING: _Table = ()
_SLASH: _Table = (("/", "\\/"),)
_ESCAPES: tuple[_Table, ...] = (
    _NOTHING,
    _SLASH,
    *(
        tuple((char, form.format(ord(char))) for char in also)
        for also in ("<>&", "<>&='", "<>&'+`", "+/=")
        for form in (_LOWER, _UPPER)
    ),
)
"""What encoders escape in a JSON string although they need not."""

_SAFE = (b"~", b"/~", b"!'()*~")
"""What encoders leave as it is in URLs, beside letters, digits, `.`, `_` and `-`."""


def spellings(credential: bytes) -> tuple[bytes, ...]:
    """Every usual spelling of `credential`, itself first, each once."""
    return _spelled(credential, _ESCAPES, _SAFE)


def fewer_spellings(credential: bytes) -> tuple[bytes, ...]:
    """The same, with limits that keep the cost in proportion to the length; itself at least."""
    if len(credential) > GIANT:
        return (credential,)
    if len(credential) > LONG:
        return _spelled(credential, (_NOTHING, _SLASH), _SAFE[:1])
    return spellings(credential)


def _spelled(
    credential: bytes, escapes: Iterable[_Table], safe: Iterable[bytes]
) -> tuple[bytes, ...]:
    odd = credential.translate(None, _PLAIN)
    if not odd:
        return (credential,)
    try:
        text = credential.decode()
    except UnicodeDecodeError:
        text = credential.decode("latin-1")  # as HTTP libraries read header values
    found = dict.fromkeys((credential, text.encode()))
    for spelled in _in_json(text, escapes):
        found[spelled.encode()] = None
    found.update(dict.fromkeys(_in_urls(credential, bytes(set(odd)), safe)))
    return tuple(found)


def _in_json(text: str, escapes: Iterable[_Table]) -> Iterator[str]:
    quoted = dict.fromkeys((encode_basestring(text)[1:-1], encode_basestring_ascii(text)[1:-1]))
    quoted.update(dict.fromkeys([_upper(each) for each in quoted]))
    # Most tables change nothing that another one does not.
    for once in dict.fromkeys(_escaped(each, table) for each in quoted for table in escapes):
        yield once
        if "\\" in once:
            yield once.replace('\\"', "\\u0022")
            yield encode_basestring(once)[1:-1]
        if not once.isascii():
            yield encode_basestring_ascii(once)[1:-1]


def _upper(text: str) -> str:
    return _HEX.sub(lambda match: f"\\u{match.group()[2:].upper()}", text)


def _escaped(text: str, table: _Table) -> str:
    for char, escape in table:
        text = text.replace(char, escape)
    return text


def _in_urls(credential: bytes, odd: bytes, safe: Iterable[bytes]) -> Iterator[bytes]:
    # What is put in holds a `%`, so that one goes first.
    first = b"%" if b"%" in odd else b""
    odd = first + odd.translate(None, b"%")
    for escaped in dict.fromkeys(odd.translate(None, kept) for kept in safe):
        for form in (b"%%%02X", b"%%%02x"):
            encoded = _percent(credential, escaped.translate(None, b" "), form)
            yield encoded.replace(b" ", b"%20")
            yield encoded.replace(b" ", b"+")


def _percent(credential: bytes, escaped: bytes, form: bytes) -> bytes:
    for byte in escaped:
        credential = credential.replace(bytes((byte,)), form % byte)
    return credential
