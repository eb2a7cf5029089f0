import pytest

from deltatape.text_calls import find_calls


@pytest.mark.parametrize("bars", ["｜", "｜｜", "‖", "|", "||"])  # noqa: RUF001
@pytest.mark.parametrize("wrapper", ["function_calls", "tool_calls"])
def test_dsml_is_read_in_all_its_spellings(bars: str, wrapper: str) -> None:
    mark = f"{bars}DSML{bars}"
    call = (
        f'<{mark}invoke name="f">\n<{mark}parameter name="k" string="true">5</{mark}parameter>\n'
        f'<{mark}parameter name="n" string="false">5</{mark}parameter>\n</{mark}invoke>'
    )
    for text in (f"<{mark}{wrapper}>\n{call}\n</{mark}{wrapper}>", call):
        (found,) = find_calls(text)
        assert (found.family, found.arguments) == ("deepseek-dsml", '{"k": "5", "n": 5}')
        assert (found.start, found.end, found.closed) == (0, len(text), True)


def test_dsml_may_be_closed_by_plain_tags_and_hold_an_object() -> None:
    text = '<｜DSML｜invoke name="f">{"a": 1}</invoke>'  # noqa: RUF001
    (call,) = find_calls(text)
    assert (call.arguments, call.closed) == ('{"a": 1}', True)


def test_other_tags_with_the_mark_are_none() -> None:
    assert find_calls('<｜DSML｜parameter name="k">v</｜DSML｜parameter>') == ()  # noqa: RUF001


def test_plain_invokes_need_no_wrapper_and_may_have_the_vendors_prefix() -> None:
    prefix = "antml:"
    for before in ("", prefix):
        call = (
            f'<{before}invoke name="f"><{before}parameter name="k">v</{before}parameter>'
            f"</{before}invoke>"
        )
        for text in (call, f"<{before}function_calls>{call}</{before}function_calls>"):
            (found,) = find_calls(text)
            assert (found.family, found.arguments) == ("function-calls", '{"k": "v"}')
            assert found.end == len(text)


def test_white_space_in_a_tag_does_not_matter() -> None:
    (call,) = find_calls('<invoke  name = "f" ><parameter  name = "k" >v</parameter></invoke>')
    assert call.arguments == '{"k": "v"}'


def test_a_name_that_is_none_is_talk() -> None:
    assert find_calls('<invoke name="...">') == ()
    assert find_calls("<invoke name=") == ()
    assert find_calls("<function_calls> is a tag") == ()
    (call,) = find_calls('<invoke name="ge')
    assert (call.name, call.closed) == ("", False)


def test_a_tag_without_a_wrapper_and_without_a_body_is_talk() -> None:
    assert find_calls('<invoke name="f"> is a tag') == ()
    assert find_calls('<invoke name="f"></invoke>') != ()


def test_without_a_wrapper_only_offered_tools_are_called() -> None:
    body = '<parameter name="a">1</parameter></invoke>'
    offered = {"f": None}
    assert find_calls(f'<process><invoke name="copy">{body}</process>', offered) == ()
    assert find_calls('<invoke name="copy', offered) != ()
    assert find_calls(f'<invoke name="f">{body}', offered) != ()
    wrapped = f'<function_calls><invoke name="copy">{body}</function_calls>'
    assert find_calls(wrapped, offered) != ()


def test_step3_has_several_calls_with_tokens_around_each() -> None:
    call = (
        "<｜tool_call_begin｜>function<｜tool_sep｜>"  # noqa: RUF001
        '<steptml:invoke name="f"></steptml:invoke><｜tool_call_end｜>'  # noqa: RUF001
    )
    text = f"<｜tool_calls_begin｜>{call}\n{call}<｜tool_calls_end｜>"  # noqa: RUF001
    calls = find_calls(text)
    assert [(one.family, one.name) for one in calls] == [("step3", "f"), ("step3", "f")]
    assert calls[-1].end == len(text)


def test_step3_without_an_invocation_is_none() -> None:
    for rest in ('<steptml:invoke name="...">', "<steptml:invoke x"):
        text = f"<｜tool_call_begin｜>function<｜tool_sep｜>{rest}"  # noqa: RUF001
        assert find_calls(text) == ()
