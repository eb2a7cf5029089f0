"""What it costs a recorder that a page follows its streams, beside one that nobody looks at.

Two recorders of one kind get the same streams in turn, in another order in each round. The page of
one of them is open: it is told what is new, and asks for the rows each time. The other one is also
measured beside a program that has nothing to do with it and only computes. Of CPU time, only that
of the recorder's own process counts, without those that analyse and show.
"""

import json
import re
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from benchmarks.markdown import markdown
from benchmarks.measure import READY_S, BenchError, Target, measure, provider, running
from benchmarks.processes import cpu, is_alive, started
from benchmarks.proxies import OURS, PROXIES, SCRIPTS, Upstream
from benchmarks.run import allow_descriptors
from benchmarks.scenarios import P99, PROXY_CPU, SCENARIOS

SCENARIO = "paced-200"
DELTAS = 500
"""Deltas of each stream: ten seconds."""
ALONE, COMPUTING, WATCHED = "alone", "beside a program that computes", "with a page"
GOAL = 1.05
"""How much more CPU time a page may cost."""
_LINK = re.compile(r"page: http://(\S+)/\?token=(\S+)")
_STEP_S = 0.1
_SHOWN = 100
"""Rows that a page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One run of the streams through one of the recorders.

    Attributes:
        cpu_us: of the recorder's process, for each delta.
        page_us: of the page's processes, for each delta; 0 without a page.
        p99_us: how late deltas arrived.
    """

    recorder: str
    round: int
    cpu_us: float
    page_us: float
    p99_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """All runs; `faults` are what was lost, as sentences."""

    title: str
    runs: Sequence[Watched]
    faults: Sequence[str]


def run_watching(rounds: int, log: Callable[[str], None], *, quick: bool) -> Watching:
    """Measure; bounded in time.

    Raises:
        BenchError: something does not work as it has to.
    """
    allow_descriptors()
    scenario = next(each for each in SCENARIOS if each.name == SCENARIO)
    longer = replace(scenario, plan=replace(scenario.plan, deltas=DELTAS))
    scenario = scenario.quick() if quick else longer
    ours = next(each for each in PROXIES if each.name == OURS)
    runs: list[Watched] = []
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="deltatape-bench-") as folder:
        root = Path(folder)
        with (
            provider(root) as port,
            running(ours, upstream := Upstream(provider=port, port=port), root / ALONE) as alone,
            running(ours, upstream, root / "watched") as watched,
            _page(watched, root) as page,
        ):
            order = [(ALONE, alone), (COMPUTING, alone), (WATCHED, watched)]
            for number in range(1, rounds + 1):
                for name, target in order:
                    before = page.cpu_ns()
                    with _computing(root) if name == COMPUTING else nullcontext():
                        sample = measure(target, scenario)
                    used_us = (page.cpu_ns() - before) / 1000 if name == WATCHED else 0
                    runs.append(
                        Watched(
                            recorder=name,
                            round=number,
                            cpu_us=sample.values[PROXY_CPU],
                            page_us=used_us / max(1, sample.answers * scenario.plan.deltas),
                            p99_us=sample.values[P99],
                        )
                    )
                    log(f"round {number}, {name}: {runs[-1].cpu_us:.1f} us of CPU per delta")
                    if sample.faults:
                        faults.append(f"round {number}, {name}: {sample.faults} answers failed")
                order = [*order[1:], order[0]]
            if not page.told.wait(READY_S):
                faults.append("the page was told nothing")
            faults += page.faults
    return Watching(title=scenario.title, runs=tuple(runs), faults=tuple(faults))


class _Page:
    """A client that does what a page does."""

    def __init__(self, server: int, host: str, token: str) -> None:
        self._server = server
        self.told = threading.Event()
        self.faults: list[str] = []
        self._host = host
        self._fields = {"Authorization": f"Bearer {token}"}
        self._ended = False
        self._connection = HTTPConnection(host, timeout=READY_S)
        self._connection.request("GET", "/api/live", headers=self._fields)
        self._answer = self._connection.getresponse()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for line in self._answer:
                if line.startswith(b"data: "):
                    self.told.set()
                    self._rows()
        except (OSError, HTTPException, ValueError) as error:
            if not self._ended:
                self.faults.append(f"the page ended: {error}")

    def _rows(self) -> None:
        with closing(HTTPConnection(self._host, timeout=READY_S)) as connection:
            connection.request("GET", f"/api/exchanges?limit={_SHOWN}", headers=self._fields)
            json.loads(connection.getresponse().read())

    def cpu_ns(self) -> int:
        """Used so far by the processes that show it."""
        return cpu(self._server).total_ns

    def close(self) -> None:
        self._ended = True
        sock = self._connection.sock
        with suppress(OSError):
            sock.close()


def _computing(root: Path) -> AbstractContextManager[object]:
    command = [sys.executable, "-m", "benchmarks.computing"]
    return started(command, root, {"PYTHONPATH": str(SCRIPTS)}, log="computing.log")


@contextmanager
def _page(target: Target, root: Path) -> Iterator[_Page]:
    """A page that follows the tapes of a recorder."""
    command = [
        *target.place.python(),
        "-m",
        "deltatape",
        "open",
        "--no-browser",
        target.place.tapes,
    ]
    state = {"XDG_STATE_HOME": str(root / "state")}
    with started(command, root, state, log="page.log") as process:
        log = root / "page.log"
        for _ in range(int(READY_S / _STEP_S)):
            if (link := _LINK.search(log.read_text(errors="replace"))) is not None:
                break
            if not is_alive(process, _STEP_S):
                raise BenchError(f"deltatape open has ended: {log.read_text()[-600:]}")
        else:
            raise BenchError("deltatape open prints no URL")
        page = _Page(process.pid, link[1], link[2])
        try:
            yield page
        finally:
            page.close()


def watching_section(outcome: Watching) -> str:
    """The section of the page."""
    rows = [
        ["recorder", "CPU µs/delta", "x alone", "page's CPU µs/delta", "p99 µs"],
        ["---", "---:", "---:", "---:", "---:"],
    ]
    alone = [run for run in outcome.runs if run.recorder == ALONE]
    for recorder in (ALONE, COMPUTING, WATCHED):
        runs = [run for run in outcome.runs if run.recorder == recorder]
        times = [run.cpu_us / other.cpu_us for run, other in zip(runs, alone, strict=True)]
        rows.append(
            [
                recorder,
                _figure([run.cpu_us for run in runs], 1),
                _figure(times, 3) if recorder != ALONE else "-",
                _figure([run.page_us for run in runs], 1) if recorder == WATCHED else "-",
                _figure([run.p99_us for run in runs], 0),
            ]
        )
    return f"## With a page open\n\n{_ABOUT.format(load=outcome.title)}\n{markdown(rows)}"


def _figure(values: Sequence[float], decimals: int) -> str:
    shown = f"{statistics.median(values):.{decimals}f}"
    if len(values) == 1:
        return shown
    return f"{shown} ({min(values):.{decimals}f}..{max(values):.{decimals}f})"


_ABOUT = f"""\
What `deltatape open` costs a recorder whose streams it shows: {{load}}, through two recorders in
turn, one of them with a page that is told what is new and asks for the rows each time. CPU time is
that of the recorder's process alone; the goal is at most {GOAL} times as much. The page's own
processes are counted beside it, until the recorder has done its work. Whatever computes on the same
two processors delays deltas, since a process that wakes may have to wait for the kernel's next
tick. The page's processes offer their processor every quarter of a millisecond instead. For
comparison, the recorder is also measured beside a program that does not, and computes a fifth of
the time at low priority.
"""
