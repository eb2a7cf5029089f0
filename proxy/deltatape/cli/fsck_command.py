"""`deltatape fsck`: whether tapes are whole, consistent, and free of secrets."""

import click

from deltatape.cli.options import FORMAT
from deltatape.cli.terminal import show, width, write
from deltatape.errors import DeltatapeError
from deltatape.render.as_json import audits_json
from deltatape.render.audit import Audit, audit_lines
from deltatape.store.listing import locate
from deltatape.store.rewrite import audit


@click.command("fsck")
@click.argument("tapes", nargs=-1, required=True, metavar="TAPE...")
@FORMAT
def command(*, tapes: tuple[str, ...], format: str) -> int:  # noqa: A002 - the option's name
    """Check tapes as files: damage, contradictions, and secrets that are left.

    A tape that a crash cut short, that lost records or that is still being recorded is no problem;
    it is told. Secrets are told by their place, never shown.

    Exit code 0 when all are clean, 1 for problems, 2 when a tape cannot be read.
    """
    audits = [_audit(tape) for tape in tapes]
    if format == "json":
        write(audits_json(audits))
    else:
        show(audit_lines(audits, width()))
    if any(one.report is None for one in audits):
        return DeltatapeError.exit_code
    return int(any(one.report and one.report.problems for one in audits))


def _audit(text: str) -> Audit:
    path = locate(text).path
    try:
        return Audit(path=str(path), report=audit(path))
    except DeltatapeError as error:
        return Audit(path=str(path), report=None, error=str(error))
