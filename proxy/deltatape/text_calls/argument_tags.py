"""Calls with `<arg_key>` and `<arg_value>`.

    glm      <tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>
             GLM 4.5 and 4.6 with line ends between the tags; without arguments only the name
    hunyuan  <tool_calls><tool_call>f<tool_sep><arg_key>k</arg_key><arg_value>v</arg_value>
             </tool_call></tool_calls>
             each tag may have a suffix: `<tool_call:opensource>`

Values have no types: the tool's schema decides. A name alone between tags is a call only of a tool
that was offered, since people write that when they explain tags; any name if nothing is known of
the tools. Source: the chat templates of these models.
"""

import functools
import re
from collections.abc import Sequence

from deltatape.text_calls._markup import CallTags, read_call
from deltatape.text_calls._notation import (
    CallHead,
    NotationFamily,
    TextSource,
    WrittenCall,
    before,
    close_wrapper,
    cut_call,
    literal,
    read_head,
    word,
)

_OPENER = "<tool_call>"
_CLOSER = "</tool_call>"
_NAME = word("name", r"[^\s<>{}]{1,200}+")
_GLM_HEAD = (_NAME, before("<arg_key>", _CLOSER))
_WRAPPER = re.compile(r"<tool_calls(:\w{1,40})?>\s*+")
_CALL = re.compile(r"<tool_call(:\w{1,40})?>\s*+")


@functools.lru_cache(maxsize=64)
def _tags(suffix: str) -> CallTags:
    end = re.escape(suffix)
    return CallTags(
        parameter=re.compile(
            rf"<arg_key{end}>(?P<key>[^<]{{1,200}})</arg_key{end}>(?:\\n|\s)*+<arg_value{end}>"
        ),
        begin=f"<arg_key{suffix}>",
        complete=f"<arg_value{suffix}>",
        close=(f"</arg_value{suffix}>",),
        end=(f"</tool_call{suffix}>",),
    )


def _read_glm(source: TextSource, start: int) -> Sequence[WrittenCall]:
    place = source.blanks(start + len(_OPENER))
    head = read_head(source, place, _GLM_HEAD)
    if head is None:
        return ()
    name = head.word("name")
    if head.cut:
        return (cut_call(source, name),) if _is_begun(source, place, head) else ()
    alone = source.starts(_CLOSER, source.blanks(head.end))
    if not source.is_name(name) or (alone and source.offered and name not in source.offered):
        return ()
    return (read_call(source, name, head.end, _tags("")),)


def _is_begun(source: TextSource, place: int, head: CallHead) -> bool:
    """Return whether a cut head begins a call: a tag has begun, or an offered tool's name."""
    name = head.word("name")
    if source.text.find("<", place) >= 0:
        return source.is_name(name)
    return any(name == each or each.startswith(head.partial or "<") for each in source.offered)


def _read_hunyuan(source: TextSource, start: int) -> Sequence[WrittenCall]:
    wrapper = _WRAPPER.match(source.text, start)
    at = wrapper.end() if wrapper else start
    calls: list[WrittenCall] = []
    suffix = ""
    while opened := _CALL.match(source.text, at):
        suffix = opened[1] or ""
        call = _read_one(source, opened.end(), suffix, wrapped=wrapper is not None)
        if call is None:
            break
        calls.append(call)
        at = source.blanks(call.end)
    return close_wrapper(source, calls, f"</tool_calls{suffix}>") if wrapper else calls


def _read_one(source: TextSource, at: int, suffix: str, *, wrapped: bool) -> WrittenCall | None:
    """Return a call of Hunyuan; without a wrapper or the beginning of `<tool_sep>`, GLM's."""
    head = read_head(source, at, (_NAME, literal(f"<tool_sep{suffix}>")))
    name = head.word("name") if head else ""
    if head is None or not source.is_name(name or head.partial):
        return None
    if head.cut:
        begun = wrapped or source.starts("<t", source.blanks(at + len(name)))
        return cut_call(source, name) if begun else None
    return read_call(source, name, head.end, _tags(suffix))


GLM = NotationFamily(name="glm", openers=(_OPENER,), read=_read_glm)
HUNYUAN = NotationFamily(
    name="hunyuan",
    openers=("<tool_calls>", "<tool_calls:", _OPENER, "<tool_call:"),
    read=_read_hunyuan,
)
