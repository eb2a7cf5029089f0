"""Records a long run under load, and checks that nothing is lost and nothing grows.

`deltatape record` stands as a process of its own between the provider (`provider`, beside it
`tls_front`) and clients of several kinds (`soak_clients`), with `--keep`. Its tapes are taken as
they end (`soak_tapes`). After the run what the tapes have is held against what the clients got
(`soak_tally`), and memory, descriptors and delays are judged (`steady`).

Exit code: 1 when something was lost or grew, or the run did not work.
"""

import argparse
import contextlib
import dataclasses
import http.client
import json
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import (
    BenchError,
    Target,
    own_environment,
    program,
    provider,
    running,
    write_certificate,
)
from benchmarks.processes import (
    analysts,
    descriptors,
    end,
    free_port,
    is_alive,
    resident_kib,
    serving,
)
from benchmarks.proxies import PROXIES, Place, Proxy, Upstream
from benchmarks.run import allow_descriptors
from benchmarks.soak_clients import PLAIN, REST_S, TLS
from benchmarks.soak_tally import Tally, lacking
from benchmarks.soak_tapes import TakenTapes
from benchmarks.steady import Limit, grown, slowed
from benchmarks.traffic import PATH, Plan, body
from deltatape.clock import SystemClock
from deltatape.model.exchange import EndReason

FAILED = 1
MEMORY = Limit(share=0.1, least=6)
"""In MiB."""
FILLING = Limit(share=0, least=80)
"""In MiB, for the analysis in runs shorter than `FILLED_S`."""
FILLED_S = 1200.0
"""The analysis remembers some 4000 exchanges of named tapes: in runs of so many seconds, agents
fill that within the warm-up."""
DESCRIPTORS = Limit(share=0.1, least=16)
DELAY = Limit(share=1.0, least=20)
"""In milliseconds."""
KEEP = "20m"
"""A new tape follows each after an eighth of it; tapes are taken long before it is over."""
DELAYS_S = 60.0
"""Delays are judged in runs of at least so many seconds: in shorter ones, what else the machine
does decides."""
CATCH_UP_NS = 300_000_000_000
"""How long the analysis may report nothing, after the last answer."""
_SETTLED_NS = 10_000_000_000
"""Tapes are taken so long after all that ended on them was reported: the analysis may have yet to
close them."""
_INTERVALS = 90
_LEAST_INTERVAL_S = 0.5
_STEP_S = 0.2
_STATUS_S = 300
"""A recorder beside busy cores may take long to answer."""
_BEYOND_S = 300
_REPORTED = re.compile(rb"\S*#\d+ (?:POST|ended)")
_ACCUSED = re.compile(rb"agent-\S*#\d+ POST .*; \d+ (?:error|warning)")
"""An exchange of an agent with such findings: all are healthy."""
_TROUBLE = re.compile(rb"note: |TAPING IN TROUBLE|NOT ON THE TAPE|.*not analysed|Traceback")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What was seen at the end of one of many equal parts of the run.

    Attributes:
        delays: how many deltas and small answers came.
        p50_us: of the time that they took, in microseconds.
        p99_us: of the same.
        recorder_mib: the recorder's resident memory.
        analyst_mib: that of the process that analyses.
        recorder_files: how many descriptors the recorder has open.
        analyst_files: how many the process that analyses has.
        unreported: exchanges that have ended and were not reported yet.
        tapes_mb: size of the folder of tapes, in MB (10^6 bytes).
    """

    delays: int
    p50_us: float
    p99_us: float
    recorder_mib: float
    analyst_mib: float
    recorder_files: int
    analyst_files: int
    unreported: int
    tapes_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """What a run gave.

    Attributes:
        seconds: how long the clients went on asking.
        intervals: in order.
        had: answers at the clients, by their ending.
        taped: exchanges on the tapes, by their ending.
        tapes: how many tapes there were.
        taped_mb: their size, in MB.
        caught_up_s: how long after the last answer everything had been analysed.
        faults: what is not as it has to be, as sentences.
    """

    seconds: float
    intervals: Sequence[Interval]
    had: Mapping[str, Tally]
    taped: Mapping[str, Tally]
    tapes: int
    taped_mb: float
    caught_up_s: float
    faults: Sequence[str]


class Recorder:
    """The recorder of the run, seen from outside."""

    def __init__(self, target: Target, control: int) -> None:
        self.target = target
        self._control = control
        self._log = (target.place.folder / "log").open("rb")
        self._rest = b""
        self._reported = 0
        self._ended: deque[tuple[int, int]] = deque()
        self._settled_ns = 0
        self.troubles: list[str] = []

    def close(self) -> None:
        """Release its log."""
        self._log.close()

    def status(self) -> Mapping[str, int]:
        """What it answers at `/status`."""
        connection = http.client.HTTPConnection("127.0.0.1", self._control, timeout=_STATUS_S)
        try:
            connection.request("GET", "/status")
            status: Mapping[str, int] = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise BenchError(f"no status: {error}; {self.target.log()}") from error
        finally:
            connection.close()
        return status

    def reported(self) -> int:
        """How many exchanges it has printed."""
        *lines, self._rest = (self._rest + self._log.read()).split(b"\n")
        for line in lines:
            self._reported += _REPORTED.match(line) is not None
            if _TROUBLE.match(line) or _ACCUSED.match(line):
                self.troubles.append(line.decode(errors="replace"))
        return self._reported

    def settled_ns(self) -> int:
        """Until when everything that had ended then is reported, since 1970-01-01T00:00:00Z."""
        while self._ended and self._ended[0][1] <= self._reported:
            self._settled_ns = self._ended.popleft()[0] - _SETTLED_NS
        return self._settled_ns

    def interval(self, delays: Mapping[str, float]) -> Interval:
        """What there is to see now; `delays` is a line of the clients."""
        pid = self.target.pid
        assert pid is not None
        children = analysts(pid)
        status = self.status()
        ended = status["exchanges"] - status["active"]
        self._ended.append((SystemClock().wall_ns(), ended))
        return Interval(
            delays=int(delays["delays"]),
            p50_us=delays["p50_us"],
            p99_us=delays["p99_us"],
            recorder_mib=resident_kib(pid) / 1024,
            analyst_mib=sum(map(resident_kib, children)) / 1024,
            recorder_files=descriptors(pid),
            analyst_files=sum(map(descriptors, children)),
            unreported=ended - self.reported(),
            tapes_mb=_size(self.target.place.tapes) / 1e6,
        )

    def catch_up(self) -> float:
        """Wait until every exchange is reported, or none is for long; return the seconds."""
        assert self.target.process is not None
        began = last = SystemClock.now_ns()
        before = self.reported()
        while True:
            status, now = self.status(), SystemClock.now_ns()
            missing = status["exchanges"] - self.reported()
            if self._reported > before:
                before, last = self._reported, now
            if not status["active"] and missing <= 0:
                break
            if now - last > CATCH_UP_NS or not is_alive(self.target.process, _STEP_S):
                self.troubles.append(
                    f"{missing} of {status['exchanges']} exchanges were never analysed"
                )
                break
        return (now - began) / 1e9


def soak(seconds: float, streams: int, log: Callable[[str], None]) -> Soaked:
    """Run, and judge what was seen; bounded in time.

    Raises:
        BenchError: something does not work as it has to.
    """
    allow_descriptors()
    with (
        tempfile.TemporaryDirectory(prefix="deltatape-soak-") as name,
        contextlib.ExitStack() as stack,
    ):
        root, control = Path(name), free_port()
        limit_s = int(seconds + REST_S + _BEYOND_S)
        provider_port = stack.enter_context(provider(root, limit_s))
        upstream = Upstream(provider=provider_port, port=provider_port)
        proxy = stack.enter_context(_recording(root, provider_port, control))
        target = stack.enter_context(running(proxy, upstream, root / "recorder"))
        recorder = Recorder(target, control)
        stack.callback(recorder.close)
        taken = TakenTapes(target.place.tapes)
        intervals, result = _load(recorder, taken, seconds, streams, log)
        caught_up_s = recorder.catch_up()
        assert target.process is not None
        end(target.process)
        recorder.reported()
        if target.process.returncode:
            recorder.troubles.append(f"the recorder ended with {target.process.returncode}")
        taken.take(SystemClock().wall_ns())
    had = {key: Tally(**tally) for key, tally in result["by_ending"].items()}
    for _ in range(target.answers):
        had.setdefault(EndReason.COMPLETE, Tally()).add(body(Plan(deltas=0)))
    return Soaked(
        seconds=seconds,
        intervals=intervals,
        had=had,
        taped=taken.tallies.by_ending,
        tapes=taken.tapes,
        taped_mb=taken.size / 1e6,
        caught_up_s=caught_up_s,
        faults=[
            *_told(result["faults"], result["faulty"]),
            *_told(taken.tallies.faults, taken.tallies.faulty),
            *lacking(had, taken.tallies.by_ending),
            *_told(recorder.troubles[:10], len(recorder.troubles)),
            *judge(intervals, seconds),
        ],
    )


def judge(intervals: Sequence[Interval], seconds: float) -> list[str]:
    """What grew in a run of so many seconds, as sentences."""
    remembered = MEMORY if seconds >= FILLED_S else FILLING
    found = [
        grown("the recorder's memory", "MiB", [i.recorder_mib for i in intervals], MEMORY),
        grown("the analysis's memory", "MiB", [i.analyst_mib for i in intervals], remembered),
        grown(
            "the number of files and sockets of the recorder",
            "descriptors",
            [i.recorder_files for i in intervals],
            DESCRIPTORS,
        ),
        grown(
            "the number of files of the analysis",
            "descriptors",
            [i.analyst_files for i in intervals],
            DESCRIPTORS,
        ),
    ]
    if seconds >= DELAYS_S:
        p99_ms = [one.p99_us / 1000 for one in intervals]
        found.append(slowed("the 99th percentile of the delay", "ms", p99_ms, DELAY))
    return [sentence for sentence in found if sentence]


def _told(faults: Sequence[str], count: int) -> Iterator[str]:
    yield from faults
    if count > len(faults):
        yield f"and {count - len(faults)} more of this kind"


@contextlib.contextmanager
def _recording(root: Path, provider_port: int, control: int) -> Iterator[Proxy]:
    """The recorder as a proxy of the benchmark, with an upstream behind TLS."""
    ca, certificate = write_certificate(root / "tls")
    front = [
        *(*program("tls_front"), "--provider", str(provider_port)),
        *("--certificate", str(certificate)),
    ]
    with serving(front, own_environment(), root) as tls_port:

        def command(place: Place) -> list[str | Path]:
            return [
                *(sys.executable, "-m", "deltatape", "record", "--to", place.tapes),
                *("--listen", f"127.0.0.1:{place.port}", "--control", f"127.0.0.1:{control}"),
                *("--upstream", f"{PLAIN}={place.upstream.url}"),
                *("--upstream", f"{TLS}=https://127.0.0.1:{tls_port}"),
                *("--ca", ca, "--keep", KEEP),
            ]

        (record,) = (proxy for proxy in PROXIES if proxy.name == "deltatape")
        yield dataclasses.replace(record, command=command, path=f"/{PLAIN}{PATH}")


def _load(
    recorder: Recorder, taken: TakenTapes, seconds: float, streams: int, log: Callable[[str], None]
) -> tuple[list[Interval], Mapping[str, Any]]:
    """Run the clients; what was seen meanwhile, and what they tell at the end."""
    place = recorder.target.place
    every_s = max(seconds / _INTERVALS, _LEAST_INTERVAL_S)
    process = subprocess.Popen(
        [
            *(*program("soak_clients"), "--port", str(place.port)),
            *("--provider", str(place.upstream.provider), "--streams", str(streams)),
            *("--seconds", str(seconds), "--every", str(every_s)),
        ],
        env=own_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    intervals: list[Interval] = []
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()
        recorder.catch_up()  # what the analysis has yet to open would look like a leak
        process.stdin.write("\n")
        process.stdin.flush()
        with ThreadPoolExecutor(1) as pool:  # a look at the recorder must not wait for tapes
            taking = pool.submit(taken.take, 0)
            for line in process.stdout:
                told = json.loads(line)
                if "had" in told:
                    taking.result()
                    return intervals, told["had"]
                intervals.append(recorder.interval(told))
                log(_line(len(intervals) * every_s, intervals[-1]))
                if taking.done():
                    taking.result()
                    taking = pool.submit(taken.take, recorder.settled_ns())
    finally:
        process.kill()
        process.communicate()
    raise BenchError("the clients gave no result")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.glob("*.tape"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


# What is printed.


def _line(at_s: float, one: Interval) -> str:
    return (
        f"{at_s:6.1f} s: recorder {one.recorder_mib:.1f} MiB, {one.recorder_files} descriptors;"
        f" analysis {one.analyst_mib:.1f} MiB, {one.analyst_files}, {one.unreported} behind;"
        f" delay p50 {one.p50_us / 1000:.2f} ms, p99 {one.p99_us / 1000:.2f} ms;"
        f" tapes {one.tapes_mb:.0f} MB"
    )


def report(soaked: Soaked) -> Iterator[str]:
    """The lines about a run."""
    for ending, tally in sorted(soaked.had.items()):
        taped = soaked.taped.get(ending, Tally())
        yield (
            f"{ending}: {tally.answers} answers with {tally.deltas} deltas in {tally.size} bytes"
            f" at the clients; {taped.answers} with {taped.deltas} in {taped.size} on tapes"
        )
    yield (
        f"{soaked.tapes} tapes, {soaked.taped_mb:.0f} MB; everything analysed"
        f" {soaked.caught_up_s:.1f} s after the last answer"
    )
    for title, series in (
        ("recorder, MiB", [one.recorder_mib for one in soaked.intervals]),
        ("analysis, MiB", [one.analyst_mib for one in soaked.intervals]),
        ("recorder, descriptors", [float(one.recorder_files) for one in soaked.intervals]),
        ("delay p99, ms", [one.p99_us / 1000 for one in soaked.intervals]),
    ):
        thirds = [series[len(series) * n // 3 : len(series) * (n + 1) // 3] for n in range(3)]
        shown = ", ".join(f"{statistics.median(third):.2f}" for third in thirds if third)
        yield f"{title}: median of each third {shown}"
    yield from (f"FAILED: {fault}" for fault in soaked.faults)
    if not soaked.faults:
        yield "nothing was lost, and nothing grew"


def main() -> int:
    """Run the program; the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="how long clients go on asking; default: 30"
    )
    parser.add_argument(
        "--streams", type=int, default=50, help="streams at the same time; default: 50"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there, too")
    options = parser.parse_args()
    if platform.system() != "Linux":
        parser.error("needs Linux: it reads memory and descriptors from /proc")
    if options.minutes <= 0 or options.streams <= 0:
        parser.error("--minutes and --streams take numbers above 0")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        soaked = soak(options.minutes * 60, options.streams, _log)
    except BenchError as error:
        _log(str(error))
        return FAILED
    if options.json:
        document = {"version": 1, **dataclasses.asdict(soaked)}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write("".join(f"{line}\n" for line in report(soaked)))
    return FAILED if soaked.faults else 0


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
