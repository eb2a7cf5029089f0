"""Text that the model did not mean to write: chat-template tokens, error pages, mojibake.

Whoever writes about such things quotes them or puts them into code: both are left out before
anything is looked for. What an answer can have taken from its request is no finding either; that is
for the rule to ask.
"""

import re
from typing import NamedTuple

from deltatape.printable import count

_PAGE = re.compile(r"<!doctype html|<html[ >]", re.IGNORECASE)
_NAMES = (
    "im_start|im_end|eot_id|eom_id|endoftext|end_of_text|begin_of_text|start_header_id"
    "|end_header_id|end|return|eos|endofprompt|end_of_turn|start_of_role|end_of_role|eot|user|im_sep"
)
_TOKEN = re.compile(
    rf"<\|(?:{_NAMES})\|>|<(?:end|start)_of_turn>|\[/?INST\]"
    "|<\uff5c(?:end|begin)\u2581of\u2581sentence\uff5c>"
)
"""Of ChatML, Llama 3, GPT, Phi, Granite, Gemma, Mistral, DeepSeek."""
_LAST = re.compile(r"(?:</s>|<eos>)\s*\Z")
"""Tokens that are markup elsewhere: only at the end, and without the tag that opens it."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb`"
_ERROR_PAGE = re.compile(
    r"\b[45]\d\d\b|bad gateway|time-?out|unavailable|forbidden|denied|error|just a moment"
    "|attention required|not found",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<(?:title|h1)[^>]*>([^<]{1,200})", re.IGNORECASE)
_MOJIBAKE = re.compile(
    "\u00c3[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013\u2014"
    "\u2018-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122]"
    "|\u00e2[\u20ac\u0080][\u0080-\u00bf\u0153\u017e\u02dc\u2018-\u201e\u2020-\u2022\u2026\u2122]"
)
"""Two bytes of UTF-8 read as Latin-1 or as the code page 1252; three, of dashes and quotes."""
_MANY = 3
"""Times that nobody writes by chance."""


class StrayToken(NamedTuple):
    """A piece of text that the model did not mean to write."""

    what: str
    """In words: `the token '<|im_end|>'`."""
    found: str
    """The piece itself."""
    start: int
    last: bool
    """Whether nothing follows it, or more of it: so do turns end."""


def stray_tokens(text: str) -> StrayToken | None:
    """Find the first chat-template token in `text`, outside of code and quotes."""
    bare = _without_code(text)
    for match in _TOKEN.finditer(bare):
        before, after = bare[: match.start()], bare[match.end() :]
        if before[-1:] and before[-1] in _QUOTES and after[:1] and after[0] in _QUOTES:
            continue
        rest = after.strip()
        last = not rest or _TOKEN.match(rest) is not None
        return StrayToken(f"the token {match[0]!r}", match[0], match.start(), last)
    end = _LAST.search(bare)
    if end is None or "<s>" in bare:
        return None
    token = end[0].strip()
    return StrayToken(f"the token {token!r}", token, end.start(), last=True)


def error_page(text: str) -> StrayToken | None:
    """Find the title of an HTML error page, if `text` is one or ends in one."""
    bare = _without_code(text)
    page = _PAGE.search(bare)
    title = _TITLE.search(bare, page.start()) if page else None
    if page is None or title is None or not _ERROR_PAGE.search(title[1]):
        return None
    named = " ".join(title[1].split())
    return StrayToken(f"an HTML page with the title {named!r}", title[1], page.start(), last=True)


def mojibake(text: str) -> StrayToken | None:
    """Find the first run of three or more characters that were decoded with the wrong encoding."""
    found = [*_MOJIBAKE.finditer(_without_code(text))]
    if len(found) < _MANY:
        return None
    first = found[0]
    what = f"UTF-8 that was read as Latin-1, {count(len(found), 'time')}, such as {first[0]!r}"
    return StrayToken(what, first[0], first.start(), last=False)


def replaced(text: str) -> StrayToken | None:
    """Find the first replacement character for bytes that could not be decoded."""
    at = _without_code(text).find("\ufffd")
    return (
        None
        if at < 0
        else StrayToken(
            "U+FFFD, the replacement for an invalid or split character", "\ufffd", at, last=False
        )
    )


def _without_code(text: str) -> str:
    """Replace code in `text` by blanks of the same length, so that offsets stay valid."""
    if "`" not in text:
        return text
    return _CODE.sub(lambda match: " " * len(match[0]), text)
