import pytest

from deltatape.text_calls import find_calls
from deltatape.text_calls._notation import WrittenCall


def only(body: str, schema: dict[str, object] | None = None) -> WrittenCall:
    (call,) = find_calls(f'<invoke name="f">{body}', {"f": schema})
    return call


def test_the_body_can_be_the_arguments_object() -> None:
    call = only('\n{"k": 1}\n</invoke>')
    assert (call.arguments, call.closed) == ('{"k": 1}', True)
    assert not only('{"k": 1').closed
    assert only('{"k": 1').arguments == '{"k": 1'
    assert only("{k}</invoke>").arguments == ""


def test_a_parameter_without_its_closing_tag_ends_at_the_next_tag() -> None:
    call = only('<parameter name="a">1<parameter name="b">2</invoke>')
    assert (call.arguments, call.closed) == ('{"a": "1", "b": "2"}', True)


def test_the_end_of_a_call_inside_a_closed_value_ends_nothing() -> None:
    call = only('<parameter name="a">x </invoke> y</parameter></invoke>')
    assert call.arguments == '{"a": "x </invoke> y"}'


def test_a_call_that_is_cut_off_has_what_came() -> None:
    number: dict[str, object] = {"properties": {"a": {"type": "integer"}}}
    for body, arguments in (
        ("", ""),
        ("<par", ""),
        ('<parameter name="a', ""),
        ('<parameter name="a">', '{"a": "'),
        ('<parameter name="a">x', '{"a": "x'),
        ('<parameter name="a" string="true">x', '{"a": "x'),
        ('<parameter name="a" string="false">1', '{"a": 1'),
        ('<parameter name="a">x</parameter></in', '{"a": "x"'),
    ):
        call = only(body)
        assert (call.arguments, call.closed) == (arguments, False)
        assert call.end == len('<invoke name="f">' + body)
    assert only('<parameter name="a">12', number).arguments == '{"a": 12'


def test_a_call_that_stops_ends_where_its_last_parameter_does() -> None:
    call = only('<parameter name="a">x</parameter> and then prose')
    assert (call.arguments, call.closed) == ('{"a": "x"', False)
    assert call.end == len('<invoke name="f"><parameter name="a">x</parameter>')


def test_the_tag_itself_can_tell_whether_the_value_is_a_string() -> None:
    call = only(
        '<parameter name="a" string="true">1</parameter><parameter name="b" string="false">[1]'
        '</parameter><parameter name="c" string="false">no</parameter></invoke>'
    )
    assert call.arguments == '{"a": "1", "b": [1], "c": "no"}'


def test_a_closing_tag_behind_which_the_call_does_not_go_on_is_text() -> None:
    call = only('<parameter name="a">x</parameter> y</parameter></invoke>')
    assert (call.arguments, call.closed) == ('{"a": "x</parameter> y"}', True)
    call = only('<parameter name="a">x</parameter> y</parameter>\n<parameter name="b">')
    assert call.arguments == '{"a": "x</parameter> y", "b": "'
    call = only('<parameter name="a">x</parameter> y </parameter> z <parameter name="b">')
    assert call.arguments == '{"a": "x"'


GET_TIME_SCHEMA: dict[str, object] = {
    "properties": {"n": {"type": "integer"}, "l": {"type": "array"}}
}
GET_TIME = {"get_time": GET_TIME_SCHEMA}
ARGUMENT = "<arg_key>n</arg_key><arg_value>1</arg_value>"


def test_glm_is_read_with_and_without_line_ends() -> None:
    for gap in ("", "\n", "\\n"):
        text = (
            f"<tool_call>get_time<arg_key>n</arg_key>{gap}<arg_value>1</arg_value>"
            f"<arg_key>l</arg_key>{gap}<arg_value>[1, 2]</arg_value></tool_call>"
        )
        (call,) = find_calls(text, GET_TIME)
        assert (call.family, call.arguments) == ("glm", '{"n": 1, "l": [1, 2]}')


def test_a_name_alone_is_a_call_of_an_offered_tool_or_where_none_is_known() -> None:
    (call,) = find_calls("<tool_call>get_time</tool_call>", GET_TIME)
    assert (call.name, call.arguments, call.closed) == ("get_time", "{}", True)
    assert find_calls("<tool_call>name</tool_call>", GET_TIME) == ()
    assert find_calls("<tool_call>...</tool_call>") == ()
    (call,) = find_calls("<tool_call>get_time</tool_call>")
    assert call.name == "get_time"


def test_a_name_that_is_cut_off_is_a_call_if_a_tool_can_be_meant() -> None:
    for text, name in (("get_t", ""), ("get_time", ""), ("get_time\n", "get_time")):
        (call,) = find_calls(f"<tool_call>{text}", GET_TIME)
        assert (call.name, call.arguments, call.closed) == (name, "", False)
    for text in ("tag", "tag\n", " tag", ""):
        assert find_calls(f"<tool_call>{text}", GET_TIME) == ()
    (call,) = find_calls("<tool_call>foo<arg")
    assert call.name == "foo"
    assert find_calls("<tool_call>-<arg") == ()


def test_hunyuan_is_read_with_and_without_wrapper_and_suffix() -> None:
    for text in (
        f"<tool_call>get_time<tool_sep>{ARGUMENT}</tool_call>",
        f"<tool_calls><tool_call>get_time<tool_sep>{ARGUMENT}</tool_call></tool_calls>",
        f"<tool_calls>\n<tool_call>get_time<tool_sep>\n{ARGUMENT}\n</tool_call>\n</tool_calls>",
        f"<tool_call:opensource>get_time<tool_sep:opensource>{ARGUMENT}</tool_call:opensource>".replace(
            "arg_key>", "arg_key:opensource>"
        ).replace("arg_value>", "arg_value:opensource>"),
    ):
        (call,) = find_calls(text, GET_TIME)
        assert (call.family, call.name, call.arguments) == ("hunyuan", "get_time", '{"n": 1}')
        assert (call.end, call.closed) == (len(text), True)


def test_hunyuan_without_arguments_and_cut_off() -> None:
    text = "<tool_calls><tool_call>f<tool_sep></tool_call><tool_call>g<tool_sep></tool_call>"
    assert [(call.name, call.arguments) for call in find_calls(text)] == [("f", "{}"), ("g", "{}")]
    (call,) = find_calls("<tool_call>f<tool_s")
    assert (call.family, call.name, call.closed) == ("hunyuan", "f", False)
    (call,) = find_calls("<tool_calls><tool_call>ge", GET_TIME)
    assert (call.family, call.name) == ("hunyuan", "")
    assert find_calls("<tool_calls>text</tool_calls>") == ()
    text = "<tool_calls><tool_call>f<tool_sep></tool_call><tool_call>..</tool_call></tool_calls>"
    assert [call.name for call in find_calls(text)] == ["f"]


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


def test_an_invoke_whose_name_is_none_is_talk() -> None:
    assert find_calls('<invoke name="...">') == ()
    assert find_calls("<invoke name=") == ()
    assert find_calls("<function_calls> is a tag") == ()
    (call,) = find_calls('<invoke name="ge')
    assert (call.name, call.closed) == ("", False)


def test_a_tag_without_a_wrapper_and_without_a_body_is_talk() -> None:
    assert find_calls('<invoke name="f"> is a tag') == ()
    assert find_calls('<invoke name="f"></invoke>') != ()


def test_without_a_wrapper_only_offered_tools_are_invoked() -> None:
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


OFFERED = {"f": {"properties": {"n": {"type": "integer"}}}}


def test_the_wrapper_may_be_missing_on_either_side() -> None:
    call = "<function=f><parameter=n>1</parameter></function>"
    for text in (call, f"<tool_call>{call}", f"{call}\n</tool_call>"):
        (found,) = find_calls(text, OFFERED)
        assert (found.family, found.arguments) == ("qwen3-coder", '{"n": 1}')
        assert (found.start, found.end, found.closed) == (0, len(text), True)


def test_the_last_parameter_may_lack_its_end() -> None:
    text = "<function=f>\n<parameter=k>\n  a\n\n</function>"
    (call,) = find_calls(text)
    assert call.arguments == '{"k": "  a\\n"}'


def test_the_body_of_a_function_can_be_an_object() -> None:
    (call,) = find_calls('<function=f>{"k": 1}</function>')
    assert (call.name, call.arguments, call.closed) == ("f", '{"k": 1}', True)


def test_several_functions_share_a_wrapper_until_one_is_not_closed() -> None:
    text = "<tool_call><function=f></function><function=g></function></tool_call>"
    assert [call.name for call in find_calls(text)] == ["f", "g"]
    text = "<tool_call><function=f><parameter=k>1</parameter>oh <function=g></function></tool_call>"
    assert [(call.name, call.closed) for call in find_calls(text)] == [("f", False), ("g", True)]


def test_a_value_that_is_cut_off_loses_no_line_end() -> None:
    (call,) = find_calls("<function=f><parameter=k>\na\n")
    assert call.arguments == '{"k": "a\\n'


def test_names_that_are_none_and_tags_without_a_body_are_talk() -> None:
    for text in ("<function=...></function>", "<function=f> is the tag", "<function= f"):
        assert find_calls(text) == ()
    (call,) = find_calls("<function=f>")
    assert (call.name, call.closed) == ("f", False)


def test_without_a_wrapper_only_offered_functions_are_called() -> None:
    assert find_calls("<function=g><parameter=k>1</parameter></function>", OFFERED) == ()
    assert find_calls("as in <function=g>", OFFERED) == ()
    assert find_calls("as in <function=f>", OFFERED) != ()
    assert find_calls("<tool_call><function=g></function></tool_call>", OFFERED) != ()


M3 = "]<]minimax[>["


def test_the_wrapper_of_minimax_m3_may_be_missing_and_a_call_may_have_no_parameters() -> None:
    text = f'{M3}<invoke name="f">{M3}</invoke>{M3}<invoke name="g">{M3}</invoke>'
    assert [(call.name, call.arguments) for call in find_calls(text)] == [("f", "{}"), ("g", "{}")]


def test_values_of_minimax_m3_with_tags_inside_stay_text() -> None:
    inner = f"{M3}<item>1{M3}</item>"
    (call,) = find_calls(f'{M3}<invoke name="f">{M3}<k>{inner}{M3}</k>{M3}</invoke>')
    assert call.arguments == '{"k": "' + inner + '"}'


def test_a_parameter_of_minimax_m3_without_its_end_ends_with_the_call() -> None:
    (call,) = find_calls(f'{M3}<invoke name="f">{M3}<k>v{M3}</invoke>')
    assert (call.arguments, call.closed) == ('{"k": "v"}', True)


def test_a_call_of_minimax_m3_that_is_cut_off_or_stops_is_not_closed() -> None:
    for rest, arguments in (
        (f"{M3}<k>v", '{"k": "v'),
        (f"{M3}<k>v{M3}</k>", '{"k": "v"'),
        (f"{M3}<k>v{M3}</k>{M3}<n", '{"k": "v"'),
        (f"{M3}<k>v{M3}</k> oh", '{"k": "v"'),
    ):
        (call,) = find_calls(f'{M3}<tool_call>{M3}<invoke name="f">{rest}')
        assert (call.name, call.arguments, call.closed) == ("f", arguments, False)


def test_other_uses_of_the_token_of_minimax_m3_are_none() -> None:
    for text in (
        f"{M3} is a token",
        f"{M3}<other>",
        f'{M3}<invoke name="...">',
        f"{M3}<tool_call> x",
    ):
        assert find_calls(text) == ()
