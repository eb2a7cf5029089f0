"""The files of `why --fix DIR`: the smallest tape that shows a mistake, a failing test, a brief."""

import os
import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from deltatape.cli.tapes import NamedExchanges
from deltatape.cli.terminal import say
from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.model.exchange import header
from deltatape.model.explanation import Explanation
from deltatape.model.finding import Blame
from deltatape.render.fix_kit import FixKit, fix_kit
from deltatape.store.mask_key import mask_key
from deltatape.store.reader import Tape, open_tape
from deltatape.store.rewrite import SHARED, draft
from deltatape.store.shards import ShardedTape
from deltatape.store.splice import SpliceSource, splice
from deltatape.tape.mask import Masker
from deltatape.why.reproduction import mistakes, needed

_NODE = re.compile(rb"(?i)\bnode|/js\b|undici|axios|deno|\bbun\b|\bai/")
"""How the `User-Agent` of programs in JavaScript looks."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def write_fix(found: NamedExchanges, explanation: Explanation, folder: Path) -> None:
    """Write the files for fixing `explanation` into `folder`, and print their names.

    Raises:
        UsageError: the app is not to blame; there is no tape; one of the files exists already.
    """
    if explanation.verdict.blame is not Blame.APP:
        verdict = explanation.verdict.shown
        raise UsageError(
            f"--fix: the verdict on #{explanation.exchange} is '{verdict}'; a test of the app"
            " would prove nothing. Name an exchange that the app is to blame for: TAPE#N"
        )
    if found.tape is None:
        raise UsageError(
            f"--fix: {found.name} is no tape, so nobody knows the app's requests; record one"
        )
    if not mistakes(explanation):
        codes = sorted({each.code for each in explanation.findings if each.blame is Blame.APP})
        if codes:
            why = (
                f"{' and '.join(codes)}: the tape has no answer to a right request, or ends where"
                " the app left, so a test would fail for a mended app, too"
            )
        else:
            why = "the verdict rests on what the app was seen to do, not on a finding"
        raise UsageError(
            f"--fix: nothing on #{explanation.exchange} can be tested against the tape: {why}"
        )
    exchange = next(each for each in found.exchanges if each.number == explanation.exchange)
    numbers = needed(explanation, found.exchanges)
    count = len(found.tape if numbers is None else numbers)
    stem = _UNSAFE.sub("-", Path(found.name).stem).strip("-") or "tape"
    user_agent = header(exchange.request.headers, "user-agent") or b""
    kit = fix_kit(
        explanation,
        count,
        name=f"{stem}-{explanation.exchange}",
        node=_NODE.search(user_agent) is not None,
    )
    try:
        _write(kit, found.tape, numbers, folder)
    except OSError as error:
        raise UsageError(f"--fix {folder}: {error.strerror or error}") from error


def _write(kit: FixKit, tape: Tape, numbers: frozenset[int] | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in (kit.tape, kit.test, kit.brief)]
    for path in paths:
        if path.exists() or path.is_symlink():
            raise UsageError(f"--fix: {path} is there already; name another folder")
    with TemporaryDirectory(prefix=".deltatape-", dir=folder) as place:
        excerpt = Path(place, kit.tape)
        splice(_sources(tape, numbers), excerpt, SystemClock())
        masker = Masker(mask_key(os.environ, say))
        done = draft(open_tape(excerpt), folder, masker, content=False, mode=SHARED)
        done.path.rename(paths[0])
    paths[1].write_text(kit.test_text)
    paths[2].write_text(kit.brief_text)
    for path in paths:
        say(f"written: {path}")
    say(f"next: read {shlex.quote(str(paths[2]))}; the prompts and answers are on the tape")


def _sources(tape: Tape, numbers: frozenset[int] | None) -> list[SpliceSource]:
    if not isinstance(tape, ShardedTape):
        return [SpliceSource(tape=tape, numbers=numbers)]
    if numbers is None:
        return [SpliceSource(tape=shard) for shard in tape.shards]
    parts = [(shard, numbers & shard.numbers()) for shard in tape.shards]
    return [SpliceSource(tape=shard, numbers=own) for shard, own in parts if own]
