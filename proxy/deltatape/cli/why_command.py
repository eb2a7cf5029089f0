"""`deltatape why`: the story of an exchange, or the explanation of a code."""

import re
from pathlib import Path

import click

from deltatape.cli.options import FORMAT
from deltatape.cli.tapes import NO_REQUEST, latest, named
from deltatape.cli.terminal import say, show, width, write
from deltatape.errors import UsageError
from deltatape.render.as_json import story_json
from deltatape.render.document import document_lines
from deltatape.render.story import story_lines
from deltatape.rules.documentation import explain
from deltatape.settings.defaults import current_rules
from deltatape.why.tell import tell


@click.command("why")
@click.argument("what", default="", metavar="[TAPE[#N] | FILE | - | CODE]")
@FORMAT
def command(*, what: str, format: str) -> int:  # noqa: A002 - the option's name
    """Tell the story of an exchange: what went wrong, and whose fault it was.

    Without an argument: the worst exchange of the latest tape. Takes a tape, a saved response
    body, an HTTP archive (HAR), text pasted from a terminal or a log, standard input
    (`curl -N ... | deltatape why -`), or the code of a finding to explain.
    """
    if re.fullmatch(r"[A-Z][0-9]{3}", what) or _is_code(what):
        return _explain(what)
    found = named(what) if what else latest()
    if not found.exchanges:
        raise UsageError(f"{found.name}: {NO_REQUEST}")
    story = tell(found.exchanges, found.number, current_rules(), found.beside())
    if format == "json":
        write(story_json(story))
    else:
        show(story_lines(story, width()))
        for note in found.exchanges[0].notes if what == "-" else ():
            say(f"note: {note.text}")
    return 0


def _is_code(what: str) -> bool:
    """Whether it is a code in small letters, and no file."""
    return bool(re.fullmatch(r"[a-z][0-9]{3}", what)) and not Path(what).exists()


def _explain(code: str) -> int:
    text = explain(code)
    if text is None:
        raise UsageError(f"{code}: no such code; docs/findings.md lists them")
    show(document_lines(text, width()))
    return 0
