r"""Reads calls and arguments in JSON: complete, cut off or broken.

The strict scanner says where a value ends, so that `</tool>` or `}` inside a string ends nothing.
Where it finds no end, the first closing tag does, if there is one. Members are read also from
incomplete text. Values are kept as their exact characters.

A text that ends within a string that contains a closing tag is either cut off or lacks a quote; it
lacks a quote if its braces, including those in strings, are balanced at the tag.
"""

import enum
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from deltatape.text_calls._notation import TextSource, WrittenCall, cut_call, extend_last
from deltatape.wire.json_scan import JsonScanner

_NAME_KEYS = ("name", "tool_name", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args")
_ID_KEYS = ("id", "tool_call_id")
_WINDOW = 256
"""How many characters the scanner gets first; doubled each time."""
_LONGEST_JUNK = 200
"""The most characters between complete JSON and its closing tag that belong to the call."""
_HARMLESS = " \t\r\n`"
"""Allowed around complete JSON: white space, and the end of a code fence."""
_LONGEST_HEAD = 500
"""How far into a broken object its name is searched for."""

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)', re.DOTALL)
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}]*+")
_SEPARATOR = re.compile(r"[\s,;]*+")
_FENCE = re.compile(r"\s*+```(?:json)?+\s*+(?=[\[{])")
_BEGINNING = re.compile(r'\{\s*+(?:["}]|\Z)')
_LOOSE_NAME = re.compile(r"""['"](?:tool_)?name['"]\s*+:\s*+['"]([^'"\s]{1,200})['"]""")
_LOOSE_ARGUMENTS = re.compile(r"""['"](?:arguments|parameters)['"]\s*+:\s*+(?=\{)""")


class JsonEnd(enum.Enum):
    """How a JSON value ends."""

    WHOLE = "whole"
    CUT = "cut"
    """The text ends inside the value."""
    BROKEN = "broken"
    """Not JSON; it ends at the closing tag, or where its braces balance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonExtent:
    """Where a JSON value ends, and how."""

    end: int
    state: JsonEnd


def read_arguments(source: TextSource, at: int, closer: str | None) -> JsonExtent | None:
    """Return the extent of the arguments object at `at`; None if no JSON object begins there."""
    if not _BEGINNING.match(source.text, at):
        return None
    return _settle(source, at, _scan(source, at), closer)


def read_calls(
    source: TextSource, at: int, closer: str | None, opener: str = ""
) -> list[WrittenCall]:
    """Return the call objects at `at`, alone, in a row or in an array, with the closing tag.

    Args:
        source: the text.
        at: behind the opening tag.
        closer: the closing tag; None in notations without one.
        opener: the opening tag; a closing tag behind the next one belongs to that.
    """
    fence = _FENCE.match(source.text, at) if closer else None
    at = source.blanks(fence.end() if fence else at)
    array = source.starts("[", at)
    calls: list[WrittenCall] = []
    end = at = source.blanks(at + 1) if array else at
    while source.starts("{", at) and (call := _read_object(source, at, closer)) is not None:
        calls.append(call)
        end = call.end
        if not call.closed:
            break
        separator = _SEPARATOR.match(source.text, end)
        at = separator.end() if separator else end
    if not calls:
        return []
    if array and source.starts("]", at):
        end = at + 1
    if closer is None:
        return extend_last(calls, end)
    json_end = end
    end, closed = find_closer(source, json_end, closer, opener)
    junk = source.text[json_end : end - len(closer)] if closed else ""
    calls[-1] = replace(calls[-1], end=end, junk=junk.strip(_HARMLESS))
    return [replace(call, closed=closed) for call in calls]


def find_closer(source: TextSource, end: int, closer: str, opener: str) -> tuple[int, bool]:
    """Return where a call ends whose arguments end at `end`, and whether by its closing tag."""
    at = source.blanks(end)
    if source.starts(closer, at):
        return at + len(closer), True
    if source.cut(closer, at):
        return source.end, False
    found = source.find(closer, at)
    near = found < source.end and found - at <= _LONGEST_JUNK
    if near and (not opener or found < source.find(opener, at)):
        return found + len(closer), True
    return end, False


def _scan(source: TextSource, at: int) -> JsonExtent:
    """Return the strict scanner's result for the value at `at`; BROKEN ends at the error."""
    scanner = JsonScanner()
    position, size = at, _WINDOW
    while position < source.end and scanner.end is None and scanner.error is None:
        scanner.feed(source.text[position : position + size])
        position, size = position + size, size * 2
    if scanner.error is not None:
        return JsonExtent(end=at + scanner.error[0], state=JsonEnd.BROKEN)
    if scanner.end is not None:
        return JsonExtent(end=at + scanner.end, state=JsonEnd.WHOLE)
    return JsonExtent(end=source.end, state=JsonEnd.CUT)


def _settle(source: TextSource, at: int, scanned: JsonExtent, closer: str | None) -> JsonExtent:
    """Return where a value ends that the scanner found to be complete, cut or broken."""
    if scanned.state is JsonEnd.WHOLE:
        return scanned
    stop = source.end if closer is None else source.find(closer, at)
    if scanned.state is JsonEnd.CUT:
        if stop == source.end:
            return scanned
        opened, closed = (source.text.count(brace, at, stop) for brace in "{}")
        return JsonExtent(end=stop, state=JsonEnd.BROKEN) if opened == closed else scanned
    if stop == source.end:
        stop, _ = _skip(source.text, at, source.end)
    return JsonExtent(end=stop, state=JsonEnd.BROKEN)


def _read_object(source: TextSource, at: int, closer: str | None) -> WrittenCall | None:
    """Return the call object at `at`; None if it names no tool."""
    if not _BEGINNING.match(source.text, at):
        return _read_loosely(source, at, closer)
    scanned = _scan(source, at)
    head = _member_named(source.text, at, scanned.end, _NAME_KEYS)
    name = _name_of(source, head)
    if name is None:
        waiting = scanned.state is JsonEnd.CUT and (head is None or not head[2])
        return cut_call(source) if waiting else None
    extent = _settle(source, at, scanned, closer)
    arguments = _arguments_of(source.text, at, extent)
    if not arguments and head is not None and source.starts("{", head[0]):
        arguments = _arguments_of(source.text, head[0], JsonExtent(end=head[1], state=extent.state))
    identity = _member_named(source.text, at, extent.end, _ID_KEYS)
    return WrittenCall(
        name=name,
        arguments=arguments,
        id=_string(source.text, identity),
        end=extent.end,
        closed=extent.state is JsonEnd.WHOLE,
    )


def _read_loosely(source: TextSource, at: int, closer: str | None) -> WrittenCall | None:
    """Return a call object that is not JSON (Python's quotes, bare keys): it needs a closer."""
    if closer is None:
        return None
    stop = source.find(closer, at)
    if stop == source.end:
        return None
    name = _LOOSE_NAME.search(source.text, at, min(stop, at + _LONGEST_HEAD))
    if name is None or not source.is_name(name[1]):
        return None
    arguments = _LOOSE_ARGUMENTS.search(source.text, name.start(), stop)
    start = arguments.end() if arguments else stop
    end, _ = _skip(source.text, start, stop)
    arguments_text = source.text[start:end].rstrip()
    return WrittenCall(name=name[1], arguments=arguments_text, end=stop, closed=False)


_Member = tuple[int, int, bool]
"""Where a member's value starts and ends, and whether it did end."""


def _members(text: str, at: int, stop: int) -> Iterator[tuple[str, _Member]]:
    """Yield the members of the object at `at`, as far as they can be told apart before `stop`."""
    at = _blanks(text, at + 1, stop)
    while (key := _STRING.match(text, at, stop)) and key[1]:
        at = _blanks(text, key.end(), stop)
        if not text.startswith(":", at, stop):
            return
        at = _blanks(text, at + 1, stop)
        if at >= stop:
            return
        end, ended = _skip(text, at, stop)
        yield key[0][1:-1], (at, end, ended)
        at = _blanks(text, end, stop)
        if not ended or not text.startswith(",", at, stop):
            return
        at = _blanks(text, at + 1, stop)


def _member_named(text: str, at: int, stop: int, keys: tuple[str, ...]) -> _Member | None:
    return next((member for key, member in _members(text, at, stop) if key in keys), None)


def _arguments_of(text: str, at: int, extent: JsonExtent) -> str:
    member = _member_named(text, at, extent.end, _ARGUMENT_KEYS)
    return text[member[0] : member[1]] if member else ""


def _name_of(source: TextSource, member: _Member | None) -> str | None:
    """Return the tool's name: a string, or the `name` in an object `function`."""
    if member is not None and source.starts("{", member[0]):
        member = _member_named(source.text, member[0], member[1], ("name",))
    name = _string(source.text, member)
    return name if name is not None and source.is_name(name) else None


def _string(text: str, member: _Member | None) -> str | None:
    """Return the value of a member that is a whole string."""
    if member is None or not member[2] or text[member[0]] != '"':
        return None
    try:
        value = json.loads(text[member[0] : member[1]])
    except ValueError:
        return None
    return str(value)


def _blanks(text: str, at: int, stop: int) -> int:
    while at < stop and text[at] in " \t\n\r":
        at += 1
    return at


def _skip(text: str, at: int, stop: int) -> tuple[int, bool]:
    """Return the end of the value at `at`, and whether it ends before the text does."""
    if text.startswith('"', at, stop):
        string = _STRING.match(text, at, stop)
        return (string.end(), True) if string and string[1] else (stop, False)
    if not text.startswith(("{", "["), at, stop):
        scalar = _SCALAR.match(text, at, stop)
        end = scalar.end() if scalar else at
        return end, end < stop
    depth = 0
    for token in _TOKEN.finditer(text, at, stop):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end(), True
    return stop, False
