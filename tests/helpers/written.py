"""Calls as models write them into their text, one notation after the other."""

from dataclasses import dataclass

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
