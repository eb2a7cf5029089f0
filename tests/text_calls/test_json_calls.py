import pytest

from deltatape.text_calls import find_calls


def test_white_space_around_the_object_does_not_matter() -> None:
    for body in ('{"name":"f"}', '\n\n  {"name":"f"}\t\n'):
        (call,) = find_calls(f"<tool_call>{body}</tool_call>")
        assert (call.family, call.name, call.closed) == ("hermes", "f", True)


def test_internlm_needs_the_token_of_its_plugin() -> None:
    assert find_calls('<|action_start|>{"name":"f","parameters":{}}<|action_end|>') == ()
    (call,) = find_calls('<|action_start|><|interpreter|>{"name":"f"}<|action_end|>')
    assert call.family == "internlm"


def test_cohere_takes_one_action_without_a_list() -> None:
    (call,) = find_calls('<|START_ACTION|>{"tool_name":"f","tool_call_id":"7"}<|END_ACTION|>')
    assert (call.name, call.id) == ("f", "7")


def test_a_call_object_in_the_arguments_of_a_call_is_not_a_call_of_its_own() -> None:
    inner = '<tool>{\\"tool_name\\":\\"g\\"}</tool>'
    (call,) = find_calls(f'<tool>{{"tool_name":"f","arguments":{{"a":"{inner}"}}}}</tool>')
    assert call.name == "f"


def test_the_object_between_its_tags_may_be_fenced() -> None:
    for fence in ("```json\n", "\n```\n"):
        text = f'<tool_call>{fence}{{"name":"f","arguments":{{}}}}\n```\n</tool_call>'
        (call,) = find_calls(text)
        assert (call.name, call.arguments, call.closed, call.end) == ("f", "{}", True, len(text))
    assert find_calls("<tool_call>```json\nof f\n```</tool_call>") == ()


def test_a_call_of_mistral_without_its_marks_is_read() -> None:
    for text in ('[TOOL_CALLS]f{"a": 1}', '[TOOL_CALLS] f [ARGS] {"a": 1}'.replace("] f", "]f")):
        (call,) = find_calls(text)
        assert (call.name, call.arguments, call.closed) == ("f", '{"a": 1}', True)


def test_white_space_before_the_list_of_mistral_does_not_matter() -> None:
    for gap in ("", " ", "\n"):
        (call,) = find_calls(f'[TOOL_CALLS]{gap}[{{"name": "f", "arguments": {{}}}}] and on')
        assert (call.name, call.arguments) == ("f", "{}")
        assert call.end == len(f'[TOOL_CALLS]{gap}[{{"name": "f", "arguments": {{}}}}]')


def test_a_call_of_mistral_that_is_cut_off_has_what_came() -> None:
    for text, name, identity in (
        ("f", "", None),
        ("f[AR", "f", None),
        ("f[ARGS]", "f", None),
        ("f[CALL_ID]ab", "f", None),
        ("f[CALL_ID]ab[ARGS]", "f", "ab"),
    ):
        (call,) = find_calls(f"[TOOL_CALLS]{text}")
        assert (call.name, call.id, call.arguments, call.closed) == (name, identity, "", False)
    (call,) = find_calls('[TOOL_CALLS]f[ARGS]{"a": "x')
    assert (call.arguments, call.closed) == ('{"a": "x', False)


def test_what_is_not_a_call_of_mistral_is_none() -> None:
    for text in ("...{}", "f[ARGS]{...}", "f[CALL_ID]x[ARGS]no", "is what it writes"):
        assert find_calls(f"[TOOL_CALLS]{text}") == ()


@pytest.mark.parametrize(
    "text",
    [
        '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json{"a":1}',
        '<|channel|>commentary to=functions.f<|message|>{"a":1}<|call|>',
        '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a":1}',
        'assistantcommentary to=functions.f json{"a":1}',
        'analysis to=functions.f json{"a":1}',
        '<|channel|>commentary to=functions.f code<|message|>{"a":1}<|call|>',
        'commentary to=f json{"a":1}',
        'to=functions.f<|channel|>commentary {"a":1}',
    ],
)
def test_a_message_to_a_function_is_a_call_with_its_header(text: str) -> None:
    (call,) = find_calls("Well.\n\n" + text)
    assert (call.family, call.name, call.arguments) == ("harmony", "f", '{"a":1}')
    assert (call.start, call.end, call.closed) == (7, 7 + len(text), True)


def test_the_text_before_the_header_is_not_part_of_the_call() -> None:
    (call,) = find_calls('I look it up.commentary to=functions.f json{"a":1} done')
    assert (call.start, call.end) == (13, 13 + len('commentary to=functions.f json{"a":1}'))


def test_a_message_that_is_cut_off_is_open() -> None:
    for rest in ("", " ", " <|con", " <|constrain|>json<|mess", ' json{"a'):
        (call,) = find_calls(f"assistantcommentary to=functions.get{rest}")
        assert (call.name, call.closed) == ("get" if rest else "", False)


def test_other_recipients_and_prose_are_none() -> None:
    for text in (
        'to=f {"a":1} ',
        'go to=f {"a":1}',
        "a link with ?to=functions.f in it",
        "commentary to=functions.f is the header",
        "commentary to=functions.f json{...}",
        "commentary to=python code<|message|>print(1)",
        "to=",
    ):
        assert find_calls(text) == ()


ARGUMENTS = "<|tool_call_argument_begin|>"


def test_deepseek_leaks_with_other_spellings_and_without_its_section() -> None:
    text = '<|tool_call_begin|>function<|tool_sep|>f\n```json\n{"a":1}\n```<｜tool▁call▁end｜>'  # noqa: RUF001
    for old, new in (("|", "|"), ("|", "｜"), ("_", "▁")):  # noqa: RUF001
        (call,) = find_calls(text.replace(old, new))
        assert (call.family, call.name, call.arguments) == ("deepseek", "f", '{"a":1}')
        assert call.closed


def test_a_missing_fence_or_end_does_not_matter_to_the_arguments() -> None:
    begin, sep = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"  # noqa: RUF001
    for text in (f'{begin}function{sep}f{{"a":1}}', f'{begin}f{sep}```json\n{{"a":1}}\n```'):
        (call,) = find_calls(text)
        assert (call.name, call.arguments, call.closed) == ("f", '{"a":1}', False)
    (call,) = find_calls(f"{begin}functional{sep}{{}}")
    assert call.name == "functional"


def test_a_fence_in_a_value_of_deepseek_ends_nothing() -> None:
    value = '{"a":"```json\\n<｜tool▁call▁end｜>"}'  # noqa: RUF001
    begin, sep, end = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"  # noqa: RUF001
    (call,) = find_calls(f"{begin}function{sep}f\n```json\n{value}\n```{end}")
    assert (call.arguments, call.closed) == (value, True)


@pytest.mark.parametrize(
    ("written", "name", "identity"),
    [
        ("functions.f:0", "f", "functions.f:0"),
        ("f:12", "f", "f:12"),
        ("functions.a.b:0", "a.b", "functions.a.b:0"),
        ("functions.f", "f", None),
        ("f", "f", None),
        ("3", "", "3"),
    ],
)
def test_kimis_id_holds_the_name(written: str, name: str, identity: str | None) -> None:
    (call,) = find_calls(
        f"<|tool_call_begin|> {written} {ARGUMENTS} {{}}<|tool_call_end|>".replace("|> ", "|>", 1)
    )
    assert (call.family, call.name, call.id, call.arguments) == ("kimi-k2", name, identity, "{}")
    assert call.closed


def test_a_section_of_kimi_has_several_calls_and_other_spellings() -> None:
    one = f"<|tool_call_begin|>functions.f:0{ARGUMENTS}{{}}<|tool_call_end|>\n"
    text = f"<|tool_call_section_begin|>\n{one}{one}<|tool_call_section_end|>"
    calls = find_calls(text)
    assert [call.name for call in calls] == ["f", "f"]
    assert calls[-1].end == len(text)


def test_a_call_without_arguments_has_none() -> None:
    (call,) = find_calls(f"<|tool_call_begin|>f:0{ARGUMENTS}<|tool_call_end|>")
    assert (call.name, call.arguments, call.closed) == ("f", "", True)


def test_a_name_or_arguments_of_another_form_make_no_call() -> None:
    for head in (f"...{ARGUMENTS}{{}}", f"f-:.%:0{ARGUMENTS}{{}}", f"f:0{ARGUMENTS} is", "f is"):
        assert find_calls(f"<|tool_call_begin|>{head}") == ()
    begun = f"<|tool_call_begin|>f:0{ARGUMENTS}{{}}<|tool_call_end|><|tool_call_begin|> oh"
    assert len(find_calls(begun)) == 1


def test_an_id_of_kimi_may_be_apart_from_its_token() -> None:
    for identity in ("functions.f:0", "0"):
        (call,) = find_calls(f"<|tool_call_begin|> {identity} {ARGUMENTS} {{}} <|tool_call_end|>")
        assert (call.id, call.arguments, call.closed) == (identity, "{}", True)
    assert find_calls("<|tool_call_begin|> is a token") == ()
