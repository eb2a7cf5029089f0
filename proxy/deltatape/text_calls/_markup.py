"""Reads calls whose parameters are tags, for any tag spelling.

A parameter ends at its closing tag. Where that is missing, it ends at the next parameter or at the
end of the call. A closing tag of the call inside a value that has its own closing tag ends nothing.
"""

import re
from dataclasses import dataclass

from deltatape.text_calls._json import find_closer, read_arguments
from deltatape.text_calls._notation import TextSource, WrittenCall
from deltatape.text_calls._values import ObjectText, as_json, is_string, opened, quoted, typed


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTags:
    """The tags inside a call."""

    parameter: re.Pattern[str]
    """A parameter's opening tag, with the group `key` and, where the tag itself tells whether its
    value is a string, `string`."""
    begin: str
    """The literal beginning of such a tag."""
    complete: str
    """The literal that completes it."""
    close: tuple[str, ...]
    """What closes a parameter."""
    end: tuple[str, ...]
    """What closes the call."""
    newlines: bool = False
    """Whether a line end on either side of a value belongs to the tags."""


def read_call(source: TextSource, name: str, at: int, tags: CallTags) -> WrittenCall:
    """Return the call of the tool `name` whose parameters begin at `at`, behind its opening tag."""
    body = source.blanks(at)
    if source.starts("{", body):
        item = _read_json(source, name, body, tags)
        if item is not None:
            return item
    return _read_parameters(source, name, at, tags)


def is_known(source: TextSource, item: WrittenCall) -> bool:
    """Return whether a call without anything around it is of a tool that can have been offered."""
    cut = not item.closed and not item.arguments and item.end == source.end
    return source.may_be_tool(item.name, whole=not cut)


def _read_json(source: TextSource, name: str, at: int, tags: CallTags) -> WrittenCall | None:
    """Return a body that is the arguments object itself."""
    extent = read_arguments(source, at, tags.end[0])
    if extent is None:
        return None
    closer = min(tags.end, key=lambda each: source.find(each, extent.end))
    end, closed = find_closer(source, extent.end, closer, tags.begin)
    arguments = source.text[at : extent.end].rstrip()
    return WrittenCall(name=name, arguments=arguments, end=end, closed=closed)


def _read_parameters(source: TextSource, name: str, at: int, tags: CallTags) -> WrittenCall:
    written = ObjectText()
    while True:
        place = source.blanks(at)
        tag = tags.parameter.match(source.text, place)
        if tag is None:
            return _finish(source, name, at, tags, written)
        key, is_string_tag = tag["key"].strip(), tag.groupdict().get("string")
        text, at, complete = _read_value(source, tag.end(), tags)
        if not complete:
            is_text = is_string_tag == "true" if is_string_tag else is_string(source, name, key)
            value = opened(text) if is_text else text
        elif is_string_tag == "true":
            value = quoted(text)
        elif is_string_tag == "false":
            value = as_json(text) or quoted(text)
        else:
            value = typed(source, name, key, text)
        written.add(key, value)


def _finish(
    source: TextSource, name: str, at: int, tags: CallTags, written: ObjectText
) -> WrittenCall:
    """Return the call, where no further parameter begins: it is closed, cut off, or just stops."""
    place = source.blanks(at)
    closer = next((each for each in tags.end if source.starts(each, place)), None)
    if closer is not None:
        end = place + len(closer)
        return WrittenCall(name=name, arguments=written.text(whole=True), end=end, closed=True)
    in_tag = source.starts(tags.begin, place) and source.find(tags.complete, place) == source.end
    cut = in_tag or any(source.cut(each, place) for each in (tags.begin, *tags.end))
    end = source.end if cut else at
    return WrittenCall(name=name, arguments=written.text(whole=False), end=end, closed=False)


def _read_value(source: TextSource, at: int, tags: CallTags) -> tuple[str, int, bool]:
    """Return the text of the value at `at`, where it ends, and whether it is complete."""
    following = source.find(tags.begin, at)
    close, after = _find_close(source, at, following, tags)
    if close < min(following, source.end):
        return _trim(source.text[at:close], tags), after, True
    stop = min(following, source.first(tags.end, at)[0])
    text = source.text[at:stop]
    if stop == source.end:
        return text.removeprefix("\n") if tags.newlines else text, stop, False
    return _trim(text, tags), stop, True


def _find_close(source: TextSource, at: int, following: int, tags: CallTags) -> tuple[int, int]:
    """Return the value's closing tag: the first one behind which the call goes on or ends.

    Values contain such tags, too. If none is like that, it is the first one.
    """
    first = close, after = source.first(tags.close, at)
    while close < min(following, source.end):
        place = source.blanks(after)
        if place in (following, source.end) or any(source.starts(each, place) for each in tags.end):
            return close, after
        close, after = source.first(tags.close, after)
    return first


def _trim(text: str, tags: CallTags) -> str:
    return text.removeprefix("\n").removesuffix("\n") if tags.newlines else text
