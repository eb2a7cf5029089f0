"""Import what LiteLLM logs about its calls: every call an exchange, in messages and not in bytes.

Format: https://docs.litellm.ai/docs/proxy/logging_spec (`StandardLoggingPayload`), as its loggers
for files and buckets write it: one JSON object, an array, or one object a line. The response is
what LiteLLM made of the provider's, whole even if it was streamed, in the form of the API that
was called. So a tape of it can tell wrong calls, and what an application makes of them, but nothing
about the stream, and never whether LiteLLM or the provider is at fault: a note says this.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from deltatape.diagnose.exchange_parts import MESSAGES
from deltatape.errors import UsageError
from deltatape.importers.parts import ImportedRequest, ImportedResponse, ImportSource, build
from deltatape.importers.traffic import describe
from deltatape.model.exchange import REPORTED, Exchange
from deltatape.printable import excerpt
from deltatape.wire.framer import BYTE_ORDER_MARK
from deltatape.wire.json_value import parse, read_object

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{")
_KEYS = (b'"call_type"', b'"messages"', b'"response"')
_BASE = re.compile(r"https?://[^/\s]+")
_STREAMING = frozenset({"stream", "stream_options"})
_STATUSES = range(400, 600)
_FAILED = 500
_JSON = ((b"content-type", b"application/json"),)
_PATHS: tuple[tuple[str, str, str], ...] = (
    ("anthropic_messages", "/v1/messages", "messages"),
    ("responses", "/v1/responses", "input"),
    ("text_completion", "/v1/completions", "prompt"),
    ("completion", "/v1/chat/completions", "messages"),
)
"""The API that a type of call names, and the member of its request that has the messages."""
_ORIGIN = f"LiteLLM: {REPORTED}; the response is what LiteLLM made of it"

Call = Mapping[str, object]


class LiteLlmImporter:
    """Imports a log of LiteLLM."""

    name = "a log of LiteLLM"
    accepts = "a log of LiteLLM (StandardLoggingPayload)"
    is_body = False
    holds = MESSAGES
    remark = "messages and no bytes: what LiteLLM made of them"

    def claims(self, source: ImportSource) -> bool:
        data = source.only or b""
        return _START.match(data) is not None and all(key in data for key in _KEYS)

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or no JSON.
        """
        data = (source.only or b"").removeprefix(BYTE_ORDER_MARK)
        calls = [call for call in _calls(source.name, data) if "call_type" in call]
        calls.sort(key=_start)
        return [_exchange(source.name, call) for call in calls]


def _calls(name: str, data: bytes) -> Iterator[Call]:
    text = data.decode(errors="replace")
    found = parse(text)
    if found.error is None:
        listed = found.value if isinstance(found.value, list) else [found.value]
        yield from filter(None, map(_object, listed))
        return
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        call = read_object(line) or _object(parse(line).value)
        if not call:
            problem = describe(data) if len(lines) == 1 else f"line {number} is no JSON object"
            raise UsageError(f"{name}: is a log of LiteLLM, but {problem}")
        yield call


def _start(call: Call) -> float:
    value = call.get("startTime")
    return value if isinstance(value, float) else 0


def _exchange(name: str, call: Call) -> Exchange:
    kind = _text(call.get("call_type"))
    path, member = next(
        ((path, member) for part, path, member in _PATHS if part in kind), (f"/{kind}", "messages")
    )
    base = _BASE.match(_text(call.get("api_base")))
    options = _object(_value(call.get("model_parameters")))
    asked = {key: value for key, value in options.items() if key not in _STREAMING}
    body = {"model": call.get("model"), member: _value(call.get("messages")), **asked}
    request = ImportedRequest(
        url=f"{base[0] if base else ''}{path}", headers=_JSON, body=json.dumps(body).encode()
    )
    notes = [_ORIGIN]
    if call.get("stream") or options.get("stream"):
        notes.append("LiteLLM: the response was streamed; the log has it whole")
    problem = _text(call.get("error_str"))
    answer = _value(call.get("response"))
    if isinstance(answer, dict) and answer:
        response = ImportedResponse(headers=_JSON)
    elif problem:
        answer = {"error": {"message": problem}}
        response = ImportedResponse(status=_status(call), headers=_JSON)
    else:
        seen = f": {excerpt(answer)}" if isinstance(answer, str) else ""
        return build(name, request, None, b"", [*notes, f"LiteLLM: the log has no response{seen}"])
    return build(name, request, response, json.dumps(answer).encode(), notes)


def _status(call: Call) -> int:
    code = _text(_object(call.get("error_information")).get("error_code"))
    return int(code) if code.isdecimal() and int(code[:9]) in _STATUSES else _FAILED


def _value(value: object) -> object:
    """Return a value that a database keeps as JSON text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        found = parse(value)
        return value if found.error else found.value
    return value


def _object(value: object) -> Call:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
