"""`deltatape check` beside bare `json.loads` over the same payloads, and `fsck` beside `check`.

The corpus holds whole bodies without times, so the tapes are made: every case again and again, in
reads of one event each, as from a quick network and a slow model, or in one read, as an import.
What a recorder's analysis writes behind each exchange is on them, too.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from benchmarks.corpus import BY_BODY, BY_EVENT, CORPUS, CorpusCase, corpus_cases
from benchmarks.markdown import markdown
from benchmarks.measure import BenchError
from benchmarks.measure_rebuild import cpu_s
from benchmarks.processes import outside
from benchmarks.proxies import SCRIPTS
from deltatape.diagnose.parsed_record import parsed_as
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Source
from deltatape.store.reader import open_tape
from deltatape.tape.encode import header_line, json_record
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ParsedAs
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap

EXCHANGES, QUICK = 10_000, 50
_PER_TAPE = 250
_SHARES = (0.1, 1.0)
"""Shares of the exchanges: memory must not grow with ten times as many. `fsck` reads the first."""
_ROUNDS = 3
_LIMIT_S = 600
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One run.

    Attributes:
        read: what a read brings.
        exchanges: how many.
        events: how many, in all of them.
        loads_us: microseconds of `json.loads` for the data of an event and its share of the
            request's body, on average.
        check_us: the same of `deltatape check`, from its start to its end.
        fsck_us: the same of `deltatape fsck`; None if not measured.
        memory_mb: at most, MB (10^6 bytes).
    """

    read: str
    exchanges: int
    events: int
    loads_us: float
    check_us: float
    fsck_us: float | None
    memory_mb: float

    @property
    def speed(self) -> float:
        """The speed relative to `json.loads`."""
        return self.loads_us / self.check_us

    @property
    def fsck_ratio(self) -> float | None:
        """What `fsck` takes, as a multiple of `check`."""
        return None if self.fsck_us is None else self.fsck_us / self.check_us


def run_checking(
    exchanges: int, log: Callable[[str], None], rounds: int = _ROUNDS
) -> Sequence[Checked]:
    """Measure; nothing where there is no corpus, which is told.

    Raises:
        BenchError: the check took too long or could not read a tape.
    """
    cases = [case for _, case in corpus_cases()]
    if not cases:
        log(f"check is left out: no corpus at {CORPUS}; set DELTATAPE_CORPUS to its folder")
        return ()
    found = []
    for read in (BY_EVENT, BY_BODY):
        for share in _SHARES:
            with_fsck = share == _SHARES[0]
            one = _measured(cases, read, int(exchanges * share), rounds, with_fsck=with_fsck)
            log(
                f"check, {one.exchanges} exchanges, a read is {one.read}: {one.check_us:.6g} us"
                f" an event, {one.speed:.3g} of json.loads, {one.memory_mb:.4g} MB;"
                f" fsck, x check: {_shown(one.fsck_ratio)}"
            )
            found.append(one)
    return found


def _with_parsed(case: CorpusCase, read: str, path: Path) -> CorpusCase:
    """Return the case with what is read from a tape of it, which is written to `path`."""
    path.write_bytes(b"".join(_tape([case], read)))
    (exchange,) = open_tape(path)
    path.unlink()
    return replace(case, parsed=parsed_as(analyse(exchange), ""))


def _measured(
    cases: Sequence[CorpusCase], read: str, exchanges: int, rounds: int, *, with_fsck: bool
) -> Checked:
    with tempfile.TemporaryDirectory(prefix="deltatape-bench-") as name:
        once = [_with_parsed(case, read, Path(name, "case.tape")) for case in cases[:exchanges]]
        chosen = list(islice(cycle(once), exchanges))
        events = sum(len(case.stream.events) for case in chosen)
        for first in range(0, exchanges, _PER_TAPE):
            path = Path(name, f"{first:06}.tape")
            path.write_bytes(b"".join(_tape(chosen[first : first + _PER_TAPE], read)))
        # Taking turns, so that both have the machine in the same state; the least of each counts.
        runs = [
            (
                run_command("check", name),
                _loads_s(cases, chosen),
                run_command("fsck", name)["seconds"] if with_fsck else 0,
            )
            for _ in range(rounds)
        ]
    return Checked(
        read=read,
        exchanges=exchanges,
        events=events,
        loads_us=min(loads_s for _, loads_s, _ in runs) / events * 1e6,
        check_us=min(check["seconds"] for check, _, _ in runs) / events * 1e6,
        fsck_us=min(fsck_s for _, _, fsck_s in runs) / events * 1e6 if with_fsck else None,
        memory_mb=max(check["kib"] for check, _, _ in runs) * 1024 / 1e6,
    )


def run_command(command: str, folder: str) -> dict[str, float]:
    """Return what `deltatape check` or `fsck` takes: see `measure_check`.

    Raises:
        BenchError: it took too long, or could not read a tape.
    """
    try:
        result = subprocess.run(
            [sys.executable, "-m", "benchmarks.measure_check", command, folder],
            env={**outside(), "PYTHONPATH": str(SCRIPTS)},
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=True,
        )
        figures: dict[str, float] = json.loads(result.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        raise BenchError(f"deltatape {command}: {error}") from error
    if figures["code"] not in (0, 1):
        raise BenchError(f"deltatape {command} could not read a tape: {result.stderr}")
    return figures


def _loads_s(cases: Sequence[CorpusCase], chosen: Sequence[CorpusCase]) -> float:
    """Seconds of `json.loads` for the JSON of `chosen`, of which `cases` are measured.

    That is the data of each event and the body of each request: both are read by the check.
    """
    measured = cases if len(chosen) >= len(cases) else chosen
    payloads: list[str | bytes] = [event.data for case in measured for event in case.stream.events]
    events = len(payloads)
    payloads += [case.exchange.request.body for case in measured if case.exchange.request.body]
    times = events and sum(len(case.stream.events) for case in chosen) / events
    return _once(payloads) * times


def _once(payloads: Sequence[str | bytes]) -> float:
    began = cpu_s()
    for payload in payloads:
        try:
            json.loads(payload)
        except ValueError:  # [DONE], and what is broken
            continue
    return cpu_s() - began


def _tape(cases: Sequence[CorpusCase], read: str) -> Iterator[bytes]:
    """A tape of `cases`, one after the other."""
    lines: list[bytes] = []

    def put(_exchange: int, line: bytes) -> None:
        lines.append(line)

    header = Header(
        id="0" * 26, tool="", recorded_at="2026-01-01T00:00:00.000000000Z", source=Source.GATEWAY
    )
    yield header_line(header)
    masker = Masker(bytes(32))
    for number, case in enumerate(cases, 1):
        case.tape(ExchangeTap(number, put, masker), number, read, number * _NS)
        yield from lines
        lines.clear()
        if case.parsed is not None:
            yield json_record((number + 1) * _NS, number, ParsedAs.code, case.parsed.to_json())
    TapeTap(put).stop((len(cases) + 2) * _NS, "benchmark", None)
    yield from lines


def checking_section(found: Sequence[Checked]) -> str:
    """The section of the page."""
    rows = [
        [
            *("a read brings", "exchanges", "events", "json.loads", "check", "speed", "memory"),
            *("fsck", "x check"),
        ],
        ["---", *["---:"] * 8],
    ]
    rows += [
        [
            one.read,
            f"{one.exchanges:,}",
            f"{one.events:,}",
            f"{one.loads_us:.2f} us",
            f"{one.check_us:.2f} us",
            f"{one.speed:.3f}",
            f"{one.memory_mb:.0f} MB",
            "-" if one.fsck_us is None else f"{one.fsck_us:.2f} us",
            _shown(one.fsck_ratio),
        ]
        for one in found
    ]
    table = markdown(rows)
    return f"## Checking tapes\n\n{_ABOUT}\n{table if found else 'Not measured: no corpus.'}"


def _shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


_ABOUT = """\
`deltatape check` over tapes made of the corpus (docs/corpus.md), beside bare `json.loads` over the
data of the same events: microseconds of CPU time an event, and the check's speed as a share of that
of `json.loads`. One process, from its start to its end: reading and unescaping the tape, framing,
detection, rebuilding, every rule, digests and read-backs. Memory is the most that the process had:
it holds the digests and findings of one tape at a time, here of 250 exchanges.

`deltatape fsck` is to take no longer, and takes longer here. It rebuilds each exchange, as `check`
does, to compare it with what the recorder read, and instead of rules it compares each line with the
one that the recorder would write: that alone takes as long as `check`. On top of it, each text is
searched for secrets in all their spellings. A third of the search are the patterns; the rest takes
events apart into strings and joins those that make a text together, about ten strings an event. A
quarter of that is for events of a shape that no event before had: many, since here the streams of
all providers follow one another. A scanner in C that gives the strings of an event with their
places would cross the bar; expressions and loops in Python do not.
"""
