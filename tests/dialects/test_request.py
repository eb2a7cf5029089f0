from deltatape.dialects._request import (
    content_text,
    exact,
    message_digest,
    objects_at,
    read_body,
    said,
    source_of,
    tool_spec,
    tool_specs,
)
from deltatape.model.request_summary import RepeatedCall, ToolSpec


def test_only_a_json_object_is_read() -> None:
    found = read_body(b' {"a": [1, 2]}')
    assert found is not None
    assert found.value == {"a": [1, 2]}
    for body in (b"", b"[]", b"{", b"\xff", b"null"):
        assert read_body(body) is None


def test_the_text_of_a_content_is_its_string_or_its_text_parts() -> None:
    assert content_text("Hi") == "Hi"
    assert (
        content_text([{"type": "text", "text": "a"}, 5, {"type": "image"}, {"text": "b"}]) == "ab"
    )
    assert content_text(None) == ""


def test_a_tool_has_a_name_and_perhaps_a_schema() -> None:
    schema = {"type": "object"}
    assert tool_spec({"name": "f", "parameters": schema}) == ToolSpec(name="f", parameters=schema)
    assert tool_spec({"name": "f", "input_schema": schema}, "input_schema") == ToolSpec(
        name="f", parameters=schema
    )
    assert tool_spec({"name": "f", "parameters": 5}) == ToolSpec(name="f", parameters=None)
    assert tool_spec({"parameters": schema}) is None


def test_a_digest_knows_no_order_of_keys() -> None:
    assert message_digest({"a": 1, "b": 2}) == message_digest({"b": 2, "a": 1})
    assert message_digest({"a": 1}) != message_digest({"a": 2})


def test_arguments_are_a_strings_text_or_the_exact_source() -> None:
    found = read_body(b'{"a": "{}", "b": { "x" : 1.0 }, "c": null}')
    assert found is not None
    told = [exact(found.value, key, found.source) for key in ("a", "b", "c", "d")]
    assert told == ["{}", '{ "x" : 1.0 }', "", ""]


def test_objects_of_an_array_come_with_their_source() -> None:
    found = read_body(b'{"a": [{"x":1}, 5, null, { "x": 2 }], "b": {}}')
    assert found is not None
    told = [(one, where.text) for one, where in objects_at(found.value, "a", found.source)]
    assert told == [({"x": 1}, '{"x":1}'), ({"x": 2}, '{ "x": 2 }')]
    assert list(objects_at(found.value, "b", found.source)) == []
    assert list(objects_at(found.value, "c", found.source)) == []


def test_tools_are_those_that_have_a_name() -> None:
    schema = {"type": "object"}
    entries = [{"name": "f", "parameters": schema}, {}, None, 5, {"name": "g"}]
    assert tool_specs(entries) == (
        ToolSpec(name="f", parameters=schema),
        ToolSpec(name="g", parameters=None),
    )
    assert tool_specs([{"name": "f", "s": schema}], "s") == tool_specs(entries[:1])


def test_a_message_has_the_digest_of_what_it_is_told_by() -> None:
    call = RepeatedCall(id="c1", name="f", arguments="{}")
    message = said("assistant", "Hi", {"a": 1}, calls=[call], call_id="c0")
    assert (message.role, message.text, message.calls) == ("assistant", "Hi", (call,))
    assert (message.call_id, message.digest) == ("c0", message_digest({"a": 1}))
    assert (said("user", "", 1).calls, said("user", "", 1).call_id) == ((), None)


def test_the_source_of_a_value_is_exact_for_strings_too() -> None:
    found = read_body(b'{"a": "{}", "b": { "x" : 1.0 }, "c": null}')
    assert found is not None
    told = [source_of(found.value, key, found.source) for key in ("a", "b", "c", "d")]
    assert told == ['"{}"', '{ "x" : 1.0 }', "", ""]
