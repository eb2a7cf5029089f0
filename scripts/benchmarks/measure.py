"""One scenario against one proxy: the load runs, and its processes are looked at.

CPU time is counted until the proxy is quiet again, so that what it does after the last byte
(checking an exchange that has ended, syncing the tape) is not left out.
"""

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import trustme

from benchmarks.processes import (
    Cpu,
    cpu,
    free_port,
    is_alive,
    memory_kib,
    outside,
    serving,
    started,
)
from benchmarks.provider import LIMIT_S
from benchmarks.proxies import SCRIPTS, Place, Proxy, Upstream, environment, nginx_with_tls
from benchmarks.scenarios import (
    BEHIND,
    CPU,
    FIRST,
    MEMORY,
    P50,
    P99,
    PROXY_CPU,
    RATE,
    TURN_CPU_MAX,
    TURN_CPU_P99,
    TURN_MAX,
    TURN_P99,
    Scenario,
)
from benchmarks.tapes import Taped, read_tapes
from benchmarks.timed_loop import Turns, longest_us, turns
from benchmarks.traffic import Plan, body_bytes
from deltatape.clock import SystemClock

READY_S = 60.0
_LOAD_S = 90.0
_STEP_S = 0.1
_QUIET_NS = 1_000_000
"""Less CPU time than this in a step: the proxy is quiet."""
_QUIET_STEPS = 100
_OK = 200
_NS = 1_000_000_000

_now_ns = SystemClock.now_ns


class BenchError(Exception):
    """Something did not work as it has to; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one run of a scenario gave.

    Attributes:
        values: by the keys of `scenarios.Column`.
        answers: how many were whole.
        bytes: of their bodies.
        faults: answers that failed or lacked something.
    """

    values: Mapping[str, float]
    answers: int
    bytes: int
    faults: int


class Target:
    """A proxy that runs, or the provider itself.

    Attributes:
        answers: how many were had through it, all in all.
        bytes: of their bodies.
    """

    def __init__(
        self, proxy: Proxy, place: Place, process: subprocess.Popen[str] | None = None
    ) -> None:
        self.proxy = proxy
        self.place = place
        self.process = process
        self.answers = 0
        self.bytes = 0

    @property
    def pid(self) -> int | None:
        """The process id of the proxy."""
        return self.process.pid if self.process is not None else None

    def cpu(self) -> Cpu:
        """Used so far."""
        return cpu(self.pid) if self.pid is not None else Cpu(proxy_ns=0, analysis_ns=0)

    def memory_kib(self) -> int:
        """Resident now."""
        return memory_kib(self.pid) if self.pid is not None else 0

    def turns(self) -> Turns:
        """Return the turns of its event loop so far; none where they are not counted."""
        return turns(self.place.turns) if self.place.timed else Turns(wall=(), cpu=())

    def wait_until_quiet(self) -> float:
        """Wait until it has done what came after the last byte; return for how many seconds."""
        began = _now_ns()
        for _ in range(_QUIET_STEPS if self.process is not None else 0):
            before = self.cpu()
            assert self.process is not None
            if not is_alive(self.process, _STEP_S):
                raise BenchError(f"{self.proxy.name} has ended by itself: {self.log()}")
            if self.cpu().since(before).total_ns < _QUIET_NS:
                return max((_now_ns() - began) / _NS - _STEP_S, 0)
        return (_now_ns() - began) / _NS

    def log(self) -> str:
        """The end of what it has printed."""
        return (self.place.folder / "log").read_text(errors="replace")[-600:]

    def taped(self) -> Taped:
        """What its tapes hold; it has to have ended."""
        return read_tapes(self.place.tapes)


@contextlib.contextmanager
def provider(folder: Path, limit_s: int = LIMIT_S) -> Iterator[int]:
    """A running provider; its port."""
    with serving([*program("provider"), str(limit_s)], own_environment(), folder) as port:
        yield port


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Make `folder`, and in it an authority and a certificate for 127.0.0.1 with its key."""
    authority = trustme.CA()
    folder.mkdir()
    ca, certificate = folder / "authority.pem", folder / "server.pem"
    authority.cert_pem.write_to_path(ca)
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    return ca, certificate


@contextlib.contextmanager
def encrypted(folder: Path, provider_port: int) -> Iterator[Upstream]:
    """The provider at that port behind an nginx that decrypts."""
    port = free_port()
    ca, certificate = write_certificate(folder)
    command = nginx_with_tls(folder, port, provider_port, certificate)
    with started(command, folder, {}, log="log"):
        yield Upstream(provider=provider_port, port=port, ca=ca)


@contextlib.contextmanager
def running(
    proxy: Proxy, upstream: Upstream, folder: Path, *, timed: bool = False
) -> Iterator[Target]:
    """A proxy that answers; it ends with the block. `timed`: turns of its event loop are counted.

    Raises:
        BenchError: it did not come to answer.
    """
    place = Place(
        port=free_port() if proxy.command else upstream.port,
        upstream=upstream,
        folder=folder,
        timed=timed,
    )
    if proxy.command is None:
        yield Target(proxy, place)
        return
    folder.mkdir()
    with started(proxy.command(place), folder, environment(place), log="log") as process:
        target = Target(proxy, place, process)
        _wait_until_ready(target)
        yield target


def _wait_until_ready(target: Target) -> None:
    limit = _now_ns() + int(READY_S * _NS)
    assert target.process is not None
    while not _answers(target):
        if not is_alive(target.process, _STEP_S) or _now_ns() > limit:
            raise BenchError(f"{target.proxy.name} does not answer: {target.log()}")
    target.wait_until_quiet()


def _answers(target: Target) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", target.place.port, timeout=5)
    try:
        connection.request("POST", target.proxy.path, b"{}", {"content-type": "application/json"})
        response = connection.getresponse()
        if response.status != _OK:
            return False
        target.answers += 1
        target.bytes += len(response.read())
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def measure(target: Target, scenario: Scenario) -> Sample:
    """Run `scenario` against `target`."""
    memory, before, turns_before = target.memory_kib(), target.cpu(), target.turns()
    load = subprocess.Popen(
        [*program("clients"), *_arguments(target.place, scenario)],
        env=own_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert load.stdout is not None
    held = 0
    try:
        if (scenario.plan.hold or scenario.warm) and load.stdout.readline() == "open\n":
            target.wait_until_quiet()
            held = target.memory_kib() - memory
            if scenario.warm:
                before, turns_before = target.cpu(), target.turns()
        output, _ = load.communicate("\n", timeout=_LOAD_S)
        result = json.loads(output)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise BenchError(f"the clients of {target.proxy.name} gave no result: {error}") from error
    finally:
        if load.poll() is None:
            load.kill()
            load.communicate()
    behind_s = target.wait_until_quiet()
    lengths = _turn_lengths(target.turns().since(turns_before)) if scenario.timed else {}
    sample = _sample(scenario, result, target.cpu().since(before), held, behind_s, lengths)
    target.answers += sample.answers
    target.bytes += sample.bytes
    return sample


def _turn_lengths(counted: Turns) -> Mapping[str, float]:
    cpu_p99, cpu_most = longest_us(counted.cpu)
    p99, most = longest_us(counted.wall)
    return {TURN_CPU_P99: cpu_p99, TURN_CPU_MAX: cpu_most, TURN_P99: p99, TURN_MAX: most}


def _sample(
    scenario: Scenario,
    result: Mapping[str, float],
    used: Cpu,
    held: int,
    behind_s: float,
    turn_lengths: Mapping[str, float],
) -> Sample:
    done, bytes_ = int(result["done"]), int(result["bytes"])
    measured = done - int(result["unmeasured"])
    units = measured * scenario.plan.deltas if scenario.per_delta else measured
    faults = int(result["errors"] + result["short"])
    if not faults and bytes_ != done * body_bytes(scenario.plan):
        faults = 1
    return Sample(
        values={
            CPU: used.total_ns / 1000 / max(units, 1),
            PROXY_CPU: used.proxy_ns / 1000 / max(units, 1),
            BEHIND: behind_s * 1000 / max(measured, 1),
            FIRST: result["first_us"],
            P50: result["p50_us"],
            P99: result["p99_us"],
            RATE: measured / result["seconds"],
            MEMORY: held / scenario.connections,
            **turn_lengths,
        },
        answers=done,
        bytes=bytes_,
        faults=faults,
    )


def _arguments(place: Place, scenario: Scenario) -> list[str]:
    plan: Plan = scenario.plan
    return [
        *("--port", str(place.port), "--provider", str(place.upstream.provider)),
        *("--connections", str(scenario.connections), "--seconds", str(scenario.seconds)),
        *("--deltas", str(plan.deltas), "--rate", str(plan.rate)),
        *("--upload", str(plan.upload), "--at-once", str(scenario.at_once)),
        *(["--hold"] if plan.hold else []),
        *(["--warm"] if scenario.warm else []),
    ]


def program(name: str) -> list[str]:
    """The command of a program of this package."""
    return [sys.executable, "-m", f"benchmarks.{name}"]


def own_environment() -> Mapping[str, str]:
    """What such programs find as their environment."""
    return {**outside(), "PYTHONPATH": str(SCRIPTS)}
