"""The request of generateContent: model, tools, tool choice, history.

Model and method are in the path (`/models/NAME:streamGenerateContent`); Cloud Code wraps the
request in a body that names the model. Keys are read in both spellings that Google's servers take,
`functionCall` and `function_call`. A message with several results becomes several messages; where a
result has no id, it names the function.

Source: https://ai.google.dev/api/generate-content#request-body.
"""

from collections.abc import Iterator, Mapping

from deltatape.dialects._json import (
    Element,
    Elements,
    JsonSource,
    MemberValue,
    as_array,
    as_object,
    get_array,
    get_object,
    get_objects,
    get_str,
)
from deltatape.dialects._request import History, make_message, read_history, source_of
from deltatape.model.reply import Thought
from deltatape.model.request_summary import (
    NOTHING_ASKED,
    AnswerFormat,
    Message,
    RepeatedCall,
    RequestSummary,
    ToolSpec,
)

_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto"}
_PATH = ("contents",)
_CLOUD_CODE = "v1internal"
_INNER_PATH = ("request", "contents")
_MODEL_FOLDERS = ("models", "tunedModels", "endpoints")


def method_of(path: str) -> str:
    """Return the method at the end of `path`, after its colon; "" if there is none."""
    return _last_part(path).partition(":")[2]


def read_request(body: bytes, path: str) -> RequestSummary:
    """Parse `body`; return `NOTHING_ASKED` if it is not a JSON object."""
    found = _read(body, path)
    if found is None:
        return NOTHING_ASKED
    request, source = found.body
    model = _model_in(path) or (get_str(request, "model") or "").removeprefix("models/") or None
    inner = _inner(request)
    if inner is not None:
        request, source = inner, MemberValue(source, "request")
    return RequestSummary(
        known=True,
        model=model,
        stream=method_of(path) == "streamGenerateContent",
        tools=tuple(_tools(request)),
        tools_elsewhere=_has_predefined(request),
        tool_choice=_tool_choice(request),
        history=(*_opening(request, source), *found.entries),
        answer=_answer(request),
    )


def _read(body: bytes, path: str) -> History[Message] | None:
    """Read the request with the history; the path usually names the model."""
    expected = _INNER_PATH if _CLOUD_CODE in path else _PATH
    found = read_history(body, expected, _messages)
    if found is None:
        return None
    there = _PATH if _inner(found.body.value) is None else _INNER_PATH
    return found if there == expected else read_history(body, there, _messages)


def _inner(request: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the wrapped request; None if `request` wraps none."""
    return None if "contents" in request else get_object(request, "request")


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].replace("%3A", ":").replace("%3a", ":")


def _model_in(path: str) -> str | None:
    folder = path.rstrip("/").rpartition("/")[0].rpartition("/")[2]
    return _last_part(path).partition(":")[0] or None if folder in _MODEL_FOLDERS else None


def _spelled(holder: Mapping[str, object], key: str) -> str:
    """Return `key` in the spelling of `holder`."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
    return snake if snake in holder and key not in holder else key


def _object(holder: Mapping[str, object], key: str) -> Mapping[str, object] | None:
    return get_object(holder, _spelled(holder, key))


def _tools(request: Mapping[str, object]) -> Iterator[ToolSpec]:
    for tool in get_objects(request, "tools"):
        for declaration in get_objects(tool, _spelled(tool, "functionDeclarations")):
            name = get_str(declaration, "name")
            if name is not None:
                yield ToolSpec(name=name, parameters=_parameters(declaration))


def _has_predefined(request: Mapping[str, object]) -> bool:
    """Return whether a tool brings functions that the request does not list, such as `click_at`."""
    return any(_spelled(tool, "computerUse") in tool for tool in get_objects(request, "tools"))


def _parameters(declaration: Mapping[str, object]) -> Mapping[str, object] | None:
    exact = _object(declaration, "parametersJsonSchema")
    if exact is not None:
        return exact
    own = get_object(declaration, "parameters")
    return None if own is None else json_schema(own)


def _answer(request: Mapping[str, object]) -> AnswerFormat | None:
    config = _object(request, "generationConfig") or {}
    kind = config.get(_spelled(config, "responseMimeType"))
    if kind != "application/json" or config.get(_spelled(config, "stopSequences")):
        return None
    own = _object(config, "responseSchema")
    exact = _object(config, "responseJsonSchema") or (None if own is None else json_schema(own))
    return AnswerFormat(schema=exact, promised=True)


def _tool_choice(request: Mapping[str, object]) -> str | None:
    config = _object(_object(request, "toolConfig") or {}, "functionCallingConfig")
    if config is None:
        return None
    mode = get_str(config, "mode")
    allowed = get_array(config, _spelled(config, "allowedFunctionNames"))
    if mode == "ANY" and len(allowed) == 1 and isinstance(allowed[0], str):
        return allowed[0]
    return _MODES.get(mode.upper()) if mode else None


def _opening(request: Mapping[str, object], source: JsonSource) -> Iterator[Message]:
    """Yield the system instruction, and contents that are not a list."""
    key = _spelled(request, "systemInstruction")
    system = request.get(key)
    if isinstance(system, str):
        system = {"parts": [{"text": system}]}
    if isinstance(system, dict):
        yield from _messages(system, MemberValue(source, key), "system")
    contents = request.get("contents")
    if isinstance(contents, dict):
        yield from _messages(contents, MemberValue(source, "contents"))


def _messages(
    content: Mapping[str, object], source: JsonSource, role: str = ""
) -> Iterator[Message]:
    """Yield the messages of `content` at `source`: its results, then the rest."""
    role = role or get_str(content, "role") or "user"
    elements = Elements(MemberValue(source, "parts"))
    texts: list[str] = []
    calls: list[RepeatedCall] = []
    rest: list[object] = []
    thoughts: list[Thought] = []
    for place, each in enumerate(get_array(content, "parts")):
        part = as_object(each) or {}
        result = _object(part, "functionResponse")
        if result is not None:
            where = MemberValue(Element(elements, place), _spelled(part, "functionResponse"))
            text = source_of(result, "response", where)
            call_id = get_str(result, "id") or get_str(result, "name") or ""
            yield make_message("tool", text, result, call_id=call_id)
            continue
        rest.append(each)
        call = _object(part, "functionCall")
        if call is not None:
            where = MemberValue(Element(elements, place), _spelled(part, "functionCall"))
            arguments = source_of(call, "args", where) or "{}"
            calls.append(
                RepeatedCall(
                    id=get_str(call, "id"), name=get_str(call, "name"), arguments=arguments
                )
            )
            signature = get_str(part, _spelled(part, "thoughtSignature"))
            thoughts += [Thought(signature=signature)] if signature else []
        elif part.get("thought") is not True:
            texts.append(get_str(part, "text") or "")
    if rest or not get_array(content, "parts"):
        digested = {"role": role, "parts": rest}
        yield make_message(role, "".join(texts), digested, calls=calls, thoughts=thoughts)


# Gemini's own form of schemas, as JSON Schema.
#
# It is a selection of OpenAPI 3.0: types in upper case (or as numbers), `nullable`, counts as
# strings with digits. What is JSON Schema already comes out as it is.
#
# Source: https://ai.google.dev/api/caching#Schema.

DEPTH_LIMIT = 50
"""Levels of schemas in schemas; what is deeper is left out, and so allows everything."""
_TYPES = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""By the number of the enumeration."""
_ONE = frozenset({"items", "additionalProperties", "additional_properties", "not", "contains"})
"""Keywords with a schema."""
_LISTS = frozenset({"anyOf", "any_of", "oneOf", "allOf", "prefixItems", "prefix_items"})
"""Keywords with an array of schemas."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "defs", "definitions"})
"""Keywords with schemas by name."""
_COUNTS = frozenset(
    {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
)
_SPELLINGS = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "prefix_items": "prefixItems",
}


def json_schema(schema: Mapping[str, object], depth: int = DEPTH_LIMIT) -> dict[str, object]:
    """Return `schema` as JSON Schema, down to `depth` levels of schemas in schemas."""
    if not depth:
        return {}
    found: dict[str, object] = {}
    for key, value in schema.items():
        if key not in ("type", "nullable"):
            found[_SPELLINGS.get(key, key)] = _value(key, value, depth - 1)
    kind = _type(schema.get("type"))
    if kind:
        found["type"] = kind
    if schema.get("nullable") is True:
        _allow_null(found)
    return found


def _value(key: str, value: object, depth: int) -> object:
    inner, listed = as_object(value), as_array(value)
    if inner is not None and key in _ONE:
        return json_schema(inner, depth)
    if inner is not None and key in _NAMED:
        return {name: _any_schema(schema, depth) for name, schema in inner.items()}
    if listed is not None and key in _LISTS:
        return [_any_schema(schema, depth) for schema in listed]
    if key in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:15])
    return value


def _any_schema(value: object, depth: int) -> object:
    """Return a schema, or the value in place of one."""
    inner = as_object(value)
    return value if inner is None else json_schema(inner, depth)


def _type(value: object) -> object:
    """Return the type or types in JSON Schema's words; None if there is none."""
    if isinstance(value, str):
        return None if value == "TYPE_UNSPECIFIED" else value.lower()
    if type(value) is int:
        return _TYPES[value] if 0 < value < len(_TYPES) else None
    return [each.lower() for each in as_array(value) or () if isinstance(each, str)]


def _allow_null(schema: dict[str, object]) -> None:
    kind, values, options = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]
    if isinstance(options, list):
        schema["anyOf"] = [*options, {"type": "null"}]
