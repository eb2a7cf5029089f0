"""Calls with `<invoke name="f">` and `<parameter name="k">`, each family with its own decoration.

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

The body can be the arguments object instead. Source: the chat templates of these models.
"""  # noqa: E501, RUF002 - a notation is shown as it is written

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltatape.text_calls._markup import CallTags, is_known, read_call
from deltatape.text_calls._notation import (
    INVOKE,
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
)

_BARS = "[｜‖|]{1,2}"  # noqa: RUF001 - the model's own bars
_DSML = re.compile(rf"<({_BARS}DSML{_BARS})(?:((?:function|tool)_calls)>|invoke\b)")
_ANTHROPIC = "antml:"
_PLAIN = re.compile(rf"<({_ANTHROPIC})?(?:(function_calls)>|invoke\b)")
_STEP_WRAPPER = re.compile(r"<｜tool_calls_begin｜>\s*+")  # noqa: RUF001
_STEP_BEGIN = "<｜tool_call_begin｜>"  # noqa: RUF001
_STEP_HEAD = (literal("function"), literal("<｜tool_sep｜>"), before("<steptml:invoke"))  # noqa: RUF001
_STEP_END = re.compile(r"\s*+<｜tool_call_end｜>(?:\s*+<｜tool_calls_end｜>)?")  # noqa: RUF001
_M2 = "<minimax:tool_call>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spelling:
    """The tags of one decoration."""

    head: Steps
    tags: CallTags


@functools.lru_cache(maxsize=64)
def _spelling(prefix: str) -> _Spelling:
    """Return the tags whose names begin with `prefix`."""
    before = re.escape(prefix)
    return _Spelling(
        head=(literal(f"<{prefix}invoke"), *INVOKE),
        tags=CallTags(
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


def _read_one(
    source: TextSource, at: int, spelling: _Spelling, *, sure: bool = False
) -> WrittenCall | None:
    """Return the call at `at`; where the text ends before its name, only if that is `sure`."""
    if not source.starts("<", at):
        return None
    head = read_head(source, at, spelling.head)
    if head is None or not source.is_name(head.word("name") or "_"):
        return None
    if head.cut:
        begun = sure or head.words or head.partial
        return cut_call(source, head.word("name")) if begun else None
    item = read_call(source, head.word("name"), head.end, spelling.tags)
    is_bare = not item.closed and not item.arguments and item.end < source.end
    return None if is_bare and item.name not in source.offered else item


def _read_decorated(
    source: TextSource, start: int, opener: re.Pattern[str]
) -> Sequence[WrittenCall]:
    """Return calls in, or without, a wrapper.

    Of `opener`, group 1 is the decoration, group 2 the name of the wrapper.
    """
    opened = opener.match(source.text, start)
    if opened is None:
        return ()
    prefix, wrapper = opened[1] or "", opened[2]
    at = opened.end() if wrapper else opened.start()
    calls = consecutive_calls(source, at, functools.partial(_read_one, spelling=_spelling(prefix)))
    if wrapper:
        return close_wrapper(source, calls, f"</{prefix}{wrapper}>")
    return calls if calls and is_known(source, calls[0]) else ()


def _read_m2(source: TextSource, start: int) -> Sequence[WrittenCall]:
    read_call = functools.partial(_read_one, spelling=_spelling(""))
    calls = consecutive_calls(source, start + len(_M2), read_call)
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
    item = _read_one(source, source.blanks(head.end), _spelling("steptml:"), sure=True)
    end = _STEP_END.match(source.text, item.end) if item else None
    return replace(item, end=end.end()) if item and end else item


DSML = NotationFamily(
    name="deepseek-dsml",
    openers=("<｜DSML", "<｜｜DSML", "<‖DSML", "<‖‖DSML", "<|DSML", "<||DSML"),  # noqa: RUF001
    read=functools.partial(_read_decorated, opener=_DSML),
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
    read=functools.partial(_read_decorated, opener=_PLAIN),
)
