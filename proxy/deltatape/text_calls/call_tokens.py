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
from dataclasses import dataclass, replace

from deltatape.text_calls._json import JsonEnd, find_closer, read_arguments
from deltatape.text_calls._notation import (
    CallBlock,
    CallHead,
    FoundCall,
    NotationFamily,
    Steps,
    TextSource,
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


def _read(source: TextSource, start: int, tokens: _Tokens) -> CallBlock | None:
    wrapper = tokens.wrapper.match(source.text, start)
    at = wrapper.end() if wrapper else start
    items: list[FoundCall] = []
    while begin := tokens.begin.match(source.text, at):
        item = _read_one(source, begin.end(), tokens)
        if item is None:
            break
        items.append(item)
        at = source.blanks(item.end)
    if not items:
        return None
    end = tokens.wrapper_end.match(source.text, items[-1].end)
    if end is not None:
        items[-1] = replace(items[-1], end=end.end())
    return CallBlock(items=tuple(items), end=items[-1].end)


def _read_one(source: TextSource, at: int, tokens: _Tokens) -> FoundCall | None:
    head = next((found for steps in tokens.heads if (found := read_head(source, at, steps))), None)
    if head is None:
        return None
    name, identity = _identity(head)
    if name and not source.is_name(name):
        return None
    at = source.blanks(head.end)
    if head.cut or at == source.end:
        return FoundCall(name=name, arguments="", id=identity, end=source.end, closed=False)
    extent = read_arguments(source, at, tokens.closer)
    if extent is None:
        return _without_arguments(source, at, tokens, name, identity)
    end, closed = extent.end, False
    if extent.state is not JsonEnd.CUT:
        usual = tokens.end.match(source.text, end)
        end, closed = (
            (usual.end(), True) if usual else find_closer(source, extent, tokens.closer, "")
        )
    arguments = source.text[at : extent.end].rstrip()
    return FoundCall(name=name, arguments=arguments, id=identity, end=end, closed=closed)


def _without_arguments(
    source: TextSource, at: int, tokens: _Tokens, name: str, identity: str | None
) -> FoundCall | None:
    """Return a call that ends behind its head."""
    end = tokens.end.match(source.text, at)
    if end is None:
        return None
    return FoundCall(name=name, arguments="", id=identity, end=end.end(), closed=True)


def _identity(head: CallHead) -> tuple[str, str | None]:
    """Return the tool's name, "" if the head has only a counter, and the call's id."""
    identity = head.word("id")
    if not identity:
        return head.word("name"), None
    numbered = _KIMI_ID.fullmatch(identity)
    if numbered is None:
        return identity.removeprefix("functions."), None
    return numbered[1] or "", identity


def _read_deepseek(source: TextSource, start: int) -> CallBlock | None:
    return _read(source, start, _DEEPSEEK)


def _read_kimi(source: TextSource, start: int) -> CallBlock | None:
    return _read(source, start, _KIMI)


DEEPSEEK = NotationFamily(
    name="deepseek",
    openers=tuple(
        f"<{bar}tool{gap}{what}{gap}begin{bar}>"
        for bar in "｜|"  # noqa: RUF001
        for gap in "▁_"
        for what in ("calls", "call")
    ),
    read=_read_deepseek,
)
KIMI_K2 = NotationFamily(
    name="kimi-k2",
    openers=(
        "<|tool_calls_section_begin|>",
        "<|tool_call_section_begin|>",
        "<|tool_call_begin|>",
    ),
    read=_read_kimi,
)
