"""`why --fix DIR`: the smallest tape that shows an app's mistake, a failing test, and a brief."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from deltatape.cli.tapes import Named
from deltatape.cli.terminal import say
from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange, header
from deltatape.model.finding import Blame
from deltatape.model.story import Story
from deltatape.render.findings import blamed
from deltatape.render.fix_kit import FixKit, fix_kit
from deltatape.store.mask_key import mask_key
from deltatape.store.reader import Tape, open_tape
from deltatape.store.rewrite import SHARED, draft
from deltatape.store.splice import Given, splice
from deltatape.tape.mask import Masker
from deltatape.why.needed import mistakes, needed

_NODE = re.compile(rb"(?i)\bnode|/js\b|undici|axios|deno|\bbun\b|\bai/")
"""How the `User-Agent` of programs in JavaScript looks."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def write_fix(found: Named, story: Story, folder: Path) -> None:
    """Write the kit for `story` into `folder`, and say what was written.

    Raises:
        UsageError: the app is not to blame; there is no tape; one of the files is there already.
    """
    if story.verdict.blame is not Blame.APP:
        raise UsageError(
            f"--fix: the verdict on #{story.exchange} is '{blamed(story.verdict)}'; a test of the"
            " app would prove nothing. Name an exchange that the app is to blame for: TAPE#N"
        )
    if found.tape is None:
        raise UsageError(
            f"--fix: {found.name} is no tape, so nobody knows the app's requests; record one"
        )
    if not mistakes(story):
        codes = sorted({each.code for each in story.findings if each.blame is Blame.APP})
        if codes:
            why = (
                f"{' and '.join(codes)}: the tape has no answer to a right request, or ends where"
                " the app left, so a test would fail for a mended app, too"
            )
        else:
            why = "the verdict rests on what the app was seen to do, not on a finding"
        raise UsageError(
            f"--fix: nothing on #{story.exchange} can be tested against the tape: {why}"
        )
    exchange = next(each for each in found.exchanges if each.number == story.exchange)
    numbers = needed(story, found.exchanges)
    count = len(found.exchanges) if numbers is None else len(numbers)
    stem = _UNSAFE.sub("-", Path(found.name).stem).strip("-") or "tape"
    kit = fix_kit(story, count, name=f"{stem}-{story.exchange}", node=_is_node(exchange))
    with _reported(folder):
        _write(kit, found.tape, numbers, folder)


def _is_node(exchange: Exchange) -> bool:
    return bool(_NODE.search(header(exchange.request.headers, "user-agent") or b""))


def _write(kit: FixKit, tape: Tape, numbers: frozenset[int] | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in (kit.tape, kit.test, kit.brief)]
    for path in paths:
        if path.exists() or path.is_symlink():
            raise UsageError(f"--fix: {path} is there already; name another folder")
    with TemporaryDirectory(prefix=".deltatape-", dir=folder) as place:
        excerpt = Path(place, kit.tape)
        splice([Given(tape=tape, numbers=numbers)], excerpt, SystemClock())
        masker = Masker(mask_key(os.environ, say))
        done = draft(open_tape(excerpt), folder, masker, content=False, mode=SHARED)
        done.path.rename(paths[0])
    paths[1].write_text(kit.test_text)
    paths[2].write_text(kit.brief_text)
    for path in paths:
        say(f"written: {path}")
    say(f"next: read {shlex.quote(str(paths[2]))}; the prompts and answers are on the tape")


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"--fix {folder}: {error.strerror or error}") from error
