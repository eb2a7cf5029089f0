"""Recognise errors of JSON parsers and agent frameworks in texts.

An application that lost or damaged a call's arguments usually answers the call with the text of the
exception, or prints it. A message that merely discusses an error must not count: the error's text
has to be near the beginning of the message, or mention a call's arguments, and only the beginning
of a long message is searched. A user's message counts only if it consists of the error.

Strategy: first look for a few words, one of which occurs in every text of the table: nearly no
message has any. Linear in the length of the text.

The table has regular expressions by parser and kind of error. They are plain sequences with bounded
repetitions, so that searching a bounded text is linear. The first match counts: within a parser
specific expressions come first, general ones last.

Sources: the parsers themselves, run on empty, cut, glued and spoilt JSON, and the sources of the
frameworks: https://github.com/langchain-ai/langchain, https://github.com/vercel/ai,
https://github.com/openai/openai-agents-python.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from deltatape.model.digest import ParserError, ParserErrorKind
from deltatape.printable import excerpt
from deltatape.wire.json_value import parse


@dataclass(frozen=True)
class ParserErrorPattern:
    """A parser's texts that mean the same."""

    parser: str
    means: ParserErrorKind
    expression: str
    of_call: bool
    """Whether they are never about anything but a tool call."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        # Compiled when needed: few tapes mention a parser's error.
        return re.compile(self.expression, re.ASCII)


_Texts = Mapping[ParserErrorKind, tuple[str, ...]]
_CALL = r"(?:tool|function)[ _-]?(?:calls?|use|input|json|args|arguments)\b"
_LIBRARIES: Mapping[str, _Texts] = {
    "Python's json": {
        ParserErrorKind.NOTHING: (r"Expecting value: line 1 column 1 \(char 0\)",),
        ParserErrorKind.CUT: (r"Unterminated string starting at: line \d",),
        ParserErrorKind.GLUED: (r"Extra data: line \d{1,9} column \d",),
        ParserErrorKind.INVALID: (
            r"Expecting (?:value|property name enclosed in double quotes): line \d",
            r"Expecting '[,:]' delimiter: line \d",
            r"Invalid (?:control character at|\\escape|\\uXXXX escape): line \d",
            r"Illegal trailing comma before end of (?:object|array): line \d",
            r"the JSON object must be str, bytes or bytearray, not \w",
            r"JSONDecodeError",
        ),
    },
    "V8's JSON.parse": {
        ParserErrorKind.CUT: (
            r"Unexpected end of JSON input",
            r"Unterminated string in JSON at position \d",
            r"Expected property name or '\}' in JSON at position \d",
            r"Expected ',' or '[\]}]' after [a-z ]{1,24} in JSON at position \d",
            r"Expected ':' after property name in JSON at position \d",
            r"Expected double-quoted property name in JSON at position \d",
        ),
        ParserErrorKind.GLUED: (r"Unexpected non-whitespace character after JSON at position \d",),
        ParserErrorKind.INVALID: (
            r"Unexpected (?:token|string|number)\b.{0,90}? in JSON at position \d",
            r"Unexpected token\b.{0,160}? is not valid JSON",
            r'"(?:undefined|\[object Object\])" is not valid JSON',
            r"Bad (?:control|escaped) character in (?:string literal in )?JSON at ",
        ),
    },
    "JavaScriptCore's JSON.parse": {
        ParserErrorKind.CUT: (
            r"JSON Parse error: (?:Unexpected EOF|Unterminated string|Expected ['\"][}\]])",
        ),
        ParserErrorKind.INVALID: (r"JSON Parse error: \w",),
    },
    "SpiderMonkey's JSON.parse": {
        ParserErrorKind.CUT: (
            r"JSON\.parse: (?:unexpected end of data|unterminated string) at line \d",
        ),
        ParserErrorKind.GLUED: (
            r"JSON\.parse: unexpected non-whitespace character after JSON data",
        ),
        ParserErrorKind.INVALID: (r"JSON\.parse: [a-z'\",:\]} -]{4,80} at line \d",),
    },
    "Go's encoding/json": {
        ParserErrorKind.CUT: (r"unexpected end of JSON input",),
        ParserErrorKind.GLUED: (r"invalid character '.{1,8}?' after top-level value",),
        ParserErrorKind.INVALID: (
            r"invalid character '.{1,8}?' looking for beginning of (?:value|object)",
            r"invalid character '.{1,8}?' after (?:object key|array element)",
            r"invalid character '.{1,8}?' in (?:string|literal|numeric literal|exponent)",
            r"json: cannot unmarshal \w",
        ),
    },
    "Jackson": {
        ParserErrorKind.NOTHING: (r"No content to map due to end-of-input",),
        ParserErrorKind.CUT: (r"JsonEOFException", r"Unexpected end-of-input"),
        ParserErrorKind.INVALID: (
            r"Unrecognized token '.{0,80}?': was expecting",
            r"Unexpected character \('.{1,4}?' \(code ",
            r"JsonParseException",
            r"MismatchedInputException",
        ),
    },
    "Gson": {
        ParserErrorKind.CUT: (r"End of input at line \d{1,9} column \d",),
        ParserErrorKind.INVALID: (
            r"JsonSyntaxException",
            r"MalformedJsonException",
            r"Expected BEGIN_(?:OBJECT|ARRAY) but was [A-Z_]{2,20} at ",
        ),
    },
    "org.json": {
        ParserErrorKind.INVALID: (r"A JSONObject text must (?:begin with '\{'|end with '\}')",),
    },
    "serde_json": {
        ParserErrorKind.CUT: (
            r"EOF while parsing (?:an? )?(?:value|object|list|string) at line \d",
        ),
        ParserErrorKind.GLUED: (r"trailing characters at line \d{1,9} column \d",),
        ParserErrorKind.INVALID: (
            r"(?:expected value|expected ident|key must be a string) at line \d{1,9} column \d",
            r"(?:expected `.{1,9}?`|trailing comma) at line \d{1,9} column \d",
            r"invalid (?:escape|number|unicode code point) at line \d{1,9} column \d",
            r"control character \(.{1,24}?\) found while parsing a string",
        ),
    },
    "System.Text.Json": {
        ParserErrorKind.NOTHING: (r"The input does not contain any JSON tokens",),
        ParserErrorKind.CUT: (
            r"Expected depth to be zero at the end of the JSON payload",
            r"Expected end of string, but instead reached end of data",
        ),
        ParserErrorKind.GLUED: (r"'.{1,8}?' is invalid after a single JSON value",),
        ParserErrorKind.INVALID: (
            r"'.{1,8}?' is an invalid start of a (?:value|property name)",
            r"'.{1,8}?' is invalid after a (?:value|property name)",
            r"The JSON value could not be converted to ",
        ),
    },
    "Json.NET": {
        ParserErrorKind.CUT: (
            r"Unexpected end (?:when|while) (?:reading|deserializing|parsing)",
            r"Unterminated string\. Expected delimiter",
        ),
        ParserErrorKind.GLUED: (
            r"Additional text (?:encountered after finished reading|found in) JSON",
        ),
        ParserErrorKind.INVALID: (
            r"Unexpected character encountered while parsing",
            r"JsonReaderException",
            r"JsonSerializationException",
        ),
    },
    "Ruby's json": {ParserErrorKind.INVALID: (r"JSON::ParserError",)},
    "pydantic": {
        ParserErrorKind.CUT: (r"Invalid JSON: EOF while parsing",),
        ParserErrorKind.INVALID: (r"Invalid JSON: \w", r"\[type=json_invalid"),
        ParserErrorKind.REFUSED: (r"validation errors? for \w",),
    },
    "zod": {
        ParserErrorKind.REFUSED: (
            r'"code": ?"invalid_type"',
            r"Invalid input: expected \w{1,20}, received \w",
        ),
    },
}
_FRAMEWORKS: Mapping[str, _Texts] = {
    "LangChain": {
        ParserErrorKind.INVALID: (
            r"Function [\w.:-]{1,128} arguments:\s{1,4}[^\0]{0,900}?\s{1,4}are not valid JSON",
            r"(?:Could not parse|Failed to parse) tool (?:input|call)",
        ),
        ParserErrorKind.REFUSED: (r"Error invoking tool '[\w.:-]{1,128}' with kwargs",),
    },
    "the AI SDK": {
        ParserErrorKind.INVALID: (r"JSON parsing failed: Text: ",),
        ParserErrorKind.REFUSED: (
            r"AI_InvalidTool(?:Arguments|Input)Error",
            r"Invalid (?:arguments|input) for tool [\w.:-]{1,128}: ",
        ),
    },
    "an agent framework": {
        ParserErrorKind.INVALID: (
            r"Invalid JSON input for tool [\w.:-]{1,128}",
            r"(?i)could not interpret tool use parameters",
        ),
    },
    "its own": {
        ParserErrorKind.NOTHING: (
            r"(?i)called with (?:empty|no) (?:arguments|input|args)\b",
            r"(?i)(?:empty|missing) (?:tool|function)(?: call)? arguments",
        ),
        ParserErrorKind.DROPPED: (
            r"(?i)(?:filter|skipp|ignor|dropp)ing (?:out )?(?:malformed|invalid) tool[ _]?calls?",
            r"(?i)(?:malformed|incomplete) tool[ _]?call\b",
        ),
        ParserErrorKind.INVALID: (
            rf"(?i)(?:failed to|could not|cannot|unable to) parse (?:the |json )?{_CALL}",
            rf"(?i)(?:failed to|could not|cannot|unable to) (?:decode|unmarshal) {_CALL}",
            rf"(?i)error (?:parsing|decoding) (?:the |json )?{_CALL}",
            rf"(?i)(?:invalid|malformed) (?:json in )?{_CALL}",
        ),
    },
}


def _entries(table: Mapping[str, _Texts], *, of_call: bool) -> tuple[ParserErrorPattern, ...]:
    return tuple(
        ParserErrorPattern(parser, means, text, of_call)
        for parser, texts in table.items()
        for means, each in texts.items()
        for text in each
    )


OF_LIBRARIES = _entries(_LIBRARIES, of_call=False)
"""In the order in which they are tried."""
TABLE = (*OF_LIBRARIES, *_entries(_FRAMEWORKS, of_call=True))
"""All of them, in that order."""
OF_FRAMEWORKS = ("tool", "function", "called with", "parsing failed")
"""Words in lower case; every text of a framework has at least one of them."""
SIGNS = (
    "json",
    "expect",
    "invalid",
    "unterminated",
    "eof while",
    "extra data",
    "end of input",
    "end-of-input",
    "unrecognized",
    "additional text",
    "trailing c",
    "must be a string",
    "control character",
    "mismatchedinput",
    "illegal",
    "validation error",
    "arguments",
    "malformed ",
    "incomplete tool",
    "failed to ",
    "could not ",
    "cannot ",
    "unable to ",
    "error parsing",
    "error decoding",
    "tool call",
    "tool use",
    "kwargs",
    "called with",
)
"""Words in lower case; every text has at least one of them."""


_LONGEST = 1500
"""The longest message that can be an error as a whole, in characters."""
_BEGINNING = 400
"""How much of a longer message is searched, in characters."""
_NEAR = 160
"""How far from the beginning of a message a parser's text may begin."""
_LEAD = 120
"""The same for a message in which people speak, too."""
_LINE = 4000
"""How much of a printed line is searched, in bytes."""
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
    """Return the parser error that a message, such as a tool's result, consists of.

    Args:
        text: the text of the message.
        alone: whether the message must consist of the error alone, as in messages that people
            write.
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
    """Return the parser error in a printed line.

    Lines of a traceback that show source code do not count: libraries raise errors with such texts.
    """
    if _SOURCE.match(line):
        return None
    found = _first(line[:_LINE].decode("utf-8", "replace"))
    return found.error if found else None


def _is_all_of(text: str, start: int) -> bool:
    """Return whether `text` is only the parser's text from `start` on, after "error: " at most.

    A question is something else.
    """
    lead, rest = text[:start].strip(), text[start:]
    if len(lead) > _LEAD or len(rest) > _SHOWN or "?" in text:
        return False
    return not lead or _ANNOUNCED.search(lead) is not None


def _first(text: str) -> _Found | None:
    """Return the first entry of the table that is in `text`."""
    lowered = text.lower()
    if any(sign in lowered for sign in SIGNS):
        return _looked_up(text)
    return None


@lru_cache(maxsize=_REMEMBERED)
def _looked_up(text: str) -> _Found | None:
    """Cache `_first`. Agents send their history again each time: the same texts come often."""
    lowered = text.lower()
    framework = any(word in lowered for word in OF_FRAMEWORKS)
    for entry in TABLE if framework else OF_LIBRARIES:
        match = entry.pattern.search(text)
        if match is not None:
            about = entry.of_call or _OF_CALL.search(text) is not None
            shown = excerpt(_message_from(text, match.start()), _SHOWN)
            return _Found(match.start(), ParserError(entry.parser, entry.means, shown, about))
    return None


def _message_from(text: str, start: int) -> str:
    """Return `text` from `start`; in a JSON object, to the end of the string there."""
    end = _QUOTE.search(text, start) if text.lstrip().startswith(("{", "[")) else None
    if end is None:
        return text[start:].strip()
    piece = text[start : end.start()]
    value = parse(f'"{piece}"').value
    return value if isinstance(value, str) else piece
