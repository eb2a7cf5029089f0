"""Delivered streams for suspects, and the calls that applications build from them."""

from collections.abc import Sequence
from dataclasses import replace

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Read, Source
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import Suspect, Symptom
from deltatape.suspects import DeliveredResponse, delivered, suspects_of
from helpers import chat

SSE = "text/event-stream"
AWS = "application/vnd.amazon.eventstream"


def deliver(
    *reads: bytes,
    url: str = chat.URL,
    media: str = SSE,
    request: dict[str, object] | None = None,
    taped: bool = False,
) -> DeliveredResponse:
    """A stream of `reads`; `taped`: they are those of a wire."""
    body = b"".join(reads)
    exchange = Exchange.from_body(body, content_type=media, url=url, request=request)
    if taped:
        timed = tuple(
            Read(t_ns=at, data=data, boundaries=None, line=None) for at, data in enumerate(reads)
        )
        exchange = replace(exchange, source=Source.GATEWAY, reads=timed)
    analysis = analyse(exchange)
    return delivered(analysis.exchange, analysis.stream, analysis.reply, analysis.request)


def follow_up() -> dict[str, object]:
    """A request with the result of a tool."""
    call = {"id": "c0", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c0", "content": "r"},
    ]
    return {"model": "m", "stream": True, "messages": messages}


def made(*calls: tuple[str | None, str | None, str]) -> tuple[RepeatedCall, ...]:
    """Calls, each an id, a name and arguments."""
    return tuple(
        RepeatedCall(id=identifier, name=name, arguments=arguments)
        for identifier, name, arguments in calls
    )


def call_fields(calls: Sequence[RepeatedCall]) -> list[tuple[str | None, str | None, str]]:
    """Id, name and arguments of each call."""
    return [(call.id, call.name, call.arguments) for call in calls]


def suspects(
    stream: DeliveredResponse,
    calls: tuple[RepeatedCall, ...] | None = None,
    *errors: str,
) -> tuple[Suspect, ...]:
    """The suspects if an application repeats `calls` and reports `errors`."""
    return suspects_of(stream, Symptom(calls=calls, errors=errors))


def names(found: Sequence[Suspect]) -> list[str]:
    """The names of the suspects, in order."""
    return [one.name for one in found]
