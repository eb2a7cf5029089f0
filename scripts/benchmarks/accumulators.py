"""Bytes to reply, beside the accumulators of the official SDKs: same bodies, interleaved.

Two programs run throughout, `measure_rebuild` and `measure_sdk`. Each body is sent to both in turn,
round by round. Both must return the same text and the same arguments.
"""

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.languages import ANTHROPIC, CHAT, RESPONSES, Language
from benchmarks.markdown import markdown
from benchmarks.measure import BenchError
from benchmarks.processes import outside
from benchmarks.proxies import ROOT, SCRIPTS
from benchmarks.sample_reply import LONG, SHORT, sample_reply

CLIENTS = ROOT / ".venv-clients" / "bin" / "python"
_DELTAS = 2000
_QUICK_DELTAS = 100
_LENGTHS = {"short": SHORT, "long": LONG}
_LANGUAGES = {
    CHAT: "openai `chat.completions.stream`",
    RESPONSES: "openai `responses.stream`",
    ANTHROPIC: "anthropic `messages.stream`",
}
_OURS, _SDK = "deltatape", "sdk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One body in one round: seconds of CPU time, ours in all and for two parts, and the SDK's."""

    round: int
    language: str
    deltas: str
    events: int
    bytes: int
    ours: float
    framing: float
    json: float
    sdk: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulated:
    """What a run gave.

    Attributes:
        timings: in the order in which they were taken.
        versions: of the SDKs.
        absent: why nothing could be compared; "" where it was.
        faults: answers that differ, as sentences.
    """

    timings: Sequence[Timing]
    versions: Mapping[str, str]
    absent: str
    faults: Sequence[str]


def run_accumulators(rounds: int, log: Callable[[str], None], *, quick: bool) -> Accumulated:
    """Measure.

    Raises:
        BenchError: one of the programs ended by itself.
    """
    timings: list[Timing] = []
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="deltatape-bench-") as folder:
        bodies = list(_bodies(Path(folder), _QUICK_DELTAS if quick else _DELTAS))
        try:
            with _program("measure_rebuild", sys.executable) as ours, _sdks() as sdk:
                versions = sdk.versions
                for number in range(rounds + 1):  # 0 only warms up: caches, imports, schemas
                    for body in bodies:
                        answers = ours.ask(body), sdk.ask(body)
                        if number:
                            timings.append(_timing(number, body, *answers))
                            log(_shown(timings[-1]))
                            faults += _differences(body, *answers)
        except _AbsentError as why:
            return Accumulated(timings=(), versions={}, absent=str(why), faults=())
    return Accumulated(timings=timings, versions=versions, absent="", faults=faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    language: str
    deltas: str
    events: int
    file: Path


def _bodies(folder: Path, deltas: int) -> Iterator[_Body]:
    for language in _LANGUAGES:
        for name, lengths in _LENGTHS.items():
            reply = sample_reply(deltas, lengths)
            file = folder / f"{language.name}-{name}"
            file.write_bytes(language.body(reply))
            events = len(reply.text) + len(reply.arguments)
            yield _Body(language=language.name, deltas=name, events=events, file=file)


class _AbsentError(Exception):
    """There are no SDKs to compare with."""


class _Program:
    """One of the two programs, running."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name = name
        self._process = process
        self.versions: Mapping[str, str] = json.loads(self._line() or "{}")

    def ask(self, body: _Body) -> Mapping[str, float | str]:
        """What it has measured."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{json.dumps([body.language, str(body.file)])}\n")
            self._process.stdin.flush()
        line = self._line()
        if not line:
            raise BenchError(f"{self._name} has ended at {body.file.name}")
        answer: Mapping[str, float | str] = json.loads(line)
        return answer

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def _program(name: str, python: str | Path) -> Iterator[_Program]:
    process = subprocess.Popen(
        [str(python), "-m", f"benchmarks.{name}"],
        env={**outside(), "PYTHONPATH": str(SCRIPTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _Program(name, process)
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def _sdks() -> Iterator[_Program]:
    if not CLIENTS.exists():
        raise _AbsentError("the official SDKs are not installed; scripts/setup clients does that")
    with _program("measure_sdk", CLIENTS) as program:
        if not program.versions:
            raise _AbsentError(f"{CLIENTS} lacks an SDK; scripts/setup clients installs them")
        yield program


def _timing(
    number: int, body: _Body, ours: Mapping[str, float | str], sdk: Mapping[str, float | str]
) -> Timing:
    return Timing(
        round=number,
        language=body.language,
        deltas=body.deltas,
        events=body.events,
        bytes=body.file.stat().st_size,
        ours=float(ours["seconds"]),
        framing=float(ours["framing"]),
        json=float(ours["json"]),
        sdk=float(sdk["seconds"]),
    )


def _differences(
    body: _Body, ours: Mapping[str, float | str], sdk: Mapping[str, float | str]
) -> Iterator[str]:
    for part in ("text", "arguments"):
        if ours[part] != sdk[part]:
            yield f"{body.file.name}: deltatape and the SDK differ in the {part}"


def _shown(timing: Timing) -> str:
    return (
        f"round {timing.round}, {timing.language} {timing.deltas}: {_us(timing.ours, timing):.2f}"
        f" us/event, the SDK {_us(timing.sdk, timing):.2f}, {timing.sdk / timing.ours:.1f} times"
    )


def _us(seconds: float, timing: Timing) -> float:
    return seconds * 1e6 / timing.events


_TITLE = "Bytes to reply, beside the SDKs' accumulators"
_HEADS = (
    "body",
    "deltas",
    "events",
    "KiB",
    "µs/event",
    "of it framing",
    "JSON",
    "reducing",
    "beside",
    "its µs/event",
    "times faster",
)


def accumulators_section(outcome: Accumulated) -> str:
    """The section of the page."""
    if outcome.absent:
        return f"## {_TITLE}\n\nNot measured: {outcome.absent}.\n"
    rows = [_HEADS, ("---", "---", *["---:"] * 6, "---", "---:", "---:")]
    for language, sdk in _LANGUAGES.items():
        rows += [_row(outcome, language, name, sdk) for name in _LENGTHS]
    table = markdown(rows)
    versions = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    return f"## {_TITLE}\n\n{_ABOUT.format(versions=versions)}\n{table}"


_ABOUT = """\
One process of deltatape and one of the SDKs ({versions}) get the same body, whole and in memory,
in turn; nothing is sent. Ours is `Exchange.from_body` and `rebuild`, with the spans, places and
pieces that findings are told by. The SDK's is its documented way to a final message; its clock
runs from the open stream on, so that its client's request is not in it. Both must come to the same
text and arguments, or the run fails. CPU time, median of the rounds; *times faster* is the median
of the quotients within each round. *short* deltas have 1 to 4 characters, *long* ones 40 to 160;
half of them are text, half arguments. Framing is measured once more by itself, and so is parsing
every event as JSON, which deltatape spares itself where an event is like the one before: the two
may come to more than the whole. *Reducing* is what is left, if anything.
"""


def _row(outcome: Accumulated, language: Language, deltas: str, sdk: str) -> tuple[str, ...]:
    found = [
        each for each in outcome.timings if (each.language, each.deltas) == (language.name, deltas)
    ]
    median = statistics.median
    framing = median(each.framing / each.ours for each in found)
    json_share = median(each.json / each.ours for each in found)
    times = [each.sdk / each.ours for each in found]
    return (
        language.name,
        deltas,
        str(found[0].events),
        str(found[0].bytes // 1024),
        f"{median(_us(each.ours, each) for each in found):.1f}",
        f"{framing:.0%}",
        f"{json_share:.0%}",
        f"{max(0.0, 1 - framing - json_share):.0%}",
        sdk,
        f"{median(_us(each.sdk, each) for each in found):.1f}",
        f"{median(times):.1f} ({min(times):.1f}..{max(times):.1f})",
    )
