from deltatape.dialects._request import content_text, exact, message_digest, read_body, tool_spec
from deltatape.model.asked import ToolSpec


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
