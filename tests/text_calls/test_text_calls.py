import importlib
import json
import pkgutil
from dataclasses import dataclass
from time import thread_time_ns  # noqa: TID251 - the CPU time of a test

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deltatape.text_calls
from deltatape.model.reply import Channel
from deltatape.text_calls import SIGNS, find_calls
from deltatape.text_calls._notation import NotationFamily, WrittenCall
from deltatape.text_calls.families import FAMILIES
from helpers import chat
from helpers.corpus import ROOT, needs_corpus

# Calls as models write them into their text, one notation after the other.

Call = tuple[str, object, str | None]
"""Name, the value of the arguments, id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A text that is nothing but calls of one family."""

    family: str
    text: str
    calls: tuple[Call, ...]
    seen: int
    """The shortest beginning of the text that is seen as a call, in characters."""
    closes: bool = True
    """Whether the family has a closing tag."""


OFFERED = {
    "f": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}},
    "g": None,
}
"""Tools for the samples."""
_F: Call = ("f", {"k": "v", "n": 1}, None)
_G: Call = ("g", {}, None)
SAMPLES = (
    Sample(
        family="tool",
        text='<tool>{"tool_name":"f","arguments":{"k":"v","n":1}}</tool>',
        calls=(_F,),
        seen=len("<tool>{"),
    ),
    Sample(
        family="hermes",
        text='<tool_call>\n{"name": "f", "arguments": {"k": "v", "n": 1}}\n</tool_call>\n'
        '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>',
        calls=(_F, _G),
        seen=len("<tool_call>\n{"),
    ),
    Sample(
        family="qwen3-coder",
        text="<tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n<parameter=n>\n1\n"
        "</parameter>\n</function>\n</tool_call>",
        calls=(_F,),
        seen=len("<tool_call>\n<function=f"),
    ),
    Sample(
        family="glm",
        text="<tool_call>f\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>\n<arg_key>n</arg_key>\n"
        "<arg_value>1</arg_value>\n</tool_call>",
        calls=(_F,),
        seen=len("<tool_call>f"),
    ),
    Sample(
        family="hunyuan",
        text="<tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>"
        "\n<arg_key>n</arg_key><arg_value>1</arg_value>\n</tool_call>\n</tool_calls>",
        calls=(_F,),
        seen=len("<tool_calls>\n<tool_call>f"),
    ),
    Sample(
        family="mistral",
        text='[TOOL_CALLS] [{"name": "f", "arguments": {"k": "v", "n": 1}, "id": "abc"},'
        ' {"name": "g", "arguments": {}}]',
        calls=(("f", {"k": "v", "n": 1}, "abc"), _G),
        seen=len("[TOOL_CALLS] [{"),
        closes=False,
    ),
    Sample(
        family="mistral",
        text='[TOOL_CALLS]f[ARGS]{"k": "v", "n": 1}[TOOL_CALLS]g[CALL_ID]x1[ARGS]{}',
        calls=(_F, ("g", {}, "x1")),
        seen=len("[TOOL_CALLS]f"),
        closes=False,
    ),
    Sample(
        family="llama",
        text='<|python_tag|>{"name": "f", "parameters": {"k": "v", "n": 1}}; '
        '{"name": "g", "parameters": {}}',
        calls=(_F, _G),
        seen=len("<|python_tag|>{"),
        closes=False,
    ),
    Sample(
        family="llama",
        text='<|python_tag|>[f(k="v", n=1), g()]',
        calls=(_F, _G),
        seen=len("<|python_tag|>[f"),
        closes=False,
    ),
    Sample(
        family="deepseek",
        text="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"  # noqa: RUF001
        '```json\n{"k": "v", "n": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',  # noqa: RUF001
        calls=(_F,),
        seen=len("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f"),  # noqa: RUF001
    ),
    Sample(
        family="deepseek",
        text="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"  # noqa: RUF001
        '{"k": "v", "n": 1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>g'  # noqa: RUF001
        "<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",  # noqa: RUF001
        calls=(_F, _G),
        seen=len("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f"),  # noqa: RUF001
    ),
    Sample(
        family="deepseek-dsml",
        text='<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n'  # noqa: RUF001
        '<｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter>\n'  # noqa: RUF001
        '<｜DSML｜parameter name="n" string="false">1</｜DSML｜parameter>\n'  # noqa: RUF001
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",  # noqa: RUF001
        calls=(_F,),
        seen=len('<｜DSML｜function_calls>\n<｜DSML｜invoke name="f'),  # noqa: RUF001
    ),
    Sample(
        family="kimi-k2",
        text="<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
        '<|tool_call_argument_begin|>{"k": "v", "n": 1}<|tool_call_end|><|tool_call_begin|>'
        "functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        calls=(("f", {"k": "v", "n": 1}, "functions.f:0"), ("g", {}, "functions.g:1")),
        seen=len("<|tool_calls_section_begin|><|tool_call_begin|>f"),
    ),
    Sample(
        family="minimax-m2",
        text='<minimax:tool_call>\n<invoke name="f">\n<parameter name="k">v</parameter>\n'
        '<parameter name="n">1</parameter>\n</invoke>\n<invoke name="g">\n</invoke>\n'
        "</minimax:tool_call>",
        calls=(_F, _G),
        seen=len('<minimax:tool_call>\n<invoke name="f'),
    ),
    Sample(
        family="minimax-m3",
        text=']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">]<]minimax[>[<k>v'
        "]<]minimax[>[</k>]<]minimax[>[<n>1]<]minimax[>[</n>]<]minimax[>[</invoke>\n"
        "]<]minimax[>[</tool_call>",
        calls=(_F,),
        seen=len("]<]minimax[>["),
    ),
    Sample(
        family="harmony",
        text="<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>"
        '{"k": "v", "n": 1}<|call|>',
        calls=(_F,),
        seen=len("<|start|>assistant<|channel|>commentary to=f"),
        closes=False,
    ),
    Sample(
        family="harmony",
        text='assistantcommentary to=functions.f json{"k": "v", "n": 1}',
        calls=(_F,),
        seen=len("assistantcommentary to=f"),
        closes=False,
    ),
    Sample(
        family="gemma",
        text='<|tool_call>call:f{k:<|"|>v<|"|>,n:1}<tool_call|><|tool_call>call:g{}<tool_call|>',
        calls=(_F, _G),
        seen=len("<|tool_call>c"),
    ),
    Sample(
        family="cohere",
        text='<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "f", "parameters": '
        '{"k": "v", "n": 1}},\n    {"tool_call_id": "1", "tool_name": "g", "parameters": {}}\n]'
        "<|END_ACTION|>",
        calls=(("f", {"k": "v", "n": 1}, "0"), ("g", {}, "1")),
        seen=len("<|START_ACTION|>[\n    {"),
    ),
    Sample(
        family="internlm",
        text='<|action_start|> <|plugin|>\n{"name": "f", "parameters": {"k": "v", "n": 1}}'
        "<|action_end|>",
        calls=(_F,),
        seen=len("<|action_start|> <|plugin|>\n{"),
    ),
    Sample(
        family="lfm2",
        text='<|tool_call_start|>[f(k="v", n=1), g()]<|tool_call_end|>',
        calls=(_F, _G),
        seen=len("<|tool_call_start|>[f"),
    ),
    Sample(
        family="step3",
        text="<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"  # noqa: RUF001
        '<steptml:invoke name="f">\n<steptml:parameter name="k">v</steptml:parameter>\n'
        '<steptml:parameter name="n">1</steptml:parameter>\n</steptml:invoke>'
        "<｜tool_call_end｜>\n<｜tool_calls_end｜>",  # noqa: RUF001
        calls=(_F,),
        seen=len("<｜tool_calls_begin｜>\n<｜tool_call_begin｜>f"),  # noqa: RUF001
    ),
    Sample(
        family="function-calls",
        text='<function_calls>\n<invoke name="f">\n<parameter name="k">v</parameter>\n'
        '<parameter name="n">1</parameter>\n</invoke>\n</function_calls>',
        calls=(_F,),
        seen=len('<function_calls>\n<invoke name="f'),
    ),
)
"""At least one per family; several calls where the family has a way to write them."""


EACH = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.family)
TAGS = sorted({opener for family in FAMILIES for opener in family.openers})


def name_arguments_id(calls: tuple[WrittenCall, ...]) -> list[tuple[str, object, str | None]]:
    return [(call.name, json.loads(call.arguments), call.id) for call in calls]


def test_every_family_of_every_module_is_listed_once_and_has_a_sample() -> None:
    modules = [
        importlib.import_module(f"deltatape.text_calls.{found.name}")
        for found in pkgutil.iter_modules(deltatape.text_calls.__path__)
        if found.name != "families"  # which lists them
    ]
    defined = [
        value.name
        for module in modules
        for value in vars(module).values()
        if type(value) is NotationFamily
    ]
    assert sorted(defined) == sorted(family.name for family in FAMILIES)
    assert {sample.family for sample in SAMPLES} == set(defined)


@EACH
def test_the_calls_of_a_text_are_found_with_their_family_and_span(sample: Sample) -> None:
    calls = find_calls(sample.text, OFFERED)
    assert name_arguments_id(calls) == list(sample.calls)
    assert {call.family for call in calls} == {sample.family}
    assert all(call.closed for call in calls)
    assert (calls[0].start, calls[-1].end) == (0, len(sample.text))


@EACH
def test_calls_in_the_middle_of_prose_are_found_where_they_stand(sample: Sample) -> None:
    before, after = "Let me look that up. It's `x` that I need.\n\n", "\n\nThat was it."
    calls = find_calls(before + sample.text + after + "\n" + sample.text, OFFERED)
    assert name_arguments_id(calls) == 2 * list(sample.calls)
    assert calls[0].start == len(before)
    assert calls[len(sample.calls) - 1].end == len(before + sample.text)


@EACH
def test_every_beginning_of_a_text_is_an_unclosed_call_from_some_character_on(
    sample: Sample,
) -> None:
    for length in range(len(sample.text)):
        calls = find_calls(sample.text[:length], OFFERED)
        assert bool(calls) is (length >= sample.seen), sample.text[:length]
        for call, expected in zip(calls, sample.calls, strict=False):
            assert call.family == sample.family
            assert call.closed or call.name in ("", expected[0])
            assert not call.closed or json.loads(call.arguments) == expected[1]


@EACH
def test_nothing_in_a_fence_or_in_inline_code_is_a_call(sample: Sample) -> None:
    for text in (
        f"So it looks:\n```\n{sample.text}\n```\nand nothing else.",
        f"So:\n\n  ~~~xml\n{sample.text}\n  ~~~\n",
        f"- an item\n  ````text\n  ```\n{sample.text}\n",
        f"One writes ``{sample.text.replace(chr(10), ' ')}`` for that.",
    ):
        if sample.family != "deepseek" or "```" not in sample.text:
            assert find_calls(text, OFFERED) == ()


@EACH
def test_a_call_behind_a_closed_fence_is_found(sample: Sample) -> None:
    text = f"```python\nprint(1)\n```\nIt's `done`.\n{sample.text}"
    assert name_arguments_id(find_calls(text, OFFERED)) == list(sample.calls)


@pytest.mark.parametrize("tag", TAGS)
def test_talk_about_a_tag_makes_no_call(tag: str) -> None:
    for text in (
        f"The {tag} tag is what the model writes.",
        f"It writes {tag} and then the call; see {tag}.",
        f"{tag} ... {tag}\n\nThat is all.",
        f"Use {tag}{{...}} with your arguments.",
        f"Use {tag} {{name, arguments}} please.",
        f"{tag}",
        f"the {tag} tag",
    ):
        if tag != "]<]minimax[>[":
            assert find_calls(text, OFFERED) == (), text


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.family)
def test_closers_and_braces_inside_a_value_end_nothing(sample: Sample) -> None:
    if sample.family == "function-calls":
        value = "a </invoke> } ] b"
    elif '"v"' in sample.text or sample.family == "gemma":
        value = "a </tool> </tool_call> } ] <|tool_call_end|> ```[TOOL_CALLS] <tool>{ b"
    else:
        value = "a </tool> } ] ``` <tool>{ b"
    text = sample.text.replace('"v"', json.dumps(value))
    for old, new in ((">v<", f">{value}<"), ("\nv\n", f"\n{value}\n"), (">v]", f">{value}]")):
        text = text.replace(old, new)
    calls = find_calls(text, OFFERED)
    wanted = [{**call[1], "k": value} if call[1] else {} for call in sample.calls]  # type: ignore[dict-item]
    assert [json.loads(call.arguments) for call in calls] == wanted


def test_a_text_without_openers_has_no_calls() -> None:
    assert find_calls("") == ()
    assert find_calls("if a < b: c[0] = {}") == ()
    assert find_calls('{"name": "h", "arguments": {}}', OFFERED) == ()


@pytest.mark.slow
@given(text=st.text())
def test_no_text_raises(text: str) -> None:
    assert isinstance(find_calls(text, OFFERED), tuple)


PIECES = [
    *TAGS,
    *(sample.text[: len(sample.text) // 2] for sample in SAMPLES),
    *(sample.text[len(sample.text) // 2 :] for sample in SAMPLES),
    *(
        "{",
        "}",
        '{"name":',
        '"f"',
        ",",
        '"',
        "\\",
        "`",
        "```\n",
        "\n\n",
        " ",
        "</tool>",
        "f",
        "[f(",
    ),
]


@given(parts=st.lists(st.sampled_from(PIECES), max_size=12))
def test_calls_of_random_fragments_are_in_order_and_within_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    end = 0
    for call in find_calls(text, OFFERED):
        assert end <= call.start < call.end <= len(text)
        end = call.end
        if call.closed and call.arguments:
            assert call.family in {family.name for family in FAMILIES}


@pytest.mark.slow
@pytest.mark.parametrize(
    "tail", ["", "{", '{"name":"f","arguments":{"a":', "f", "`", " ", '{"a":"']
)
def test_the_time_is_linear_in_the_number_of_openers(tail: str) -> None:
    def ns(openers: int) -> int:
        text = "".join(tag + tail for tag in TAGS) * (openers // len(TAGS))
        # Not of the clock: what else the machine does counts there.
        start = thread_time_ns()
        find_calls(text, OFFERED)
        return thread_time_ns() - start

    ns(1000)
    assert ns(20_000) < 60 * max(ns(2000), 5_000_000)


def pairs_of_cuts(text: str) -> list[tuple[str, str, str]]:
    return [
        (text[:first], text[first:second], text[second:])
        for first in range(len(text) + 1)
        for second in range(first, len(text) + 1)
    ]


SHORT = {
    "tool": '<tool>{"tool_name":"f","arguments":{}}</tool>',
    "hermes": '<tool_call>{"name":"f"}</tool_call>',
    "qwen3-coder": "<function=f><parameter=k>v</function>",
    "hunyuan": "<tool_calls><tool_call>f<tool_sep></tool_call></tool_calls>",
    "glm": "<tool_call>f</tool_call>",
    "mistral": "[TOOL_CALLS]f[ARGS]{}",
    "llama": "<|python_tag|>f(n=1)",
    "step3": "<｜tool_call_begin｜>function<｜tool_sep｜>"  # noqa: RUF001
    '<steptml:invoke name="f"></steptml:invoke><｜tool_call_end｜>',  # noqa: RUF001
    "kimi-k2": "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "deepseek": "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>",  # noqa: RUF001
    "deepseek-dsml": '<｜DSML｜invoke name="f"></｜DSML｜invoke>',  # noqa: RUF001
    "minimax-m2": '<minimax:tool_call><invoke name="f"></invoke></minimax:tool_call>',
    "minimax-m3": ']<]minimax[>[<invoke name="f">]<]minimax[>[</invoke>',
    "harmony": "commentary to=functions.f json{}",
    "gemma": "<|tool_call>call:f{n:1}<tool_call|>",
    "cohere": '<|START_ACTION|>[{"tool_name":"f","parameters":{}}]<|END_ACTION|>',
    "internlm": '<|action_start|><|plugin|>{"name":"f","parameters":{}}<|action_end|>',
    "lfm2": "<|tool_call_start|>[f(n=1)]<|tool_call_end|>",
    "function-calls": '<invoke name="f"></invoke>',
}


def test_every_family_has_a_short_text() -> None:
    assert set(SHORT) == {family.name for family in FAMILIES}


@pytest.mark.slow
@pytest.mark.parametrize("family", SHORT)
def test_every_pair_of_cuts_of_a_stream_gives_the_same_calls(family: str) -> None:
    text = SHORT[family]
    request = chat.request(f=OFFERED["f"])
    whole = chat.reply_to(chat.choice({"content": text}, "stop"), request=request).text_calls
    assert [(one.family, one.call.name, one.channel) for one in whole] == [
        (family, "f", Channel.TEXT)
    ]
    for pieces in pairs_of_cuts(text):
        chunks = [chat.choice({"content": piece}) for piece in pieces]
        cut = chat.reply_to(*chunks, chat.choice({}, "stop"), request=request).text_calls
        assert [(one.start, one.end, one.closed) for one in cut] == [(0, len(text), True)]
        assert [one.call.arguments for one in cut] == [one.call.arguments for one in whole]


@needs_corpus
def test_no_text_or_reasoning_of_the_corpus_is_taken_for_a_call() -> None:
    texts = 0
    for path in sorted(ROOT.glob("*/expected.json")):
        expected = json.loads(path.read_text())
        for channel in ("text", "reasoning"):
            text = expected.get(channel)
            if isinstance(text, str):
                texts += 1
                assert find_calls(text) == (), path.parent.name
    assert texts


def test_every_opener_has_one_of_the_signs_that_are_looked_for_first() -> None:
    openers = [opener for family in FAMILIES for opener in family.openers]
    assert all(any(sign in opener for sign in SIGNS) for opener in openers)
    assert all(any(sign in opener for opener in openers) for sign in SIGNS)
