import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.dialects.gemini.request import DEPTH_LIMIT, json_schema, method_of, read_request
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary, ToolSpec
from helpers.json_values import json_values

PATH = "/v1beta/models/gemini-x:generateContent"
USER = {"role": "user", "parts": [{"text": "Hi "}, {"text": "you"}]}
WORDS = (
    "args",
    "contents",
    "functionCall",
    "functionDeclarations",
    "functionResponse",
    "items",
    "model",
    "name",
    "parameters",
    "parts",
    "properties",
    "request",
    "role",
    "text",
    "tools",
    "type",
)


def asked(path: str = PATH, **request: object) -> RequestSummary:
    return read_request(json.dumps(request).encode(), path)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
def test_a_body_that_is_not_a_json_object_asks_nothing(body: bytes) -> None:
    assert read_request(body, PATH) == NOTHING_ASKED


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        (PATH, "gemini-x", False),
        ("/v1/projects/p/publishers/google/models/g:streamGenerateContent", "g", True),
        ("/v1beta/tunedModels/t:streamGenerateContent", "t", True),
        ("/v1/projects/p/endpoints/123:streamGenerateContent", "123", True),
        ("/v1beta/models/g%3AstreamGenerateContent", "g", True),
        ("/v1internal:streamGenerateContent", "body", True),
        ("", "body", False),
    ],
)
def test_model_and_method_stand_in_the_path(path: str, model: str, stream: object) -> None:
    found = asked(path, model="models/body", contents=[])
    assert (found.model, found.stream) == (model, stream)


def test_a_path_without_a_method_has_none() -> None:
    assert method_of("/v1beta/models/g") == ""
    assert asked("/v1internal:generateContent").model is None


def test_cloud_code_wraps_the_request() -> None:
    found = asked("/v1internal:streamGenerateContent", model="g", request={"contents": [USER]})
    assert (found.model, found.history[0].text) == ("g", "Hi you")


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_tools_are_read_with_schemas_of_either_form(key: str) -> None:
    own = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
    exact = {"type": "object", "nullable": True}
    found = asked(
        tools=[
            {key: [{"name": "f", "parameters": own}, {"name": "g"}, {"parameters": own}, 5]},
            {key: [{"name": "h", "parametersJsonSchema": exact}]},
            {"googleSearch": {}},
            5,
        ]
    )
    assert found.tools == (
        ToolSpec(name="f", parameters={"type": "object", "properties": {"a": {"type": "string"}}}),
        ToolSpec(name="g", parameters=None),
        ToolSpec(name="h", parameters=exact),
    )


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}, True),
        ({"computer_use": {}}, True),
        ({"googleSearch": {}}, False),
    ],
)
def test_the_use_of_a_computer_brings_functions_of_its_own(tool: object, expected: object) -> None:
    found = asked(tools=[{"functionDeclarations": [{"name": "f"}]}, tool])
    assert found.tools_elsewhere is expected


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, "auto"),
        ({"mode": "any"}, "required"),
        ({"mode": "NONE"}, "none"),
        ({"mode": "VALIDATED"}, "auto"),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, "f"),
        ({"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, "required"),
        ({"mode": "ANY", "allowed_function_names": ["f"]}, "f"),
        ({"mode": "NEW"}, None),
        ({}, None),
    ],
)
def test_the_tool_choice_is_a_mode_or_a_name(config: dict[str, object], choice: str | None) -> None:
    assert asked(toolConfig={"functionCallingConfig": config}).tool_choice == choice
    assert asked(tool_config={"function_calling_config": config}).tool_choice == choice


def test_no_config_is_not_a_choice() -> None:
    assert asked().tool_choice is None


def test_the_history_is_system_text_calls_and_results() -> None:
    body = (
        '{"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": ['
        '{"parts": [{"text": "Hi"}]},'
        '{"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "Well"},'
        '{"functionCall": {"name": "f", "args": {"b" : 1}, "id": "1"}, "thoughtSignature": "s"},'
        '{"function_call": {"name": "g"}}]},'
        '{"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "f", "response":'
        ' {"x":  2}}}, {"function_response": {"name": "g"}}, {"text": "and?"}, 5]}]}'
    )
    history = read_request(body.encode(), PATH).history
    assert [(one.role, one.text, one.call_id) for one in history] == [
        ("system", "Be brief.", None),
        ("user", "Hi", None),
        ("model", "Well", None),
        ("tool", '{"x":  2}', "1"),
        ("tool", "", "g"),
        ("user", "and?", None),
    ]
    assert history[2].calls == (
        RepeatedCall(id="1", name="f", arguments='{"b" : 1}'),
        RepeatedCall(id=None, name="g", arguments="{}"),
    )
    assert len({one.digest for one in history}) == len(history)


def test_the_forms_that_servers_tolerate_are_read() -> None:
    found = asked(system_instruction="Be brief.", contents=USER)
    assert [(one.role, one.text) for one in found.history] == [
        ("system", "Be brief."),
        ("user", "Hi you"),
    ]


def test_a_result_without_id_or_name_is_a_result() -> None:
    (message,) = asked(contents=[{"parts": [{"functionResponse": {}}]}]).history
    assert (message.role, message.call_id) == ("tool", "")


@pytest.mark.parametrize(
    "contents", [5, [5], [{"parts": 5}], [{"role": 5, "parts": [{"text": 5}]}]]
)
def test_wrong_types_raise_nothing(contents: object) -> None:
    assert all(one.text == "" for one in asked(contents=contents, tools=5).history)


NESTED = json_values(st.integers() | st.sampled_from(WORDS), st.sampled_from(WORDS), 12)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(WORDS), NESTED, max_size=6))
def test_any_request_is_read(request: dict[str, object]) -> None:
    assert read_request(json.dumps(request).encode(), PATH).known


def test_a_type_nested_without_end_is_no_type() -> None:
    deep = '{"type":' + "[" * 400 + "]" * 400 + "}"
    body = f'{{"tools":[{{"functionDeclarations":[{{"name":"f","parameters":{deep}}}]}}]}}'
    assert read_request(body.encode(), PATH).tools == (ToolSpec(name="f", parameters={}),)


@pytest.mark.parametrize(
    ("own", "standard"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "object"}, {"type": "object"}),
        ({"type": 6}, {"type": "object"}),
        ({"type": 99}, {}),
        ({"type": "TYPE_UNSPECIFIED"}, {}),
        ({"type": {}}, {}),
        ({"type": ["STRING", "null"]}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        (
            {"type": "STRING", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"any_of": [{"type": "NUMBER"}], "nullable": True},
            {"anyOf": [{"type": "number"}, {"type": "null"}]},
        ),
        ({"nullable": True, "enum": [None]}, {"enum": [None]}),
        (
            {"minItems": "2", "maxLength": 3, "minLength": "x"},
            {"minItems": 2, "maxLength": 3, "minLength": "x"},
        ),
        (
            {
                "type": "OBJECT",
                "properties": {"type": {"type": "INTEGER"}, "x": 5},
                "required": ["type"],
            },
            {
                "type": "object",
                "properties": {"type": {"type": "integer"}, "x": 5},
                "required": ["type"],
            },
        ),
        ({"items": {"type": "BOOLEAN"}, "anyOf": 5}, {"items": {"type": "boolean"}, "anyOf": 5}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"description": "d", "example": 1}, {"description": "d", "example": 1}),
    ],
)
def test_geminis_schemas_become_json_schema(
    own: dict[str, object], standard: dict[str, object]
) -> None:
    assert json_schema(own) == standard


def test_what_is_too_deep_allows_everything() -> None:
    schema: dict[str, object] = {"type": "STRING"}
    for _ in range(DEPTH_LIMIT + 5):
        schema = {"type": "ARRAY", "items": schema}
    found: object = json_schema(schema)
    depth = 0
    while isinstance(found, dict) and found:
        found, depth = found["items"], depth + 1
    assert depth == DEPTH_LIMIT
