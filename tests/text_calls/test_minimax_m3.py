from deltatape.text_calls import find_calls

T = "]<]minimax[>["


def test_the_wrapper_may_be_missing_and_a_call_may_have_no_parameters() -> None:
    text = f'{T}<invoke name="f">{T}</invoke>{T}<invoke name="g">{T}</invoke>'
    assert [(call.name, call.arguments) for call in find_calls(text)] == [("f", "{}"), ("g", "{}")]


def test_values_with_tags_inside_stay_text() -> None:
    inner = f"{T}<item>1{T}</item>"
    (call,) = find_calls(f'{T}<invoke name="f">{T}<k>{inner}{T}</k>{T}</invoke>')
    assert call.arguments == '{"k": "' + inner + '"}'


def test_a_parameter_without_its_end_ends_with_the_call() -> None:
    (call,) = find_calls(f'{T}<invoke name="f">{T}<k>v{T}</invoke>')
    assert (call.arguments, call.closed) == ('{"k": "v"}', True)


def test_a_call_that_is_cut_off_or_stops_is_not_closed() -> None:
    for rest, arguments in (
        (f"{T}<k>v", '{"k": "v'),
        (f"{T}<k>v{T}</k>", '{"k": "v"'),
        (f"{T}<k>v{T}</k>{T}<n", '{"k": "v"'),
        (f"{T}<k>v{T}</k> oh", '{"k": "v"'),
    ):
        (call,) = find_calls(f'{T}<tool_call>{T}<invoke name="f">{rest}')
        assert (call.name, call.arguments, call.closed) == ("f", arguments, False)


def test_other_uses_of_the_token_are_none() -> None:
    for text in (f"{T} is a token", f"{T}<other>", f'{T}<invoke name="...">', f"{T}<tool_call> x"):
        assert find_calls(text) == ()
