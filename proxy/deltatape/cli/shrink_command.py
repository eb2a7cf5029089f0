"""`deltatape shrink`: find the smallest tape on which a command still fails; write tests."""

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from deltatape.cli.options import (
    FORMAT,
    VOLATILE,
    TapeArgument,
    WholeNumber,
    WrapperCommand,
    duration,
    option,
    output,
)
from deltatape.cli.tapes import provider_exchanges, with_stored
from deltatape.cli.terminal import say, show, width, write
from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.match.schedule import ReplayTempo, parse_speed
from deltatape.model.exchange import Exchange
from deltatape.printable import count
from deltatape.render.shrink import ShrinkKit, ShrinkReport, amount_of, shrink_json, shrink_lines
from deltatape.replay.environment import known_telemetry
from deltatape.replay.guard import NetworkGuard
from deltatape.store.mask_key import mask_key
from deltatape.store.names import DEFAULT_FOLDER, without_suffix
from deltatape.trials.shrink import (
    FASTEST_FIRST,
    LEAST,
    ShrinkRequest,
    ShrinkResult,
    ShrinkStep,
    TempoSetting,
    shrink_tape,
)
from deltatape.trials.shrink_files import files_of, write_files
from deltatape.trials.shrink_trials import TrialSetup
from deltatape.trials.torture_judge import oracle_of

_MEMORY = "shrink"
"""The folder of answers, inside the folder of tapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkArguments:
    """The parsed options."""

    tapes: tuple[str, ...]
    output: Path | None
    error: str | None
    oracle: str | None
    deadline: float
    runs: int
    speed: str | None
    volatile: tuple[str, ...]
    allow_findings: bool
    fresh: bool
    format: str


@click.command("shrink", cls=WrapperCommand)
@click.argument("tapes", cls=TapeArgument, nargs=-1, metavar="TAPE[#N]...")
@output("The new tape; the tests go into the same folder. Default: TAPE-small.tape.")
@option("--error", metavar="TEXT", help="Text that the command prints when it fails.")
@option(
    "--oracle", metavar="CMD", help="A command that judges each run: exit code 0 means no failure."
)
@duration(
    "--deadline", "30s", "How long a run may take; a longer one is stopped and counts as a hang."
)
@option("--runs", default=500, type=WholeNumber(LEAST), help="Maximum number of runs.")
@option(
    "--speed",
    metavar="SPEED",
    help="recorded, instant or 4x; default: the fastest at which the command fails.",
)
@VOLATILE
@option(
    "--allow-findings",
    is_flag=True,
    help="Allow stream defects that the recording does not have: smaller, but maybe another bug.",
)
@option("--fresh", is_flag=True, help="Ignore the results of an interrupted search.")
@FORMAT
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Make the smallest tape on which a command still fails, and tests that fail with it.

    Run the command repeatedly while removing exchanges, events, fields and characters from the
    tape. A failure is the same if the exit code and the error message are, apart from numbers and
    quoted texts in the message. Valid streams stay valid. After an interruption, the same command
    line resumes the search.

    Exit code: 1 if --runs was reached before the tape was minimal, or if the command does not fail
    on the new tape every time.
    """
    arguments = ShrinkArguments(**options)
    argv = WrapperCommand.command_of(ctx)
    if not arguments.tapes or not argv:
        raise click.UsageError("a tape and a command are required: shrink TAPE -- CMD", ctx)
    exchanges = _exchanges(arguments.tapes)
    arguments = replace(arguments, volatile=with_stored(arguments.tapes, arguments.volatile))
    files = files_of(
        arguments.output or Path(f"{without_suffix(Path(exchanges[0].tape).name)}-small.tape")
    )
    clock = SystemClock()
    began_ns = clock.now_ns()
    key = mask_key(os.environ, say)
    telemetry = known_telemetry(argv, exchanges)
    outbound = outbound_from(os.environ)
    with NetworkGuard(outbound, Path.cwd(), telemetry=telemetry) as network_guard:
        found = _shrunk(exchanges, _setting(arguments, argv, key, network_guard), arguments)
        passed = network_guard.problem()
    kit = _kit(files.tape, argv, found, arguments)
    report = ShrinkReport(
        before=exchanges,
        after=found.exchanges,
        failure=found.last,
        runs=found.runs,
        seconds=(clock.now_ns() - began_ns) / 1e9,
        whole=found.whole,
        still=found.missed is None,
        files=[str(path) for path in write_files(files, found.exchanges, kit, key)],
    )
    if passed:
        say(f"note: on some tapes {passed}; those runs were not used")
    _report(report, found, arguments)
    return 0 if found.whole and found.missed is None else 1


def _kit(
    tape: Path, argv: tuple[str, ...], found: ShrinkResult, arguments: ShrinkArguments
) -> ShrinkKit:
    """Collect the input for generated tests."""
    return ShrinkKit(
        tape=tape.name,
        folder=os.path.relpath(Path.cwd(), tape.parent.resolve()),
        command=argv,
        options=_replay_options(found.speed, arguments),
        deadline_s=arguments.deadline,
        failure=found.failure,
        oracle=arguments.oracle,
    )


def _exchanges(tapes: tuple[str, ...]) -> Sequence[Exchange]:
    """Return the provider's exchanges on one tape, or the chosen ones of it."""
    found = provider_exchanges(tapes)
    if len({exchange.tape for exchange in found}) > 1:
        raise UsageError(
            f"{', '.join(tapes)}: shrink takes exchanges of one tape; use deltatape splice first"
        )
    return found


def _setting(
    arguments: ShrinkArguments, argv: tuple[str, ...], mask_key: bytes, network_guard: NetworkGuard
) -> TrialSetup:
    """Return how to run the command."""
    folder = Path.cwd()
    return TrialSetup(
        command=argv,
        environ=os.environ,
        folder=folder,
        deadline_s=arguments.deadline,
        volatile=arguments.volatile,
        error=arguments.error,
        oracle=oracle_of(arguments.oracle, os.environ, folder, arguments.deadline),
        mask_key=mask_key,
        network_guard=network_guard,
    )


def _shrunk(
    exchanges: Sequence[Exchange], setting: TrialSetup, arguments: ShrinkArguments
) -> ShrinkResult:
    """Search, and print the progress."""
    request = ShrinkRequest(
        speeds=_speeds(arguments.speed),
        runs=arguments.runs,
        sound=not arguments.allow_findings,
        fresh=arguments.fresh,
    )
    progress = ShrinkProgress()
    try:
        with progress.shown():
            return shrink_tape(
                exchanges, setting, request, Path(DEFAULT_FOLDER, _MEMORY), progress.update
            )
    except KeyboardInterrupt:
        say("interrupted; run the same command to resume")
        raise


def _speeds(speed: str | None) -> Sequence[TempoSetting]:
    if speed is None:
        return FASTEST_FIRST
    return (TempoSetting(ReplayTempo(factor=parse_speed(speed)), ("--speed", speed)),)


def _replay_options(speed: TempoSetting, arguments: ShrinkArguments) -> list[str]:
    paths = (word for path in arguments.volatile for word in ("--volatile", path))
    return [*speed.options, *paths]


def _report(report: ShrinkReport, found: ShrinkResult, arguments: ShrinkArguments) -> None:
    for path in report.files:
        say(f"written: {path}")
    if found.remembered:
        say(f"note: {count(found.remembered, 'result')} reused from an interrupted search")
    if found.missed is None and found.last.shown != found.failure.shown:
        say(
            f"note: the failure was {found.failure.description} at first."
            " If that is a different bug, define the failure with --error TEXT or --oracle CMD"
        )
    if found.missed is not None:
        first = next((one.message for one in found.missed.missed), "the command ended differently")
        say(
            "note: with the requests of the new tape matched exactly, the command did not fail in"
            f" the same way: {first}. Use --volatile for what differs in each run"
        )
    if not found.whole:
        say(
            f"note: stopped after {count(arguments.runs, 'run')}; to continue, run the same command"
            " with another -o"
        )
    if arguments.format == "json":
        write(shrink_json(report))
        return
    show(shrink_lines(report, width()))
    if len(report.files) > 1:
        say(f"next: pytest {shlex.quote(report.files[1])}")


# How far a search is: a line per pass that took something away, a moving one on a terminal.


class ShrinkProgress:
    """Print the progress of a search."""

    def __init__(self) -> None:
        self._pass = ""
        self._last = ""
        """The last progress that was printed."""
        self._step: ShrinkStep | None = None
        shown = sys.stderr.isatty()
        self._console = Console(file=sys.stderr) if shown else Console(quiet=True)
        self._status = self._console.status("")

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress on the terminal; at the end, print what the last pass removed."""
        with self._status:
            yield
            if self._step is not None:
                self._print_pass(amount_of(self._step.exchanges).text, self._step.runs)

    def update(self, step: ShrinkStep) -> None:
        self._step = step
        left = amount_of(step.exchanges).text
        if step.note:
            self._say(step.note)
        if step.what:
            self._print_pass(left, step.runs)
            self._pass = step.what
        self._status.update(Text(f"{self._pass}: {left} ({count(step.runs, 'run')})"))

    def _print_pass(self, left: str, runs: int) -> None:
        if left != self._last and self._pass:
            self._say(f"{self._pass}: {left} after {count(runs, 'run')}")
        self._last = left

    def _say(self, line: str) -> None:
        """Print a line above the moving one."""
        self._status.stop()
        say(line)
        self._status.start()
