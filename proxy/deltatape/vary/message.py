"""Amazon's binary messages made: a prelude, headers, a payload, two checksums.

Spec: the layout in `wire.aws_eventstream`, which reads them.
"""

from collections.abc import Mapping
from zlib import crc32

_STRING = b"\x07"
_PRELUDE = 12
_CHECKSUM = 4
_FOUR = 4


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message with these headers, all strings."""
    return _framed(b"".join(_header(*pair) for pair in headers.items()), payload)


def with_header(raw: bytes, name: str, value: str) -> bytes:
    """A message with one more header, a string, behind those that it has."""
    end = _PRELUDE + int.from_bytes(raw[_FOUR : 2 * _FOUR])
    return _framed(raw[_PRELUDE:end] + _header(name, value), raw[end:-_CHECKSUM])


def _header(name: str, value: str) -> bytes:
    return len(name).to_bytes(1) + name.encode() + _STRING + len(value).to_bytes(2) + value.encode()


def _framed(headers: bytes, payload: bytes) -> bytes:
    size = _PRELUDE + len(headers) + len(payload) + _CHECKSUM
    lengths = size.to_bytes(_FOUR) + len(headers).to_bytes(_FOUR)
    made = lengths + crc32(lengths).to_bytes(_FOUR) + headers + payload
    return made + crc32(made).to_bytes(_FOUR)
