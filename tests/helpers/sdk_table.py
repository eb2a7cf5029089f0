"""How real SDKs read streams, in one word per stream: for docs/sdks.md and its test.

The words: `same` as the reference; what differs otherwise. An application learns of an exception,
and of a call that the SDK itself marks as unusable; what else differs begins with `silently`.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import yaml

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.model.reply import CallKind
from deltatape.model.request_summary import RepeatedCall
from deltatape.sdks.runner import (
    Environment,
    SdkReply,
    SdkStream,
    node_environment,
    python_environment,
    run_sdk,
)
from deltatape.wire.json_value import canonical
from helpers.clients import CLIENTS, PYTHON
from helpers.corpus import cases
from helpers.vectors import RESPONSES, VECTORS

DATA = CLIENTS / "sdk-table.yaml"
CHAT, OTHER, CLAUDE, GEMINI = "openai-chat", "openai-responses", "anthropic-messages", "gemini"
_URLS = {CHAT: "http://p.example/v1/chat/completions", OTHER: "http://p.example/v1/responses"}
SAME = "same"
SILENTLY = "silently: "
AT_ONCE = 2
LIMIT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """An SDK, and the dialects that it reads."""

    name: str
    environment: Environment
    dialects: tuple[str, ...]

    @property
    def installed(self) -> bool:
        """Whether it can be run here."""
        folder = self.environment.folder
        if folder == CLIENTS:
            return (folder / "node_modules" / self.environment.package).is_dir()
        module = self.environment.package.replace("-", "_")
        return any(PYTHON.parent.parent.glob(f"lib/*/site-packages/{module}-*.dist-info"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A stream, and the calls of a correct client."""

    name: str
    dialect: str
    exchange: Exchange
    calls: tuple[RepeatedCall, ...]

    @property
    def stream(self) -> SdkStream:
        """The stream, and the tools that its calls call."""
        tools = dict.fromkeys(call.name for call in self.calls if call.name)
        return SdkStream(exchange=self.exchange, dialect=self.dialect, tools=tuple(tools))


def _python(name: str, package: str, *dialects: str) -> Column:
    return Column(name=name, environment=python_environment(package, PYTHON), dialects=dialects)


def _node(name: str, package: str, *dialects: str) -> Column:
    return Column(name=name, environment=node_environment(package, CLIENTS), dialects=dialects)


COLUMNS = (
    _python("openai, Python", "openai", CHAT, OTHER),
    _node("openai, Node", "openai", CHAT, OTHER),
    _python("LangChain", "langchain-openai", CHAT, OTHER),
    _python("LiteLLM", "litellm", CHAT, CLAUDE),
    _node("AI SDK", "ai", CHAT, OTHER, CLAUDE),
    _node("AI SDK, openai.chat", "@ai-sdk/openai", CHAT),
    _python("anthropic, Python", "anthropic", CLAUDE),
    _node("anthropic, Node", "@anthropic-ai/sdk", CLAUDE),
    _python("google-genai", "google-genai", GEMINI),
)


@cache
def vectors() -> tuple[Row, ...]:
    """The synthetic streams."""
    return tuple(
        Row(
            name=vector.name,
            dialect=dialect,
            exchange=Exchange.from_body(
                vector.body, content_type="text/event-stream", url=_URLS[dialect]
            ),
            calls=tuple(
                RepeatedCall(id=call_id, name=name, arguments=arguments)
                for call_id, name, arguments in vector.calls
            ),
        )
        for dialect, group in ((CHAT, VECTORS), (OTHER, RESPONSES))
        for vector in group
    )


@cache
def captured() -> tuple[Row, ...]:
    """The corpus's event streams with calls, all of functions that the application runs."""
    found = []
    for dialect in (CHAT, OTHER, CLAUDE, GEMINI):
        for case in cases(dialect):
            calls = analyse(case.exchange).reply.tool_calls
            kinds = {call.kind for call in calls}
            if case.events is not None and kinds == {CallKind.FUNCTION}:
                repeated = tuple(
                    RepeatedCall(id=call.id, name=call.name, arguments=call.arguments)
                    for call in calls
                )
                found.append(
                    Row(name=case.id, dialect=dialect, exchange=case.exchange, calls=repeated)
                )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkResults:
    """The results of the SDKs: the versions by column, and a word by column and row."""

    versions: Mapping[str, Mapping[str, str]]
    words: Mapping[str, Mapping[str, str]]
    """The words other than `same`."""


def written() -> SdkResults:
    """The committed results."""
    found = yaml.safe_load(DATA.read_text())
    return SdkResults(versions=found["versions"], words=found["words"])


def measured(columns: Sequence[Column], rows: Sequence[Row]) -> SdkResults:
    """Run the installed SDKs on the streams."""

    async def all_of_them() -> list[tuple[Mapping[str, str], dict[str, str]]]:
        free = asyncio.Semaphore(AT_ONCE)
        return await asyncio.gather(*(_measure(column, rows, free) for column in columns))

    found = dict(zip((column.name for column in columns), asyncio.run(all_of_them()), strict=True))
    return SdkResults(
        versions={name: dict(versions) for name, (versions, _) in found.items()},
        words={name: words for name, (_, words) in found.items()},
    )


async def _measure(
    column: Column, rows: Sequence[Row], free: asyncio.Semaphore
) -> tuple[Mapping[str, str], dict[str, str]]:
    own = [row for row in rows if row.dialect in column.dialects]
    async with free:
        run = await run_sdk(column.environment, [row.stream for row in own], limit_s=LIMIT_S)
    words = {row.name: word(row.calls, reply) for row, reply in zip(own, run.replies, strict=True)}
    return run.versions, {name: one for name, one in words.items() if one != SAME}


def word(reference: Sequence[RepeatedCall], reply: SdkReply) -> str:
    """How the result of an SDK differs from the reference.

    A call whose arguments are cut may be kept back: nobody could run it.
    """
    if reply.error:
        passed_on = f", gives {_number(len(reply.calls))}" if reply.calls else ""
        return f"raises {reply.error.partition(':')[0]}{passed_on}"
    aspects, left = _aspects(reference, reply.calls)
    lost = [call for call in left if canonical(call.arguments or "{}") is not None]
    kept_back = len(left) - len(lost)
    missing = len(lost) - max(len(reply.refused) - kept_back, 0)
    different = []
    if missing > 0:
        different.append(f"{_number(missing)} lost")
    if len(reply.calls) > len(reference):
        different.append(f"{_number(len(reply.calls) - len(reference))} too many")
    different += aspects
    if reply.refused:
        return ", ".join([f"marks {_number(len(reply.refused))} invalid", *different])
    if different:
        return SILENTLY + ", ".join(different)
    return f"keeps {_number(kept_back)} back" if kept_back else SAME


def _number(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def _aspects(
    reference: Sequence[RepeatedCall], calls: Sequence[RepeatedCall]
) -> tuple[list[str], list[RepeatedCall]]:
    """The differing aspects of the calls, and the reference's calls that the SDK has."""
    left, found = list(reference), set()
    for call, twin in _pairs(calls, left):
        if (call.name or "") != (twin.name or ""):
            found.add("name")
        if twin.id and call.id != twin.id:
            found.add("id")
        if _value(call.arguments) != _value(twin.arguments):
            found.add("arguments")
    return [aspect for aspect in ("name", "id", "arguments") if aspect in found], left


def _pairs(
    calls: Sequence[RepeatedCall], left: list[RepeatedCall]
) -> Iterator[tuple[RepeatedCall, RepeatedCall]]:
    """Pair each call with one of the reference: by id, else by name, else the next one.

    Those are taken out of `left`.
    """
    waiting = list(calls)
    for same in (
        lambda call, one: bool(one.id) and one.id == call.id,
        lambda call, one: one.name == call.name,
        lambda _call, _one: True,
    ):
        for call in tuple(waiting):
            twin = next((one for one in left if same(call, one)), None)
            if twin is not None:
                left.remove(twin)
                waiting.remove(call)
                yield call, twin


def _value(arguments: str) -> str:
    """Arguments as an application parses them: empty ones are `{}`, also if encoded twice."""
    value = canonical(arguments)
    if value is not None and value.startswith('"'):
        return canonical(json.loads(value)) or value
    return value or arguments or "{}"
