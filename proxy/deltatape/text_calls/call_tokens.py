"""Families that put the name and the arguments between special tokens.

    deepseek  <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f
              ```json
              {...}
              ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>                             V3, R1
              ..begin｜>f<｜tool▁sep｜>{...}<｜tool▁call▁end｜>..                   V3.1
    kimi-k2   <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0
              <|tool_call_argument_begin|>{...}<|tool_call_end|><|tool_calls_section_end|>
              the id is `functions.f:0`, or a bare counter that tells no name

Both leak without the tokens of the section, and DeepSeek's with ASCII bars and underscores.
Source: the chat templates of these models.
"""  # noqa: RUF002 - a notation is shown as it is written

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from deltatape.text_calls._json import find_closer, read_arguments
from deltatape.text_calls._notation import (
    CallHead,
    NotationFamily,
    Steps,
    TextSource,
    WrittenCall,
    consecutive_calls,
    cut_call,
    extend_last,
    literal,
    maybe,
    read_head,
    word,
)

_OPEN, _SHUT, _GAP = "<[｜|]", "[｜|]>", "[▁_]"  # noqa: RUF001 - DeepSeek's own, and leaked
_FENCE = maybe("```json", "```")
_NAME = word("name", r"[^\s<>`{}]{1,200}+")
_SEP = literal(*(f"<{bar}tool{gap}sep{bar}>" for bar in "｜|" for gap in "▁_"))  # noqa: RUF001
_KIMI_ARGUMENTS = literal("<|tool_call_argument_begin|>")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    """The tokens of one family."""

    wrapper: re.Pattern[str]
    begin: re.Pattern[str]
    heads: tuple[Steps, ...]
    """What stands between the beginning of a call and its arguments, the likeliest first."""
    end: re.Pattern[str]
    """The end of a call."""
    closer: str
    """The usual spelling of that."""
    wrapper_end: re.Pattern[str]


_DEEPSEEK = _Tokens(
    wrapper=re.compile(f"{_OPEN}tool{_GAP}calls{_GAP}begin{_SHUT}\\s*+"),
    begin=re.compile(f"{_OPEN}tool{_GAP}call{_GAP}begin{_SHUT}"),
    heads=((literal("function"), _SEP, _NAME, _FENCE), (_NAME, _SEP, _FENCE)),
    end=re.compile(rf"\s*+(?:```)?\s*+{_OPEN}tool{_GAP}call{_GAP}end{_SHUT}"),
    closer="<｜tool▁call▁end｜>",  # noqa: RUF001
    wrapper_end=re.compile(rf"\s*+{_OPEN}tool{_GAP}calls{_GAP}end{_SHUT}"),
)
_KIMI = _Tokens(
    wrapper=re.compile(r"<\|tool_calls?_section_begin\|>\s*+"),
    begin=re.compile(r"<\|tool_call_begin\|>(?:\s++(?=functions\.|\d))?"),
    heads=((word("id", r"[^\s<>{}]{1,200}+"), _KIMI_ARGUMENTS),),
    end=re.compile(r"\s*+<\|tool_call_end\|>"),
    closer="<|tool_call_end|>",
    wrapper_end=re.compile(r"\s*+<\|tool_calls?_section_end\|>"),
)
_KIMI_ID = re.compile(r"(?:functions\.)?(?:(.*?):)?(\d{1,9})")


def _read(source: TextSource, start: int, tokens: _Tokens) -> Sequence[WrittenCall]:
    wrapper = tokens.wrapper.match(source.text, start)
    at = wrapper.end() if wrapper else start
    calls = consecutive_calls(source, at, partial(_read_one, tokens=tokens))
    end = tokens.wrapper_end.match(source.text, calls[-1].end) if calls else None
    return extend_last(calls, end.end()) if end else calls


def _read_one(source: TextSource, at: int, tokens: _Tokens) -> WrittenCall | None:
    begin = tokens.begin.match(source.text, at)
    if begin is None:
        return None
    at = begin.end()
    head = next((found for steps in tokens.heads if (found := read_head(source, at, steps))), None)
    if head is None:
        return None
    name, identity = _identity(head)
    if name and not source.is_name(name):
        return None
    at = source.blanks(head.end)
    if head.cut or at == source.end:
        return replace(cut_call(source, name), id=identity)
    extent = read_arguments(source, at, tokens.closer)
    if extent is None:
        usual = tokens.end.match(source.text, at)
        if usual is None:
            return None
        return WrittenCall(name=name, arguments="", id=identity, end=usual.end(), closed=True)
    usual = tokens.end.match(source.text, extent.end)
    end, closed = (
        (usual.end(), True) if usual else find_closer(source, extent.end, tokens.closer, "")
    )
    arguments = source.text[at : extent.end].rstrip()
    return WrittenCall(name=name, arguments=arguments, id=identity, end=end, closed=closed)


def _identity(head: CallHead) -> tuple[str, str | None]:
    """Return the tool's name, "" if the head has only a counter, and the call's id."""
    identity = head.word("id")
    if not identity:
        return head.word("name"), None
    numbered = _KIMI_ID.fullmatch(identity)
    if numbered is None:
        return identity.removeprefix("functions."), None
    return numbered[1] or "", identity


DEEPSEEK = NotationFamily(
    name="deepseek",
    openers=tuple(
        f"<{bar}tool{gap}{what}{gap}begin{bar}>"
        for bar in "｜|"  # noqa: RUF001
        for gap in "▁_"
        for what in ("calls", "call")
    ),
    read=partial(_read, tokens=_DEEPSEEK),
)
KIMI_K2 = NotationFamily(
    name="kimi-k2",
    openers=(
        "<|tool_calls_section_begin|>",
        "<|tool_call_section_begin|>",
        "<|tool_call_begin|>",
    ),
    read=partial(_read, tokens=_KIMI),
)
