from deltatape.text_calls import find_calls


def test_a_call_without_its_marks_is_read() -> None:
    for text in ('[TOOL_CALLS]f{"a": 1}', '[TOOL_CALLS] f [ARGS] {"a": 1}'.replace("] f", "]f")):
        (call,) = find_calls(text)
        assert (call.name, call.arguments, call.closed) == ("f", '{"a": 1}', True)


def test_white_space_before_the_list_does_not_matter() -> None:
    for gap in ("", " ", "\n"):
        (call,) = find_calls(f'[TOOL_CALLS]{gap}[{{"name": "f", "arguments": {{}}}}] and on')
        assert (call.name, call.arguments) == ("f", "{}")
        assert call.end == len(f'[TOOL_CALLS]{gap}[{{"name": "f", "arguments": {{}}}}]')


def test_a_call_that_is_cut_off_has_what_came() -> None:
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


def test_what_is_no_call_is_none() -> None:
    for text in ("...{}", "f[ARGS]{...}", "f[CALL_ID]x[ARGS]no", "is what it writes"):
        assert find_calls(f"[TOOL_CALLS]{text}") == ()
