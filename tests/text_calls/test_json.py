from deltatape.text_calls import find_calls
from deltatape.text_calls._json import find_closer, read_arguments
from deltatape.text_calls._notation import TextSource, WrittenCall


def only(text: str) -> WrittenCall:
    (call,) = find_calls(text)
    return call


def in_tool(body: str) -> WrittenCall:
    return only(f"<tool>{body}</tool>")


def test_arguments_are_the_exact_text() -> None:
    assert in_tool('{"name":"f","arguments":{ "a" : 1.0 , "a":"\\u00e9"} }').arguments == (
        '{ "a" : 1.0 , "a":"\\u00e9"}'
    )
    assert in_tool('{"name":"f","arguments":"{\\"a\\":1}"}').arguments == '"{\\"a\\":1}"'
    assert in_tool('{"name":"f","arguments":null}').arguments == "null"
    assert in_tool('{"name":"f"}').arguments == ""


def test_other_spellings_of_the_members_are_read() -> None:
    for body in (
        '{"tool_name": "f", "parameters": {"a": 1}}',
        '{"arguments": {"a": 1}, "id": 7, "function": "f"}',
        '{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}',
        '[{"name": "f", "args": {"a": 1}}]',
    ):
        call = in_tool(body)
        assert (call.name, call.arguments, call.id, call.closed) == ("f", '{"a": 1}', None, True)


def test_several_objects_between_one_pair_of_tags_are_several_calls() -> None:
    calls = find_calls('<tool>{"name":"f"}\n{"name":"g"};{"x":1}</tool>')
    assert [(call.name, call.closed) for call in calls] == [("f", True), ("g", True)]
    assert calls[0].end == calls[1].start


def test_the_first_closer_ends_a_call_whose_json_has_no_end() -> None:
    missing_quote = in_tool('{"name":"f","arguments":{"a":"x}}')
    assert (missing_quote.arguments, missing_quote.closed) == ('{"a":"x}}', True)
    missing_brace = in_tool('{"name":"f","arguments":{"a":"x"}\n')
    assert (missing_brace.arguments, missing_brace.closed) == ('{"a":"x"}', True)
    raw_newline = in_tool('{"name":"f","arguments":{"a":"x\ny"}}')
    assert (raw_newline.arguments, raw_newline.closed) == ('{"a":"x\ny"}', True)


def test_what_stands_between_whole_json_and_its_closer_belongs_to_the_call() -> None:
    call = in_tool('{"name":"f","arguments":{}}}')
    assert (call.arguments, call.closed) == ("{}", True)
    calls = find_calls('<tool>{"name":"f"} <tool>{"name":"g"}</tool>')
    assert [(call.name, call.closed) for call in calls] == [("f", False), ("g", True)]
    far = '<tool>{"name":"f"}' + "x" * 300 + "</tool>"
    assert not only(far).closed


def test_an_id_that_is_not_a_string_is_none() -> None:
    call = in_tool("""{"name":"f","arguments":{'a':1},"id":"x\ny"}""")
    assert (call.name, call.arguments, call.id) == ("f", "{'a':1}", None)


def test_a_closing_tag_in_a_string_of_a_text_that_is_cut_off_closes_nothing() -> None:
    call = only('<tool>{"name":"w","arguments":{"text":"use </tool> to')
    assert (call.closed, call.arguments) == (False, '{"text":"use </tool> to')


def test_a_broken_call_without_a_closer_ends_with_its_braces_or_the_text() -> None:
    braces = only("""<tool>{"name":"f","arguments":{'a':1}} and on""")
    assert (braces.arguments, braces.closed) == ("{'a':1}", False)
    assert braces.end == len("""<tool>{"name":"f","arguments":{'a':1}}""")
    call = only("""<tool>{"name":"f","arguments":{'a':""")
    assert (call.arguments, call.closed, call.end) == ("{'a':", False, 35)


def test_a_call_in_another_spelling_than_json_is_broken_but_seen() -> None:
    call = in_tool("{'name': 'f', 'arguments': {'a': None}}")
    assert (call.name, call.arguments) == ("f", "{'a': None}")
    assert in_tool("{'name': 'f'}").arguments == ""
    for body in ("{name, arguments}", "{'name': '...'}", '{x: "name"}'):
        assert find_calls(f"<tool>{body}</tool>") == ()
    assert find_calls("<tool>{'name': 'f'}") == ()
    assert find_calls("<|python_tag|>{'name': 'f'}") == ()


def test_an_object_without_a_name_is_not_a_call() -> None:
    for body in ('{"a":1}', '{"name":1}', '{"name":"a b"}', '{"name":"\\ud8"}', '{"a" 1', "{}"):
        assert find_calls(f"<tool>{body}</tool>") == ()


def test_a_name_that_did_not_come_yet_is_empty() -> None:
    for body in ("{", '{"', '{"na', '{"name', '{"name":', '{"name": "ge', '{"id": 1, "x'):
        call = only(f"<tool>{body}")
        assert (call.name, call.arguments, call.closed) == ("", "", False)
    assert find_calls('<tool>{"name":"<name>", "x') == ()


def test_members_are_read_as_far_as_they_came() -> None:
    assert only('<tool>{"name":"f","arguments"').arguments == ""
    assert only('<tool>{"name":"f","arguments":').arguments == ""
    assert only('<tool>{"name":"f","arguments": 1').arguments == "1"
    assert only('<tool>{"name":"f","arguments":"a\\').arguments == '"a\\'


def test_a_body_that_is_not_an_object_has_no_arguments() -> None:
    for text in ("x", "[1]", "{...}", "{a: 1}"):
        assert read_arguments(TextSource(text, {}), 0, None) is None


def test_a_closing_tag_that_is_cut_off_takes_the_rest_of_the_text() -> None:
    assert find_closer(TextSource("{} </to", {}), 2, "</tool>", "") == (7, False)
    assert find_closer(TextSource("{} x </tool>", {}), 2, "</tool>", "") == (12, True)


def test_a_large_value_is_scanned_in_growing_windows() -> None:
    value = "x" * 5000
    assert len(in_tool(f'{{"name":"f","arguments":{{"a":"{value}"}}}}').arguments) == 5008
