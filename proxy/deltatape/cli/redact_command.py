"""`deltatape redact`: copy tapes without their secrets."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from deltatape.cli.options import TapeArgument, option
from deltatape.cli.tapes import refuse_as_output
from deltatape.cli.terminal import say, write
from deltatape.errors import UsageError
from deltatape.store.listing import locate_whole
from deltatape.store.mask_key import mask_key
from deltatape.store.names import SUFFIX, without_suffix
from deltatape.store.reader import Tape, open_tape
from deltatape.store.rewrite import (
    RedactedCopy,
    as_named,
    as_new,
    draft,
    in_place_of,
    refuse_sealed,
)
from deltatape.tape.mask import Masker

CONTENT = option(
    "--content",
    is_flag=True,
    help="Also replace all text, arguments and log lines: letters by x, digits by 1.",
)


@click.command("redact")
@click.argument("tapes", cls=TapeArgument, nargs=-1, required=True, metavar="TAPE...")
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="The new tape, or a folder for it. Default: NAME-redacted.tape.",
)
@option("--in-place", is_flag=True, help="Replace the original by the redacted tape.")
@CONTENT
def command(*, tapes: tuple[str, ...], output: Path | None, in_place: bool, content: bool) -> int:
    """Overwrite secrets on tapes, keeping lengths, read boundaries and valid JSON.

    Finds API keys and tokens of providers, clouds and code hosts, private keys, passwords in URLs
    and bearer tokens: in headers, bodies and log lines, also where they are escaped, split between
    reads, or spread over the deltas of a stream. Prints the paths of the redacted tapes.
    """
    if in_place and output is not None:
        raise UsageError("use either -o or --in-place, not both")
    if output is not None and len(tapes) > 1 and not output.is_dir():
        raise UsageError(f"-o {output}: not a folder; {len(tapes)} tapes need a folder")
    masker = Masker(mask_key(os.environ, say))
    for text in tapes:
        tape = whole_tape(text)
        path = _redacted(tape, output, masker, in_place=in_place, content=content)
        write(f"{path}\n")
    return 0


def whole_tape(text: str, folders: Sequence[Path] | None = None) -> Tape:
    """Return the tape that `text` names; the latest one in `folders` (see `locate`) if empty.

    Raises:
        UsageError: it names an exchange, or nothing that can be read.
    """
    return open_tape(locate_whole(text, folders))


def counted(kinds: Mapping[str, int]) -> str:
    """Return `2 x API key, 1 x bearer token`, or "none"."""
    return ", ".join(f"{kinds[kind]} x {kind}" for kind in sorted(kinds)) or "none"


def tell(tape: Tape, done: RedactedCopy, *, content: bool) -> None:
    """Print what was overwritten, and which bodies could not be searched."""
    more = "; all content replaced by fillers" if content else ""
    say(f"{tape.path}: secrets overwritten: {counted(done.plan.kinds)}{more}")
    for remark in done.plan.remarks.values():
        say(f"note: {remark}")
    for body in done.plan.opaque:
        say(f"note: #{body.exchange}: the {body.where} could not be searched: {body.detail}")
    if done.torn:
        say(f"note: left out a truncated last record of {done.torn} bytes")


def _redacted(
    tape: Tape, output: Path | None, masker: Masker, *, in_place: bool, content: bool
) -> Path:
    """Write the redacted tape; return its path."""
    if in_place:
        refuse_sealed(tape)
    origin = Path(tape.path).resolve() if in_place else Path(tape.path)
    target = origin if output is None else output
    if target.is_dir():
        target /= f"{without_suffix(origin.name)}{SUFFIX}"
    stem = f"{without_suffix(origin.name)}-redacted"
    called = str(target.with_name(f"{stem}{SUFFIX}"))
    if in_place:
        called = tape.path
    elif output is not None:
        called = f"-o {target}"
        refuse_as_output(target, tape)
    done = draft(tape, target.parent, masker, content=content, called=called)
    try:
        if in_place:
            in_place_of(done, origin)
            path = Path(tape.path)
        elif output is None:
            path = as_new(done, target.parent, stem)
        else:
            path = as_named(done.path, target)
    except FileExistsError:
        raise UsageError(f"{called}: already exists; a tape is never overwritten") from None
    except OSError as error:
        raise UsageError(f"{called}: {error.strerror}") from error
    finally:
        done.discard()
    tell(tape, done, content=content)
    return path
