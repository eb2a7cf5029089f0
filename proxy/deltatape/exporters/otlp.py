"""Export spans of OpenTelemetry's conventions for generative AI, as OTLP/JSON.

Format: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding (ids in hexadecimal,
64-bit integers as texts, enumerations as numbers), and
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/: a span `chat MODEL` for each call,
its messages as JSON in `gen_ai.input.messages` and `gen_ai.output.messages`. All exchanges of an
export are one trace.

Arguments of a call are an object where that says the same text when it is written again, else the
very text: broken arguments are what a tape is about. What looks like a secret is overwritten.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from deltatape.diagnose.exchange_parts import MESSAGES, url_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.exporters.parts import json_text, moment
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.reply import Choice, ToolCall
from deltatape.model.request_summary import Message, RepeatedCall
from deltatape.model.token_usage import tokens_in
from deltatape.providers import provider_of_host
from deltatape.secret_text.search import without_secrets
from deltatape.wire.json_value import read_object

_CLIENT = 3
"""SPAN_KIND_CLIENT."""
_FAILED = 2
"""STATUS_CODE_ERROR."""
_ERROR_STATUS = 400
_PORTS = {"https": 443, "http": 80}
_PROVIDERS = {"azure": "azure.ai.openai", "bedrock": "aws.bedrock", "gemini": "gcp.gemini"} | {
    "vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that differ from ours."""
_BY_DIALECT = {"anthropic-messages": "anthropic", "gemini": "gcp.gemini", "cohere": "cohere"}
_FINISHES = {"tool_calls": "tool_call", "tool_use": "tool_call", "end_turn": "stop"} | {
    "function_call": "tool_call",
    "max_tokens": "length",
    "STOP": "stop",
    "MAX_TOKENS": "length",
}
Json = dict[str, object]


class OtlpExporter:
    """Exports spans."""

    name = "otlp"
    title = "spans of OpenTelemetry (OTLP/JSON)"
    holds = MESSAGES
    remark = "also has the times of request and response, the model, tokens and the finish reason"
    is_folder = False

    def refuses(self, analysis: Analysis) -> str:
        said = analysis.request.history or not all(map(_is_empty, analysis.reply.choices))
        return "" if said else "without messages"

    def files(self, analyses: Sequence[Analysis], version: str) -> Mapping[str, bytes]:
        turns = [turn for analysis in analyses for turn in analysis.turns or (analysis,)]
        seed = "".join(analysis.exchange.id for analysis in analyses)
        trace = hashlib.sha256(seed.encode()).hexdigest()[:32]
        spans = [_span(turn, trace, number) for number, turn in enumerate(turns, 1)]
        scope = {"name": "deltatape", "version": version}
        resource = {"attributes": [_attribute("service.name", "deltatape")]}
        exported = {"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}
        return {"": json_text({"resourceSpans": [exported]}).encode()}


def _span(analysis: Analysis, trace: str, number: int) -> Json:
    exchange, reply = analysis.exchange, analysis.reply
    model = analysis.request.model or reply.model
    span: Json = {
        "traceId": trace,
        "spanId": hashlib.sha256(f"{trace}{number}".encode()).hexdigest()[:16],
        "name": f"chat {model}" if model else "chat",
        "kind": _CLIENT,
        "startTimeUnixNano": _nanoseconds(exchange, exchange.request.t_ns),
        "endTimeUnixNano": _nanoseconds(exchange, _last_ns(exchange)),
        "attributes": [_attribute(*pair) for pair in _attributes(analysis).items() if pair[1]],
    }
    failure = _failure(analysis)
    if failure:
        span["status"] = {"code": _FAILED, "message": without_secrets(reply.error or failure)}
    return span


def _nanoseconds(exchange: Exchange, t_ns: int) -> str:
    began = round(moment(exchange, 0).timestamp() * 1_000_000) * 1000
    return str(max(began + t_ns, 0))


def _last_ns(exchange: Exchange) -> int:
    if exchange.end is not None:
        return exchange.end.t_ns
    head = exchange.response.t_ns if exchange.response else 0
    return max(exchange.request.t_ns, head, *(read.t_ns for read in exchange.reads[-1:]))


def _failure(analysis: Analysis) -> str:
    """Return the type of error of a call; "" if it did not fail."""
    exchange = analysis.exchange
    response = exchange.response
    if response is not None and response.status >= _ERROR_STATUS:
        return str(response.status)
    if exchange.end is not None and exchange.end.reason is not EndReason.COMPLETE:
        return str(exchange.end.reason)
    return "error" if analysis.reply.error else ""


def _attributes(analysis: Analysis) -> Json:
    """Return the attributes of a span, false where there is nothing to say."""
    exchange, request, reply = analysis.exchange, analysis.request, analysis.reply
    tokens = tokens_in(reply.usage)
    choices = [choice for choice in reply.choices if not _is_empty(choice)]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _provider(exchange, reply.dialect),
        "gen_ai.request.model": request.model,
        "gen_ai.response.model": reply.model,
        "gen_ai.response.id": reply.id,
        "gen_ai.response.finish_reasons": [_finish(choice) for choice in choices],
        "gen_ai.usage.input_tokens": tokens and tokens.input,
        "gen_ai.usage.output_tokens": tokens and tokens.output,
        "gen_ai.input.messages": _json([_message(each) for each in request.history]),
        "gen_ai.output.messages": _json([_answer(choice) for choice in choices]),
        "gen_ai.tool.definitions": _json(
            [
                {"type": "function", "name": tool.name, "parameters": tool.parameters}
                for tool in request.tools
            ]
        ),
        "error.type": _failure(analysis),
        **_server(exchange),
    }


def _provider(exchange: Exchange, dialect: str) -> str:
    host = str(_server(exchange).get("server.address", ""))
    name = provider_of_host(host)
    if name is None:
        return _BY_DIALECT.get(dialect, "openai")
    return _PROVIDERS.get(name, name)


def _server(exchange: Exchange) -> Json:
    try:
        parts = urlsplit(url_of(exchange))
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:  # no port, or brackets that hold no address
        return {}
    return {"server.address": parts.hostname, "server.port": port}


def _is_empty(choice: Choice) -> bool:
    return (
        not (choice.text or choice.reasoning or choice.refusal or choice.every_call)
        and not choice.finish_reason_raw
    )


def _finish(choice: Choice) -> str:
    raw = choice.finish_reason_raw or ""
    return _FINISHES.get(raw, raw) or "error"


def _message(message: Message) -> Json:
    calls = [_call(call) for call in message.calls]
    if message.call_id is not None:
        result = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
        return {"role": "tool", "parts": [*calls, result]}
    role = "assistant" if message.role == "model" else message.role
    return {"role": role, "parts": [*_text("text", message.text), *calls]}


def _answer(choice: Choice) -> Json:
    parts = [
        *_text("reasoning", choice.reasoning),
        *_text("text", choice.text),
        *_text("refusal", choice.refusal),
        *(_call(call) for call in choice.tool_calls),
    ]
    return {"role": "assistant", "parts": parts, "finish_reason": _finish(choice)}


def _text(kind: str, text: str) -> list[Json]:
    return [{"type": kind, "content": text}] if text else []


def _call(call: RepeatedCall | ToolCall) -> Json:
    value = read_object(call.arguments)
    exact = value is not None and json.dumps(value, ensure_ascii=False) == call.arguments
    arguments = value if exact else call.arguments
    return {"type": "tool_call", "id": call.id, "name": call.name or "", "arguments": arguments}


def _json(values: Sequence[object]) -> str:
    """Return what an attribute holds as JSON in a text; "" for nothing."""
    return without_secrets(json.dumps(values, ensure_ascii=False)) if values else ""


def _attribute(name: str, value: object) -> Json:
    if isinstance(value, list):
        wrapped: Json = {"arrayValue": {"values": [{"stringValue": str(each)} for each in value]}}
    elif isinstance(value, int):
        wrapped = {"intValue": str(value)}
    else:
        wrapped = {"stringValue": str(value)}
    return {"key": name, "value": wrapped}
