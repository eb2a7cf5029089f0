import pytest

from deltatape.text_calls import find_calls

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


def test_what_is_no_call_is_none() -> None:
    for head in (f"...{ARGUMENTS}{{}}", f"f-:.%:0{ARGUMENTS}{{}}", f"f:0{ARGUMENTS} is", "f is"):
        assert find_calls(f"<|tool_call_begin|>{head}") == ()
    begun = f"<|tool_call_begin|>f:0{ARGUMENTS}{{}}<|tool_call_end|><|tool_call_begin|> oh"
    assert len(find_calls(begun)) == 1


def test_an_id_of_kimi_may_be_apart_from_its_token() -> None:
    for identity in ("functions.f:0", "0"):
        (call,) = find_calls(f"<|tool_call_begin|> {identity} {ARGUMENTS} {{}} <|tool_call_end|>")
        assert (call.id, call.arguments, call.closed) == (identity, "{}", True)
    assert find_calls("<|tool_call_begin|> is a token") == ()
