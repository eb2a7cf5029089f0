"""`deltatape open`: the page on which one sees what is on tapes."""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import click

from deltatape.child.signals import Signals
from deltatape.cli.options import PathArgument, option
from deltatape.cli.tapes import is_tape
from deltatape.cli.terminal import read_stdin, say, write
from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.http1.listener import Address, is_loopback, parse_address
from deltatape.live.messages import Begin
from deltatape.objects.urls import is_store_url
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import locate_whole, tape_folders
from deltatape.store.names import state_folder
from deltatape.urls import split_url

_STATUS_S = 10.0
_MAX_STATUS = 1 << 20
_KEPT_NS = 60 * 86_400_000_000_000
"""How long the index of tapes is kept that are not opened."""


@click.command("open")
@click.argument("what", cls=PathArgument, default="", metavar="[TAPE | FOLDER | DATASET | URL]")
@option(
    "--listen",
    default="127.0.0.1:0",
    metavar="HOST:PORT",
    help="Where the page is served, on this machine only; port 0 takes any free one.",
)
@option("--no-browser", is_flag=True, help="Only print the page's URL.")
@option(
    "--until-eof",
    is_flag=True,
    help="For programs: print the URL on standard output, and end with standard input.",
)
def command(*, what: str, listen: str, no_browser: bool, until_eof: bool) -> int:
    """Open a page that shows what is on tapes: exchanges, what went wrong, and where.

    Shows the tapes in .deltatape and recordings, in a FOLDER, or a single TAPE, also while they are
    recorded. With the URL of a recorder's --control address, shows its tapes. With a DATASET of
    deltatape scan (a folder or the URL of an object store), shows its exchanges and trends, and
    opens exchanges whose tapes are where the scan read them. Ctrl-C ends it. Nothing leaves this
    machine, and no tape is changed (docs/open.md).
    """
    address = _address(listen)
    begin = _begin(what)
    with _place_of_index(begin) as index:
        asyncio.run(_serve(index, begin, address, browser=not no_browser, until_eof=until_eof))
    return 0


def _address(text: str) -> Address:
    address = parse_address(text)
    if address.path or not address.loopback:
        raise UsageError(
            f"--listen {text!r}: only loopback is accepted, such as 127.0.0.1:8390 or [::1]:8390,"
            " since the page shows prompts and answers; from elsewhere, use ssh -L"
        )
    return address


def _begin(what: str) -> dict[str, object]:
    """Return what to show, for the processes."""
    folders, only, dataset = list(tape_folders()), None, None
    if what.startswith(("http://", "https://")):
        folders = [recorder_folder(what)]
    elif is_store_url(what):
        folders, dataset = [], _dataset(what)
    elif what:
        path = locate_whole(what)
        if not path.exists():
            raise UsageError(f"{what}: there is no such tape or folder")
        if not path.is_dir() and not is_tape(path):
            raise UsageError(f"{what}: is not a tape; deltatape import makes one from it")
        if any(path.glob("tapes/day=*/*.parquet")):
            folders, dataset = [], _dataset(what)
        else:
            folders, only = ([path], None) if path.is_dir() else ([], path)
    return {
        "settings": dict(Begin.of(current_rules()).settings),
        "folders": [str(folder) for folder in folders],
        "only": str(only) if only is not None else None,
        "dataset": str(dataset) if dataset is not None else None,
    }


def _dataset(place: str) -> Path:
    """Return the folder of a dataset that can be asked."""
    from deltatape.ask.copies import local_dataset  # noqa: PLC0415 - an extra
    from deltatape.ask.dataset import Dataset  # noqa: PLC0415 - the same

    folder = local_dataset(place, os.environ)
    with Dataset(folder):
        return folder


def recorder_folder(url: str) -> Path:
    """Return the folder of the recorder that answers at a control address.

    Raises:
        UsageError: none does.
    """
    parts = split_url(url)
    if parts.scheme != "http" or not is_loopback(parts.hostname or ""):
        raise UsageError(
            f"{url}: name the --control address of a recorder on this machine, such as"
            " http://127.0.0.1:8379"
        )
    try:
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_STATUS_S)
        with contextlib.closing(connection):
            connection.request("GET", "/status")
            status = json.loads(connection.getresponse().read(_MAX_STATUS))
    except (OSError, HTTPException, ValueError) as error:
        raise UsageError(f"{url}: no recorder answers there ({error})") from None
    folder = status.get("folder") if isinstance(status, Mapping) else None
    if not isinstance(folder, str):
        raise UsageError(f"{url}: what answers there is no recorder of this version")
    return Path(folder)


@contextlib.contextmanager
def _place_of_index(begin: Mapping[str, object]) -> Iterator[Path]:
    """Yield where the index is: in the state folder; in a temporary one while that is in use."""
    with contextlib.ExitStack() as stack:
        try:
            folder = state_folder(os.environ) / "inspector"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = _name_of(begin)
            lock = stack.enter_context((folder / f"{name}.lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(lock.fileno())
            _forget_old(folder, SystemClock().wall_ns())
        except OSError:  # another one has it; or nothing can be kept
            made = tempfile.mkdtemp(prefix="deltatape-open-")
            stack.callback(shutil.rmtree, made, ignore_errors=True)
            folder, name = Path(made), "own"
        yield folder / f"{name}.index"


def _forget_old(folder: Path, now_ns: int) -> None:
    """Delete indexes that were not opened for long, also those of deleted folders."""
    for lock in folder.glob("*.lock"):
        if lock.stat().st_mtime_ns < now_ns - _KEPT_NS:
            for suffix in (".index", ".index-wal", ".index-shm", ".lock"):
                lock.with_suffix(suffix).unlink(missing_ok=True)


def _name_of(begin: Mapping[str, object]) -> str:
    """Return the name of the index of what is shown."""
    shown = json.dumps([str(Path.cwd()), begin["folders"], begin["only"], begin.get("dataset")])
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


async def _serve(
    index: Path,
    begin: Mapping[str, object],
    address: Address,
    *,
    browser: bool,
    until_eof: bool,
) -> None:
    """Serve the page until a signal, or until the end of standard input."""
    from deltatape.inspector.server import Inspector  # noqa: PLC0415 - not for help

    inspector = Inspector(index, begin)
    try:
        url = await inspector.start(address)
        if browser:
            # A browser's command line can be read by all users of the machine.
            _open_browser(inspector.launch_link(url))
        if until_eof:
            write(f"{inspector.link(url)}\n")
            await asyncio.to_thread(read_stdin)
        else:
            asked = Signals()  # before the user can know that there is something to end
            say(f"page: {inspector.link(url)}")
            say("Ctrl-C ends it")
            await asked.wait()
    finally:
        await inspector.stop()


def _open_browser(url: str) -> None:
    """Open a browser, unless there is only one for terminals; starting it may take a while."""
    seen = (
        sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if seen or os.environ.get("BROWSER"):
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
