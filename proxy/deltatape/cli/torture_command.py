"""`deltatape torture`: runs a command against variations of tapes; prints a matrix."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from deltatape.cli.options import FILE, FORMAT, VOLATILE, WrapperCommand, option, seconds
from deltatape.cli.progress import Bar
from deltatape.cli.tapes import exchanges_of
from deltatape.cli.terminal import say, show, width, write
from deltatape.errors import UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.torture import MatrixCell, TortureResult
from deltatape.printable import count
from deltatape.render.torture import (
    cell_line,
    torture_json,
    torture_junit,
    torture_lines,
    untried,
    variation_lines,
)
from deltatape.replay.guard import NetworkGuard
from deltatape.store.report_file import check_folder, check_report, write_report
from deltatape.trials.torture import TortureSetup, torture
from deltatape.trials.torture_judge import Oracle, OutputRules
from deltatape.trials.torture_plan import CaseFilerProtocol
from deltatape.vary.variation import VARIATIONS, Variation

_GROUPS = ("harmless", "hostile")
_SHARED = ("deadline", "oracle", "ignore", "visible", "volatile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options."""

    tapes: tuple[str, ...]
    only: tuple[str, ...]
    spared: tuple[str, ...]
    listing: bool
    exchange: tuple[str, ...]
    seed: int
    seeds: int
    deadline: float
    jobs: int | None
    oracle: str | None
    ignore: tuple[re.Pattern[str], ...]
    visible: tuple[re.Pattern[str], ...]
    volatile: tuple[str, ...]
    keep: Path | None
    junit: Path | None
    format: str


def known(
    ctx: click.Context,  # noqa: ARG001 - a click callback
    param: click.Parameter,
    value: tuple[str, ...],
) -> tuple[str, ...]:
    """Parse names of variations or groups; a click callback."""
    names = {*_GROUPS, *(one.name for one in VARIATIONS)}
    for name in value:
        if name not in names:
            raise UsageError(
                f"{param.opts[0]} {name!r}: no variation; harmless, hostile or a name of"
                " `deltatape torture --list` is"
            )
    return value


def chosen(only: Sequence[str], spared: Sequence[str]) -> tuple[Variation, ...]:
    """Return the variations of `--only` (default: all) without those of `--except`.

    Raises:
        UsageError: none is left.
    """
    found = tuple(
        one for one in VARIATIONS if (not only or _names(one, only)) and not _names(one, spared)
    )
    if not found:
        raise UsageError(f"--except {', '.join(spared)}: no variation is left to try")
    return found


def _names(variation: Variation, names: Sequence[str]) -> bool:
    """Check whether a variation or its group is named."""
    group = "harmless" if variation.harmless else "hostile"
    return variation.name in names or group in names


def patterns(
    ctx: click.Context,  # noqa: ARG001 - a click callback
    param: click.Parameter,
    value: tuple[str, ...],
) -> tuple[re.Pattern[str], ...]:
    """Parse regular expressions; a click callback."""
    found = []
    for text in value:
        try:
            found.append(re.compile(text, re.IGNORECASE))
        except re.error as error:
            raise UsageError(f"{param.opts[0]} {text!r}: no regular expression: {error}") from None
    return tuple(found)


@click.command("torture", cls=WrapperCommand)
@click.argument("tapes", nargs=-1, metavar="TAPE[#N]...")
@option(
    "--only",
    multiple=True,
    callback=known,
    metavar="NAME",
    help="harmless, hostile, or a variation such as every-byte; --list tells all.",
)
@option(
    "--except",
    "spared",
    multiple=True,
    callback=known,
    envvar="DELTATAPE_TORTURE_EXCEPT",
    metavar="NAME",
    help="All but this: what your client cannot take, such as early-hints.",
)
@option(
    "--list",
    "listing",
    is_flag=True,
    envvar="DELTATAPE_TORTURE_LIST",
    help="List the variations, and do nothing else.",
)
@option("--exchange", multiple=True, metavar="N", help="Vary this exchange alone: 2, or x.tape#2.")
@option("--seed", default=1, type=click.IntRange(0, 2**31), help="The first seed.")
@option(
    "--seeds",
    default=3,
    type=click.IntRange(1, 10_000),
    help="How often to try what is left to chance.",
)
@option(
    "--deadline",
    default="10s",
    callback=seconds,
    metavar="DURATION",
    help="How long a run may take beyond what it takes with the tapes as they are.",
)
@option("--jobs", type=click.IntRange(1, 64), help="Runs at a time; default: one per core.")
@option("--oracle", metavar="CMD", help="A command that judges each run by its exit code.")
@option(
    "--ignore",
    multiple=True,
    callback=patterns,
    metavar="PATTERN",
    help="Output that may differ, such as times.",
)
@option(
    "--visible",
    multiple=True,
    callback=patterns,
    metavar="PATTERN",
    help="A line of output that speaks of an error; default: one with error, failed, timeout, ...",
)
@VOLATILE
@option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the tape of each failure there.",
)
@option("--junit", type=FILE, metavar="FILE", help="Write a JUnit report, too.")
@FORMAT
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Run a command against variations of good tapes: what breaks it?

    A harmless variation says the same in other bytes, reads or events: the command must end as it
    does with the tapes as they are, with the same exit code, output and requests. A hostile one
    breaks an answer: the command must say so, by its exit code or a line about an error, before
    the deadline.

    Exit code 1 when it does not, when it fails with the tapes as they are, or when nothing was
    tried since no variation has a place in the answers.
    """
    given = Given(**options)
    if given.listing:
        show(variation_lines(chosen(given.only, given.spared), width()))
        return 0
    argv = WrapperCommand.command_of(ctx)
    if not given.tapes or not argv:
        raise click.UsageError("needs a tape and a command: torture TAPE... -- CMD", ctx)
    rig = rig_of(given, argv, tuple(_again(ctx)))
    _check_files(given)
    result = _secluded(rig)
    if given.format == "json":
        write(torture_json(result))
    else:
        show(torture_lines(result, width()))
    if given.junit is not None:
        write_report("--junit", given.junit, torture_junit(result))
    return 0 if result.passes and not untried(result) else 1


def _check_files(given: Given) -> None:
    """Check before all runs that the output files can be written."""
    if given.junit is not None:
        check_report("--junit", given.junit)
    if given.keep is not None:
        check_folder("--keep", given.keep, made=True)


def _secluded(rig: TortureSetup) -> TortureResult:
    """Run without access to any provider."""
    with NetworkGuard(outbound_from(os.environ), rig.folder) as seclusion:
        result = _tortured(replace(rig, seclusion=seclusion))
        passed = seclusion.problem()
    if passed and not result.problem:
        say(f"note: under some variations {passed}")
    return result


def _tortured(rig: TortureSetup) -> TortureResult:
    """Run with a progress bar and a line per failure."""
    say(f"{count(len(rig.exchanges), 'exchange')}, {count(len(rig.variations), 'variation')}")
    with contextlib.ExitStack() as stack:
        bars: list[Bar] = []

        def begun(tasks: int) -> None:
            bars.append(stack.enter_context(Bar("tries", tasks)))

        def done(cells: Sequence[MatrixCell]) -> None:
            (bar,) = bars
            failed = [cell for cell in cells if not cell.verdict.passes]
            if failed:
                with bar.aside():
                    for cell in failed:
                        say(cell_line(cell))
            bar.step()

        return torture(rig, begun, done)


def rig_of(given: Given, argv: tuple[str, ...], again: tuple[str, ...]) -> TortureSetup:
    """Collect what to run.

    Args:
        given: the options.
        argv: the command.
        again: those options that a run of a single cell needs, too.

    Raises:
        UsageError: there is no such tape or exchange, or nothing to vary.
    """
    exchanges = tuple(
        exchange
        for tape in given.tapes
        for exchange in exchanges_of(tape)
        if exchange.tap is Tap.PROVIDER
    )
    if not exchanges:
        raise UsageError(f"{', '.join(given.tapes)}: no answer of a provider to play")
    environ, folder = os.environ, Path.cwd()
    oracle = None
    if given.oracle is not None:
        oracle = Oracle(
            command=given.oracle, environ=environ, folder=folder, limit_s=given.deadline
        )
    return TortureSetup(
        command=argv,
        exchanges=exchanges,
        variations=chosen(given.only, given.spared),
        environ=environ,
        folder=folder,
        filing=CaseFilerProtocol(tapes=given.tapes, options=again, command=argv, folder=given.keep),
        only=frozenset(_positions(given.exchange, exchanges)),
        seeds=tuple(range(given.seed, given.seed + given.seeds)),
        deadline_s=given.deadline,
        jobs=given.jobs or os.cpu_count() or 1,
        volatile=given.volatile,
        manners=OutputRules(ignore=given.ignore, visible=given.visible or OutputRules().visible),
        oracle=oracle,
    )


def _positions(names: Sequence[str], exchanges: Sequence[Exchange]) -> Iterator[int]:
    """Yield the positions of the exchanges that `--exchange` names.

    Raises:
        UsageError: there is none of a name, or more than one.
    """
    for name in names:
        tape, _, number = name.rpartition("#")
        found = [
            at
            for at, one in enumerate(exchanges)
            if str(one.number) == number and tape in ("", one.tape)
        ]
        if len(found) != 1:
            known = ", ".join(f"{one.tape}#{one.number}" for one in exchanges)
            which = "no" if not found else "more than one"
            raise UsageError(f"--exchange {name!r}: {which} exchange of the tapes: {known}")
        yield found[0]


def _again(ctx: click.Context) -> Iterator[str]:
    """Yield the options that repeat a single cell, as they were given."""
    for name in _SHARED:
        value = ctx.params[name]
        if ctx.get_parameter_source(name) is click.core.ParameterSource.DEFAULT:
            continue
        flag = f"--{name}"
        for each in value if isinstance(value, tuple) else (value,):
            text = each.pattern if isinstance(each, re.Pattern) else each
            yield from (flag, f"{text:g}s" if isinstance(text, float) else str(text))
