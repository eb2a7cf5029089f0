"""Import spans of OpenTelemetry about calls of a model, with their messages.

Formats: OTLP/JSON (https://opentelemetry.io/docs/specs/otlp/), one document or one a line, as the
Collector's file exporter writes it, and what the SDK of Python prints (`ConsoleSpanExporter`).
Messages are those of the conventions for generative AI, `gen_ai.input.messages` and
`gen_ai.output.messages`; of OpenLLMetry before it followed them, `gen_ai.prompt.N.*` and
`gen_ai.completion.N.*`; and of the SDK of Langfuse, `langfuse.observation.input` and `.output`.

Spans of agents and tools repeat the messages of the calls in them, and are left out.
Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from deltatape.diagnose.exchange_parts import MESSAGES
from deltatape.importers.langfuse import langfuse_call
from deltatape.importers.messages import (
    Json,
    ReportedCall,
    as_json,
    chat_call,
    chat_message,
    exchanges_of,
    has_members,
    json_in,
    list_in,
    object_in,
    objects,
    objects_of,
    text_in,
)
from deltatape.importers.parts import ImportSource, elapsed_ns, seconds_of
from deltatape.model.exchange import Exchange

_SPANS = re.compile(rb'"(?:resourceSpans|trace_id)"')
_ATTRIBUTES = re.compile(rb"gen_ai\.|langfuse\.observation\.")
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,4})\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d{1,4})\.(id|name|arguments)")
_FUNCTION = re.compile(r"llm\.request\.functions\.(\d{1,4})\.(name|description|parameters)")
_OTHER_OPERATIONS = ("agent", "tool", "embeddings", "workflow", "retrieval")
_ORIGIN = "OpenTelemetry"
_CAPTURE = (
    "let the instrumentation capture messages:"
    " OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
)
_VALUES = ("stringValue", "boolValue", "intValue", "doubleValue")
_HTTPS = "443"
_BASE = re.compile(r"https?://[^/\s]+")


class SpansImporter:
    """Imports spans with messages."""

    name = "spans of OpenTelemetry"
    accepts = "spans of OpenTelemetry with the messages of calls (gen_ai.*), as JSON"
    is_body = False
    holds = MESSAGES
    remark = "messages and no bytes: what an SDK or a tracer made of them"

    def claims(self, source: ImportSource) -> bool:
        return has_members(source, _SPANS, _ATTRIBUTES)

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or no span has messages.
        """
        values = objects_of(source, self.name)
        calls = (_call(*each) for value in values for each in _spans(value))
        lacking = f"has the messages of a call; {_CAPTURE}"
        return exchanges_of(source, self.name, calls, lacking)


def _spans(value: Json) -> Iterator[tuple[Json, Json]]:
    """Yield each span and its attributes by their names."""
    for resource in objects(list_in(value.get("resourceSpans"))):
        for scope in objects(list_in(resource.get("scopeSpans"))):
            for span in objects(list_in(scope.get("spans"))):
                yield span, _attributes(span)
    if "attributes" in value and "resourceSpans" not in value:
        yield value, object_in(value["attributes"])


def _attributes(span: Json) -> dict[str, object]:
    pairs = objects(list_in(span.get("attributes")))
    return {text_in(pair.get("key")): _value(object_in(pair.get("value"))) for pair in pairs}


def _value(value: Json) -> object:
    """Return the value of an attribute, whose type OTLP names."""
    for kind in _VALUES:
        if kind in value:
            return value[kind]
    if "arrayValue" in value:
        return [
            _value(each) for each in objects(list_in(object_in(value["arrayValue"]).get("values")))
        ]
    if "kvlistValue" in value:
        return _attributes({"attributes": object_in(value["kvlistValue"]).get("values")})
    return None


def _seconds(span: Json, of_otlp: str, printed: str) -> float:
    """Return a time of a span, in seconds since 1970; 0 if unknown."""
    nanoseconds = str(span.get(of_otlp))[:30]
    return int(nanoseconds) / 1e9 if nanoseconds.isdecimal() else seconds_of(span.get(printed))


def _call(span: Json, attributes: Json) -> ReportedCall | None:
    """Return the call that a span is about; None if it is about something else."""
    call = _reported(attributes)
    began_s = _seconds(span, "startTimeUnixNano", "start_time")
    ended_s = _seconds(span, "endTimeUnixNano", "end_time")
    return call and replace(call, began_s=began_s, took_ns=elapsed_ns(began_s, ended_s))


def _reported(attributes: Json) -> ReportedCall | None:
    operation = text_in(attributes.get("gen_ai.operation.name"))
    if any(each in operation for each in _OTHER_OPERATIONS):
        return None
    if "langfuse.observation.output" in attributes or "langfuse.observation.input" in attributes:
        return langfuse_call(
            {
                "type": attributes.get("langfuse.observation.type"),
                "input": attributes.get("langfuse.observation.input"),
                "output": attributes.get("langfuse.observation.output"),
                "model": attributes.get("langfuse.observation.model.name"),
            }
        )
    if _INPUT in attributes or _OUTPUT in attributes:
        return _by_conventions(attributes)
    numbered = _by_number(attributes)
    return numbered if numbered.messages or numbered.choices else None


def _by_conventions(attributes: Json) -> ReportedCall:
    notes = [
        f"{_ORIGIN}: {name} is cut or no JSON, and was left out"
        for name in (_INPUT, _OUTPUT)
        if isinstance(json_in(attributes.get(name)), str)
    ]
    system = [
        chat_message("system", text_in(part.get("content")))
        for part in objects(list_in(attributes.get("gen_ai.system_instructions")))
    ]
    asked = [
        message for each in objects(list_in(attributes.get(_INPUT))) for message in _messages(each)
    ]
    tools = [_tool(tool) for tool in objects(list_in(attributes.get("gen_ai.tool.definitions")))]
    known = isinstance(json_in(attributes.get(_INPUT)), list) or tools
    answers = objects(list_in(attributes.get(_OUTPUT)))
    reasons = list_in(attributes.get("gen_ai.response.finish_reasons"))
    call = ReportedCall(
        origin=_ORIGIN,
        messages=[*system, *asked] if known else None,
        choices=[
            (_messages(each)[0], _finish(each.get("finish_reason"), reasons, index))
            for index, each in enumerate(answers)
        ],
        tools=tools,
        notes=notes,
    )
    return _about(attributes, call)


def _about(attributes: Json, call: ReportedCall) -> ReportedCall:
    """Return a call with what a span says of it besides its messages."""
    names = ("gen_ai.response.model", "gen_ai.request.model")
    return replace(
        call,
        model=next(filter(None, (text_in(attributes.get(name)) for name in names)), ""),
        ident=text_in(attributes.get("gen_ai.response.id")),
        base=_base(attributes),
        error=text_in(attributes.get("error.type")),
    )


def _base(attributes: Json) -> str:
    host = text_in(attributes.get("server.address"))
    if not host or not host.isprintable():
        named = _BASE.match(text_in(attributes.get("gen_ai.openai.api_base")))  # of OpenLLMetry
        return named[0] if named else ""
    port = str(attributes.get("server.port", _HTTPS))
    return f"https://{host}" if port == _HTTPS else f"http://{host}:{port}"


def _finish(own: object, listed: Sequence[object], index: int) -> str | None:
    if isinstance(own, str) and own:
        return own
    reason = listed[index] if index < len(listed) else None
    return reason if isinstance(reason, str) else None


def _messages(message: Json) -> list[Json]:
    """Return a message of the conventions as one of Chat, or one for each result of a tool."""
    spoken: dict[object, list[str]] = {"text": [], "reasoning": [], "refusal": []}
    calls: list[Json] = []
    results: list[Json] = []
    for part in objects(list_in(message.get("parts"))):
        kind, content = part.get("type"), part.get("content")
        if kind == "tool_call":
            calls.append(chat_call(part.get("id"), part.get("name"), part.get("arguments")))
        elif kind == "tool_call_response":
            found = part.get("response", part.get("result"))
            said = found if isinstance(found, str) else as_json(found)
            results.append(
                {"role": "tool", "tool_call_id": text_in(part.get("id")), "content": said}
            )
        elif isinstance(content, str) and kind in spoken:
            spoken[kind].append(content)
    texts, reasoning, refusal = map("".join, spoken.values())
    if results and not texts and not calls:
        return results
    role = text_in(message.get("role")) or "assistant"
    text = None if (calls or reasoning or refusal) and not texts else texts
    written = chat_message(role, text, calls, reasoning)
    return [*results, {**written, "refusal": refusal} if refusal else written]


def _tool(tool: Json) -> Json:
    """Return a tool in the form of Chat; the conventions have none for it."""
    if "function" in tool:
        return tool
    members = ("name", "description", "parameters", "strict")
    function = {key: tool[key] for key in members if key in tool}
    if "input_schema" in tool:
        function["parameters"] = tool["input_schema"]
    return {"type": "function", "function": function}


def _by_number(attributes: Json) -> ReportedCall:
    """Return the call of a span whose messages are attributes with numbers."""
    found: dict[str, dict[int, dict[str, object]]] = {"prompt": {}, "completion": {}}
    tools: dict[int, dict[str, object]] = {}
    for name, value in attributes.items():
        if (match := _NUMBERED.fullmatch(name)) is not None:
            found[match[1]].setdefault(int(match[2]), {})[match[3]] = value
        elif (match := _FUNCTION.fullmatch(name)) is not None:
            tools.setdefault(int(match[1]), {})[match[2]] = json_in(value)
    asked = [_numbered(each) for _, each in sorted(found["prompt"].items())]
    answers = [each for _, each in sorted(found["completion"].items())]
    call = ReportedCall(
        origin=_ORIGIN,
        messages=asked or None,
        choices=[(_numbered(each), _finish(each.get("finish_reason"), (), 0)) for each in answers],
        tools=[{"type": "function", "function": each} for _, each in sorted(tools.items())],
    )
    return _about(attributes, call)


def _numbered(parts: Mapping[str, object]) -> Json:
    calls: dict[int, dict[str, object]] = {}
    for name, value in parts.items():
        if (match := _CALL.fullmatch(name)) is not None:
            calls.setdefault(int(match[1]), {})[match[2]] = value
    listed = [
        chat_call(each.get("id"), each.get("name"), each.get("arguments", ""))
        for _, each in sorted(calls.items())
    ]
    content = parts.get("content")
    role = text_in(parts.get("role")) or "assistant"
    message = chat_message(role, content if isinstance(content, str) else None, listed)
    ident = parts.get("tool_call_id")
    return {**message, "tool_call_id": ident} if isinstance(ident, str) else message
