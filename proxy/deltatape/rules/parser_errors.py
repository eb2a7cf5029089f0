"""Whether a text is the error of a JSON parser or an agent framework, and what it says.

An application that lost or spoiled a call's arguments mostly says so: it answers the call with the
text of the exception, or prints it. An error is recognised, not talk about one: in a message its
text has to stand near the beginning, or speak of a call's arguments, and a message longer than an
error ever is counts only by its beginning. What users say never counts, unless it is nothing else.

Strategy: a few words of which every text of the table has one are looked for first, since nearly no
message has any. Linear, whatever the text.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from deltatape.model.parser_error import ParserError
from deltatape.rules._parser_texts import OF_FRAMEWORKS, OF_LIBRARIES, SIGNS, TABLE
from deltatape.rules.evidence import excerpt
from deltatape.wire.json_value import parse

_LONGEST = 1500
"""Characters of a message that is an error as a whole."""
_BEGINNING = 400
"""Characters of a longer one that are looked at."""
_NEAR = 160
"""How far from the beginning of a message a parser's text may stand."""
_LEAD = 120
"""The same for a message in which people speak, too."""
_LINE = 4000
"""Bytes of a printed line that are looked at."""
_SHOWN = 200
_REMEMBERED = 1000
"""Texts whose reading is remembered."""
_OF_CALL = re.compile(
    r"(?i)\b(?:tool|function)[ _-]?(?:call|use|input|args?|parameters)|\barguments\b"
)
_SOURCE = re.compile(rb"\s+(?:raise|return|throw)\b")
_QUOTE = re.compile(r'(?<!\\)"')
_ANNOUNCED = re.compile(r"(?i)\b(?:error|fail(?:ed|ure)|exception|invalid|fatal|panic|warning)\b")


class _Found(NamedTuple):
    start: int
    error: ParserError


def in_message(text: str, *, alone: bool = False) -> ParserError | None:
    """The parser's error that a message is about, such as a tool's result; None if it is not.

    Args:
        text: of the message.
        alone: whether the message has to be nothing else: where people speak, too.
    """
    whole = len(text) <= _LONGEST
    looked_at = text if whole else text[:_BEGINNING]
    found = _first(looked_at)
    if found is None:
        return None
    if alone:
        return found.error if _is_all_of(text, found.start) else None
    near = found.start <= _NEAR or (whole and found.error.about_call)
    return found.error if near else None


def in_log(line: bytes) -> ParserError | None:
    """The parser's error that a printed line tells of; None if it tells of none.

    Not one of a traceback that shows source code: libraries raise errors with such texts.
    """
    if _SOURCE.match(line):
        return None
    found = _first(line[:_LINE].decode("utf-8", "replace"))
    return found.error if found else None


def _is_all_of(text: str, start: int) -> bool:
    """Whether `text` is the parser's text from `start` on, and at most the words "error: " before.

    A question is something else.
    """
    lead, rest = text[:start].strip(), text[start:]
    if len(lead) > _LEAD or len(rest) > _SHOWN or "?" in text:
        return False
    return not lead or _ANNOUNCED.search(lead) is not None


def _first(text: str) -> _Found | None:
    """The first entry of the table that is in `text`."""
    lowered = text.lower()
    if any(sign in lowered for sign in SIGNS):
        return _looked_up(text)
    return None


@lru_cache(maxsize=_REMEMBERED)
def _looked_up(text: str) -> _Found | None:
    """As `_first`. An agent sends its history again each time: the same texts come often."""
    lowered = text.lower()
    framework = any(word in lowered for word in OF_FRAMEWORKS)
    for entry in TABLE if framework else OF_LIBRARIES:
        match = entry.pattern.search(text)
        if match is not None:
            about = entry.of_call or _OF_CALL.search(text) is not None
            shown = excerpt(_from(text, match.start()), _SHOWN)
            return _Found(match.start(), ParserError(entry.parser, entry.means, shown, about))
    return None


def _from(text: str, start: int) -> str:
    """What `text` says from `start` on; where it is an object, to the end of the string there."""
    end = _QUOTE.search(text, start) if text.lstrip().startswith(("{", "[")) else None
    if end is None:
        return text[start:].strip()
    piece = text[start : end.start()]
    value = parse(f'"{piece}"').value
    return value if isinstance(value, str) else piece
