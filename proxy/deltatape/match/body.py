"""The forms in which request bodies are compared, and what was masked in them.

As bytes, ignoring the random boundary of a multipart body. As JSON if possible, ignoring key order,
spacing and number spelling (`1`, `1.0`). Two digests identify the whole value and the value
without what is volatile.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import AnyStr, Final

from deltatape.match.volatile import VolatileRules, readable
from deltatape.model.exchange import MaskedSpan

NOT_JSON: Final = object()
"""The value of a body that is not JSON."""

_BOUNDARY = re.compile(rb"--([^\r\n]{1,70})\r\n")
_DIGEST_BYTES = 16
_EXACT_FLOAT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyForms:
    """Digests of a body's JSON value."""

    canonical: bytes
    reduced: bytes
    """The digest without what is volatile."""


def exact_form(body: bytes) -> bytes:
    """Return the body's bytes; a multipart body (RFC 2046 section 5.1.1) with an empty boundary."""
    found = _BOUNDARY.match(body)
    if found is None or not body.rstrip(b"\r\n").endswith(b"--%b--" % found[1]):
        return body
    return body.replace(b"--%b" % found[1], b"--")


def forms_of(body: bytes, volatile: VolatileRules) -> BodyForms | None:
    """Return the forms of a body; None if it is not JSON."""
    value = json_value(body)
    if value is NOT_JSON:
        return None
    canonical = reduced = _digest(value)
    if volatile:
        reduced = _digest(volatile.reduced(value))
    return BodyForms(canonical=canonical, reduced=reduced)


def json_value(body: bytes) -> object:
    """Return the value of a body; `NOT_JSON` if there is none or it is nested too deeply."""
    try:
        value: object = json.loads(body, parse_float=_number)
        json.dumps(value)  # dumps rejects nesting that loads accepts
    except (ValueError, RecursionError):
        return NOT_JSON
    return value


def _number(text: str) -> float:
    """Read `1.0` as `1`: other languages write the same number so."""
    value = float(text)
    return int(value) if abs(value) < _EXACT_FLOAT and value.is_integer() else value


def _digest(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


# Compares masked bodies on a tape with those that an application sends.
#
# A tape can mask in two ways. Credentials become asterisks, and spans tell where: anything matches
# there. Redacted content becomes fillers: letters become x, digits 1, and the last ones a number.
# Text of the same shape matches them, run of letters by run of letters, since words that a tool
# defines are kept. A tape does not say whether it has fillers, so two bodies count as equal only if
# one of their differences shows enough fillers.
#
#     recorded  {"key": "*****", "content": "xxxxxxx xx xxxx 11b"}
#     received  {"key": "sk-fake", "content": "Weather in Bern 24h"}
#
# The fillers are those of `redact.fillers`.

BLANK = "\ufdd0"
"""Stands for a masked value: a noncharacter, which no text has (Unicode section 23.7)."""

_ASTERISKS = "***"
_NUMBERED = 4
"""The most characters at the end of a run that can be its number; at most half of the run."""
_ENOUGH = 8
"""This many fillers in one string are no coincidence."""
_HINTS = (b"xxxx", b"1111")
_RUN = re.compile(
    r"\\+u(?P<code>[0-9a-fA-F]{4})|(?P<kept>\b(?:true|false|null)\b|\\+.)"
    r"|(?P<letters>[A-Za-z]+)|(?P<digits>[0-9]+)|(?P<wide>[^\x00-\x7f]+)",
    re.DOTALL | re.ASCII,
)
_WIDE = ("", "", "\xd7", "\u2179", "\U0001d465")
"""Fillers by how many bytes a character has."""
_SIGNS = frozenset(map(chr, range(0x80, 0xC0))) - frozenset("\xaa\xb2\xb3\xb5\xb9\xba")
"""Two-byte characters that are not letters; they are kept."""


def blanked(body: bytes, spans: Sequence[MaskedSpan]) -> bytes:
    """Replace each span of `body` by one `BLANK`."""
    return BLANK.encode().join(pieces(body, spans)) if spans else body


def pieces(body: bytes, spans: Sequence[MaskedSpan]) -> tuple[bytes, ...]:
    """Return what is between the spans."""
    starts = (0, *(end for _, end, _ in spans))
    ends = (*(start for start, _, _ in spans), len(body))
    return tuple(body[start:end] for start, end in zip(starts, ends, strict=True))


def may_be_filled(body: bytes) -> bool:
    """Return whether a body may have masks; False only if it has none."""
    return any(hint in body for hint in _HINTS)


def fits(between: Sequence[AnyStr], text: AnyStr) -> bool:
    """Return whether `text` is those pieces in order, with anything in between."""
    first, last = between[0], between[-1]
    if len(between) == 1:
        return text == first
    if not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in between[1:-1]:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


def shown_value(value: object) -> object:
    """Return a JSON value with asterisks for each `BLANK`, and readable volatile parts."""
    if isinstance(value, str):
        return readable(value.replace(BLANK, _ASTERISKS))
    if isinstance(value, list):
        return [shown_value(each) for each in value]
    if isinstance(value, dict):
        return {key: shown_value(each) for key, each in value.items()}
    return value


def stands_for(recorded: object, received: object) -> bool:
    """Return whether the recorded value certainly was masked and fits the received one."""
    comparison = _Comparison()
    return comparison.leaf(recorded, received) and comparison.credible


def agree(recorded: object, received: object) -> bool:
    """Return whether two JSON values are equal apart from what was masked on the tape.

    Args:
        recorded: with `BLANK` in place of credentials.
        received: as the application sent it.
    """
    comparison = _Comparison()
    return comparison.same(recorded, received) and comparison.credible


class _Comparison:
    """Walks two values; remembers whether there were masks, and whether any were long enough."""

    def __init__(self) -> None:
        self._filled = False
        self._proven = False

    @property
    def credible(self) -> bool:
        return self._proven or not self._filled

    def same(self, recorded: object, received: object) -> bool:
        if isinstance(recorded, dict) and isinstance(received, dict):
            return self._members(recorded, received)
        if isinstance(recorded, list) and isinstance(received, list):
            return len(recorded) == len(received) and all(map(self.same, recorded, received))
        if type(recorded) is type(received) and recorded == received:
            return True
        return self.leaf(recorded, received)

    def leaf(self, recorded: object, received: object) -> bool:
        if isinstance(recorded, str) and isinstance(received, str) and BLANK in recorded:
            return fits(recorded.split(BLANK), received) or self._is_filled(recorded, received)
        return self._is_filled(recorded, received)

    def _members(self, recorded: Mapping[str, object], received: Mapping[str, object]) -> bool:
        if recorded.keys() == received.keys():
            return all(self.same(value, received[key]) for key, value in recorded.items())
        # Keys of arguments are masked, too: they are paired by their order.
        return len(recorded) == len(received) and all(
            self.same(one, other) and self.same(recorded[one], received[other])
            for one, other in zip(recorded, received, strict=True)
        )

    def _is_filled(self, recorded: object, received: object) -> bool:
        one, other = _maskable_text(recorded), _maskable_text(received)
        if one is None or other is None or type(recorded) is not type(received):
            return False
        fillers = _fillers(one, other)
        if fillers is None:
            return False
        self._filled = True
        self._proven = self._proven or fillers >= _ENOUGH
        return True


def _maskable_text(value: object) -> str | None:
    """Return a string, or a number as JSON; None for what is never masked."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _fillers(recorded: str, received: str) -> int | None:
    """Count the masks that replace something else; None if they do not explain the difference."""
    if len(recorded) != len(received):
        return None
    count = at = 0
    runs = zip(_RUN.finditer(recorded), _RUN.finditer(received), strict=False)
    for one, other in runs:
        if (one.span(), one.lastgroup) != (other.span(), other.lastgroup):
            return None
        if recorded[at : one.start()] != received[at : one.start()]:
            return None
        at = one.end()
        if one[0] != other[0]:
            if not _is_filler(one[0], other[0], one.lastgroup):
                return None
            count += len(one[0])
    return count if recorded[at:] == received[at:] else None


def _is_filler(run: str, received: str, kind: str | None) -> bool:
    """Return whether a run of equal characters masks others."""
    if kind == "code":
        return True
    if kind == "wide":
        return all(
            one == other
            or (other not in _SIGNS and one == _WIDE[len(other.encode(errors="replace"))])
            for one, other in zip(run, received, strict=True)
        )
    plain = len(run) - min(_NUMBERED, max(1, len(run) // 2))
    return set(run[:plain]) <= {"1" if kind == "digits" else "x"}
