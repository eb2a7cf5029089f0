"""All of it, interleaved: round by round, scenario by scenario, proxy by proxy.

What is compared is measured within seconds of each other, since only quotients of one run mean
anything on a machine that others share.
"""

import contextlib
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import BenchError, Sample, Target, encrypted, measure, provider, running
from benchmarks.proxies import Proxy, Upstream, find_nginx
from benchmarks.scenarios import Scenario

DESCRIPTORS = 8192
"""More than 1000 streams through a proxy need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One sample, and where it belongs. `round` counts from 1."""

    round: int
    scenario: str
    proxy: str
    sample: Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run gave.

    Attributes:
        results: in the order in which they were taken.
        absent: proxies that could not be measured, and why.
        faults: what was lost, as sentences; empty when everything arrived.
        answers: whole answers had through all proxies.
        taped: exchanges on the tapes of the run.
        taped_bytes: of their bodies.
        load: the machine's load average before the run: what else it did.
    """

    results: Sequence[Result]
    absent: Mapping[str, str]
    faults: Sequence[str]
    answers: int
    taped: int
    taped_bytes: int
    load: float


class Run:
    """See the module.

    Args:
        tell: takes a line about how far it is.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._results: list[Result] = []
        self._absent: dict[str, str] = {}
        self._faults: list[str] = []
        self._answers = self._taped = self._taped_bytes = 0
        self._folders = 0

    def run(self, proxies: Sequence[Proxy], scenarios: Sequence[Scenario], rounds: int) -> Outcome:
        """Measure; bounded in time.

        Raises:
            BenchError: something does not work as it has to.
        """
        allow_descriptors()
        load = os.getloadavg()[0]
        # A signal or an error ends everything that was started, and leaves no tapes behind.
        with tempfile.TemporaryDirectory(prefix="deltatape-bench-") as folder:
            root = Path(folder)
            with provider(root) as port, contextlib.ExitStack() as stack:
                plain = Upstream(provider=port, port=port)
                upstreams = {False: plain}
                if any(scenario.tls for scenario in scenarios):
                    if find_nginx() is None:
                        self._log("TLS is left out: no nginx; scripts/setup bench installs it")
                    else:
                        upstreams[True] = stack.enter_context(encrypted(root / "tls", port))
                targets = list(self._start(proxies, plain, root, stack))
                for number in range(1, rounds + 1):
                    for scenario in scenarios:
                        for target in targets:
                            if _takes_part(target.proxy, scenario) and scenario.tls in upstreams:
                                self._measure(
                                    number, scenario, target, upstreams[scenario.tls], root
                                )
        return Outcome(
            results=tuple(self._results),
            absent=self._absent,
            faults=tuple(self._faults),
            answers=self._answers,
            taped=self._taped,
            taped_bytes=self._taped_bytes,
            load=load,
        )

    def _start(
        self, proxies: Sequence[Proxy], plain: Upstream, root: Path, stack: contextlib.ExitStack
    ) -> Iterator[Target]:
        for proxy in proxies:
            if proxy.program() is None:
                self._absent[proxy.name] = (
                    f"not installed; scripts/setup {proxy.target} installs it"
                )
                continue
            try:
                yield stack.enter_context(self._running(proxy, plain, root))
            except BenchError as error:
                self._absent[proxy.name] = str(error)
        for name, why in self._absent.items():
            self._log(f"{name} is left out: {why}")

    @contextlib.contextmanager
    def _running(
        self, proxy: Proxy, upstream: Upstream, root: Path, *, timed: bool = False
    ) -> Iterator[Target]:
        """A proxy of its own; when it has ended, its tapes are compared and removed."""
        self._folders += 1
        folder = root / f"{self._folders}-{proxy.name}"
        try:
            with running(proxy, upstream, folder, timed=timed) as target:
                yield target
            self._compare(target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _compare(self, target: Target) -> None:
        self._answers += target.answers
        if not target.proxy.tapes:
            return
        taped = target.taped()
        self._taped += taped.complete
        self._taped_bytes += taped.bytes
        if (taped.complete, taped.bytes) != (target.answers, target.bytes):
            self._faults.append(
                f"{target.proxy.name}: {target.answers} answers with {target.bytes} bytes came,"
                f" its tapes hold {taped.complete} with {taped.bytes}"
            )

    def _measure(
        self, number: int, scenario: Scenario, target: Target, upstream: Upstream, root: Path
    ) -> None:
        proxy = target.proxy
        if not scenario.fresh:
            sample = measure(target, scenario)
        elif proxy.command is None:
            return
        else:
            with self._running(proxy, upstream, root, timed=scenario.timed) as fresh:
                sample = measure(fresh, scenario)
        self._results.append(
            Result(round=number, scenario=scenario.name, proxy=proxy.name, sample=sample)
        )
        if sample.faults:
            self._faults.append(
                f"round {number}, {scenario.name}: {sample.faults} answers through {proxy.name}"
                " failed or lacked something"
            )
        shown = ", ".join(f"{key} {value:.6g}" for key, value in sample.values.items())
        self._log(f"round {number}, {scenario.name}, {proxy.name}: {shown}")


def _takes_part(proxy: Proxy, scenario: Scenario) -> bool:
    """Whether a proxy is measured with a scenario."""
    return scenario.name in (proxy.scenarios or (scenario.name,)) and (
        not scenario.proxies or proxy.name in scenario.proxies
    )


def allow_descriptors() -> None:
    """Let this process and its children have as many open as are needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
