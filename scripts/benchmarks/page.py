"""docs/performance.md: its head, and the sections on proxies with how to read them."""

import os
import platform
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.goals import goals_section
from benchmarks.proxies import ROOT, Proxy
from benchmarks.run import Outcome
from benchmarks.scenarios import Scenario
from benchmarks.table import table
from benchmarks.traffic import DELTA_BYTES
from deltatape.clock import SystemClock, rfc3339

PAGE = ROOT / "docs" / "performance.md"

_HEAD = f"""\
# Performance

What deltatape costs: beside other proxies as a proxy, beside the SDKs' own accumulators as a reader
of streams, and by size; and how fast and how punctual its player is. This page is written by
`scripts/bench --write`; whoever doubts a number runs `scripts/bench`.

## As a proxy

Clients, proxy and provider share one machine and talk over 127.0.0.1. The provider streams the
arguments of a tool call, {DELTA_BYTES} bytes a delta on the wire, one write each, stamped with the
time of that write. All proxies are measured in one run, interleaved: round by round, scenario by
scenario, proxy by proxy. A cell is the median of the rounds, with the least and the most in
parentheses; `x nginx` is the median of the quotients within each round.

How to read it:

- **Quotients are what counts.** Times depend on the machine and on what else it does; CPU time per
  delta repeats best, p99 worst.
- CPU time is that of all threads and processes of a proxy, in user and kernel mode, until it is
  quiet again after the last byte; so what deltatape does after an exchange has ended, checking it,
  is in it. *Without analysis* is without the process that analyses exchanges, which may lag;
  *s behind/1000* is how long it went on after the last byte, for each 1,000 answers.
- Latency is the time from the provider's write of a delta to the client's read of it. It includes
  the waking of provider and client, which `direct` shows alone.
- The streams of a scenario begin and end at nearly the same time: the first to end are analysed
  while the others send their last deltas. That is the worst case for p99, and not usual.
- Flat out, a slow proxy reads several deltas at once, and so does less per delta: there the rate
  is what compares, and paced streams tell the cost of a delta.
- A turn of an event loop is what it does between two waits: meanwhile no other stream goes on. Its
  CPU time is the program's own; by the clock, what others did on the same processors is in it.
- deltatape tapes every byte, nginx and mitmdump write nothing. Memory is what 1000 open streams
  add to a proxy that has just started.
- `deltatape-replay` is the player alone, without a provider behind it; it gives the same small
  answers to the same clients. The rate of the provider itself is that of `direct`.
- A run in which an answer lacks a delta, or a tape a byte, fails and writes no page.

`scripts/soak` looks for what only a long run shows: half an hour of streams, small requests, agents
on tapes of their own names, clients that leave, and upstreams that break off, one of them behind
TLS. It fails if an answer or a tape lacks or changes a byte, if exchanges stay unanalysed, or if
memory, descriptors or the 99th percentile of the delay grow after the first third (`--minutes`,
`--streams`, `--json`). The memory of the analysis is bounded, and takes some minutes to fill: runs
of less than 20 minutes allow it 80 MiB more. Delays mean something only on a machine that does
nothing else meanwhile.
"""


def head(outcome: Outcome, proxies: Sequence[Proxy], arguments: Sequence[str]) -> tuple[str, ...]:
    """What stands before the sections."""
    return _HEAD, "".join(_about(outcome, proxies, arguments))


def tables(
    outcome: Outcome, proxies: Sequence[Proxy], scenarios: Sequence[Scenario]
) -> Iterator[str]:
    """What was reached, and a section for each scenario."""
    names = [proxy.name for proxy in proxies]
    yield goals_section(outcome)
    for scenario in scenarios:
        yield f"## {scenario.title}\n\n{table(outcome, scenario, names)}"


def _about(outcome: Outcome, proxies: Sequence[Proxy], arguments: Sequence[str]) -> Iterator[str]:
    day = rfc3339(SystemClock().wall_ns())[:10]
    rounds = max((result.round for result in outcome.results), default=0)
    versions = [proxy.version() for proxy in proxies if proxy.name not in outcome.absent]
    yield "## The run\n\n"
    yield f"- command: `{shlex.join(['scripts/bench', *arguments])}`, {day}, {rounds} rounds\n"
    yield f"- machine: {machine(outcome.load)}\n"
    yield f"- versions: {', '.join(filter(None, (python_version(), *versions)))}\n"
    yield (
        f"- {outcome.answers} complete answers arrived; the tapes of the run contain"
        f" {outcome.taped} exchanges with {outcome.taped_bytes} bytes: what the clients received\n"
    )
    for proxy in proxies:
        if proxy.name in outcome.absent:
            yield f"- **{proxy.name}** was not measured: {_line(outcome.absent[proxy.name])}\n"
        else:
            yield f"- **{proxy.name}**: {proxy.what}\n"


def machine(load: float) -> str:
    """Return what the programs run on, with the load before."""
    memory = re.search(r"MemTotal:\s*(\d+)", _read("/proc/meminfo"))
    model = re.search(r"model name\s*:\s*(.+)", _read("/proc/cpuinfo"))
    gib = f"{int(memory[1]) / (1 << 20):.0f} GiB" if memory else "unknown memory"
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {gib},"
        f" {platform.system()} {platform.release().partition('-')[0]},"
        f" load average {load:.1f} before the run"
    )


def python_version() -> str:
    """Return which Python this is."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
