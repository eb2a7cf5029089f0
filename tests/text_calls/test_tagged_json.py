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


def test_a_call_object_in_the_arguments_of_a_call_is_no_call_of_its_own() -> None:
    inner = '<tool>{\\"tool_name\\":\\"g\\"}</tool>'
    (call,) = find_calls(f'<tool>{{"tool_name":"f","arguments":{{"a":"{inner}"}}}}</tool>')
    assert call.name == "f"


def test_the_object_between_its_tags_may_be_fenced() -> None:
    for fence in ("```json\n", "\n```\n"):
        text = f'<tool_call>{fence}{{"name":"f","arguments":{{}}}}\n```\n</tool_call>'
        (call,) = find_calls(text)
        assert (call.name, call.arguments, call.closed, call.end) == ("f", "{}", True, len(text))
    assert find_calls("<tool_call>```json\nof f\n```</tool_call>") == ()
