"""The known defects (tests/defects.yaml), healthy streams to put them in, and the findings.

Healthy streams come from the recordings (`built`) and, where it is, from the corpus: one of each
source and dialect. Those of the corpus are given the times and the ending of a recorder, since
blame depends on it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from deltatape.diagnose.check import check
from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import End, EndReason, Exchange, Framing, Read, Source
from deltatape.model.finding import Blame, Finding, Severity
from deltatape.mutate import MUTATORS, Mutator, SeededChoices
from deltatape.store.reader import open_tape
from helpers import gemini
from helpers.chat import FINISH, URL, calls, choice, entry, request, sse
from helpers.corpus import every_case

TESTS = Path(__file__).resolve().parent.parent
RECORDINGS = TESTS.parent / "recordings" / "dialects"
BUILT = "built"
MS = 1_000_000
_LONG = 30
"""A stream with this many events is long."""
_OF_APPS = ("app-events", "ai-sdk-ui")
"""Dialects of applications: defects there are the application's."""
_SEEDS = 1000
"""More than there are streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A defect."""

    number: int
    name: str
    side: str
    """Who causes it: P provider or gateway, T transport, C client."""
    dialects: str
    codes: tuple[str, ...] = ()
    """One of these must fire."""
    blame: tuple[str, ...] = ("upstream",)
    """Any of these is right."""
    trap: str = ""
    """The reason if it is legal."""
    needs: str = ""
    suspect: str = ""
    what: str = ""
    """How a client with this defect behaves."""

    @property
    def mutator(self) -> Mutator | None:
        """The mutator of the row; None for a defect of clients."""
        return next((each for each in MUTATORS if each.row == self.number), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthy:
    """A stream with tool calls in which nothing is wrong."""

    origin: str
    """`built`, or the source of the capture."""
    name: str
    dialect: str
    exchange: Exchange
    has_tools: bool
    is_long: bool

    def suits(self, row: Row) -> bool:
        """Whether it has what a row's defect needs to show."""
        return {"tools": self.has_tools, "long": self.is_long}.get(row.needs, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A defect in a healthy stream, and the findings on it."""

    row: Row
    healthy: Healthy
    mutated: Exchange
    findings: tuple[Finding, ...]

    @property
    def caught(self) -> tuple[Finding, ...]:
        """The findings that the row expects."""
        return tuple(each for each in self.findings if each.code in self.row.codes)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(each for each in self.findings if each.severity is Severity.ERROR)

    @property
    def is_blamed(self) -> bool:
        """Whether one of the expected findings blames the right party."""
        right = self.row.blame
        if self.healthy.dialect in _OF_APPS and Blame.TRANSPORT not in right:
            right = (Blame.APP,)
        if Blame.TRANSPORT in right:
            right = (Blame.TRANSPORT,) if self.mutated.cut else (Blame.UPSTREAM,)
        return any(each.blame in right for each in self.caught)

    @property
    def as_expected(self) -> bool:
        """Whether the defect is caught with the right blame, or the trap fires no error."""
        return not self.errors if self.row.trap else self.is_blamed


@cache
def rows() -> tuple[Row, ...]:
    """All rows, by number."""
    found = []
    for number, fields in yaml.safe_load((TESTS / "defects.yaml").read_text()).items():
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
        }
        found.append(Row(number=number, **values))
    return tuple(found)


@cache
def healthy() -> tuple[Healthy, ...]:
    """The healthy streams with calls: captured ones, one per source and dialect, and built ones."""
    found: dict[tuple[str, str, bool], Healthy] = {}
    captured = ((case.id, case.source, as_recorded(case.exchange)) for case in every_case())
    for name, origin, exchange in (*captured, *((name, BUILT, each) for name, each in _built())):
        analysis = analyse(exchange)
        if not analysis.reply.tool_calls or any(
            finding.severity is not Severity.INFO for finding in check(exchange)
        ):
            continue
        one = Healthy(
            origin=origin,
            name=name,
            dialect=analysis.reply.dialect,
            exchange=exchange,
            has_tools=bool(analysis.request.tools),
            is_long=len(analysis.stream.events) >= _LONG,
        )
        parallel = len(analysis.reply.tool_calls) > 1
        found.setdefault((one.origin + name * (origin == BUILT), one.dialect, parallel), one)
    return tuple(found.values())


def _same_tool_twice() -> Exchange:
    """Two calls of one tool, which no recording has."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    pieces = [choice({"role": "assistant", "content": None})]
    for place, city in enumerate(("Gent", "Tomar")):
        pieces.append(calls(entry(place, f"call_fake{place}", name="get_weather", arguments="")))
        pieces.append(calls(entry(place, arguments='{"city":')))
        pieces.append(calls(entry(place, arguments=f'"{city}"}}')))
    return _as_exchange(sse(*pieces, FINISH), URL, request(get_weather=schema))


def _call_without_arguments() -> Exchange:
    """The only call is of a tool that needs no arguments."""
    body = sse(
        choice({"role": "assistant", "content": None}),
        calls(entry(0, "call_fake0", name="get_time", arguments="")),
        calls(entry(0, arguments="{}")),
        FINISH,
    )
    return _as_exchange(body, URL, request(get_time={"type": "object", "properties": {}}))


def _streamed_arguments() -> Exchange:
    """Arguments of Gemini in parts, in the event with the finish reason closed by an empty call."""
    city = gemini.piece(jsonPath="$.city", stringValue="Gent")
    body = gemini.sse(
        gemini.candidate(gemini.call("get_weather", willContinue=True)),
        gemini.candidate(gemini.pieces(city)),
        gemini.candidate(gemini.call(), finish="STOP"),
    )
    return _as_exchange(body, gemini.STREAM, {"contents": []})


def _as_exchange(body: bytes, url: str, asked: Mapping[str, object]) -> Exchange:
    return as_recorded(
        Exchange.from_body(body, content_type="text/event-stream", url=url, request=asked)
    )


def _built() -> Iterator[tuple[str, Exchange]]:
    yield "openai-chat-same-tool", _same_tool_twice()
    for path in sorted(RECORDINGS.glob("*.tape")):
        (exchange,) = open_tape(path)
        yield path.stem, exchange
    yield "openai-chat-no-arguments", _call_without_arguments()
    yield "gemini-partial-arguments", _streamed_arguments()


def as_recorded(exchange: Exchange) -> Exchange:
    """An imported exchange as if a gateway had recorded it: a read per event, every 20 ms."""
    body = exchange.body
    ends = [event.end for event in decode(exchange).events]
    starts = [0, *ends]
    pieces = [body[start:end] for start, end in zip(starts, [*ends, len(body)], strict=True)]
    reads = [
        Read(t_ns=(300 + 20 * number) * MS, data=piece, boundaries=(len(piece),), line=None)
        for number, piece in enumerate(pieces)
        if piece
    ]
    digest = hashlib.sha256(body).hexdigest()
    last_ns = reads[-1].t_ns if reads else 0
    return replace(
        exchange,
        source=Source.GATEWAY,
        reads=tuple(reads),
        response=exchange.response
        and replace(exchange.response, framing=Framing.CHUNKED, t_ns=250 * MS),
        end=End(
            t_ns=last_ns + MS,
            reason=EndReason.COMPLETE,
            bytes=len(body),
            sha256=digest,
            detail="",
            recorder={},
            line=None,
        ),
    )


@cache
def trials(row: Row) -> tuple[Trial, ...]:
    """A row's defect in every healthy stream that has a place for it; none without a mutator."""
    mutator = row.mutator
    found: list[Trial] = []
    for place, one in enumerate(healthy()):
        if mutator is None or one.dialect not in mutator.dialects or not one.suits(row):
            continue
        mutated = mutator.mutate(one.exchange, SeededChoices(_SEEDS * row.number + place))
        if mutated is not None:
            findings = check(mutated)
            found.append(Trial(row=row, healthy=one, mutated=mutated, findings=findings))
    return tuple(found)
