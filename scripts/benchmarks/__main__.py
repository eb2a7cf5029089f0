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
from benchmarks.run import Run
from benchmarks.scenarios import SCENARIOS
from benchmarks.sizes import DEFAULT, QUICK, run_sizes, sizes_section

SETUP_S = 600
FAILED = 1
PROXIES_PART, ACCUMULATORS, SIZES, CHECK = "proxies", "accumulators", "sizes", "check"
CONVERSATIONS, PLAYING = "conversations", "playing"
PARTS = (PROXIES_PART, PLAYING, ACCUMULATORS, SIZES, CHECK, CONVERSATIONS)


class Named(Protocol):
    """What can be chosen on the command line."""

    @property
    def name(self) -> str:
        """By this name."""


Choice = TypeVar("Choice", bound=Named)


def main() -> int:
    """Run the program; the exit code."""
    parser = _parser()
    given = parser.parse_args()
    _check(parser, given)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        told = _measured(parser, given)
    except BenchError as error:
        _tell(str(error))
        return FAILED
    sys.stdout.write("\n".join(told.sections))
    if given.json:
        given.json.write_text(json.dumps({"version": 1, **told.samples}, indent=1) + "\n")
    for fault in told.faults:
        _tell(fault)
    if told.faults:
        return FAILED
    if given.write:
        PAGE.write_text("\n".join([*told.head, *told.sections]))
    return 0


@dataclasses.dataclass(slots=True)
class Told:
    """What there is to tell after the run."""

    head: list[str] = dataclasses.field(default_factory=list)
    """Of the page."""
    sections: list[str] = dataclasses.field(default_factory=list)
    samples: dict[str, object] = dataclasses.field(default_factory=dict)
    faults: list[str] = dataclasses.field(default_factory=list)


def _measured(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Told:
    told = Told()
    if PROXIES_PART in given.only:
        _measure_proxies(parser, given, told)
    if PLAYING in given.only:
        _measure_playing(given, told)
    if ACCUMULATORS in given.only:
        _measure_accumulators(given, told)
    if SIZES in given.only:
        _measure_sizes(given, told)
    if CHECK in given.only:
        _measure_check(given, told)
    if CONVERSATIONS in given.only:
        _measure_conversations(given, told)
    return told


def _measure_proxies(
    parser: argparse.ArgumentParser, given: argparse.Namespace, told: Told
) -> None:
    proxies = _chosen(parser, PROXIES, given.proxies)
    scenarios = _chosen(parser, SCENARIOS, given.scenarios)
    if given.quick:
        scenarios = tuple(scenario.quick() for scenario in scenarios)
    _set_up(each.target for each in proxies if each.program() is None)
    outcome = Run(_tell).run(proxies, scenarios, _rounds(given))
    told.head += head(outcome, proxies, sys.argv[1:])
    told.sections += tables(outcome, proxies, scenarios)
    told.samples |= dataclasses.asdict(outcome)
    told.faults += outcome.faults


def _measure_playing(given: argparse.Namespace, told: Told) -> None:
    outcome = run_playing(_rounds(given), _tell, quick=given.quick)
    told.sections.append(playing_section(outcome))
    told.samples[PLAYING] = dataclasses.asdict(outcome)
    told.faults += outcome.faults


def _measure_accumulators(given: argparse.Namespace, told: Told) -> None:
    _set_up([] if CLIENTS.exists() else ["clients"])
    outcome = run_accumulators(_rounds(given), _tell, quick=given.quick)
    told.sections.append(accumulators_section(outcome))
    told.samples[ACCUMULATORS] = dataclasses.asdict(outcome)
    told.faults += outcome.faults


def _measure_sizes(given: argparse.Namespace, told: Told) -> None:
    found = run_sizes(QUICK if given.quick else given.sizes, _tell)
    told.sections.append(sizes_section(found))
    told.samples[SIZES] = [dataclasses.asdict(one) for one in found]


def _measure_check(given: argparse.Namespace, told: Told) -> None:
    found = run_checking(FEW if given.quick else EXCHANGES, _tell)
    told.sections.append(checking_section(found))
    told.samples[CHECK] = [{**dataclasses.asdict(one), "speed": one.speed} for one in found]


def _measure_conversations(given: argparse.Namespace, told: Told) -> None:
    found = run_conversing(SHORT if given.quick else TURNS, _tell)
    told.sections.append(conversing_section(found))
    samples = [{**dataclasses.asdict(one), "speed": one.speed} for one in found]
    told.samples[CONVERSATIONS] = samples


def _rounds(given: argparse.Namespace) -> int:
    rounds: int = given.rounds
    return 1 if given.quick else rounds


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


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if platform.system() != "Linux":
        parser.error("needs Linux: it reads CPU time and memory from /proc, and waits with epoll")
    if given.write and given.quick:
        parser.error("--write tells what was measured, and --quick measures nothing of worth")

    if given.write and given.only != PARTS:
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


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _interrupted(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - a signal handler's
    """Leave in good order: what was started is ended, and tapes are removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
