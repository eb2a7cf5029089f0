from deltatape.text_calls import find_calls

SCHEMA: dict[str, object] = {"properties": {"n": {"type": "integer"}, "l": {"type": "array"}}}
OFFERED = {"get_time": SCHEMA}
PAIR = "<arg_key>n</arg_key><arg_value>1</arg_value>"


def test_glm_is_read_with_and_without_line_ends() -> None:
    for gap in ("", "\n", "\\n"):
        text = (
            f"<tool_call>get_time<arg_key>n</arg_key>{gap}<arg_value>1</arg_value>"
            f"<arg_key>l</arg_key>{gap}<arg_value>[1, 2]</arg_value></tool_call>"
        )
        (call,) = find_calls(text, OFFERED)
        assert (call.family, call.arguments) == ("glm", '{"n": 1, "l": [1, 2]}')


def test_a_name_alone_is_a_call_of_an_offered_tool_or_where_none_is_known() -> None:
    (call,) = find_calls("<tool_call>get_time</tool_call>", OFFERED)
    assert (call.name, call.arguments, call.closed) == ("get_time", "{}", True)
    assert find_calls("<tool_call>name</tool_call>", OFFERED) == ()
    assert find_calls("<tool_call>...</tool_call>") == ()
    (call,) = find_calls("<tool_call>get_time</tool_call>")
    assert call.name == "get_time"


def test_a_name_that_is_cut_off_is_a_call_if_a_tool_can_be_meant() -> None:
    for text, name in (("get_t", ""), ("get_time", ""), ("get_time\n", "get_time")):
        (call,) = find_calls(f"<tool_call>{text}", OFFERED)
        assert (call.name, call.arguments, call.closed) == (name, "", False)
    for text in ("tag", "tag\n", " tag", ""):
        assert find_calls(f"<tool_call>{text}", OFFERED) == ()
    (call,) = find_calls("<tool_call>foo<arg")
    assert call.name == "foo"
    assert find_calls("<tool_call>-<arg") == ()


def test_hunyuan_is_read_with_and_without_wrapper_and_suffix() -> None:
    for text in (
        f"<tool_call>get_time<tool_sep>{PAIR}</tool_call>",
        f"<tool_calls><tool_call>get_time<tool_sep>{PAIR}</tool_call></tool_calls>",
        f"<tool_calls>\n<tool_call>get_time<tool_sep>\n{PAIR}\n</tool_call>\n</tool_calls>",
        f"<tool_call:opensource>get_time<tool_sep:opensource>{PAIR}</tool_call:opensource>".replace(
            "arg_key>", "arg_key:opensource>"
        ).replace("arg_value>", "arg_value:opensource>"),
    ):
        (call,) = find_calls(text, OFFERED)
        assert (call.family, call.name, call.arguments) == ("hunyuan", "get_time", '{"n": 1}')
        assert (call.end, call.closed) == (len(text), True)


def test_hunyuan_without_arguments_and_cut_off() -> None:
    text = "<tool_calls><tool_call>f<tool_sep></tool_call><tool_call>g<tool_sep></tool_call>"
    assert [(call.name, call.arguments) for call in find_calls(text)] == [("f", "{}"), ("g", "{}")]
    (call,) = find_calls("<tool_call>f<tool_s")
    assert (call.family, call.name, call.closed) == ("hunyuan", "f", False)
    (call,) = find_calls("<tool_calls><tool_call>ge", OFFERED)
    assert (call.family, call.name) == ("hunyuan", "")
    assert find_calls("<tool_calls>text</tool_calls>") == ()
    text = "<tool_calls><tool_call>f<tool_sep></tool_call><tool_call>..</tool_call></tool_calls>"
    assert [call.name for call in find_calls(text)] == ["f"]
