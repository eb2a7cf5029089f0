"""How real SDKs read variations of healthy streams: for docs/torture-sdks.md and its test.

Each SDK reads the stream as it is and then varied; the word for a variation tells how what it gives
to its application differs from what it gives of the whole stream.
"""

import asyncio
import gzip
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import yaml

from deltatape.diagnose.rebuild import analyse
from deltatape.match.schedule import RECORDED
from deltatape.model.exchange import Exchange, header
from deltatape.sdks.runner import SdkReply, SdkRun, SdkStream, run_sdk
from deltatape.store.reader import open_tape
from deltatape.trials.torture_plan import tasks
from deltatape.vary.coded_bodies import coded, plain
from deltatape.vary.variation import VARIATIONS, Variation
from helpers.clients import CLIENTS, ROOT
from helpers.sdk_table import CHAT, CLAUDE, COLUMNS, GEMINI, OTHER, SAME, SILENTLY, Column, word

DATA = CLIENTS / "sdk-torture.yaml"
REASONS = CLIENTS / "sdk-torture-reasons.yaml"
DIALECTS = (CHAT, OTHER, CLAUDE, GEMINI)
HARMLESS = frozenset(one.name for one in VARIATIONS if one.harmless)
SEEDS = (1, 2, 3)
HANGS = "hangs"
STALL = "stall"
"""The first words of variations that are tried once, as each costs seconds."""
FINISH = "only its finish tells,"
"""What an application learns that looks at why the answer ended."""
GOOD = frozenset({"stop", "tool_calls", "tool-calls", "end_turn", "tool_use", "completed", "STOP"})
"""Finish reasons of a complete answer."""
GZIP = "in gzip, "
LIMIT_S = 13.0
"""Longer than the timeout of ten seconds that the SDKs get."""
BUSY_LIMIT_S = 120.0
"""For streams without a stall: only a busy machine makes them slow."""
AT_ONCE = 2
IDLE_AT_ONCE = 9
"""How many SDKs may wait for a timeout at the same time."""

Words = Mapping[str, Mapping[str, str]]
"""By dialect and by variation, those that are not `same`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A stream for an SDK: a variation of the one of its dialect."""

    dialect: str
    name: str
    """Of the variation; "" for the stream as it is."""
    seed: int | None
    exchange: Exchange

    @property
    def waits(self) -> bool:
        """Whether nothing comes for a long time."""
        return self.name.startswith(STALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkResults:
    """By column its versions and words, and a digest of the streams that the words are about."""

    inputs: str
    versions: Mapping[str, Mapping[str, str]]
    words: Mapping[str, Words]


def stream(dialect: str) -> Exchange:
    """The healthy one: text, two calls, characters beyond ASCII, usage."""
    (exchange,) = open_tape(ROOT / "recordings" / "dialects" / f"{dialect}.tape")
    return exchange


@cache
def cases(dialect: str) -> tuple[Case, ...]:
    """The stream of a dialect, plain and in gzip, as it is and in all variations."""
    plain = stream(dialect)
    packed = coded(plain, ("gzip",))
    assert packed is not None
    assert gzip.decompress(packed.body) == plain.body
    return (
        *_cases(dialect, "", plain, VARIATIONS),
        *_cases(dialect, GZIP, packed, [one for one in VARIATIONS if one.harmless]),
    )


def _cases(
    dialect: str, prefix: str, exchange: Exchange, variations: Sequence[Variation]
) -> Iterator[Case]:
    yield Case(dialect=dialect, name=prefix, seed=None, exchange=exchange)
    for task in tasks(variations, [exchange], [0], SEEDS):
        silent = task.variation.name.startswith(STALL)
        for attempt in task.tries[: 1 if silent else None]:
            yield Case(
                dialect=dialect,
                name=prefix + task.variation.name,
                seed=attempt.seed,
                exchange=attempt.varied[0],
            )


def inputs() -> str:
    """A digest of all streams, to notice when the committed results are outdated.

    The same wherever it is made: of what is compressed it is about what is in it, since how it is
    compressed is the library's to decide.
    """
    digest = hashlib.sha256()
    for dialect in DIALECTS:
        for case in cases(dialect):
            digest.update(repr((dialect, case.name, case.seed, *_content(case.exchange))).encode())
    return digest.hexdigest()


def _content(exchange: Exchange) -> Iterator[object]:
    response, end = exchange.response, exchange.end
    assert response is not None
    yield response.status
    yield None if end is None else end.reason
    if header(response.headers, "content-encoding") is None:
        yield [(read.data, read.boundaries) for read in exchange.reads]
    else:
        bare = plain(exchange)
        yield None if bare is None else bare.body


def written() -> SdkResults:
    """The committed results."""
    found = yaml.safe_load(DATA.read_text())
    return SdkResults(inputs=found["inputs"], versions=found["versions"], words=found["words"])


def measured(
    columns: Sequence[Column] = COLUMNS, selected: Callable[[Case], bool] = lambda _: True
) -> SdkResults:
    """Run the installed SDKs on the streams.

    Args:
        columns: the SDKs.
        selected: which streams; those that are as they are must be among them.
    """
    return asyncio.run(_measured(columns, selected))


async def _measured(columns: Sequence[Column], selected: Callable[[Case], bool]) -> SdkResults:
    quick = await _replies(columns, AT_ONCE, lambda case: selected(case) and not case.waits)
    slow = await _replies(columns, IDLE_AT_ONCE, lambda case: selected(case) and case.waits)
    words: dict[str, Words] = {}
    for column in columns:
        replies_by_case = {**quick[column.name][1], **slow[column.name][1]}
        words[column.name] = {
            dialect: _words(dialect, replies_by_case)
            for dialect in DIALECTS
            if dialect in column.dialects
        }
    versions = {column.name: dict(quick[column.name][0]) for column in columns}
    return SdkResults(inputs=inputs(), versions=versions, words=words)


_Key = tuple[str, str, int | None]
_Replies = Mapping[_Key, SdkReply]


async def _replies(
    columns: Sequence[Column], at_once: int, selected: Callable[[Case], bool]
) -> dict[str, tuple[Mapping[str, str], _Replies]]:
    free = asyncio.Semaphore(at_once)

    async def one(column: Column) -> tuple[Mapping[str, str], _Replies]:
        every = (case for dialect in column.dialects for case in cases(dialect))
        own = [case for case in every if selected(case)]
        if not own:
            return {}, {}
        async with free:
            run = await _run(column, own)
        keys = ((case.dialect, case.name, case.seed) for case in own)
        return run.versions, dict(zip(keys, run.replies, strict=True))

    found = await asyncio.gather(*map(one, columns))
    return dict(zip((column.name for column in columns), found, strict=True))


async def _run(column: Column, own: Sequence[Case]) -> SdkRun:
    return await run_sdk(
        column.environment,
        [_sdk_stream(case) for case in own],
        limit_s=LIMIT_S if any(case.waits for case in own) else BUSY_LIMIT_S,
        tempo=RECORDED,
        hold_s=2 * LIMIT_S,
    )


def _sdk_stream(case: Case) -> SdkStream:
    tools = dict.fromkeys(
        call.name or "" for call in analyse(stream(case.dialect)).reply.tool_calls
    )
    return SdkStream(exchange=case.exchange, dialect=case.dialect, tools=tuple(tools))


def _words(dialect: str, replies_by_case: _Replies) -> dict[str, str]:
    """By variation, how the result of an SDK differs, with the first seed for which it does."""
    unvaried = replies_by_case[dialect, "", None]
    found: dict[str, str] = {}
    for (of, name, seed), reply in replies_by_case.items():
        if of != dialect or name in found:
            continue
        difference = varied_word(unvaried, reply)
        if difference != SAME:
            found[name] = difference if seed in (None, SEEDS[0]) else f"{difference} (seed {seed})"
    return found


def varied_word(unvaried: SdkReply, reply: SdkReply) -> str:
    """How an SDK's result for a varied stream differs from that for the unvaried one."""
    if reply.error.startswith("Timeout: no end after"):  # the runner's words
        return HANGS
    difference = word(unvaried.calls, reply)
    if not difference.startswith((SAME, SILENTLY)):
        return difference
    lost = [] if difference == SAME else [difference.removeprefix(SILENTLY)]
    if reply.text != unvaried.text:
        lost.append("text cut" if unvaried.text.startswith(reply.text) else "text")
    if reply.finish == unvaried.finish:
        return SILENTLY + ", ".join(lost) if lost else SAME
    if reply.finish in GOOD:
        return SILENTLY + ", ".join([*lost, f"finish {reply.finish}"])
    return ": ".join(filter(None, (f"{FINISH} {reply.finish}", ", ".join(lost))))


def replies(column: str, variation: str) -> Iterator[tuple[Case, SdkReply]]:
    """The results of one SDK for the unvaried streams, and for one variation of them."""
    (found,) = (one for one in COLUMNS if one.name == column)
    own = [
        case
        for dialect in found.dialects
        for case in cases(dialect)
        if case.name.removeprefix(GZIP) in ("", variation)
    ]
    run = asyncio.run(_run(found, own))
    yield from zip(own, run.replies, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why the cells of these columns, variations and dialects fail."""

    columns: Sequence[str]
    variations: Sequence[str]
    """`end-...` is every variation that begins so."""
    text: str
    dialects: Sequence[str] = DIALECTS

    def explains(self, column: str, dialect: str, variation: str) -> bool:
        """Whether it is about a cell."""
        plain = variation.removeprefix(GZIP)
        return (
            column in self.columns
            and dialect in self.dialects
            and any(
                plain == name or (name.endswith("...") and plain.startswith(name[:-3]))
                for name in self.variations
            )
        )


@cache
def reasons() -> tuple[Reason, ...]:
    """Read the explanations of all failures, in the order of their numbers."""
    return tuple(Reason(**one) for one in yaml.safe_load(REASONS.read_text()))


def reason_of(column: str, dialect: str, name: str) -> int | None:
    """The number of the explanation of a cell, from 1."""
    for number, reason in enumerate(reasons(), 1):
        if reason.explains(column, dialect, name):
            return number
    return None


def failures(results: SdkResults) -> Iterator[tuple[str, str, str]]:
    """The cells that fail: column, dialect, variation."""
    for column in COLUMNS:
        for dialect, words in results.words[column.name].items():
            for name in words:
                if is_failure(name, words[name]):
                    yield column.name, dialect, name


def is_failure(name: str, word: str) -> bool:
    """Whether a harmless variation changed anything, or a hostile one went unnoticed."""
    if name.removeprefix(GZIP) in HARMLESS:
        return word != SAME
    return word.startswith((SILENTLY, FINISH, HANGS))
