"""`deltatape fsck`: checks that tapes are complete, consistent, free of secrets, and up to date."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deltatape.cli.options import FORMAT, TapeArgument, duration, option, output, refuse_useless
from deltatape.cli.tapes import all_of, exchanges_of
from deltatape.cli.terminal import say, show, width, write
from deltatape.errors import DeltatapeError, TapeFormatError, UsageError
from deltatape.garbage import YOUNG_OBJECTS, collecting_seldom
from deltatape.printable import count
from deltatape.render.audit import Audit, audit_lines, audits_json
from deltatape.settings.defaults import current_rules
from deltatape.store.audit import audit
from deltatape.store.listing import Unreadable, locate, name_of
from deltatape.store.reader import open_tape

# Who asks no provider does not wait for what it takes.
if TYPE_CHECKING:
    from deltatape.gateway.routes import Upstream
    from deltatape.record.recheck import RecheckOptions


@click.command("fsck")
@click.argument("tapes", cls=TapeArgument, nargs=-1, required=True, metavar="TAPE[#N]|FOLDER...")
@option(
    "--against",
    metavar="URL",
    help="Send the recorded requests to this provider, and tell what it does differently today.",
)
@output("With --against: keep today's answers as a tape; it must not exist.")
@duration("--deadline", "2m", "With --against: how long one answer may take.")
@FORMAT
@click.pass_context
def command(
    ctx: click.Context,
    *,
    tapes: tuple[str, ...],
    against: str | None,
    output: Path | None,
    deadline: float,
    format: str,  # noqa: A002 - the option's name
) -> int:
    """Check tapes as files: damage, contradictions and remaining secrets.

    For a folder, checks every tape below it. Also checks that each exchange is still read as it was
    when it was taped, if the tape contains that. A tape that was cut short by a crash, lost records
    or is still being recorded is reported, but is no problem. Secrets are reported by their place,
    never shown.

    With --against, sends the recorded requests again, one by one, to a live provider: that costs
    what the requests cost. Keys come from the environment and .env files, under the names that the
    provider's SDKs read. TAPE#N asks for one exchange only. Reports a different status, form of the
    stream, set of defects or kind of answer; different words are ignored.

    Exit code: 1 for problems and differences, 2 if a tape or folder cannot be read or a provider
    gave no answer.
    """
    if against is None:
        refuse_useless(ctx, ("tapes", "format"), "without --against")
    named = _named(tapes)
    if output is not None and len(named) > 1:
        raise UsageError(f"-o {output}: one tape is accepted with it, not {len(named)}")
    upstream = None if against is None else _upstream(against)
    audits = [each if isinstance(each, Audit) else _audit(each) for each in named]
    if upstream is not None:
        asking = _asking(upstream, output, deadline)
        audits = [_asked(*pair, asking) for pair in zip(named, audits, strict=True)]
    if format == "json":
        write(audits_json(audits))
    else:
        show(audit_lines(audits, width()))
    return max(map(_code, audits))


def _upstream(url: str) -> "Upstream":
    from deltatape.cli.addresses import upstream_without_name  # noqa: PLC0415 - see above

    return upstream_without_name(url, "--against")


def _named(texts: tuple[str, ...]) -> list[str | Audit]:
    """Resolve what to check; names that cannot be checked become error audits."""
    found: list[str | Audit] = []
    unreadable: list[Unreadable] = []
    for text in texts:
        try:
            found += all_of(text, unreadable.append)
        except UsageError as error:
            found.append(_unreadable(text, error))
    found += [Audit(path=str(each.path), report=None, error=each.problem) for each in unreadable]
    return found


def _audit(text: str) -> Audit:
    name = text
    try:
        place = locate(text)
        name = name_of(place.path)
        with collecting_seldom(YOUNG_OBJECTS):
            report = audit(place.path, current_rules().app)
        if place.exchange is not None:
            with contextlib.suppress(TapeFormatError):  # the audit reports damage
                open_tape(place.path)[place.exchange]  # its error says which exchanges there are
        return Audit(path=name, report=report)
    except DeltatapeError as error:
        return _unreadable(name, error)


def _unreadable(name: str, error: DeltatapeError) -> Audit:
    return Audit(path=name, report=None, error=str(error))


def _asking(upstream: "Upstream", output: Path | None, deadline_s: float) -> "RecheckOptions":
    from deltatape.clock import SystemClock  # noqa: PLC0415 - see above
    from deltatape.environment.dotenv import read_dotenv, settings  # noqa: PLC0415
    from deltatape.environment.known_secrets import known_secrets  # noqa: PLC0415
    from deltatape.gateway.outbound import outbound_from  # noqa: PLC0415
    from deltatape.record.recheck import RecheckOptions  # noqa: PLC0415
    from deltatape.store.mask_key import mask_key  # noqa: PLC0415

    files = read_dotenv(Path.cwd(), os.environ)
    found, _ = settings(files, os.environ)
    return RecheckOptions(
        upstream=upstream,
        environment={name: setting.value for name, setting in found.items()},
        secrets=known_secrets(os.environ, files),
        outbound=outbound_from(os.environ),
        mask_key=mask_key(os.environ, say),
        clock=SystemClock(),
        deadline_s=deadline_s,
        output=output,
        rules=current_rules(),
    )


def _asked(text: str | Audit, audited: Audit, asking: "RecheckOptions") -> Audit:
    """Add today's answers to the audit of a tape, unless the tape is damaged."""
    from deltatape.record.recheck import ask_again  # noqa: PLC0415 - see above

    if isinstance(text, Audit) or audited.report is None:
        return audited
    try:
        asked = ask_again(tuple(exchanges_of(text)), asking, say)
    except DeltatapeError as error:
        raise UsageError(f"{text}: cannot be asked again: {error}") from None
    if asking.output is not None and any(one.today for one in asked):
        say(f"today's {count(len(asked), 'answer')}: {asking.output}")
    return replace(audited, asked=asked, url=asking.upstream.origin.url + asking.upstream.path)


def _code(audited: Audit) -> int:
    if audited.report is None or any(one.problem for one in audited.asked):
        return DeltatapeError.exit_code
    if audited.url and not any(one.today for one in audited.asked):
        return DeltatapeError.exit_code
    differs = any(one.today and one.today.drifts for one in audited.asked)
    return int(bool(audited.report.problems) or differs)
