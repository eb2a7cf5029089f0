"""`deltatape pack`: seals tapes, and unpacks sealed ones."""

from collections.abc import Iterator
from pathlib import Path

import click

from deltatape.cli.options import option
from deltatape.cli.terminal import Bar, say, write
from deltatape.errors import DeltatapeError
from deltatape.printable import count
from deltatape.render.numbers import size
from deltatape.settings.defaults import current_rules
from deltatape.store import packing
from deltatape.store.listing import list_named
from deltatape.store.names import SEALED_SUFFIX
from deltatape.store.reader import open_tape


@click.command("pack")
@click.argument(
    "tapes", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TAPE|FOLDER..."
)
@option("--unpack", is_flag=True, help="Restore the tapes from sealed ones.")
@option("--keep", is_flag=True, help="Keep the originals of packed or unpacked tapes.")
def command(*, tapes: tuple[Path, ...], unpack: bool, keep: bool) -> int:
    """Seal tapes: NAME.tape becomes NAME.tape.zst, compressed by conversation, with an index.

    Every command reads sealed tapes, and finds single exchanges in them faster. The original tape
    is deleted once its sealed form is synced to disk, and was read back and is equal byte for
    byte. In a FOLDER and all folders below, packs every tape that is not being recorded. Prints
    the paths of the new files.

    Exit code: 2 if a tape cannot be packed; the others are packed.
    """
    paths = [path for named in tapes for path in _below(named, unpack=unpack)]
    failed = False
    before = after = done = 0
    with Bar("tapes", len(paths)) as bar:
        for path in paths:
            try:
                made, was, now = _unpack(path, keep=keep) if unpack else _pack(path, keep=keep)
            except DeltatapeError as error:
                failed = True
                with bar.aside():
                    say(f"deltatape: {error}")
                continue
            finally:
                bar.step()
            before, after, done = before + was, after + now, done + 1
            with bar.aside():
                write(f"{made}\n")
    verb = "unpacked" if unpack else "packed"
    if done:
        say(f"{verb} {count(done, 'tape')}: {size(before)} became {size(after)}")
    elif not failed:
        say(f"nothing to do: there is no {'sealed' if unpack else 'unsealed'} tape")
    return DeltatapeError.exit_code if failed else 0


def _below(named: Path, *, unpack: bool) -> Iterator[Path]:
    """Yield the tapes to pack; of a folder, those that can be packed."""
    if not named.is_dir():
        yield named
        return
    for tape in list_named([named]):
        if tape.path.name.endswith(SEALED_SUFFIX) is not unpack:
            continue
        if not unpack and _is_recorded(tape.path):
            say(f"note: {tape.path}: is still being recorded; left out")
            continue
        yield tape.path


def _is_recorded(path: Path) -> bool:
    try:
        return open_tape(path).recording
    except DeltatapeError:  # packing it says what is wrong
        return False


def _pack(path: Path, *, keep: bool) -> tuple[Path, int, int]:
    sealed = packing.seal(path, settings=current_rules())
    if not keep:
        sealed.remove_journal()
    return sealed.path, sealed.journal_bytes, sealed.bytes


def _unpack(path: Path, *, keep: bool) -> tuple[Path, int, int]:
    unpacked = packing.unpack(path)
    if not keep:
        unpacked.remove_sealed()
    return unpacked.path, unpacked.stamp[1], unpacked.path.stat().st_size
