"""Small applications with one known mistake each, their results, and the suspects for them.

The applications are in tests/clients/apps, in JavaScript; each was written from a description of
its mistake, and by nobody who looked at how deltatape models that. What they made of the streams
below is committed; `scripts/suspect-apps` writes it. Of a defective stream a client without any
mistake may make something else than the reference, too: that is left out.
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Self

import yaml

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange, Framing, Read, Source
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientReading, Symptom
from deltatape.sdks.runner import SdkServer, standing
from deltatape.store.reader import open_tape
from deltatape.suspects import delivered, suspects_of
from deltatape.wire.json_value import canonical
from helpers import chat, messages
from helpers.clients import CLIENTS, ROOT
from helpers.vectors import RESPONSES, VECTORS

APPS = CLIENTS / "apps"
DATA = APPS / "outcomes.yaml"
SSE = "text/event-stream"
_HEADERS = ((b"content-type", SSE.encode()), (b"transfer-encoding", b"chunked"))
RESPONSES_URL = "http://127.0.0.1/v1/responses"
_LIMIT_S = 30.0
_PLACE = re.compile(r" \(line \d+ column \d+\)")
"""Newer versions of Node append this to the position."""
_AT_ONCE = 2
_SUSPECTS = 50
_CHAT, _NETWORK, _OTHER, _CLAUDE, _TEXT = "chat", "network", "responses", "messages", "text"
_OTHERS = {
    **dict.fromkeys(("13", "14", "15"), _NETWORK),
    **dict.fromkeys(("16", "17", "18"), _OTHER),
    **dict.fromkeys(("19", "20", "21"), _CLAUDE),
    **dict.fromkeys(("22", "23"), _TEXT),
}
"""The kind of stream that an application reads, by its number, where that is not chat."""

_HEAD = """\
# Suspects found

Small applications in JavaScript, each with a known bug, were written from descriptions alone
(tests/clients/apps). For each stream that an application reads differently from a correct client,
`deltatape why` was asked for the cause. Its suspect comes first, or after others that do exactly
the same with this stream, or is missing; the last column counts the suspects that fit exactly. It
is missing where the stream itself is defective and nobody is accused, or where another bug
explains all that can be seen.

Written by `scripts/suspects-found`, which the tests check.

| application | streams | first | behind others | missing | nobody accused | suspects, median |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an application for a stream. `made.text` is None if it shows no text."""

    app: str
    stream: str
    made: ClientReading


def apps() -> tuple[str, ...]:
    """The names of the applications, each with its mistake: `01-single-current-call`."""
    return tuple(sorted(path.stem for path in APPS.glob("[0-9]*.mjs")))


@cache
def streams() -> Mapping[str, Exchange]:
    """The streams by name, which begins with their kind: `chat: 01 good fragmented`."""
    return {
        f"{kind}: {name}": exchange
        for kind, group in (
            (_CHAT, _chat()),
            (_NETWORK, _network()),
            (_OTHER, _responses()),
            (_CLAUDE, _messages()),
            (_TEXT, _text()),
        )
        for name, exchange in group
    }


def _chat() -> Iterator[tuple[str, Exchange]]:
    for vector in VECTORS:
        yield vector.name, _read(vector.body, chat.URL)
    yield "two calls, as taped", _taped("openai-chat")
    yield "two calls, one after another", _read(_two_calls(), chat.URL)
    both = chat.calls(
        chat.entry(0, "c1", name="get", arguments='{"a":1}'),
        chat.entry(1, "c2", name="put", arguments='{"b":2}'),
    )
    yield "two calls in one chunk", _read(chat.sse(both, chat.FINISH), chat.URL)
    last = chat.choice({"tool_calls": [chat.entry(0, arguments="1}")]}, "tool_calls")
    head = chat.calls(chat.entry(0, "c1", name="get", arguments='{"a":'))
    yield "finish with the last arguments", _read(chat.sse(head, last), chat.URL)
    empty = (
        chat.choice({"tool_calls": [entry]}, "")
        for entry in (
            chat.entry(0, "c1", name="get", arguments='{"a":1}'),
            chat.entry(1, "c2", name="put", arguments='{"b":2}'),
        )
    )
    yield "finish empty until the end", _read(chat.sse(*empty, chat.FINISH), chat.URL)
    late = chat.calls(chat.entry(0, "c1", name="get")), chat.calls(chat.entry(0, arguments="{}"))
    yield "no arguments but {}", _read(chat.sse(*late, chat.FINISH), chat.URL)


def _two_calls() -> bytes:
    body = chat.sse(
        chat.calls(chat.entry(0, "c1", name="get", arguments='{"city": "Gent"}')),
        chat.calls(chat.entry(1, "c2", name="put", arguments='{"city": ')),
        chat.calls(chat.entry(1, arguments='"São Tomé"}')),
        chat.FINISH,
    )
    return body.replace(rb"\u00e3", "ã".encode()).replace(rb"\u00e9", "é".encode())


def _network() -> Iterator[tuple[str, Exchange]]:
    body = _two_calls()
    first, second = body.index(b"put"), body.index("ã".encode())
    for name, cuts in {
        "a read per event": [at + 2 for at in range(len(body)) if body[at : at + 2] == b"\n\n"][
            :-1
        ],
        "an event cut": [first],
        "each event cut": [first // 2, first, second - 9],
        "a character cut": [second + 1],
    }.items():
        yield name, _read(body, chat.URL, cuts=cuts)


def _responses() -> Iterator[tuple[str, Exchange]]:
    for vector in RESPONSES:
        yield vector.name, _read(vector.body, RESPONSES_URL)
    yield "two calls, as taped", _taped("openai-responses")


def _messages() -> Iterator[tuple[str, Exchange]]:
    first, second = messages.tool_block(0), messages.tool_block(1, "c2", name="put")
    one = messages.piece('{"a":', 0), messages.piece("1}", 0)
    two = messages.piece('{"b":', 1), messages.piece("2}", 1)
    for name, frames in {
        "one call": (first, *one, messages.stop(0)),
        "one call in one piece": (first, messages.piece('{"a":1}'), messages.stop(0)),
        "two calls": (first, *one, messages.stop(0), second, *two, messages.stop(1)),
        "two calls, interleaved": (first, second, one[0], two[0], one[1], two[1]),
        "no input": (first, messages.stop(0)),
    }.items():
        body = messages.sse(messages.start(), *frames, *messages.END)
        yield name, _read(body, messages.URL)
    yield "two calls, as taped", _taped("anthropic-messages")


def _text() -> Iterator[tuple[str, Exchange]]:
    call = '{"tool_name": "read_file", "arguments": {"path": "a.txt"}}'
    for name, pieces in {
        "whole": (f"I read. <tool>{call}</tool>",),
        "tags apart": ("I read. <tool>", call, "</tool>"),
        "arguments in pieces": ("I read. ", "<tool>", call[:41], call[41:], "</tool>"),
        "closing tag cut": ("I read. <tool>", call + "</tool", ">"),
        "closing bracket cut": ("I read. <tool>", call[:30], call[30:] + "<", "/tool>"),
        "opening tag cut": ("I read. <to", f"ol>{call}</tool>"),
        "two calls": (f"<tool>{call}</tool><tool>", call.replace("a.txt", "b.txt") + "</tool>"),
    }.items():
        chunks = [chat.choice({"content": piece}) for piece in pieces]
        yield name, _read(chat.sse(*chunks, chat.choice({}, "stop")), chat.URL)


def _taped(name: str) -> Exchange:
    (exchange,) = open_tape(ROOT / "recordings" / "dialects" / f"{name}.tape")
    return exchange


def _read(body: bytes, url: str, *, cuts: Sequence[int] = ()) -> Exchange:
    """A stream in reads that end at `cuts`; each is an HTTP chunk."""
    pasted = Exchange.from_body(body, content_type=SSE, url=url)
    edges = (0, *cuts, len(body))
    assert pasted.response is not None
    return replace(
        pasted,
        response=replace(pasted.response, framing=Framing.CHUNKED, headers=_HEADERS),
        reads=tuple(
            Read(t_ns=number, data=body[start:end], boundaries=None, line=None)
            for number, (start, end) in enumerate(pairwise(edges))
        ),
    )


def written() -> tuple[Outcome, ...]:
    """The committed results: by application, the streams that it reads differently."""
    return tuple(
        Outcome(app=one["app"], stream=one["stream"], made=_reading(one))
        for one in yaml.safe_load(DATA.read_text())
    )


def _reading(data: Mapping[str, object]) -> ClientReading:
    calls, text, error = data.get("calls"), data.get("text"), data.get("error")
    return ClientReading(
        calls=tuple(
            RepeatedCall(id=call_id, name=name, arguments=arguments)
            for call_id, name, arguments in (calls if isinstance(calls, list) else [])
        ),
        errors=(_PLACE.sub("", str(error)),) if error else (),
        text=None if text is None else str(text),
    )


def measured() -> tuple[Outcome, ...]:
    """The same results from running the applications on Node."""

    async def all_of_them() -> list[list[Outcome]]:
        free = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(_measure(app, free) for app in apps()))

    plain, *rest = asyncio.run(all_of_them())
    usual = {one.stream: one.made for one in plain}
    return tuple(
        one
        for some in rest
        for one in some
        if not is_same(one.made, usual.get(one.stream))
        and not is_reference(streams()[one.stream], one.made)
    )


async def _measure(app: str, free: asyncio.Semaphore) -> list[Outcome]:
    kind = _OTHERS.get(app[:2], _CHAT)
    names = [name for name in streams() if name.startswith(f"{kind}:")]
    played = [streams()[name] for name in names]
    async with free, _Pieces(played) if kind == _NETWORK else standing(played) as stand:
        process = await asyncio.create_subprocess_exec(
            *("node", "--no-warnings", str(APPS / f"{app}.mjs")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(f"{stand.url(number)}\n".encode() for number in range(len(names)))
        process.stdin.close()
        try:
            async with asyncio.timeout(_LIMIT_S):
                printed, _ = await asyncio.gather(process.stdout.read(), _listen(process, stand))
                await process.wait()
        except TimeoutError:
            process.kill()
            raise
    made = [_reading(json.loads(line)) for line in printed.splitlines()]
    assert len(made) == len(names), f"{app} died"
    return [Outcome(app=app, stream=name, made=one) for name, one in zip(names, made, strict=True)]


async def _listen(process: asyncio.subprocess.Process, stand: "SdkServer | _Pieces") -> None:
    """Tell the server what an application says that it has read; print what else it reports."""
    assert process.stderr is not None
    async for line in process.stderr:
        if not (isinstance(stand, _Pieces) and stand.has_read(line.decode().rstrip("\n"))):
            sys.stderr.write(line.decode())


class _Pieces:
    """Serves streams read by read; sends each one when the application has the one before.

    Times alone do not keep reads apart: a busy machine may let an application wait for longer.
    """

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = exchanges
        self._read = [asyncio.Semaphore(0) for _ in exchanges]
        self._serving: set[asyncio.Task[None]] = set()

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self._port}/{number}"

    def has_read(self, url: str) -> bool:
        """Send the next piece of the stream at `url`, if it is one."""
        for number, read in enumerate(self._read):
            if url == self.url(number):
                read.release()
                return True
        return False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:  # an application may leave a stream early
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._play(reader, writer)
        finally:
            writer.close()

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(b"{}"))
        number = int(head.split()[1].lstrip(b"/"))
        fields = b"".join(b"%s: %s\r\n" % field for field in _HEADERS)
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n%s\r\n" % fields)
        for read in self._exchanges[number].reads:
            writer.write(b"%x\r\n%s\r\n" % (len(read.data), read.data))
            await self._read[number].acquire()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def is_same(made: ClientReading, other: ClientReading | None) -> bool:
    """Whether two results are equal; a missing id equals an empty one, empty arguments `{}`."""
    return other is not None and made.errors == other.errors and _calls(made) == _calls(other)


def is_reference(exchange: Exchange, made: ClientReading) -> bool:
    """Whether it equals the result of a correct client."""
    reply = analyse(exchange).reply
    calls = reply.tool_calls or tuple(one.call for one in reply.text_calls)
    right = tuple(
        RepeatedCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls
    )
    return is_same(made, ClientReading(calls=right))


def _calls(made: ClientReading) -> list[tuple[str, str, str]]:
    return [
        (call.id or "", call.name or "", canonical(call.arguments) or call.arguments or "{}")
        for call in made.calls
    ]


def as_data(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as the text of the committed file, one per line."""
    lines = []
    for outcome in outcomes:
        made = outcome.made
        data: dict[str, object] = {"app": outcome.app, "stream": outcome.stream}
        if made.errors:
            (data["error"],) = made.errors
        else:
            data["calls"] = [[call.id, call.name, call.arguments] for call in made.calls]
        if made.text is not None:
            data["text"] = made.text
        lines.append(f"- {json.dumps(data, ensure_ascii=False)}\n")
    return "".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The suspects for the result of an application."""

    outcome: Outcome
    exact: tuple[str, ...]
    """The names of the suspects with exactly the same result, best first."""

    @property
    def place(self) -> int | None:
        """The rank of the first preset that names its mistake; None if there is none."""
        presets = mistakes().get(self.outcome.app[:2], ())
        return next((at for at, name in enumerate(self.exact) if name in presets), None)


@cache
def mistakes() -> Mapping[str, Sequence[str]]:
    """By the number of an application, the presets that name one of its mistakes."""
    presets: Mapping[str, Sequence[str]] = yaml.safe_load((APPS / "mistakes.yaml").read_text())
    return presets


def find_suspects(outcome: Outcome) -> Found:
    """Ask for the suspects of one outcome."""
    exchange = replace(streams()[outcome.stream], source=Source.GATEWAY)
    analysis = analyse(exchange)
    stream = delivered(exchange, analysis.stream, analysis.reply, analysis.request)
    made = outcome.made
    symptom = Symptom(calls=None if made.errors else made.calls, errors=made.errors)
    suspects = suspects_of(stream, symptom, _SUSPECTS)
    return Found(outcome=outcome, exact=tuple(one.name for one in suspects if one.exact))


def page(results: tuple[Found, ...]) -> str:
    """docs/suspects-found.md."""
    apps = dict.fromkeys(one.outcome.app for one in results)
    rows = [_row(app, [one for one in results if one.outcome.app == app]) for app in apps]
    return "".join([_HEAD, *rows, _row("all", list(results))])


def _row(title: str, results: list[Found]) -> str:
    first = sum(one.place == 0 for one in results)
    nobody = sum(not one.exact for one in results)
    missing = sum(one.place is None for one in results) - nobody
    behind = len(results) - first - missing - nobody
    size = median(len(one.exact) for one in results)
    return f"| {title} | {len(results)} | {first} | {behind} | {missing} | {nobody} | {size:g} |\n"
