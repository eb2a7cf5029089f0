"""The provider of the runs: one tool call, then a text; healthy, or broken in a known way.

What it says depends on the request alone: a request that offers the tool and has no result of a
call yet gets the call, any other one, such as for a title, a text. So a program that asks again
after a broken stream gets the same broken stream.
"""

import asyncio
import contextlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from framework_tapes import responses
from framework_tapes.saying import Made, Offered, Saying, words
from framework_tapes.script import pieces, token
from framework_tapes.server import asked_of

from deltatape.model.content_coding import decode_body, parse_codings
from deltatape.model.websocket import TEXT, FrameHead
from deltatape.wire.websocket import encode_head

HEALTHY, EMPTY, CUT, SPLIT = "healthy", "empty", "cut", "split"
WAYS = (HEALTHY, EMPTY, CUT, SPLIT)
"""Healthy; a call without arguments; a connection that ends in the arguments; characters cut over
reads, which is healthy, too."""

DONE = "All done: Grüße, 東京."
"""The text after the call, and to requests without the tool."""
_FRAGMENT = 11
"""Characters of arguments in an event."""
_STEP_S = 0.003
"""Between two writes, so that each is a read of its own."""
_CHARACTER = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")


@dataclass(slots=True)
class Provider:
    """What a running provider says, and what it was asked."""

    tool: str
    arguments: str
    way: str
    attempts: int = 0
    """How many requests got the call, or without a tool the text."""
    told: str = ""
    """The first result of a call."""
    problems: list[str] = field(default_factory=list)
    """Requests that could not be answered."""

    def saying(self, asked: dict[str, Any], offered: Offered) -> Saying:
        """The answer to a request."""
        result = result_of_call(asked)
        self.told = self.told or result or ""
        calls = self.tool in offered.tools and result is None
        if calls or not self.tool:
            self.attempts += 1
        if calls:
            text = "" if self.way == EMPTY else self.arguments
            fragments = tuple(pieces(text, _FRAGMENT))
            call = Made(id=token("call", 20), name=self.tool, arguments=text, fragments=fragments)
            return Saying(seed=token("calls", 29), thinking="", text="", calls=(call,))
        text = json.dumps(_example(offered.schema)) if offered.as_text else self._text()
        return Saying(seed=token("says", 29), thinking="", text=text, calls=())

    def _text(self) -> str:
        return "" if self.way == EMPTY and not self.tool else DONE

    def writes(self, answer: Iterator[bytes], saying: Saying) -> tuple[list[bytes], bool]:
        """An answer as it is written, and whether it then ends as HTTP wants it."""
        parts = list(answer)
        body = b"".join(parts)
        if self.way == CUT and (at := self._half(body, saying)):
            return [body[:at]], False
        if self.way == SPLIT:
            cuts = [each.start() + 1 for each in _CHARACTER.finditer(body)]
            edges = [0, *cuts, len(body)]
            return [body[begin:end] for begin, end in itertools.pairwise(edges)], True
        return parts, True

    def _half(self, body: bytes, saying: Saying) -> int:
        """Where half of the arguments, or without a tool of the text, was said; 0: not cut."""
        said = [fragment for call in saying.calls for fragment in call.fragments]
        if not self.tool:
            said = list(words(saying.text))
        if not said:
            return 0
        half = said[len(said) // 2]
        spellings = (half, json.dumps(half, ensure_ascii=False)[1:-1])
        return max(body.find(each.encode()) for each in spellings) + 2


def _example(schema: Any) -> Any:
    """A value that a JSON Schema, as far as it goes in requests, accepts."""
    if not isinstance(schema, dict):
        return "Notes"
    if choices := schema.get("enum"):
        return choices[0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        members = schema.get("properties") or {"title": {"type": "string"}}
        return {name: _example(each) for name, each in members.items()}
    plain = {"number": 1, "integer": 1, "boolean": True, "array": []}
    return plain.get(kind, "Notes")


def result_of_call(asked: dict[str, Any]) -> str | None:
    """The result of the first call in the history of a request, in any dialect; None without."""
    history = asked.get("messages") or asked.get("input") or asked.get("contents") or ()
    for message in history:
        if not isinstance(message, dict):
            continue
        content = message.get("content") or message.get("parts")
        for part in (message, *(content if isinstance(content, list) else ())):
            if isinstance(part, dict) and _is_result(part):
                return " ".join(_texts(part))
    return None


def _is_result(part: dict[str, Any]) -> bool:
    kind = str(part.get("type", ""))
    named = kind == "tool_result" or kind.endswith("_call_output") or "functionResponse" in part
    return named or part.get("role") == "tool"


_NAMES = frozenset(
    ("id", "name", "role", "type", "call_id", "tool_call_id", "tool_use_id", "turn_id")
)
"""Members that say nothing."""


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value, but for names and ids."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in _NAMES:
                yield from _texts(each)


@contextlib.asynccontextmanager
async def serving(provider: Provider) -> AsyncIterator[str]:
    """Serve on a free port; yields the URL."""
    application = web.Application(client_max_size=20_000_000)

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await _answer(provider, request)
        except Exception as error:
            provider.problems.append(f"{request.path}: {error!r}")
            raise

    application.router.add_route("*", "/{path:.*}", handle)
    # aiohttp knows no zstd.
    runner = web.AppRunner(application, shutdown_timeout=1, auto_decompress=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _answer(provider: Provider, request: web.Request) -> web.StreamResponse:
    if "upgrade" in request.headers:
        return await _converse(provider, request)
    if request.method != "POST":
        return web.json_response({"object": "list", "data": []})
    codings = parse_codings(request.headers.get("content-encoding", "").encode())
    asked: dict[str, Any] = json.loads(decode_body(await request.read(), codings).data or b"{}")
    if "count" in request.path.rpartition("/")[2]:
        return web.json_response({"input_tokens": 60, "totalTokens": 60})
    found = asked_of(request.path, asked)
    if found is None:
        error = {"error": {"message": f"no such endpoint: {request.path}"}}
        return web.json_response(error, status=404)
    dialect, streamed = found
    saying = provider.saying(asked, dialect.offered(asked))
    if streamed:
        kind, parts = "text/event-stream; charset=utf-8", dialect.events(asked, saying)
    else:
        kind, parts = "application/json", iter([dialect.whole(asked, saying).encode()])
    response = web.StreamResponse(headers={"content-type": kind})
    await response.prepare(request)
    writes, ends = provider.writes(parts, saying)
    for piece in writes:
        await asyncio.sleep(_STEP_S)
        await response.write(piece)
    if not ends:
        assert request.transport is not None
        request.transport.close()
        return response
    await response.write_eof()
    return response


async def _converse(provider: Provider, request: web.Request) -> web.StreamResponse:
    """Answer requests of the Responses API on a WebSocket."""
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    transport = request.transport
    assert transport is not None
    async for message in socket:
        asked = json.loads(message.data) if message.type is WSMsgType.TEXT else {}
        if asked.get("generate") is False:  # the conversation is said in advance
            saying = Saying(seed=token("warms up", 29), thinking="", text="", calls=())
        else:
            saying = provider.saying(asked, responses.offered(asked))
        frames = map(_frame, responses.events(asked, saying))
        writes, ends = provider.writes(frames, saying)
        for piece in writes:
            await asyncio.sleep(_STEP_S)
            transport.write(piece)
        if not ends:
            transport.close()
            break
    return socket


def _frame(event: bytes) -> bytes:
    """A message on a WebSocket with the data of an event."""
    data = event.partition(b"data: ")[2].strip()
    return encode_head(FrameHead(TEXT, len(data))) + data
