"""`deltatape check`: the findings of tapes, for CI."""

from collections.abc import Iterator

import click

from deltatape.cli.options import FORMAT, option
from deltatape.cli.tapes import named
from deltatape.cli.terminal import show, write
from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.model.finding import Finding, Severity
from deltatape.render.as_json import findings_json
from deltatape.render.findings import finding_lines
from deltatape.rules import CONVERSATION_RULES, RULES

NEVER = "never"


def codes(ctx: click.Context, param: click.Parameter, value: str) -> frozenset[str]:  # noqa: ARG001
    """`T001,D` as known codes and their beginnings; a click callback."""
    known = {rule.code for rule in (*RULES, *CONVERSATION_RULES)} | {"X001"}
    given = frozenset(part.strip().upper() for part in value.split(",") if part.strip())
    for part in given:
        if not any(code.startswith(part) for code in known):
            raise UsageError(f"{param.opts[0]} {part}: no code begins so; such as T001 or T")
    return given


@click.command("check")
@click.argument("tapes", nargs=-1, required=True, metavar="TAPE[#N]...")
@FORMAT
@option("--select", default="", callback=codes, metavar="CODES", help="Only these, such as T,D001.")
@option("--ignore", default="", callback=codes, metavar="CODES", help="All but these.")
@option(
    "--fail-on",
    type=click.Choice([Severity.ERROR.value, Severity.WARNING.value, NEVER]),
    default=Severity.ERROR.value,
    help="The least severity that makes the exit code 1.",
)
def command(
    *,
    tapes: tuple[str, ...],
    format: str,  # noqa: A002 - the option's name
    select: frozenset[str],
    ignore: frozenset[str],
    fail_on: str,
) -> int:
    """Report the defects on tapes, each with its evidence.

    Takes what `deltatape why` takes. Exit code 0 when there is none, 1 for findings, 2 when
    something cannot be read.
    """
    found = [
        finding
        for tape in tapes
        for finding in _findings(tape)
        if _wanted(finding.code, select, ignore)
    ]
    if format == "json":
        write(findings_json(found))
    else:
        show(finding_lines(found))
    if fail_on == NEVER:
        return 0
    return int(any(finding.severity.rank <= Severity(fail_on).rank for finding in found))


def _findings(text: str) -> Iterator[Finding]:
    """Those of each exchange, then those of the conversations; all, or those of `TAPE#N`."""
    source = named(text)
    digests = []
    for exchange in source.exchanges:
        analysis = analyse(exchange)
        digests.append(digest_analysis(analysis))
        if source.number in (None, exchange.number):
            yield from check_analysis(analysis)
    for finding in check_conversation(digests):
        if source.number in (None, finding.exchange):
            yield finding


def _wanted(code: str, select: frozenset[str], ignore: frozenset[str]) -> bool:
    if any(code.startswith(part) for part in ignore):
        return False
    return not select or any(code.startswith(part) for part in select)
