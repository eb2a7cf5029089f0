from deltatape.text_calls import find_calls

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


def test_the_body_can_be_an_object() -> None:
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


def test_without_a_wrapper_only_offered_tools_are_called() -> None:
    assert find_calls("<function=g><parameter=k>1</parameter></function>", OFFERED) == ()
    assert find_calls("as in <function=g>", OFFERED) == ()
    assert find_calls("as in <function=f>", OFFERED) != ()
    assert find_calls("<tool_call><function=g></function></tool_call>", OFFERED) != ()
