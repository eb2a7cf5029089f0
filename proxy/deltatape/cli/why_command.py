"""`deltatape why`: explains an exchange, a code or a suspect."""

import re
from dataclasses import replace
from pathlib import Path

import click

from deltatape.cli.options import FILE, FOLDER, FULL, TapeArgument, option, refuse_useless
from deltatape.cli.tapes import NO_REQUEST, NamedExchanges, latest, named
from deltatape.cli.terminal import list_width, say, show, width, write
from deltatape.diagnose.check import check
from deltatape.errors import UsageError, did_you_mean
from deltatape.garbage import YOUNG_OBJECTS, collecting_seldom
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import Explanation
from deltatape.model.finding import Severity
from deltatape.model.reply import NOT_OURS
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientTrial
from deltatape.render.document import document_lines
from deltatape.render.explanation import explanation_json, explanation_lines, short_lines
from deltatape.render.markdown import explanation_markdown
from deltatape.rules import RULES
from deltatape.rules.documentation import rule_page
from deltatape.settings.defaults import current_rules
from deltatape.store.report_file import write_private
from deltatape.store.shards import ShardedTape
from deltatape.suspects import PRESETS, suspect_page
from deltatape.suspects.search import equal
from deltatape.why.explain import explain


@click.command("why")
@click.argument(
    "what", cls=TapeArgument, default="", metavar="[TAPE[#N] | FILE | - | CODE | SUSPECT]"
)
@option(
    "--error",
    multiple=True,
    metavar="TEXT",
    help="Text that the app threw or logged: find the clients that throw it on this stream.",
)
@option("--short", is_flag=True, help="Five lines: verdict, what, where, fix, next command.")
@option("--suspects", is_flag=True, help="Show what every known client makes of the response.")
@option(
    "--with",
    "sdks",
    multiple=True,
    envvar="DELTATAPE_WHY_WITH",
    metavar="SDK",
    help="Show the same for a real SDK, installed separately: openai==3.54, ai@6.",
)
@option(
    "--html",
    type=FILE,
    help="Write the page of deltatape open about this exchange to a single file.",
)
@option("--redact", is_flag=True, help="With --html: overwrite secrets as deltatape redact does.")
@option(
    "--fix",
    type=FOLDER,
    metavar="DIR",
    help="Write what it takes to fix the app: the smallest tape, a failing test, a brief.",
)
@FULL
@option(
    "--format",
    type=click.Choice(["text", "json", "md"]),
    default="text",
    help="Text for people, JSON for programs, or Markdown for an issue.",
)
@click.pass_context
@collecting_seldom(YOUNG_OBJECTS)
def command(
    ctx: click.Context,
    *,
    what: str,
    error: tuple[str, ...],
    short: bool,
    suspects: bool,
    sdks: tuple[str, ...],
    html: Path | None,
    redact: bool,
    fix: Path | None,
    full: bool,
    format: str,  # noqa: A002 - the option's name
) -> int:
    """Explain an exchange: what went wrong, whose fault it was, and which mistake.

    Without an argument: the worst exchange of the latest tape. Takes a tape (or its URL in an
    object store: s3://BUCKET/KEY), a saved response body, an HTTP archive (HAR), text pasted from
    a terminal or a log, standard input (`curl -N ... | deltatape why -`), or the code of a finding
    or the name of a suspect to explain.
    """
    if short and format != "text":
        raise UsageError(f"--short is for people; --format {format} has all of it")
    if redact and html is None:
        raise UsageError("--redact: of the file that --html writes; name one")
    text = _explanation(what)
    if text is not None:
        refuse_useless(ctx, ("what",), "with a code or a suspect")
        show(document_lines(text, width()))
        return 0
    found = named(what, full=full) if what else latest()
    if not found.exchanges:
        raise UsageError(f"{found.name}: {NO_REQUEST}")
    explanation = _explained(found, errors=error, suspects=suspects, sdks=sdks)
    if html is not None:
        write_private(html, _report(found, explanation, redact=redact))
        say(f"written: {html}")
    if fix is not None:
        from deltatape.cli.fix_files import write_fix  # noqa: PLC0415 - takes long, and few ask for it

        write_fix(found, explanation, fix)
    if short:
        show(short_lines(explanation, list_width()))
    else:
        _show(explanation, format)
    if format == "text":
        for note in found.exchanges[0].notes if what == "-" else ():
            say(f"note: {note.text}")
    return 0


def _report(found: NamedExchanges, explanation: Explanation, *, redact: bool) -> str:
    """Return the report, of a redacted copy of the tape if asked for."""
    # Who writes no report needs no documents of the page.
    from deltatape.cli.report import redacted, report  # noqa: PLC0415 - see above

    if not redact:
        return report(found, explanation)
    with redacted(found, explanation.exchange) as same:
        anew = _explained(same, errors=(), suspects=bool(explanation.tried), sdks=())
        return report(same, anew)


def _explained(
    found: NamedExchanges, *, errors: tuple[str, ...], suspects: bool, sdks: tuple[str, ...]
) -> Explanation:
    explanation = explain(
        _judged(found),
        found.number,
        current_rules(),
        found.beside(),
        errors=errors,
        clients=suspects,
    )
    if found.context is not None:  # of what was not read, nothing is known
        explanation = replace(explanation, elsewhere=())
    if isinstance(found.tape, ShardedTape):
        explanation = replace(
            explanation,
            tape=found.tape.place_of(explanation.exchange),
            findings=tuple(map(found.tape.on_its_tape, explanation.findings)),
            elsewhere=tuple(map(found.tape.on_its_tape, explanation.elsewhere)),
        )
    if not sdks:
        return explanation
    exchange = next(each for each in found.exchanges if each.number == explanation.exchange)
    reference = tuple(
        RepeatedCall(id=call.id, name=call.name, arguments=call.arguments)
        for call in explanation.arrival.calls
        if call.kind not in NOT_OURS
    )
    from deltatape.sdks.run import made_by  # noqa: PLC0415 - takes long, and few ask for it

    tried = []
    for reading in made_by(exchange, sdks, tell=say):
        version = next(iter(reading.versions.values()), "")
        ids = frozenset(call.id for call in reference)
        right = not reading.made.errors and equal(reading.made.calls, reference, ids)
        trial = ClientTrial(
            name=f"{reading.spec} ({version})", made=reading.made, differs=not right
        )
        tried.append(trial)
    return replace(explanation, tried=(*explanation.tried, *tried))


def _judged(found: NamedExchanges) -> tuple[Exchange, ...]:
    """Return the exchanges to explain one by: of a tape that lacks others, no other one."""
    if not found.lacks_shards:
        return found.exchanges
    ranks = {
        each.number: min(
            (one.severity.rank for one in check(each, current_rules())), default=len(Severity)
        )
        for each in found.exchanges
        if found.number in (None, each.number)
    }
    chosen = min(ranks, key=lambda number: (ranks[number], number))
    return tuple(each for each in found.exchanges if each.number == chosen)


def _show(explanation: Explanation, form: str) -> None:
    if form == "json":
        write(explanation_json(explanation))
    elif form == "md":
        write(explanation_markdown(explanation))
    else:
        show(explanation_lines(explanation, width()))


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
"""A name without dot and slash: the path of a tape only if such a file exists."""


def _explanation(what: str) -> str | None:
    """Return the documentation of a code or suspect; None if `what` is neither.

    Raises:
        UsageError: it looks like a code or a name, and there is none.
    """
    # In lower case it may be the name of a file.
    if re.fullmatch(r"[A-Z][0-9]{3}", what) or (
        re.fullmatch(r"[a-z][0-9]{3}", what) and not Path(what).exists()
    ):
        text = rule_page(what)
        if text is None:
            raise UsageError(f"{what}: no such code; docs/findings.md lists them")
        return text
    if not what or Path(what).exists():
        return None
    text = suspect_page(what)
    if text is None and _NAME.fullmatch(what):
        known = [name for rule in RULES for name in (rule.code, rule.name)]
        near = did_you_mean(what, [*known, *(preset.name for preset in PRESETS)])
        raise UsageError(f"{what}: no such tape, code, or suspect.{near}")
    return text
