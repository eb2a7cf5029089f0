"""Families whose arguments are JSON, between tags or special tokens.

    tool      <tool>{"tool_name": "f", "arguments": {...}}</tool>
    hermes    <tool_call>{"name": "f", "arguments": {...}}</tool_call>         Hermes, Qwen 2.5 and 3
    cohere    <|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {...}}]<|END_ACTION|>
    internlm  <|action_start|> <|plugin|>{"name": "f", "parameters": {...}}<|action_end|>
    mistral   [TOOL_CALLS] [{"name": "f", "arguments": {...}}, ...]
              [TOOL_CALLS]f[ARGS]{...}[TOOL_CALLS]g[ARGS]{...}   also f[CALL_ID]abc[ARGS]{...}, f{...}
    harmony   <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>
              <|start|>assistant to=functions.f<|channel|>commentary<|message|>{...}
              assistantcommentary to=functions.f json{...}              with its tokens stripped
    deepseek  <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f
              ```json
              {...}
              ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>                             V3, R1
              ..begin｜>f<｜tool▁sep｜>{...}<｜tool▁call▁end｜>..                   V3.1
    kimi-k2   <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0
              <|tool_call_argument_begin|>{...}<|tool_call_end|><|tool_calls_section_end|>
              the id is `functions.f:0`, or a bare counter that tells no name

`tool` is what applications ask for in their own prompts. Mistral has no closing tag, and Harmony's
`<|call|>`, which ends the sampling, seldom arrives: these calls end with their JSON. A recipient of
Harmony that is no function (`to=browser.search`) counts behind `commentary` or `analysis` only.
DeepSeek's and Kimi's calls leak without the tokens of the section, and DeepSeek's with ASCII bars
and underscores.

Sources: the chat templates of these models, mistral-common's instruct tokenizers, and the Harmony
response format, https://github.com/openai/harmony.
"""  # noqa: E501, RUF002 - a notation is shown as it is written

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from deltatape.text_calls._json import JsonEnd, find_closer, read_arguments, read_calls
from deltatape.text_calls._notation import (
    CallHead,
    NotationFamily,
    Steps,
    TextSource,
    WrittenCall,
    before,
    consecutive_calls,
    cut_call,
    extend_last,
    literal,
    maybe,
    read_head,
    word,
)

_PLUGIN = re.compile(r"<\|action_start\|>\s*+<\|(?:plugin|interpreter)\|>")


def _tagged_json(name: str, opener: str, closer: str) -> NotationFamily:
    def read(source: TextSource, start: int) -> Sequence[WrittenCall]:
        return read_calls(source, start + len(opener), closer, opener)

    return NotationFamily(name=name, openers=(opener,), read=read)


def _read_internlm(source: TextSource, start: int) -> Sequence[WrittenCall]:
    opened = _PLUGIN.match(source.text, start)
    if opened is None:
        return ()
    return read_calls(source, opened.end(), "<|action_end|>", "<|action_start|>")


GENERIC = _tagged_json("tool", "<tool>", "</tool>")
HERMES = _tagged_json("hermes", "<tool_call>", "</tool_call>")
COHERE = _tagged_json("cohere", "<|START_ACTION|>", "<|END_ACTION|>")
INTERNLM = NotationFamily(name="internlm", openers=("<|action_start|>",), read=_read_internlm)


# Mistral: everything behind `[TOOL_CALLS]` is calls.

_TOOL_CALLS = "[TOOL_CALLS]"
_MISTRAL_NAME = word("name", r"[^\s\[\]{}<>]{1,200}+")
_WITH_ID = (
    _MISTRAL_NAME,
    literal("[CALL_ID]"),
    word("id", r"[^\s\[\]{}]{1,200}+"),
    literal("[ARGS]"),
)
_WITHOUT_ID = (_MISTRAL_NAME, maybe("[ARGS]"), before("{"))


def _read_mistral(source: TextSource, start: int) -> Sequence[WrittenCall]:
    at = start + len(_TOOL_CALLS)
    calls = read_calls(source, at, None)
    if calls:
        return calls
    head = read_head(source, at, _WITH_ID) or read_head(source, at, _WITHOUT_ID)
    if head is None or not source.is_name(head.word("name") or head.partial):
        return ()
    cut = replace(cut_call(source, head.word("name")), id=head.word("id") or None)
    place = source.blanks(head.end)
    if head.cut or place == source.end:
        return (cut,)
    extent = read_arguments(source, place, None)
    if extent is None:
        return ()
    arguments, closed = source.text[place : extent.end], extent.state is JsonEnd.WHOLE
    return (replace(cut, arguments=arguments, end=extent.end, closed=closed),)


MISTRAL = NotationFamily(name="mistral", openers=(_TOOL_CALLS,), read=_read_mistral)


# Harmony, the notation of gpt-oss: a message whose recipient is a tool.

_RECIPIENT = "to="
_FUNCTIONS = "functions."
_HARMONY_HEADER = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?[ ]?(?:<\|channel\|>)?(?:commentary|analysis)?[ ]{1,3}\Z"
)
_LOOK_BACK = 60
_CHANNELS = ("commentary", "analysis")
_RECIPIENT_NAME = re.compile(r"[A-Za-z_][\w.-]{0,199}+")
_CHANNEL = maybe("<|channel|>commentary", "<|channel|>analysis")
_HARMONY_HEAD = (
    _CHANNEL,
    maybe("<|constrain|>"),
    maybe("json", "code"),
    maybe("<|message|>"),
    before("{"),
)
_HARMONY_END = "<|call|>"


def _read_harmony(source: TextSource, start: int) -> Sequence[WrittenCall]:
    named = _RECIPIENT_NAME.match(source.text, start + len(_RECIPIENT))
    if named is None:
        return ()
    if not named[0].startswith(_FUNCTIONS) and source.text[start - 1 : start] != " ":
        return ()
    floor = max(0, start - _LOOK_BACK)
    before = _HARMONY_HEADER.search(source.text, floor, start)
    header = source.text[before.start() : start] if before else ""
    name = named[0].removeprefix(_FUNCTIONS)
    if name == named[0] and not any(channel in header for channel in _CHANNELS):
        return ()
    call = _read_harmony_message(source, name, named.end())
    return (replace(call, start=start - len(header.lstrip())),) if call else ()


def _read_harmony_message(source: TextSource, name: str, at: int) -> WrittenCall | None:
    if at == source.end:
        return cut_call(source)
    head = read_head(source, source.blanks(at), _HARMONY_HEAD)
    if head is None or head.cut:
        begun = head or source.blanks(at) == source.end
        return cut_call(source, name) if begun else None
    place = source.blanks(head.end)
    extent = read_arguments(source, place, _HARMONY_END)
    if extent is None:
        return None
    arguments = source.text[place : extent.end].rstrip()
    end = source.blanks(extent.end)
    end = end + len(_HARMONY_END) if source.starts(_HARMONY_END, end) else extent.end
    return WrittenCall(
        name=name, arguments=arguments, end=end, closed=extent.state is JsonEnd.WHOLE
    )


HARMONY = NotationFamily(name="harmony", openers=(_RECIPIENT,), read=_read_harmony)


# DeepSeek and Kimi: name and arguments between special tokens.

_OPEN, _SHUT, _GAP = "<[｜|]", "[｜|]>", "[▁_]"  # noqa: RUF001 - DeepSeek's own, and leaked
_FENCE = maybe("```json", "```")
_DEEPSEEK_NAME = word("name", r"[^\s<>`{}]{1,200}+")
_DEEPSEEK_SEP = literal(*(f"<{bar}tool{gap}sep{bar}>" for bar in "｜|" for gap in "▁_"))  # noqa: RUF001
_KIMI_ARGUMENTS = literal("<|tool_call_argument_begin|>")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    """The tokens of one family."""

    wrapper: re.Pattern[str]
    begin: re.Pattern[str]
    heads: tuple[Steps, ...]
    """The possible texts between `begin` and the arguments, the likeliest first."""
    end: re.Pattern[str]
    """The end of a call."""
    closer: str
    """The usual spelling of `end`."""
    wrapper_end: re.Pattern[str]


_DEEPSEEK = _Tokens(
    wrapper=re.compile(f"{_OPEN}tool{_GAP}calls{_GAP}begin{_SHUT}\\s*+"),
    begin=re.compile(f"{_OPEN}tool{_GAP}call{_GAP}begin{_SHUT}"),
    heads=(
        (literal("function"), _DEEPSEEK_SEP, _DEEPSEEK_NAME, _FENCE),
        (_DEEPSEEK_NAME, _DEEPSEEK_SEP, _FENCE),
    ),
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


def _read_section(source: TextSource, start: int, tokens: _Tokens) -> Sequence[WrittenCall]:
    wrapper = tokens.wrapper.match(source.text, start)
    at = wrapper.end() if wrapper else start
    calls = consecutive_calls(source, at, partial(_read_section_call, tokens=tokens))
    end = tokens.wrapper_end.match(source.text, calls[-1].end) if calls else None
    return extend_last(calls, end.end()) if end else calls


def _read_section_call(source: TextSource, at: int, tokens: _Tokens) -> WrittenCall | None:
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
    read=partial(_read_section, tokens=_DEEPSEEK),
)
KIMI_K2 = NotationFamily(
    name="kimi-k2",
    openers=(
        "<|tool_calls_section_begin|>",
        "<|tool_call_section_begin|>",
        "<|tool_call_begin|>",
    ),
    read=partial(_read_section, tokens=_KIMI),
)
