"""`deltatape keep`: redacts a tape and moves it into the project's recordings."""

import os
import re
import shlex
from pathlib import Path

import click

from deltatape.cli.options import FOLDER, TapeArgument, option
from deltatape.cli.redact_command import CONTENT, tell, whole_tape
from deltatape.cli.terminal import say, show, width, write
from deltatape.errors import UsageError
from deltatape.redact.audit import ProblemKind
from deltatape.render.audit import problem_lines
from deltatape.settings.defaults import current_rules
from deltatape.store.audit import audit
from deltatape.store.listing import recorded_folders
from deltatape.store.mask_key import mask_key
from deltatape.store.names import SUFFIX, check_stem
from deltatape.store.reader import Tape
from deltatape.store.rewrite import SHARED, RedactedCopy, as_new, draft, same_as
from deltatape.tape.mask import Masker
from deltatape.why.overview import TapeOverview, overview

_UNFIT = re.compile(r"[^A-Za-z0-9._]+")
_MAX_MODEL = 24
_MAX_STEM = 60
"""A name has 64 characters at most, and may get a number."""


@click.command("keep")
@click.argument("tape", cls=TapeArgument, default="", metavar="[TAPE]")
@click.argument("name", default="", metavar="[NAME]")
@option(
    "--to",
    type=FOLDER,
    default=Path("recordings"),
    metavar="FOLDER",
    help="Where it goes; made if missing.",
)
@CONTENT
@option("--move", is_flag=True, help="Delete the original when the kept tape is complete.")
def command(*, tape: str, name: str, to: Path, content: bool, move: bool) -> int:
    """Redact a tape and keep it in recordings/, to be shared; the latest one by default.

    NAME is by default made of the day, the model and the worst finding. The kept tape is readable
    for everybody, as files in a repository are. It is searched for secrets again; if any is left,
    nothing is kept. A tape that is there already is not kept twice. Prints its path.

    Exit code 1 when a secret is left.
    """
    # The latest one in recordings/ is kept already.
    source = whole_tape(tape, recorded_folders())
    if source.recording:
        raise UsageError(f"{source.path}: is still being recorded; stop its recorder first")
    chosen = name.removesuffix(SUFFIX)
    stem = check_stem(
        chosen or kept_stem(source.header.recorded_at, overview(source, current_rules()))
    )
    _make(to)
    masker = Masker(mask_key(os.environ, say))
    done = draft(source, to, masker, content=content, mode=SHARED, called=f"--to {to}")
    try:
        path = _renamed_draft(done, source, to, stem)
    except OSError as error:
        raise UsageError(f"--to {to}: {error.strerror}") from error
    finally:
        done.discard()
    if path is None:
        return 1
    tell(source, done, content=content)
    if not content:
        say("note: prompts and answers are still in it; deltatape keep --content masks them, too")
    if move:
        _delete(source)
    write(f"{path}\n")
    say(
        f"next: deltatape replay {shlex.quote(str(path))} -- CMD plays it to your app, and fails"
        " while that repeats a mistake of the tape"
    )
    return 0


def kept_stem(recorded_at: str, seen: TapeOverview) -> str:
    """Return `2026-11-22-gpt-4o-empty-arguments`: day, first model, worst finding or `healthy`.

    Args:
        recorded_at: `recorded_at` in the tape's header.
        seen: what the tape holds.
    """
    model = _UNFIT.sub("-", seen.models[0])[:_MAX_MODEL] if seen.models else ""
    worst = seen.worst.name if seen.worst else "healthy"
    parts = (_UNFIT.sub("-", recorded_at[:10]), model, worst)
    return "-".join(part.strip("-.") for part in parts if part.strip("-."))[:_MAX_STEM]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--to {folder}: {error.strerror}") from error


def _renamed_draft(done: RedactedCopy, source: Tape, folder: Path, stem: str) -> Path | None:
    """Rename the draft, unless a secret is left on it or the name is taken."""
    report = audit(done.path)
    secrets = [problem for problem in report.problems if problem.kind is ProblemKind.SECRET]
    if secrets:
        say(f"{source.path}: not kept; secrets are left after redaction:")
        show(problem_lines(secrets, width()))
        return None
    for problem in report.problems:
        say(f"note: line {problem.line}: {problem.message}")
    there = same_as(done, folder, stem)
    if there:
        say(f"note: {there} is there already, with the same content")
        return there
    return as_new(done, folder, stem)


def _delete(source: Tape) -> None:
    try:
        Path(source.path).unlink()
    except OSError as error:
        say(f"note: {source.path}: {error.strerror}; the original stays")
