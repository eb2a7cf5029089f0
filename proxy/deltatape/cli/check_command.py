"""`deltatape check`: the findings of tapes, for CI."""

from collections.abc import Iterator

import click

from deltatape.cli.options import FORMAT, option
from deltatape.cli.tapes import Named, all_of, latest, named
from deltatape.cli.terminal import say, show, width, write
from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.dialects._unknown import UNKNOWN
from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.finding import Finding, Severity
from deltatape.render.as_json import findings_json
from deltatape.render.findings import finding_lines
from deltatape.rules import DOCUMENTED
from deltatape.settings.defaults import current_rules

NEVER = "never"


def codes(ctx: click.Context, param: click.Parameter, value: str) -> frozenset[str]:  # noqa: ARG001
    """`T001,D` as known codes and their beginnings; a click callback."""
    known = {rule.code for rule in DOCUMENTED}
    given = frozenset(part.strip().upper() for part in value.split(",") if part.strip())
    for part in given:
        if not any(code.startswith(part) for code in known):
            raise UsageError(f"{param.opts[0]} {part}: no code begins so; such as T001 or T")
    return given


@click.command("check")
@click.argument("tapes", nargs=-1, metavar="[TAPE[#N] | FOLDER]...")
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

    Takes what `deltatape why` takes, and folders: every tape below. Without any: the latest tape.

    Exit code 0 when there is
    none, 1 for findings, 2 when something cannot be read; the rest is reported all the same.
    """
    checked = [each for text in tapes for each in _checked(text)] if tapes else [_of_latest()]
    readable = [each for each in checked if each is not None]
    found = [
        finding
        for findings in readable
        for finding in findings
        if _wanted(finding.code, select, ignore)
    ]
    if readable and format == "json":
        write(findings_json(found))
    elif readable:
        show(finding_lines(found, width()))
    if len(readable) < len(checked):
        return DeltatapeError.exit_code
    if fail_on == NEVER:
        return 0
    return int(any(finding.severity.rank <= Severity(fail_on).rank for finding in found))


def _checked(text: str) -> Iterator[tuple[Finding, ...] | None]:
    """The findings of each tape that `text` stands for; None: it cannot be read, which is said."""
    try:
        names = all_of(text)
    except DeltatapeError as error:
        say(f"deltatape: {error}")
        yield None
        return
    for name in names:
        try:
            yield _findings(named(name))
        except DeltatapeError as error:
            say(f"deltatape: {error}")
            yield None


def _of_latest() -> tuple[Finding, ...]:
    source = latest()
    say(f"note: the latest tape: {source.name}")
    return _findings(source)


def _findings(source: Named) -> tuple[Finding, ...]:
    """Those of each exchange, then those of the conversations; all, or those of `TAPE#N`."""
    rules = current_rules()
    digests = []
    found: list[Finding] = []
    for exchange in source.exchanges:
        analysis = analyse(exchange, rules.app)
        digests.append(digest_analysis(analysis))
        if source.number in (None, exchange.number):
            found += check_analysis(analysis, rules)
    found += (
        finding
        for finding in check_conversation(digests, rules)
        if source.number in (None, finding.exchange)
    )
    if not digests:
        say(f"note: {source.name}: no request came while it was recorded")
    elif all(digest.dialect == UNKNOWN for digest in digests):
        say(f"note: {source.name}: nothing in it is an answer of an LLM provider that can be read")
    return tuple(found)


def _wanted(code: str, select: frozenset[str], ignore: frozenset[str]) -> bool:
    if any(code.startswith(part) for part in ignore):
        return False
    return not select or any(code.startswith(part) for part in select)
