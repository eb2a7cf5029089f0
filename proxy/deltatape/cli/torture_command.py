"""`deltatape torture`: run a command against variations of tapes, and print a matrix."""

import contextlib
import os
import re
import socket
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from deltatape.cli.addresses import player_address
from deltatape.cli.options import (
    FILE,
    FOLDER,
    FORMAT,
    MITM,
    VOLATILE,
    TapeArgument,
    WholeNumber,
    WrapperCommand,
    duration,
    option,
    refuse_useless,
    via_mitm,
)
from deltatape.cli.replay_command import taped_hosts
from deltatape.cli.tapes import provider_exchanges, with_stored
from deltatape.cli.terminal import Bar, say, show, width, write
from deltatape.errors import UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.http1.listener import Address
from deltatape.mitm.hosts import Hosts
from deltatape.mitm.session import RedirectingProxy
from deltatape.model.exchange import Exchange
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
from deltatape.replay.environment import known_telemetry
from deltatape.replay.guard import NetworkGuard
from deltatape.replay.playback import ANY_PORT
from deltatape.store.report_file import check_folder, check_report, write_report
from deltatape.trials.torture import TortureSetup, torture
from deltatape.trials.torture_judge import OutputRules, oracle_of
from deltatape.trials.torture_plan import CaseFiler
from deltatape.vary.variation import VARIATIONS, Variation

_GROUPS = ("harmless", "hostile")
_SHARED = ("listen", "via", "hosts", "deadline", "oracle", "ignore", "visible", "volatile")


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureArguments:
    """The parsed options."""

    tapes: tuple[str, ...]
    only: tuple[str, ...]
    spared: tuple[str, ...]
    listing: bool
    exchange: tuple[str, ...]
    seed: int
    seeds: int
    deadline: float
    jobs: int | None
    listen: str | None
    via: str | None
    hosts: tuple[str, ...]
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
                f"{param.opts[0]} {name!r}: unknown variation; use harmless, hostile or a name"
                " from `deltatape torture --list`"
            )
    return value


def chosen(only: Sequence[str], spared: Sequence[str]) -> tuple[Variation, ...]:
    """Return the variations that `--only` selects (default: all) and `--except` does not exclude.

    Raises:
        UsageError: no variation is left.
    """
    found = tuple(
        one for one in VARIATIONS if (not only or _names(one, only)) and not _names(one, spared)
    )
    if not found:
        raise UsageError(f"--except {', '.join(spared)}: excludes every selected variation")
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
            with warnings.catch_warnings(action="ignore"):  # such as of a set in a set
                found.append(re.compile(text, re.IGNORECASE))
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"{param.opts[0]} {text!r}: invalid regular expression: {error}"
            ) from None
    return tuple(found)


@click.command("torture", cls=WrapperCommand)
@click.argument("tapes", cls=TapeArgument, nargs=-1, metavar="TAPE[#N]...")
@option(
    "--only",
    multiple=True,
    callback=known,
    metavar="NAME",
    help="Run only these variations: harmless, hostile, or a name from --list. Repeatable.",
)
@option(
    "--except",
    "spared",
    multiple=True,
    callback=known,
    envvar="DELTATAPE_TORTURE_EXCEPT",
    metavar="NAME",
    help="Leave out a variation that your client does not support, such as early-hints.",
)
@option(
    "--list",
    "listing",
    is_flag=True,
    envvar="DELTATAPE_TORTURE_LIST",
    help="List the variations and exit.",
)
@option("--exchange", multiple=True, metavar="N", help="Vary only this exchange: 2, or x.tape#2.")
@option("--seed", default=1, type=WholeNumber(0, 2**31), help="The first seed.")
@option(
    "--seeds",
    default=3,
    type=WholeNumber(1, 10_000),
    help="How many seeds to try for a variation with random choices.",
)
@duration("--deadline", "10s", "How much longer a run may take than with the unchanged tapes.")
@option("--jobs", type=WholeNumber(1, 64), help="Parallel runs; default: one per core.")
@option(
    "--listen",
    metavar="HOST:PORT",
    help="Where the provider listens in each run, for a command that cannot be given a base URL;"
    " one run at a time.  [default: any free port]",
)
@via_mitm(
    "Route CMD to the provider through mitmproxy if its base URL cannot be set; one run at a time.",
    "route this host there besides those of LLM providers and of the tapes",
)
@option("--oracle", metavar="CMD", help="A command that judges each run: exit code 0 means passed.")
@option(
    "--ignore",
    multiple=True,
    callback=patterns,
    metavar="PATTERN",
    help="Ignore output that matches this regular expression, such as times.",
)
@option(
    "--visible",
    multiple=True,
    callback=patterns,
    metavar="PATTERN",
    help="Count output that matches this regular expression as an error message; default: words"
    " such as error, failed, timeout.",
)
@VOLATILE
@option(
    "--keep",
    type=FOLDER,
    metavar="DIR",
    help="Write the tape of each failure to this folder.",
)
@option("--junit", type=FILE, metavar="FILE", help="Also write a JUnit report.")
@FORMAT
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Run a command against variations of good tapes to find what breaks it.

    A harmless variation carries the same content in other bytes, reads or events: the command must
    end as with the unchanged tapes, with the same exit code, output and requests. A hostile one
    breaks a response: the command must report that, by its exit code or by an error message,
    before the deadline.

    Exit code: 1 if the command fails a variation or fails with the unchanged tapes, or if no
    selected variation applies to the responses.
    """
    arguments = TortureArguments(**options)
    if arguments.listing:
        show(variation_lines(chosen(arguments.only, arguments.spared), width()))
        return 0
    argv = WrapperCommand.command_of(ctx)
    if not arguments.tapes or not argv:
        raise click.UsageError("a tape and a command are required: torture TAPE... -- CMD", ctx)
    if arguments.via is None:
        refuse_useless(ctx, options.keys() - {"hosts"}, "without --via mitm")
    rig = rig_of(arguments, argv, tuple(_shared_options(ctx)))
    # Fail before the first run if the output cannot be written.
    if arguments.junit is not None:
        check_report("--junit", arguments.junit)
    if arguments.keep is not None:
        check_folder("--keep", arguments.keep, made=True)
    result = _secluded(rig)
    if arguments.format == "json":
        write(torture_json(result))
    else:
        show(torture_lines(result, width()))
    if arguments.junit is not None:
        write_report("--junit", arguments.junit, torture_junit(result))
    return 0 if result.passes and not untried(result) else 1


def _secluded(rig: TortureSetup) -> TortureResult:
    """Run without access to any provider."""
    if rig.lead is not None:
        return _tortured(rig)
    telemetry = known_telemetry(rig.command, rig.exchanges)
    outbound = outbound_from(os.environ)
    with NetworkGuard(outbound, rig.folder, telemetry=telemetry) as network_guard:
        result = _tortured(replace(rig, network_guard=network_guard))
        passed = network_guard.problem()
    if passed and not result.problem:
        say(f"note: with some variations, {passed}")
    return result


def _tortured(rig: TortureSetup) -> TortureResult:
    """Run with a progress bar and a line per failure."""
    say(f"{count(len(rig.exchanges), 'exchange')}, {count(len(rig.variations), 'variation')}")
    with contextlib.ExitStack() as stack:
        bars: list[Bar] = []

        def begun(tasks: int) -> None:
            bars.append(stack.enter_context(Bar("variations", tasks)))

        def done(cells: Sequence[MatrixCell]) -> None:
            (bar,) = bars
            failed = [cell for cell in cells if not cell.verdict.passes]
            if failed:
                with bar.aside():
                    for cell in failed:
                        say(cell_line(cell))
            bar.step()

        return torture(rig, begun, done)


def rig_of(
    arguments: TortureArguments, argv: tuple[str, ...], again: tuple[str, ...]
) -> TortureSetup:
    """Collect what to run.

    Args:
        arguments: the options.
        argv: the command.
        again: those options that a run of a single cell needs, too.

    Raises:
        UsageError: there is no such tape or exchange, or nothing to vary.
    """
    listen, jobs = _listen(arguments)
    exchanges = provider_exchanges(arguments.tapes)
    environ, folder = os.environ, Path.cwd()
    return TortureSetup(
        command=argv,
        exchanges=exchanges,
        variations=chosen(arguments.only, arguments.spared),
        environ=environ,
        folder=folder,
        filing=CaseFiler(tapes=arguments.tapes, options=again, command=argv, folder=arguments.keep),
        only=frozenset(_positions(arguments.exchange, exchanges)),
        seeds=tuple(range(arguments.seed, arguments.seed + arguments.seeds)),
        deadline_s=arguments.deadline,
        jobs=jobs,
        listen=listen,
        lead=_lead(arguments) if arguments.via == MITM else None,
        volatile=with_stored(arguments.tapes, arguments.volatile),
        output_rules=OutputRules(
            ignore=arguments.ignore, visible=arguments.visible or OutputRules().visible
        ),
        oracle=oracle_of(arguments.oracle, environ, folder, arguments.deadline),
    )


def _lead(arguments: TortureArguments) -> RedirectingProxy:
    Hosts(arguments.hosts)  # fails for a wrong pattern before anything starts
    return RedirectingProxy((*arguments.hosts, *taped_hosts(arguments.tapes)), say)


def _listen(arguments: TortureArguments) -> tuple[Address, int]:
    """Return where the player listens, and how many runs happen at the same time.

    Raises:
        UsageError: it is no loopback address, or one for several runs at once.
    """
    jobs, led = arguments.jobs, arguments.via is not None
    if arguments.listen is None and not led:
        return ANY_PORT, jobs or os.cpu_count() or 1
    if jobs is not None and jobs > 1:
        which = "--via mitm" if arguments.listen is None else "--listen"
        raise UsageError(f"--jobs {jobs}: with {which}, runs come one after the other")
    listen = player_address(arguments.listen, 0, ("command",))
    return (listen if listen.port else replace(listen, port=_free_port(listen.host))), 1


def _free_port(host: str) -> int:
    """Return a port for the players of all runs, one after the other."""
    with socket.create_server((host, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _positions(names: Sequence[str], exchanges: Sequence[Exchange]) -> Iterator[int]:
    """Yield the positions of the exchanges that `--exchange` names.

    Raises:
        UsageError: a name matches no exchange, or more than one.
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
            matches = "no exchange matches" if not found else "more than one exchange matches"
            raise UsageError(f"--exchange {name!r}: {matches}; the tapes have {known}")
        yield found[0]


def _shared_options(ctx: click.Context) -> Iterator[str]:
    """Yield the options that repeat a single cell, as they were given."""
    for name in _SHARED:
        value = ctx.params[name]
        if ctx.get_parameter_source(name) is click.core.ParameterSource.DEFAULT:
            continue
        flag = f"--{name}"
        for each in value if isinstance(value, tuple) else (value,):
            text = each.pattern if isinstance(each, re.Pattern) else each
            yield from (flag, f"{text:g}s" if isinstance(text, float) else str(text))
