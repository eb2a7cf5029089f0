"""`deltatape pack`: seals tapes, and unpacks sealed ones."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from deltatape.cli.options import TapeArgument, jobs, option
from deltatape.cli.tapes import say_unreadable
from deltatape.cli.terminal import Bar, say, write
from deltatape.cli.workers import in_order, worthwhile
from deltatape.errors import DeltatapeError
from deltatape.model.rule_settings import Settings
from deltatape.printable import count
from deltatape.render.numbers import size
from deltatape.settings.defaults import current_rules
from deltatape.store import packing
from deltatape.store.listing import OnUnreadable, Unreadable, list_named, locate_whole
from deltatape.store.names import SEALED_SUFFIX
from deltatape.store.reader import open_tape


@click.command("pack")
@click.argument(
    "tapes",
    cls=TapeArgument,
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="TAPE|FOLDER...",
)
@option("--unpack", is_flag=True, help="Restore the tapes from sealed ones.")
@option("--keep", is_flag=True, help="Keep the originals of packed or unpacked tapes.")
@jobs("Processes that pack tapes; default: one per core, where tapes are large.")
def command(*, tapes: tuple[Path, ...], unpack: bool, keep: bool, jobs: int | None) -> int:
    """Seal tapes: NAME.tape becomes NAME.tape.zst, compressed by conversation, with an index.

    Every command reads sealed tapes, and finds single exchanges in them faster. The original tape
    is deleted once its sealed form is synced to disk, and was read back and is equal byte for
    byte. In a FOLDER and all folders below, packs every tape that is not being recorded. Prints
    the paths of the new files.

    Exit code: 2 if a tape cannot be packed or a folder cannot be read; the others are packed.
    """
    unreadable: list[Unreadable] = []
    paths = [path for named in tapes for path in _below(named, unreadable.append, unpack=unpack)]
    for each in unreadable:
        say_unreadable(each)
    failed = bool(unreadable)
    before = after = done = 0
    pack = partial(_packed, unpack=unpack, keep=keep, settings=current_rules())
    processes = min(jobs or worthwhile(paths), len(paths))
    with Bar("tapes", len(paths)) as bar:
        for made in in_order(pack, paths, processes, doing="packs tapes"):
            bar.step()
            with bar.aside():
                if isinstance(made, str):
                    failed = True
                    say(f"deltatape: {made}")
                    continue
                write(f"{made.path}\n")
            before, after, done = before + made.before, after + made.after, done + 1
    verb = "unpacked" if unpack else "packed"
    if done:
        say(f"{verb} {count(done, 'tape')}: {size(before)} became {size(after)}")
    elif not failed:
        say(f"nothing to do: there is no {'sealed' if unpack else 'unsealed'} tape")
    return DeltatapeError.exit_code if failed else 0


def _below(named: Path, on_unreadable: OnUnreadable, *, unpack: bool) -> Iterator[Path]:
    """Yield the tapes to pack; of a folder, those that can be packed."""
    if not named.is_dir():
        yield locate_whole(str(named))
        return
    for tape in list_named([named], on_unreadable):
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


class _Packed(NamedTuple):
    """A new file, its size, and the size of its original."""

    path: Path
    before: int
    after: int


def _packed(path: Path, *, unpack: bool, keep: bool, settings: Settings) -> _Packed | str:
    """Pack or unpack a tape; return why that cannot be done, if so."""
    try:
        if unpack:
            unpacked = packing.unpack(path)
            if not keep:
                unpacked.remove_sealed()
            return _Packed(unpacked.path, unpacked.stamp[1], unpacked.path.stat().st_size)
        sealed = packing.seal(path, settings=settings)
        if not keep:
            sealed.remove_journal()
        return _Packed(sealed.path, sealed.journal_bytes, sealed.bytes)
    except DeltatapeError as error:
        return str(error)
