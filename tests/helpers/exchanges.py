"""Exchanges with times, and conversations of several, for tests of rules and stories."""

from collections.abc import Sequence
from dataclasses import replace

from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange, Framing, Headers
from deltatape.model.finding import Finding
from helpers.chat import FINISH, URL, calls, choice, entry, sse
from helpers.taped import MS, taped


def user(content: object) -> dict[str, object]:
    """A message of the user."""
    return {"role": "user", "content": content}


def system(text: str) -> dict[str, object]:
    """A message with instructions."""
    return {"role": "system", "content": text}


USER = user("What is the weather?")

TEXT = choice({"content": "Hello"})
"""A chunk with text."""
FINISH_TEXT = choice({}, "stop")
"""The chunk that ends a choice with text."""


def pasted(
    *chunks: object,
    request: dict[str, object] | None = None,
    done: bool = True,
    status: int = 200,
    content_type: str = "text/event-stream",
) -> Exchange:
    """An exchange without times from a stream of `chunks`."""
    body = sse(*chunks, done=done)
    return Exchange.from_body(
        body, content_type=content_type, url=URL, request=request, status=status
    )


def from_bytes(
    body: bytes,
    request: dict[str, object] | None = None,
    status: int = 200,
    content_type: str = "text/event-stream",
) -> Exchange:
    """An exchange without times from a body."""
    return Exchange.from_body(
        body, content_type=content_type, url=URL, request=request, status=status
    )


def timed(
    *reads: tuple[float, object],
    request: dict[str, object] | None = None,
    end_s: float | None = None,
    framing: Framing | None = Framing.CHUNKED,
    headers: Headers = ((b"Content-Type", b"text/event-stream"),),
) -> Exchange:
    """A taped exchange. `reads` are (seconds, chunk or bytes); a chunk is one event."""
    pieces = [
        (round(at * 1000), data if isinstance(data, bytes) else sse(data, done=False))
        for at, data in reads
    ]
    end_ms = round(end_s * 1000) if end_s is not None else None
    return taped(pieces, body=request or {}, end_ms=end_ms, framing=framing, headers=headers)


def call(name: str = "get", arguments: str = '{"a":1}', index: int = 0) -> list[object]:
    """The chunks of a healthy call in three pieces."""
    half = len(arguments) // 2
    return [
        calls(entry(index, f"c{index + 1}", name=name, arguments="")),
        calls(entry(index, arguments=arguments[:half])),
        calls(entry(index, arguments=arguments[half:])),
    ]


def asks(*history: dict[str, object], **more: object) -> dict[str, object]:
    """A request that repeats `history`."""
    return {"model": "m", "stream": True, "messages": list(history), **more}


def assistant(*repeated: tuple[str | None, str | None, str], text: str = "") -> dict[str, object]:
    """An assistant message of a history; `repeated` are (id, name, arguments)."""
    message: dict[str, object] = {"role": "assistant", "content": text}
    if repeated:
        message["tool_calls"] = [
            {"id": one, "type": "function", "function": {"name": name, "arguments": arguments}}
            for one, name, arguments in repeated
        ]
    return message


def result(call_id: str, text: str = "ok") -> dict[str, object]:
    """A tool result of a history."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


TEXT_REPLY: list[object] = [TEXT, FINISH_TEXT]
"""The chunks of an answer in text."""
CALL_REPLY: list[object] = [*call(), FINISH]
"""The chunks of an answer with one call."""
CALL_MESSAGE = assistant(("c1", "get", '{"a":1}'))
"""The message of a history that repeats that call."""


def conversation(*exchanges: tuple[dict[str, object], Sequence[object]]) -> list[Exchange]:
    """Exchanges of one tape, ten seconds apart: each a request and the chunks of its answer."""
    found = []
    for place, (request, chunks) in enumerate(exchanges):
        start_ns = place * 10_000 * MS
        reads = [(100.0 * (at + 1), sse(chunk, done=False)) for at, chunk in enumerate(chunks)]
        reads.append((100.0 * (len(chunks) + 1), b"data: [DONE]\n\n"))
        base = taped([(round(ms), data) for ms, data in reads], body=request, number=place + 1)
        found.append(_shifted(base, start_ns))
    return found


def _shifted(exchange: Exchange, ns: int) -> Exchange:
    """`exchange` as if it had come later, with the line numbers of a tape."""
    assert exchange.end
    assert exchange.response
    first = exchange.number * 100
    return replace(
        exchange,
        request=replace(exchange.request, t_ns=ns, t_end_ns=ns, line=first),
        response=replace(exchange.response, t_ns=exchange.response.t_ns + ns, line=first + 1),
        reads=tuple(
            read._replace(t_ns=read.t_ns + ns, line=first + 2 + at)
            for at, read in enumerate(exchange.reads)
        ),
        end=replace(exchange.end, t_ns=exchange.end.t_ns + ns, line=first + 50),
    )


def digests(*exchanges: tuple[dict[str, object], Sequence[object]]) -> list[Digest]:
    """The digests of `conversation(...)`."""
    return [digest(exchange) for exchange in conversation(*exchanges)]


def found(exchange: Exchange, code: str) -> list[Finding]:
    """The findings of the rule `code`."""
    return [finding for finding in check(exchange) if finding.code == code]


def codes(exchange: Exchange) -> list[str]:
    """The codes of all findings, in order."""
    return [finding.code for finding in check(exchange)]


def one(exchange: Exchange, code: str) -> Finding:
    """The only finding of the rule `code`."""
    findings = found(exchange, code)
    assert len(findings) == 1, [finding.message for finding in findings]
    return findings[0]
