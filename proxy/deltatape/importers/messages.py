"""Exchanges made of messages that an SDK or a tracer reported, for files that hold nothing else.

Such files have no bytes of the wire, and their content was read by the program that wrote
them: a request and a response in the form of OpenAI Chat are written anew. So a tape of them can
show calls and what became of them, never who is at fault: a note says this on each exchange.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from deltatape.errors import UsageError
from deltatape.importers.parts import (
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    build,
    elapsed_ns,
)
from deltatape.importers.traffic import describe
from deltatape.model.exchange import REPORTED, Exchange
from deltatape.printable import count
from deltatape.wire.framer import BYTE_ORDER_MARK
from deltatape.wire.json_value import parse, read_object

Json = Mapping[str, object]

HEADERS = ((b"content-type", b"application/json"),)
PATH = "/v1/chat/completions"
_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")
_ERROR = 500
_FINISHES = {"tool_call": "tool_calls", "max_tokens": "length", "end_turn": "stop"}
"""Finish reasons by other names for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCall:
    """A call of a model: what was asked, and what came back."""

    origin: str
    """What the file is, for notes."""
    messages: Sequence[Json] | None
    """In the form of Chat; None: the file does not have the request."""
    choices: Sequence[tuple[Json, str | None]]
    """Each answer, and its finish reason, if that is known."""
    tools: Sequence[object] = ()
    model: str = ""
    ident: str = ""
    base: str = ""
    usage: Json | None = None
    error: str = ""
    notes: Sequence[str] = ()
    began_s: float = 0
    """When it was asked, in seconds since 1970; 0 if unknown."""
    took_ns: int = 0
    """How long it took until the answer was complete; 0 if unknown."""


def has_members(source: ImportSource, *members: re.Pattern[bytes]) -> bool:
    """Check whether a file begins as JSON does, and each of `members` is somewhere in it."""
    data = source.only or b""
    return _START.match(data) is not None and all(each.search(data) for each in members)


def objects_of(source: ImportSource, kind: str) -> list[Json]:
    """Return the objects in a file of this kind; see `values_in`.

    Raises:
        UsageError: it is torn.
    """
    data = (source.only or b"").removeprefix(BYTE_ORDER_MARK)
    values = values_in(data)
    if values is None:
        raise UsageError(f"{source.name}: is {kind}, but {describe(data)}")
    return values


def exchanges_of(
    source: ImportSource, kind: str, calls: Iterable[ReportedCall | None], lacking: str
) -> list[Exchange]:
    """Return the exchanges of the calls in a file of this kind, in the order in which they began.

    Args:
        source: the file.
        kind: what it is.
        calls: in the order of the file; None for what is no call.
        lacking: says what none of them is.

    Raises:
        UsageError: there is no call.
    """
    found = sorted(filter(None, calls), key=lambda call: call.began_s)
    if not found:
        raise UsageError(f"{source.name}: is {kind}, none of which {lacking}")
    begun = next((call.began_s for call in found if call.began_s), 0)
    return [_at_times(reported(source.name, call), call, begun) for call in found]


def _at_times(exchange: Exchange, call: ReportedCall, begun: float) -> Exchange:
    """Return an exchange with the times of its call, since that of the first one, `begun`."""
    asked_ns = elapsed_ns(begun, call.began_s)
    answered_ns = asked_ns + call.took_ns
    head = exchange.response
    return replace(
        exchange,
        request=replace(exchange.request, t_ns=asked_ns, t_end_ns=asked_ns),
        response=None if head is None else replace(head, t_ns=answered_ns),
        reads=tuple(read._replace(t_ns=answered_ns) for read in exchange.reads),
    )


def reported(name: str, call: ReportedCall) -> Exchange:
    """Return the exchange of a call, from the file `name`."""
    notes = [f"{call.origin}: {REPORTED}", *call.notes]
    call, named = _with_ids(call)
    if named:
        notes.append(f"{call.origin}: has no ids for {count(named, 'call')}; they got one here")
    asked: dict[str, object] = {"model": call.model or None, "messages": call.messages}
    if call.tools:
        asked["tools"] = [*call.tools]
    known = call.messages is not None
    request = ImportedRequest(
        url=f"{call.base}{PATH}",
        headers=HEADERS if known else (),
        body=json.dumps(asked).encode() if known else b"",
    )
    if call.choices:
        answer = _answer(call)
        if any(finish is None for _, finish in call.choices):
            notes.append(f"{call.origin}: has no finish reason; it was told by the message")
        response = ImportedResponse(headers=HEADERS)
    elif call.error:
        answer = {"error": {"message": call.error}}
        response = ImportedResponse(status=_ERROR, headers=HEADERS)
    else:
        return build(name, request, None, b"", [*notes, f"{call.origin}: has no response"])
    return build(name, request, response, json.dumps(answer).encode(), notes)


def _with_ids(call: ReportedCall) -> tuple[ReportedCall, int]:
    """Return a call whose messages name each call of a tool, and how many ids that took.

    An id follows from the place in the conversation, so that it is the same where the next request
    repeats the message. Results without an id belong to the calls before them, in their order.
    """
    number = named = 0
    open_: list[object] = []

    def mended(message: Json) -> Json:
        nonlocal number, named
        if message.get("role") == "tool":
            ident = message.get("tool_call_id")
            if not ident and open_:
                return {**message, "tool_call_id": open_.pop(0)}
            return message
        calls = []
        for each in objects(list_in(message.get("tool_calls"))):
            number += 1
            named += not each.get("id")
            calls.append({**each, "id": each.get("id") or f"call_{number}"})
        open_.extend(each["id"] for each in calls)
        return {**message, "tool_calls": calls} if calls else message

    messages = None if call.messages is None else [mended(each) for each in call.messages]
    choices = [(mended(message), finish) for message, finish in call.choices]
    return replace(call, messages=messages, choices=choices), named


def _answer(call: ReportedCall) -> dict[str, object]:
    choices = []
    for index, (message, finish) in enumerate(call.choices):
        told = "tool_calls" if message.get("tool_calls") else "stop"
        reason = told if finish is None else _FINISHES.get(finish, finish)
        choices.append({"index": index, "message": message, "finish_reason": reason})
    answer: dict[str, object] = {
        "id": call.ident or None,
        "object": "chat.completion",
        "model": call.model or None,
        "choices": choices,
    }
    return {**answer, "usage": call.usage} if call.usage else answer


def chat_message(
    role: str, text: str | None, calls: Sequence[Json] = (), reasoning: str = ""
) -> dict[str, object]:
    """Return a message in the form of Chat."""
    message: dict[str, object] = {"role": role, "content": text}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [*calls]
    return message


def chat_call(ident: object, name: object, arguments: object) -> Json:
    """Return a call in the form of Chat; arguments that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str) else as_json(arguments)
    function = {"name": name if isinstance(name, str) else "", "arguments": text}
    found: dict[str, object] = {"type": "function", "function": function}
    return {"id": ident, **found} if isinstance(ident, str) else found


def as_json(value: object) -> str:
    """Return a value as JSON text; "" for none."""
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def values_in(data: bytes) -> list[Json] | None:
    """Return the objects in a file: one, an array, one a line, or one after the other.

    None: it is torn, or something else.
    """
    text = data.decode(errors="replace")
    found = parse(text)
    if found.error is None:
        listed = found.value if isinstance(found.value, list) else [found.value]
        return [each for each in listed if isinstance(each, dict)]
    return _one_after_another(text)


def _one_after_another(text: str) -> list[Json] | None:
    """Read objects that each begin on a new line, after the `}` of the one before."""
    found: list[Json] = []
    waiting: list[str] = []
    for line in text.split("\n"):
        if not waiting and not line.strip():
            continue
        waiting.append(line)
        if line.startswith(("}", "{")) and line.rstrip("\r ,").endswith("}"):
            value = read_object("\n".join(waiting).rstrip("\r ,"))
            if value is None:
                return None
            found.append(value)
            waiting = []
    return None if waiting else found


def object_in(value: object) -> Json:
    """Return an object, also one that is JSON in a text; an empty one for all else."""
    value = json_in(value)
    return value if isinstance(value, dict) else {}


def list_in(value: object) -> Sequence[object]:
    """Return the same for an array."""
    value = json_in(value)
    return value if isinstance(value, list) else []


def json_in(value: object) -> object:
    """Return what the JSON in a text says; the text itself if it is none."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[", '"')):
        found = parse(value)
        return value if found.error else found.value
    return value


def text_in(value: object) -> str:
    """Return a text; "" for all else."""
    return value if isinstance(value, str) else ""


def objects(values: Iterable[object]) -> list[Json]:
    """Return the objects among `values`."""
    return [each for each in values if isinstance(each, dict)]
