"""Whether a line of output is the application's own word about an error.

Such a word alone proves nothing: the model may have written it, and a line such as `0 errors, 0.31
s` comes each time. So a word counts only where it stands in new company: neither with the two words
before it nor with the two behind it was it printed with the tapes as they are, or is it part of
what the model says on them. Numbers are all alike, and so are times and identifiers that have one.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

SPEAKS = (
    r"\b(err|errors?|exceptions?|traceback|fail\w*|abort\w*|crash\w*|panic\w*|fatal|broken?|broke"
    r"|cut( off| short)?|(in|un|not( (yet|the|a))?[ -])(complete|whole|finished)|half-?way"
    r"|partial\w*|truncated|reset|closed|interrupted|disconnect\w*|terminated|lost|dropped|gone|missing"
    r"|ended (too )?(early|soon)|premature\w*|gave up|giving up|went wrong|problem|trouble"
    r"|unexpected\w*|invalid|malformed|damaged|corrupt\w*|timeout|timed out|time-out"
    r"|no (answer|response|reply|connection)|unavailable|unreachable|overload\w*|busy|wait|later"
    r"|rate[ -]?limit\w*|too many|throttl\w*|denied|refused|rejected|sorry|retry\w*|retries|retried"
    r"|(try|trying|tried|ask\w*|once) again|could not|cannot|couldn't|can't|unable"
    r")\b|\w(error|exception|failure)\b"
)
"""By default: what matches is a word about an error; case does not count."""
_WORD = re.compile(r"[\w']+")
_DIGIT = re.compile(r"\d")
_COMPANY = 2
"""How many words before and behind one make its company."""
_EDGE = "\n"


class Known:
    """What was printed with the tapes as they are, and what the model says on them.

    Args:
        texts: all of it. Each may also have been printed as a JSON string.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        forms = [form for text in texts for form in _forms(text)]
        self._text = "\n".join(forms)
        self._words = f" {' '.join(_lines(self._text.splitlines()))} "

    def has(self, line: str, start: int, end: int) -> bool:
        """Whether what stands there in a line is known in its company."""
        words = list(_WORD.finditer(line))
        held = [at for at, word in enumerate(words) if word.start() < end and word.end() > start]
        if not held:
            return line in self._text
        names = _line(line)
        first, last = held[0] + 1, held[-1] + 2  # the edge comes first
        before = names[max(0, first - _COMPANY) : last]
        behind = names[first : last + _COMPANY]
        return any(f" {' '.join(part)} " in self._words for part in (before, behind))


def own_words(output: str, known: Known, visible: Sequence[re.Pattern[str]]) -> str:
    """The first line of `output` with a word about an error that is not known; "": none."""
    for line in map(str.strip, output.splitlines()):
        found = (match for pattern in visible for match in pattern.finditer(line))
        if any(not known.has(line, *match.span()) for match in found):
            return line
    return ""


def _forms(text: str) -> Iterator[str]:
    yield text
    yield from (json.dumps(text, ensure_ascii=ascii_only) for ascii_only in (True, False))


def _lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from _line(line)


def _line(line: str) -> list[str]:
    """The words of a line, between its edges; numbers are all alike."""
    found = (match[0].casefold() for match in _WORD.finditer(line))
    return [_EDGE, *("0" if _DIGIT.search(word) else word for word in found), _EDGE]
