"""Text that the model did not mean to write: chat-template tokens, error pages, mojibake.

Texts about such tokens quote them or put them into code, so quotes and code are not searched.
Tokens that also occur in the request are ignored.
"""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import Channel, Choice, TextFragment
from deltatape.model.stream import AnomalyKind
from deltatape.printable import count
from deltatape.rules.context import Claim, RuleContext
from deltatape.rules.rule import exchange_rule

_PAGE = re.compile(r"<!doctype html|<html[ >]", re.IGNORECASE)
_NAMES = (
    "im_start|im_end|eot_id|eom_id|endoftext|end_of_text|begin_of_text|start_header_id"
    "|end_header_id|end|return|eos|endofprompt|end_of_turn|start_of_role|end_of_role|eot|user|im_sep"
    "|start|channel|message|constrain|call"
)
_TOKEN = re.compile(
    rf"<\|(?:{_NAMES})\|>|<(?:end|start)_of_turn>|\[/?INST\]"
    "|<\uff5c(?:end|begin)\u2581of\u2581sentence\uff5c>"
)
"""Special tokens of ChatML, Llama 3, GPT, Harmony, Phi, Granite, Gemma, Mistral, DeepSeek."""
_THOUGHT_END = re.compile(r"</think>")
"""Ends reasoning that the template began in the prompt, where the server takes none out."""
_LAST = re.compile(r"(?:</s>|<eos>)\s*\Z")
"""Tokens that are markup elsewhere: only at the end, and without the tag that opens it."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb`"
_ERROR_PAGE = re.compile(
    r"\b[45]\d\d\b|bad gateway|time-?out|unavailable|forbidden|denied|error|just a moment"
    "|attention required|not found",
    re.IGNORECASE,
)
_STATUS = re.compile(r"\b[45]\d\d\b")
_TITLE = re.compile(r"<(?:title|h1)[^>]*>([^<]{1,200})", re.IGNORECASE)
_MOJIBAKE = re.compile(
    "\u00c3[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013\u2014"
    "\u2018-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122]"
    "|\u00e2[\u20ac\u0080][\u0080-\u00bf\u0153\u017e\u02dc\u2018-\u201e\u2020-\u2022\u2026\u2122]"
)
"""Two bytes of UTF-8 read as Latin-1 or as the code page 1252; three, of dashes and quotes."""
_MANY = 3
"""This many repetitions are not written on purpose."""
_OF_CP1252 = {
    ord(bytes([byte]).decode("cp1252")): byte
    for byte in range(0x80, 0xA0)
    if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
"""The characters of the code page 1252 that Latin-1 has elsewhere, as Latin-1 has their bytes."""
_LEADS_TO = re.compile(r"[\w:,;=(/\u2013\u2014-][^\S\n]+\Z|[:,;=(]\Z|[^\W\x00-\x7f]\Z")
"""The end of a text that goes on with the name of a token: `a turn ends with `. A sentence that is
over, or a word without a space after it, is the end of a turn."""


class _Stray(NamedTuple):
    """A piece of text that the model did not mean to write."""

    what: str
    """A description: `the token '<|im_end|>'`."""
    found: str
    """The piece itself."""
    start: int
    last: bool
    """Whether nothing follows it, or more of it: so do turns end."""
    meant: bool = False
    """Whether the text seems to speak of it, or to have it in its own right."""


def _stray_token(text: str) -> _Stray | None:
    """Find the first chat-template token in `text`, outside of code and quotes."""
    if "<" not in text and "INST]" not in text:
        return None
    bare = _without_code(text)
    for match in _TOKEN.finditer(bare):
        before, after = bare[: match.start()], bare[match.end() :]
        if before[-1:] and before[-1] in _QUOTES and after[:1] and after[0] in _QUOTES:
            continue
        rest = after.strip()
        last = not rest or _TOKEN.match(rest) is not None
        meant = _LEADS_TO.search(before) is not None
        return _Stray(f"the token {match[0]!r}", match[0], match.start(), last, meant)
    thought = _THOUGHT_END.search(bare)
    if thought is not None and "<think>" not in bare[: thought.start()]:
        what = f"{thought[0]!r}, which ends reasoning, without its beginning"
        return _Stray(what, thought[0], thought.start(), last=False)
    end = _LAST.search(bare)
    if end is None or "<s>" in bare:
        return None
    token = end[0].strip()
    meant = _LEADS_TO.search(bare[: end.start()]) is not None
    return _Stray(f"the token {token!r}", token, end.start(), last=True, meant=meant)


def _error_page(text: str) -> _Stray | None:
    """Find the title of an HTML error page, if `text` is one or ends in one."""
    if "<" not in text:
        return None
    bare = _without_code(text)
    page = _PAGE.search(bare)
    title = _TITLE.search(bare, page.start()) if page else None
    if page is None or title is None or not _ERROR_PAGE.search(title[1]):
        return None
    named = " ".join(title[1].split())
    return _Stray(f"an HTML page with the title {named!r}", title[1], page.start(), last=True)


def _mojibake(text: str) -> _Stray | None:
    """Find the first run of three or more characters that were decoded with the wrong encoding."""
    if "\u00c3" not in text and "\u00e2" not in text:
        return None
    bare = _without_code(text)
    found = [*_MOJIBAKE.finditer(bare)]
    if len(found) < _MANY:
        return None
    first = found[0]
    whole = _is_garbled(bare)
    what = f"UTF-8 that was read as Latin-1, {count(len(found), 'time')}, such as {first[0]!r}"
    what = what if whole else f"what looks like {what}"
    return _Stray(what, first[0], first.start(), last=False, meant=not whole)


def _is_garbled(text: str) -> bool:
    """Return whether all of a text is UTF-8 read as Latin-1: nothing outside ASCII is intact."""
    try:
        read = text.translate(_OF_CP1252).encode("latin-1")
        codecs.getincrementaldecoder("utf-8")().decode(read)
    except UnicodeError:
        return False
    return True


def _replaced(text: str) -> _Stray | None:
    """Find the first replacement character for bytes that could not be decoded."""
    if "\ufffd" not in text:
        return None
    at = _without_code(text).find("\ufffd")
    return (
        None
        if at < 0
        else _Stray(
            "U+FFFD, the replacement for an invalid or split character", "\ufffd", at, last=False
        )
    )


def _without_code(text: str) -> str:
    """Replace code in `text` by blanks of the same length, so that offsets stay valid."""
    if "`" not in text:
        return text
    return _CODE.sub(lambda match: " " * len(match[0]), text)


_AROUND = 40
"""How many characters to show before and after a match."""
_ABOUT_TOKENS = (
    "special token",
    "stop token",
    "end token",
    "end-of",
    "template",
    "chatml",
    "tokeniz",
)
_ABOUT_PAGES = ("html", "web page", "webpage", "website")
_ABOUT_ENCODINGS = ("mojibake", "encod", "utf-8", "utf8", "latin-1", "unicode", "garbled")


@exchange_rule("S014", "stray-tokens-in-content", Severity.ERROR)
def stray_tokens_in_content(context: RuleContext) -> Iterator[Claim]:
    """Report template tokens, an error page or mojibake in the text."""
    for choice in context.reply.choices:
        yield from _strays_in(context, choice)


def _strays_in(context: RuleContext, choice: Choice) -> Iterator[Claim]:
    text = choice.text
    token = _stray_token(text)
    if token is not None and not _is_from_request(context, token.found):
        about = _is_about(context, _ABOUT_TOKENS)
        if token.last or not about:
            sure = token.last and not about and not token.meant
            yield _stray_claim(choice, token, sure=sure)
    page = _error_page(text)
    if page is not None and not _is_about(context, (*_ABOUT_PAGES, *_STATUS.findall(page.found))):
        # A server puts its page into one event; a model writes one piece by piece.
        alone = not text[: page.start].strip() and _is_one_piece(choice)
        yield _stray_claim(choice, page, sure=alone)
    garbled = _mojibake(text)
    if garbled is not None and not _is_from_request(context, garbled.found):
        sure = not garbled.meant and not _is_about(context, _ABOUT_ENCODINGS)
        yield _stray_claim(choice, garbled, sure=sure)
    cut = _replaced(text)
    if cut and not _is_invalid(context) and not _is_from_request(context, cut.found):
        warning = _stray_claim(choice, cut, sure=False)
        yield replace(warning, severity=Severity.WARNING)


def _is_one_piece(choice: Choice) -> bool:
    return sum(piece.channel is Channel.TEXT for piece in choice.pieces) == 1


def _stray_claim(choice: Choice, stray: _Stray, *, sure: bool) -> Claim:
    piece = _piece_at(choice, stray.start)
    shown = choice.text[max(stray.start - _AROUND, 0) : stray.start + 2 * _AROUND]
    excluded = (
        Excluded("the conversation is about it", "the request contains nothing like it"),
        Excluded(
            "it is quoted, or part of code", "it is in plain text, outside of quotes and code"
        ),
    )
    return Claim(
        message=f"the answer text contains {stray.what}"
        + (", at the end of a turn" if stray.last and stray.start else ""),
        hint=(
            "set the server's chat template and stop tokens to those of the model; for"
            " broken characters, find the proxy or server that decodes the stream"
        ),
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY if sure else Confidence.POSSIBLE,
        at=piece.carrier,
        evidence=shown,
        excluded=excluded if sure else (),
    )


def _is_from_request(context: RuleContext, found: str) -> bool:
    return any(found in message.text for message in context.request.history)


def _is_about(context: RuleContext, words: tuple[str, ...]) -> bool:
    texts = (message.text.lower() for message in context.request.history)
    return any(word in text for text in texts for word in words)


def _is_invalid(context: RuleContext) -> bool:
    return any(each.kind is AnomalyKind.INVALID_UTF8 for each in context.stream.anomalies)


def _piece_at(choice: Choice, start: int) -> TextFragment:
    """Return the text fragment that contains character number `start` of the text."""
    pieces = [piece for piece in choice.pieces if piece.channel is Channel.TEXT]
    ends = [*accumulate(len(piece.text) for piece in pieces)]
    return pieces[min(bisect_right(ends, start), len(pieces) - 1)]
