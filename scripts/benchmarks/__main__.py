"""Measures deltatape beside other proxies and the SDKs, and prints the tables.

Exit code: 1 when an answer or a tape lacked anything, or the run did not work.
"""

import argparse
import dataclasses
import json
import math
import platform
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from benchmarks.accumulators import CLIENTS, accumulators_section, run_accumulators
from benchmarks.checking import EXCHANGES, checking_section, run_checking
from benchmarks.checking import QUICK as FEW
from benchmarks.conversing import QUICK as SHORT
from benchmarks.conversing import TURNS, conversing_section, run_conversing
from benchmarks.measure import BenchError
from benchmarks.page import PAGE, head, tables
from benchmarks.playing import playing_section, run_playing
from benchmarks.proxies import PROXIES, ROOT
from benchmarks.run import Outcome, Run
from benchmarks.scenarios import SCENARIOS
from benchmarks.sizes import DEFAULT, QUICK, run_sizes, sizes_section
from benchmarks.steps import QUICK as ONCE
from benchmarks.steps import TIMES, run_steps, steps_section
from benchmarks.watching import run_watching, watching_section

SETUP_S = 600
FAILED = 1
PROXIES_PART, ACCUMULATORS, SIZES, CHECK = "proxies", "accumulators", "sizes", "check"
CONVERSATIONS, PLAYING, STEPS = "conversations", "playing", "steps"
WATCHING = "watching"
PARTS = (PROXIES_PART, STEPS, WATCHING, PLAYING, ACCUMULATORS, SIZES, CHECK, CONVERSATIONS)


class Named(Protocol):
    """What can be chosen on the command line."""

    @property
    def name(self) -> str:
        """The name on the command line."""


Choice = TypeVar("Choice", bound=Named)


def main() -> int:
    """Run the program; the exit code."""
    parser = _parser()
    options = parser.parse_args()
    _check(parser, options)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        report = _measured(parser, options)
    except BenchError as error:
        _log(str(error))
        return FAILED
    sys.stdout.write("\n".join(report.sections))
    if options.json:
        options.json.write_text(json.dumps({"version": 1, **report.samples}, indent=1) + "\n")
    for fault in report.faults:
        _log(fault)
    if report.faults:
        return FAILED
    if options.write:
        PAGE.write_text("\n".join([*report.head, *report.sections]))
    return 0


@dataclasses.dataclass(slots=True)
class Report:
    """What there is to tell after the run."""

    head: list[str] = dataclasses.field(default_factory=list)
    """The first lines of the page."""
    sections: list[str] = dataclasses.field(default_factory=list)
    samples: dict[str, object] = dataclasses.field(default_factory=dict)
    faults: list[str] = dataclasses.field(default_factory=list)


def _measured(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Report:
    report = Report()
    outcome = None
    if PROXIES_PART in options.only:
        outcome = _measure_proxies(parser, options, report)
    if STEPS in options.only:
        _measure_steps(options, report, outcome)
    if WATCHING in options.only:
        _measure_watching(options, report)
    if PLAYING in options.only:
        _measure_playing(options, report)
    if ACCUMULATORS in options.only:
        _measure_accumulators(options, report)
    if SIZES in options.only:
        _measure_sizes(options, report)
    if CHECK in options.only:
        _measure_check(options, report)
    if CONVERSATIONS in options.only:
        _measure_conversations(options, report)
    return report


def _measure_proxies(
    parser: argparse.ArgumentParser, options: argparse.Namespace, report: Report
) -> Outcome:
    proxies = _chosen(parser, PROXIES, options.proxies)
    scenarios = _chosen(parser, SCENARIOS, options.scenarios)
    if options.quick:
        scenarios = tuple(scenario.quick() for scenario in scenarios)
    _set_up(each.target for each in proxies if each.program() is None)
    outcome = Run(_log).run(proxies, scenarios, _rounds(options))
    report.head += head(outcome, proxies, sys.argv[1:])
    report.sections += tables(outcome, proxies, scenarios)
    report.samples |= dataclasses.asdict(outcome)
    report.faults += outcome.faults
    return outcome


def _measure_steps(options: argparse.Namespace, report: Report, outcome: Outcome | None) -> None:
    found = run_steps(_rounds(options), ONCE if options.quick else TIMES, _log)
    report.sections.append(steps_section(found, outcome))
    report.samples[STEPS] = [dataclasses.asdict(one) for one in found]


def _measure_watching(options: argparse.Namespace, report: Report) -> None:
    outcome = run_watching(_rounds(options), _log, quick=options.quick)
    report.sections.append(watching_section(outcome))
    report.samples[WATCHING] = dataclasses.asdict(outcome)
    report.faults += outcome.faults


def _measure_playing(options: argparse.Namespace, report: Report) -> None:
    outcome = run_playing(_rounds(options), _log, quick=options.quick)
    report.sections.append(playing_section(outcome))
    report.samples[PLAYING] = dataclasses.asdict(outcome)
    report.faults += outcome.faults


def _measure_accumulators(options: argparse.Namespace, report: Report) -> None:
    _set_up([] if CLIENTS.exists() else ["clients"])
    outcome = run_accumulators(_rounds(options), _log, quick=options.quick)
    report.sections.append(accumulators_section(outcome))
    report.samples[ACCUMULATORS] = dataclasses.asdict(outcome)
    report.faults += outcome.faults


def _measure_sizes(options: argparse.Namespace, report: Report) -> None:
    found = run_sizes(QUICK if options.quick else options.sizes, _log)
    report.sections.append(sizes_section(found))
    report.samples[SIZES] = [dataclasses.asdict(one) for one in found]


def _measure_check(options: argparse.Namespace, report: Report) -> None:
    found = run_checking(FEW, _log, 1) if options.quick else run_checking(EXCHANGES, _log)
    report.sections.append(checking_section(found))
    report.samples[CHECK] = [{**dataclasses.asdict(one), "speed": one.speed} for one in found]


def _measure_conversations(options: argparse.Namespace, report: Report) -> None:
    found = run_conversing(SHORT if options.quick else TURNS, _log)
    report.sections.append(conversing_section(found))
    samples = [{**dataclasses.asdict(one), "speed": one.speed} for one in found]
    report.samples[CONVERSATIONS] = samples


def _rounds(options: argparse.Namespace) -> int:
    rounds: int = options.rounds
    return 1 if options.quick else rounds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--only", type=_parts, default=PARTS, help=f"some of {','.join(PARTS)}; default: all"
    )
    parser.add_argument(
        "--sizes", type=_sizes, default=_sizes(DEFAULT), help=f"in MB; default: {DEFAULT}"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--proxies", help=f"some of {_names(PROXIES)}; default: all")
    parser.add_argument("--scenarios", help=f"some of {_names(SCENARIOS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="one small round: whether it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there, too")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    return parser


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if platform.system() != "Linux":
        parser.error("needs Linux: it reads CPU time and memory from /proc, and waits with epoll")
    if options.write and options.quick:
        parser.error("--write tells what was measured, and --quick measures nothing of worth")

    if options.write and options.only != PARTS:
        parser.error("--write writes all of the page, and needs all parts")


def _parts(names: str) -> tuple[str, ...]:
    wanted = names.split(",")
    unknown = set(wanted).difference(PARTS)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {','.join(sorted(unknown))}")
    return tuple(part for part in PARTS if part in wanted)


def _sizes(text: str) -> tuple[float, ...]:
    try:
        sizes = tuple(float(size) for size in text.split(","))
    except ValueError:
        sizes = (0.0,)
    if not all(0 < size < math.inf for size in sizes):
        raise argparse.ArgumentTypeError(f"not sizes in MB: {text}; such as {DEFAULT}")
    return sizes


def _names(choices: Iterable[Named]) -> str:
    return ",".join(choice.name for choice in choices)


def _chosen(
    parser: argparse.ArgumentParser, choices: Sequence[Choice], names: str | None
) -> tuple[Choice, ...]:
    """The named ones, in their usual order."""
    wanted = set(names.split(",")) if names is not None else {each.name for each in choices}
    unknown = wanted - {choice.name for choice in choices}
    if unknown:
        parser.error(f"unknown: {','.join(sorted(unknown))}; there are {_names(choices)}")
    return tuple(choice for choice in choices if choice.name in wanted)


def _set_up(targets: Iterable[str]) -> None:
    """Bring what is missing; where that fails, the run goes on without, and says so."""
    for target in dict.fromkeys(targets):
        subprocess.run([str(ROOT / "scripts" / "setup"), target], timeout=SETUP_S, check=False)


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _interrupted(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - a signal handler's
    """Leave in good order: what was started is ended, and tapes are removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
