"""How punctual the player is, beside a bare sender of the same schedule.

Both send the same chunks at the same times to the same clients, in turn, so that what the machine
and the event loop add is in both.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.markdown import markdown
from benchmarks.measure import BenchError
from benchmarks.played import stream_answer, write_tape
from benchmarks.processes import free_port, is_alive, outside, serving, started
from benchmarks.proxies import SCRIPTS
from benchmarks.stream_listeners import schedule_ns

STREAMS, RATE, READS = 50, 50.0, 400
QUICK_STREAMS, QUICK_READS = 10, 10
BARE, PLAYER = "bare `loop.call_at`", "`deltatape replay`"
_LIMIT_S = 120
_STEP_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Punctuality:
    """What one run gave: how far from its schedule reads arrived.

    Attributes:
        reads: how many arrived.
        joined: reads of the client that brought more than one of the tape.
    """

    sender: str
    round: int
    reads: int
    joined: int
    p50_us: float
    p99_us: float
    max_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All runs.

    Attributes:
        streams: at the same time.
        expected: reads in each run.
        faults: what was lost, as sentences.
    """

    streams: int
    expected: int
    runs: Sequence[Punctuality]
    faults: Sequence[str]


def run_playing(rounds: int, log: Callable[[str], None], *, quick: bool) -> Played:
    """Measure; bounded in time.

    Raises:
        BenchError: something does not work as it has to.
    """
    streams, reads = (QUICK_STREAMS, QUICK_READS) if quick else (STREAMS, READS)
    runs = []
    with (
        tempfile.TemporaryDirectory(prefix="deltatape-bench-") as folder,
        _bare(Path(folder), reads) as bare,
        _player(Path(folder), reads) as player,
    ):
        for number in range(1, rounds + 1):
            for sender, port in ((BARE, bare), (PLAYER, player)):
                runs.append(_measured(sender, number, port, streams, reads))
                log(f"round {number}, {sender}: p99 {runs[-1].p99_us:.0f} us")
    expected = streams * reads
    faults = tuple(
        f"round {run.round}: {run.reads} of {expected} reads came from {run.sender}"
        for run in runs
        if run.reads != expected
    )
    return Played(streams=streams, expected=expected, runs=tuple(runs), faults=faults)


def _measured(sender: str, number: int, port: int, streams: int, reads: int) -> Punctuality:
    command = [
        *(sys.executable, "-m", "benchmarks.stream_listeners", "--port", str(port)),
        *("--streams", str(streams), "--rate", str(RATE), "--reads", str(reads)),
    ]
    try:
        result = subprocess.run(
            command,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=True,
        )
        return Punctuality(sender=sender, round=number, **json.loads(result.stdout))
    except (subprocess.SubprocessError, ValueError) as error:
        raise BenchError(f"the clients of {sender} gave no result: {error}") from error


@contextmanager
def _bare(folder: Path, reads: int) -> Iterator[int]:
    """The bare sender; its port."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.baseline_sender",
        "--rate",
        str(RATE),
        "--reads",
        str(reads),
    ]
    with serving(command, _environment(), folder) as port:
        yield port


@contextmanager
def _player(folder: Path, reads: int) -> Iterator[int]:
    """The player; its port."""
    tape = write_tape(folder / "steady.tape", [stream_answer(schedule_ns(RATE, reads))])
    port = free_port()
    command: list[str | Path] = [
        *(sys.executable, "-m", "deltatape", "replay", tape, "--repeat"),
        *("--listen", f"127.0.0.1:{port}"),
    ]
    with started(command, folder, {}, log="player.log") as process:
        log = folder / "player.log"
        for _ in range(int(_LIMIT_S / _STEP_S)):
            if str(port) in log.read_text(errors="replace"):
                break
            if not is_alive(process, _STEP_S):
                raise BenchError(f"the player does not answer: {log.read_text()[-600:]}")
        yield port


def _environment() -> dict[str, str]:
    return {**outside(), "PYTHONPATH": str(SCRIPTS)}


def playing_section(outcome: Played) -> str:
    """The section of the page."""
    rows = [["sender", "p50 µs", "p99 µs", "p99 over bare, µs", "most µs"], ["---"] + ["---:"] * 4]
    for sender in (BARE, PLAYER):
        runs = [run for run in outcome.runs if run.sender == sender]
        bare = [run for run in outcome.runs if run.sender == BARE]
        over = [one.p99_us - other.p99_us for one, other in zip(runs, bare, strict=True)]
        rows.append(
            [
                sender,
                _figure([run.p50_us for run in runs]),
                _figure([run.p99_us for run in runs]),
                _figure(over) if sender == PLAYER else "-",
                _figure([run.max_us for run in runs]),
            ]
        )
    return f"## Playing on time\n\n{_ABOUT.format(streams=outcome.streams)}\n{markdown(rows)}"


def _figure(values: Sequence[float]) -> str:
    median, least, most = statistics.median(values), min(values), max(values)
    shown = f"{median:.0f}"
    return shown if len(values) == 1 else f"{shown} ({least:.0f}..{most:.0f})"


_ABOUT = f"""\
`deltatape replay` at recorded speed beside a program that writes the same chunks with bare
`loop.call_at` and knows nothing of requests: {{streams}} streams of {RATE:.0f} reads per second at
the same time, to the same clients, in turn. How much later than scheduled a read arrives, where the
most punctual read of a stream is on time. asyncio wakes up to a millisecond late, in both.
"""
