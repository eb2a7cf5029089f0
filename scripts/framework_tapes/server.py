"""The provider as an HTTP server on loopback."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from framework_tapes import anthropic, chat, gemini, responses
from framework_tapes.saying import Json, Offered, Saying, made
from framework_tapes.script import Fail, Reply, Step, first_prompts, steps, token

_STEP_S = 0.004
"""Between two writes of a stream."""
_READ = 700
"""Bytes of a write, of several events at once; it ends within characters, too."""


class Dialect(Protocol):
    """How a module of a dialect looks; see there."""

    def offered(self, asked: Json) -> Offered:
        """What a request offers."""

    def events(self, asked: Json, saying: Saying) -> Iterator[bytes]:
        """The streamed answer, event by event."""

    def whole(self, asked: Json, saying: Saying) -> str:
        """The answer in one piece."""

    def error(self, fail: Fail) -> Json:
        """The body of an error."""


@dataclass(slots=True)
class Script:
    """How far each conversation has come."""

    taken: Counter[str] = field(default_factory=Counter)
    first: Mapping[str, tuple[str, str]] = field(default_factory=first_prompts)
    """Scenario and city by the prompt that begins their conversation."""
    problems: list[str] = field(default_factory=list)
    """Requests that could not be answered."""

    def next(self, body: str) -> tuple[Step, str]:
        """The next step of the conversation that a request belongs to, and its seed.

        A framework that asks more often than the script foresees gets the last step again.
        """
        scenario, city = next(told for prompt, told in self.first.items() if prompt in body)
        every = steps(scenario, city)
        at = min(self.taken[f"{scenario}/{city}"], len(every) - 1)
        self.taken[f"{scenario}/{city}"] += 1
        return every[at], token(f"{scenario}/{city}/{at}", 29)


@contextlib.asynccontextmanager
async def provider() -> AsyncIterator[tuple[str, Script]]:
    """A provider on a free port; yields its URL, and what it has answered so far."""
    script = Script()
    application = web.Application(client_max_size=10_000_000)

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await _answer(script, request)
        except Exception as error:
            script.problems.append(f"{request.path}: {error!r}")
            raise

    application.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=1)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", script
    finally:
        await runner.cleanup()


def asked_of(path: str, asked: dict[str, Any]) -> tuple[Dialect, bool] | None:
    """The dialect of a request, and whether its answer is a stream; None for another endpoint.

    Gemini's requests have the model in the path: it is put into `asked`.
    """
    by_path: dict[str, Dialect] = {
        "/chat/completions": chat,
        "/responses": responses,
        "/v1/messages": anthropic,
    }
    for ending, dialect in by_path.items():
        if path.endswith(ending):
            return dialect, chat.is_streamed(asked)
    model, _, method = path.rpartition("/models/")[2].partition(":")
    if "/models/" in path and method in {"generateContent", "streamGenerateContent"}:
        asked["model"] = model
        return gemini, method.startswith("stream")
    return None


async def _answer(script: Script, request: web.Request) -> web.StreamResponse:
    asked: dict[str, Any] = json.loads(await request.text())
    if found := asked_of(request.path, asked):
        dialect, streamed = found
        return await _say(request, dialect, asked, script, streamed=streamed)
    error = {"error": {"message": f"no such endpoint: {request.path}"}}
    return web.json_response(error, status=404)


async def _say(
    request: web.Request, dialect: Dialect, asked: Json, script: Script, *, streamed: bool
) -> web.StreamResponse:
    step, seed = script.next(json.dumps(asked, ensure_ascii=False))
    if isinstance(step, Fail):
        headers = {"retry-after": str(step.retry_after_s)} if step.retry_after_s else {}
        return web.json_response(dialect.error(step), status=step.status, headers=headers)
    assert isinstance(step, Reply)
    saying = made(step, dialect.offered(asked), seed)
    if not streamed:
        text = dialect.whole(asked, saying)
        return web.Response(text=text, content_type="application/json")
    response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    for piece in _reads(dialect.events(asked, saying)):
        await asyncio.sleep(_STEP_S)
        await response.write(piece)
    await response.write_eof()
    return response


def _reads(events: Iterable[bytes]) -> Iterator[bytes]:
    """A stream in pieces that end where they may: at events, in them, within a character."""
    body = b"".join(events)
    return (body[at : at + _READ] for at in range(0, len(body), _READ))
