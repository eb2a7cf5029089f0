"""Families whose parameters are tags.

    glm             <tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>
                    GLM 4.5 and 4.6 with line ends between the tags; without arguments only the name
    hunyuan         <tool_calls><tool_call>f<tool_sep><arg_key>k</arg_key><arg_value>v</arg_value>
                    </tool_call></tool_calls>
                    each tag may have a suffix: `<tool_call:opensource>`
    deepseek-dsml   <｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="k"
                    string="true">v</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>
                    V4: `tool_calls`; leaks with other bars: `‖DSML‖`, `｜｜DSML｜｜`, `|DSML|`
    minimax-m2      <minimax:tool_call><invoke name="f"><parameter name="k">v</parameter></invoke>
                    </minimax:tool_call>
    step3           <｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">
                    <steptml:parameter name="k">v</steptml:parameter></steptml:invoke><｜tool_call_end｜>
                    <｜tool_calls_end｜>
    function-calls  <function_calls><invoke name="f"><parameter name="k">v</parameter></invoke>
                    </function_calls>, as models of Anthropic once wrote it; with `antml:` too
    qwen3-coder     <tool_call><function=f><parameter=k>
                    value
                    </parameter></function></tool_call>                         Qwen3-Coder, MiMo
    llama           <function=f>{"k": "value"}</function>
    minimax-m3      ]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">]<]minimax[>[<k>v]<]minimax[>[</k>
                    ]<]minimax[>[</invoke>]<]minimax[>[</tool_call>

The body can be the arguments object instead (not in minimax-m3). Where a tag does not give the type
of a value, the tool's schema decides. The wrapper of `<function=f>` is often missing, or only its
end is there, and so is the last `</parameter>`. minimax-m3 keeps values with tags inside (objects,
arrays) as text.

A parameter ends at its closing tag. Where that is missing, it ends at the next parameter or at the
end of the call. A closing tag of the call inside a value that has its own closing tag ends nothing.

A name alone between tags is a call only of a tool that was offered, since people write that when
they explain tags; any name if nothing is known of the tools.

Source: the chat templates of these models.
"""  # noqa: E501, RUF002 - a notation is shown as it is written

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltatape.text_calls._json import find_closer, read_arguments
from deltatape.text_calls._notation import (
    INVOKE,
    CallHead,
    NotationFamily,
    Steps,
    TextSource,
    WrittenCall,
    before,
    close_wrapper,
    consecutive_calls,
    cut_call,
    literal,
    read_head,
    word,
)
from deltatape.text_calls._values import ObjectText, as_json, is_string, opened, quoted, typed


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParameterTags:
    """The tags inside a call."""

    parameter: re.Pattern[str]
    """A parameter's opening tag, with the group `key` and, where the tag itself tells whether its
    value is a string, `string`."""
    begin: str
    """The literal beginning of such a tag."""
    complete: str
    """The literal that completes it."""
    close: tuple[str, ...]
    """Texts that close a parameter."""
    end: tuple[str, ...]
    """Texts that close the call."""
    newlines: bool = False
    """Whether a line end on either side of a value belongs to the tags."""


def _read_body(source: TextSource, name: str, at: int, tags: _ParameterTags) -> WrittenCall:
    """Return the call of the tool `name` whose parameters begin at `at`, behind its opening tag."""
    body = source.blanks(at)
    if source.starts("{", body):
        item = _read_json(source, name, body, tags)
        if item is not None:
            return item
    return _read_parameters(source, name, at, tags)


def _is_known(source: TextSource, item: WrittenCall) -> bool:
    """Return whether a call without anything around it is of a tool that can have been offered."""
    cut = not item.closed and not item.arguments and item.end == source.end
    return source.may_be_tool(item.name, whole=not cut)


def _read_json(source: TextSource, name: str, at: int, tags: _ParameterTags) -> WrittenCall | None:
    """Return a body that is the arguments object itself."""
    extent = read_arguments(source, at, tags.end[0])
    if extent is None:
        return None
    closer = min(tags.end, key=lambda each: source.find(each, extent.end))
    end, closed = find_closer(source, extent.end, closer, tags.begin)
    arguments = source.text[at : extent.end].rstrip()
    return WrittenCall(name=name, arguments=arguments, end=end, closed=closed)


def _read_parameters(source: TextSource, name: str, at: int, tags: _ParameterTags) -> WrittenCall:
    written = ObjectText()
    while True:
        place = source.blanks(at)
        tag = tags.parameter.match(source.text, place)
        if tag is None:
            return _finish_parameters(source, name, at, tags, written)
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


def _finish_parameters(
    source: TextSource, name: str, at: int, tags: _ParameterTags, written: ObjectText
) -> WrittenCall:
    """Return the call when no further parameter begins: it is closed, cut off, or unclosed."""
    place = source.blanks(at)
    closer = next((tag for tag in tags.end if source.starts(tag, place)), None)
    if closer is not None:
        end = place + len(closer)
        return WrittenCall(name=name, arguments=written.text(whole=True), end=end, closed=True)
    in_tag = source.starts(tags.begin, place) and source.find(tags.complete, place) == source.end
    cut = in_tag or any(source.cut(each, place) for each in (tags.begin, *tags.end))
    end = source.end if cut else at
    return WrittenCall(name=name, arguments=written.text(whole=False), end=end, closed=False)


def _read_value(source: TextSource, at: int, tags: _ParameterTags) -> tuple[str, int, bool]:
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


def _find_close(
    source: TextSource, at: int, following: int, tags: _ParameterTags
) -> tuple[int, int]:
    """Return the value's closing tag: the first one after which the call continues or ends.

    Values may contain such tags, too. If none qualifies, the first one counts.
    """
    first = close, after = source.first(tags.close, at)
    while close < min(following, source.end):
        place = source.blanks(after)
        if place in (following, source.end) or any(source.starts(tag, place) for tag in tags.end):
            return close, after
        close, after = source.first(tags.close, after)
    return first


def _trim(text: str, tags: _ParameterTags) -> str:
    return text.removeprefix("\n").removesuffix("\n") if tags.newlines else text


# GLM and Hunyuan: `<arg_key>` and `<arg_value>`.

_TOOL_CALL = "<tool_call>"
_TOOL_CALL_END = "</tool_call>"
_ARGUMENT_TAGS_NAME = word("name", r"[^\s<>{}]{1,200}+")
_GLM_HEAD = (_ARGUMENT_TAGS_NAME, before("<arg_key>", _TOOL_CALL_END))
_HUNYUAN_WRAPPER = re.compile(r"<tool_calls(:\w{1,40})?>\s*+")
_HUNYUAN_CALL = re.compile(r"<tool_call(:\w{1,40})?>\s*+")


@functools.lru_cache(maxsize=64)
def _argument_tags(suffix: str) -> _ParameterTags:
    end = re.escape(suffix)
    return _ParameterTags(
        parameter=re.compile(
            rf"<arg_key{end}>(?P<key>[^<]{{1,200}})</arg_key{end}>(?:\\n|\s)*+<arg_value{end}>"
        ),
        begin=f"<arg_key{suffix}>",
        complete=f"<arg_value{suffix}>",
        close=(f"</arg_value{suffix}>",),
        end=(f"</tool_call{suffix}>",),
    )


def _read_glm(source: TextSource, start: int) -> Sequence[WrittenCall]:
    place = source.blanks(start + len(_TOOL_CALL))
    head = read_head(source, place, _GLM_HEAD)
    if head is None:
        return ()
    name = head.word("name")
    if head.cut:
        return (cut_call(source, name),) if _begins_call(source, place, head) else ()
    alone = source.starts(_TOOL_CALL_END, source.blanks(head.end))
    if not source.is_name(name) or (alone and source.offered and name not in source.offered):
        return ()
    return (_read_body(source, name, head.end, _argument_tags("")),)


def _begins_call(source: TextSource, place: int, head: CallHead) -> bool:
    """Return whether a cut head begins a call: a tag has begun, or an offered tool's name."""
    name = head.word("name")
    if source.text.find("<", place) >= 0:
        return source.is_name(name)
    return any(name == tool or tool.startswith(head.partial or "<") for tool in source.offered)


def _read_hunyuan(source: TextSource, start: int) -> Sequence[WrittenCall]:
    wrapper = _HUNYUAN_WRAPPER.match(source.text, start)
    at = wrapper.end() if wrapper else start
    calls: list[WrittenCall] = []
    suffix = ""
    while opening := _HUNYUAN_CALL.match(source.text, at):
        suffix = opening[1] or ""
        call = _read_hunyuan_call(source, opening.end(), suffix, wrapped=wrapper is not None)
        if call is None:
            break
        calls.append(call)
        at = source.blanks(call.end)
    return close_wrapper(source, calls, f"</tool_calls{suffix}>") if wrapper else calls


def _read_hunyuan_call(
    source: TextSource, at: int, suffix: str, *, wrapped: bool
) -> WrittenCall | None:
    """Return a call of Hunyuan; without a wrapper or the beginning of `<tool_sep>`, GLM's."""
    head = read_head(source, at, (_ARGUMENT_TAGS_NAME, literal(f"<tool_sep{suffix}>")))
    name = head.word("name") if head else ""
    if head is None or not source.is_name(name or head.partial):
        return None
    if head.cut:
        begun = wrapped or source.starts("<t", source.blanks(at + len(name)))
        return cut_call(source, name) if begun else None
    return _read_body(source, name, head.end, _argument_tags(suffix))


GLM = NotationFamily(name="glm", openers=(_TOOL_CALL,), read=_read_glm)
HUNYUAN = NotationFamily(
    name="hunyuan",
    openers=("<tool_calls>", "<tool_calls:", _TOOL_CALL, "<tool_call:"),
    read=_read_hunyuan,
)


# `<invoke name="f">` and `<parameter name="k">`, each family with its own decoration.

_BARS = "[｜‖|]{1,2}"  # noqa: RUF001 - the model's own bars
_DSML = re.compile(rf"<({_BARS}DSML{_BARS})(?:((?:function|tool)_calls)>|invoke\b)")
_ANTHROPIC = "antml:"
_FUNCTION_CALLS = re.compile(rf"<({_ANTHROPIC})?(?:(function_calls)>|invoke\b)")
_STEP_WRAPPER = re.compile(r"<｜tool_calls_begin｜>\s*+")  # noqa: RUF001
_STEP_BEGIN = "<｜tool_call_begin｜>"  # noqa: RUF001
_STEP_HEAD = (literal("function"), literal("<｜tool_sep｜>"), before("<steptml:invoke"))  # noqa: RUF001
_STEP_END = re.compile(r"\s*+<｜tool_call_end｜>(?:\s*+<｜tool_calls_end｜>)?")  # noqa: RUF001
_M2 = "<minimax:tool_call>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _InvokeTags:
    """The tags of one decoration."""

    head: Steps
    inside: _ParameterTags


@functools.lru_cache(maxsize=64)
def _invoke_tags(prefix: str) -> _InvokeTags:
    """Return the tags whose names begin with `prefix`."""
    before = re.escape(prefix)
    return _InvokeTags(
        head=(literal(f"<{prefix}invoke"), *INVOKE),
        inside=_ParameterTags(
            parameter=re.compile(
                rf'<{before}parameter\s++name\s*+=\s*+"(?P<key>[^"<>\n]{{1,200}})"'
                r'(?:\s++string\s*+=\s*+"(?P<string>true|false)")?\s*+>'
            ),
            begin=f"<{prefix}parameter",
            complete=">",
            close=(f"</{prefix}parameter>", "</parameter>"),
            end=(f"</{prefix}invoke>", "</invoke>"),
        ),
    )


def _read_invoke(
    source: TextSource, at: int, tags: _InvokeTags, *, sure: bool = False
) -> WrittenCall | None:
    """Return the call at `at`; where the text ends before its name, only if that is `sure`."""
    if not source.starts("<", at):
        return None
    head = read_head(source, at, tags.head)
    if head is None or not source.is_name(head.word("name") or "_"):
        return None
    if head.cut:
        begun = sure or head.words or head.partial
        return cut_call(source, head.word("name")) if begun else None
    item = _read_body(source, head.word("name"), head.end, tags.inside)
    is_bare = not item.closed and not item.arguments and item.end < source.end
    return None if is_bare and item.name not in source.offered else item


def _read_invokes(source: TextSource, start: int, opener: re.Pattern[str]) -> Sequence[WrittenCall]:
    """Return calls in, or without, a wrapper.

    Of `opener`, group 1 is the decoration, group 2 the name of the wrapper.
    """
    opening = opener.match(source.text, start)
    if opening is None:
        return ()
    prefix, wrapper = opening[1] or "", opening[2]
    at = opening.end() if wrapper else opening.start()
    calls = consecutive_calls(
        source, at, functools.partial(_read_invoke, tags=_invoke_tags(prefix))
    )
    if wrapper:
        return close_wrapper(source, calls, f"</{prefix}{wrapper}>")
    return calls if calls and _is_known(source, calls[0]) else ()


def _read_m2(source: TextSource, start: int) -> Sequence[WrittenCall]:
    read_invoke = functools.partial(_read_invoke, tags=_invoke_tags(""))
    calls = consecutive_calls(source, start + len(_M2), read_invoke)
    return close_wrapper(source, calls, "</minimax:tool_call>")


def _read_step(source: TextSource, start: int) -> Sequence[WrittenCall]:
    wrapper = _STEP_WRAPPER.match(source.text, start)
    return consecutive_calls(source, wrapper.end() if wrapper else start, _read_step_call)


def _read_step_call(source: TextSource, at: int) -> WrittenCall | None:
    if not source.starts(_STEP_BEGIN, at):
        return None
    head = read_head(source, at + len(_STEP_BEGIN), _STEP_HEAD)
    if head is None or head.cut:
        return cut_call(source) if head else None
    item = _read_invoke(source, source.blanks(head.end), _invoke_tags("steptml:"), sure=True)
    end = _STEP_END.match(source.text, item.end) if item else None
    return replace(item, end=end.end()) if item and end else item


DSML = NotationFamily(
    name="deepseek-dsml",
    openers=("<｜DSML", "<｜｜DSML", "<‖DSML", "<‖‖DSML", "<|DSML", "<||DSML"),  # noqa: RUF001
    read=functools.partial(_read_invokes, opener=_DSML),
)
MINIMAX_M2 = NotationFamily(name="minimax-m2", openers=(_M2,), read=_read_m2)
STEP3 = NotationFamily(
    name="step3",
    openers=("<｜tool_calls_begin｜>", "<｜tool_call_begin｜>"),  # noqa: RUF001
    read=_read_step,
)
FUNCTION_CALLS = NotationFamily(
    name="function-calls",
    openers=(
        "<function_calls>",
        f"<{_ANTHROPIC}function_calls>",
        "<invoke ",
        f"<{_ANTHROPIC}invoke ",
    ),
    read=functools.partial(_read_invokes, opener=_FUNCTION_CALLS),
)


# `<function=f>`.

_FUNCTION = "<function="
_FUNCTION_HEAD = (
    literal(_FUNCTION),
    word("name", r"[^<>\n]{1,200}+"),
    literal(">"),
    before("<parameter=", "{", "</function>"),
)
_FUNCTION_TAGS = _ParameterTags(
    parameter=re.compile(r"<parameter=(?P<key>[^<>\n]{1,200})>"),
    begin="<parameter=",
    complete=">",
    close=("</parameter>",),
    end=("</function>",),
    newlines=True,
)


def _read_functions(source: TextSource, start: int) -> Sequence[WrittenCall]:
    at = start
    wrapped = source.starts(_TOOL_CALL, at)
    if wrapped:
        at = source.blanks(at + len(_TOOL_CALL))
    calls: list[WrittenCall] = []
    while (call := _read_function(source, at)) is not None:
        calls.append(call)
        at = source.blanks(call.end)
        if not call.closed:
            break
    if not calls or not (wrapped or _is_known(source, calls[0])):
        return ()
    return close_wrapper(source, calls, _TOOL_CALL_END)


def _read_function(source: TextSource, at: int) -> WrittenCall | None:
    head = read_head(source, at, _FUNCTION_HEAD) if source.starts(_FUNCTION, at) else None
    if head is None:
        return None
    name = head.word("name").strip().strip("\"'")
    if head.cut:
        begun = name or (head.partial and source.starts(head.partial, at + len(_FUNCTION)))
        return cut_call(source, name) if begun else None
    return _read_body(source, name, head.end, _FUNCTION_TAGS) if source.is_name(name) else None


QWEN3_CODER = NotationFamily(
    name="qwen3-coder", openers=(_TOOL_CALL, _FUNCTION), read=_read_functions
)


# MiniMax M3: tags that each begin with a token of their own, and are named by the parameters.

_M3 = "]<]minimax[>["  # a token of a model's vocabulary
_M3_WRAPPER = f"{_M3}<tool_call>"
_M3_WRAPPER_END = f"{_M3}</tool_call>"
_M3_CALL_END = f"{_M3}</invoke>"
_M3_HEAD = (literal(_M3), literal("<invoke"), *INVOKE)
_M3_PARAMETER = re.compile(re.escape(_M3) + r"\s*+<([^/<>\s][^<>\n]{0,199})>")
_M3_PARTIAL_PARAMETER = re.compile(re.escape(_M3) + r"\s*+<[^/<>\s]?[^<>\n]{0,199}+\Z")


def _read_m3(source: TextSource, start: int) -> Sequence[WrittenCall]:
    at = start + len(_M3_WRAPPER) if source.starts(_M3_WRAPPER, start) else start
    if source.cut(_M3_WRAPPER, start) or source.blanks(at) == source.end:
        return (cut_call(source),)
    return close_wrapper(source, consecutive_calls(source, at, _read_m3_call), _M3_WRAPPER_END)


def _read_m3_call(source: TextSource, at: int) -> WrittenCall | None:
    head = read_head(source, at, _M3_HEAD)
    if head is None or not source.is_name(head.word("name") or "_"):
        return None
    name, at = head.word("name"), head.end
    if head.cut:
        return cut_call(source, name)
    written = ObjectText()
    while tag := _M3_PARAMETER.match(source.text, place := source.blanks(at)):
        closer = f"{_M3}</{tag[1]}>"
        stop = min(source.find(closer, tag.end()), source.find(_M3_CALL_END, tag.end()))
        value = source.text[tag.end() : stop]
        if stop == source.end:
            written.add(tag[1], opened(value))
            return WrittenCall(
                name=name, arguments=written.text(whole=False), end=stop, closed=False
            )
        written.add(tag[1], typed(source, name, tag[1], value))
        at = stop + len(closer) if source.starts(closer, stop) else stop
    if source.starts(_M3_CALL_END, place):
        end = place + len(_M3_CALL_END)
        return WrittenCall(name=name, arguments=written.text(whole=True), end=end, closed=True)
    cut = _M3_PARTIAL_PARAMETER.match(source.text, place) or source.cut(_M3_CALL_END, place)
    end = source.end if cut else at
    return WrittenCall(name=name, arguments=written.text(whole=False), end=end, closed=False)


MINIMAX_M3 = NotationFamily(name="minimax-m3", openers=(_M3,), read=_read_m3)
