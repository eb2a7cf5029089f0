"""Measures deltatape beside other proxies, and prints the tables.

Exit code: 1 when an answer or a tape lacked anything, or the run did not work.
"""

import argparse
import dataclasses
import json
import platform
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from benchmarks.measure import BenchError
from benchmarks.page import PAGE, page, tables
from benchmarks.proxies import PROXIES, ROOT, Proxy
from benchmarks.run import Outcome, Run
from benchmarks.scenarios import SCENARIOS

SETUP_S = 600
FAILED = 1


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
    proxies = _chosen(parser, PROXIES, given.proxies)
    scenarios = _chosen(parser, SCENARIOS, given.scenarios)
    if given.quick:
        scenarios = tuple(scenario.quick() for scenario in scenarios)
    _set_up(proxies)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        outcome = Run(_tell).run(proxies, scenarios, 1 if given.quick else given.rounds)
    except BenchError as error:
        _tell(str(error))
        return FAILED
    sys.stdout.write("\n".join(tables(outcome, proxies, scenarios)))
    if given.json:
        given.json.write_text(_as_json(outcome))
    for fault in outcome.faults:
        _tell(fault)
    if outcome.faults:
        return FAILED
    if given.write:
        PAGE.write_text(page(outcome, proxies, scenarios, sys.argv[1:]))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=(__doc__ or "").partition("\n")[0]
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


def _set_up(proxies: Iterable[Proxy]) -> None:
    """Bring what is missing; where that fails, the run goes on without, and says so."""
    for target in dict.fromkeys(each.target for each in proxies if each.program() is None):
        subprocess.run([str(ROOT / "scripts" / "setup"), target], timeout=SETUP_S, check=False)


def _as_json(outcome: Outcome) -> str:
    return json.dumps({"version": 1, **dataclasses.asdict(outcome)}, indent=1) + "\n"


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _interrupted(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - a signal handler's
    """Leave in good order: what was started is ended, and tapes are removed."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
