"""Keeps a copy of a dataset in an object store on this machine, and updates it.

DuckDB reads the copy as it reads a folder. The tables for questions take a few hundred bytes an
exchange; the largest one, that of the digests, is not copied.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from deltatape.errors import UsageError
from deltatape.objects.urls import is_store_url, open_store
from deltatape.scan.schema import BEFORE, DIGESTS, SUFFIX, TABLES
from deltatape.store.names import state_folder

if TYPE_CHECKING:
    from deltatape.scan.dataset import FoundFile

_AT_ONCE = 16
"""Files copied in parallel: most are small, and each costs a round trip."""
_PATH = re.compile(r"[a-z_]+/day=[0-9-]{10}/[^/]+" + re.escape(SUFFIX))
_TABLES = (*(name for name in TABLES if name != DIGESTS.name), BEFORE)


def local_dataset(place: str, environment: Mapping[str, str]) -> Path:
    """Return the folder of a dataset; for a URL, the folder of its updated copy.

    Args:
        place: a folder or the URL of a store.
        environment: variables that set the state folder.

    Raises:
        UsageError: the store has no dataset.
        DeltatapeError: the store cannot be read.
    """
    if not is_store_url(place):
        return Path(place)
    store = open_store(place)
    if store.folder is not None:
        return store.folder
    from deltatape.scan.dataset import StoreFiles  # noqa: PLC0415 - an extra

    files = StoreFiles(store)
    name = hashlib.sha256(store.url.encode()).hexdigest()[:16]
    folder = state_folder(environment) / "datasets" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = {
        each.path: each
        for table in _TABLES
        for each in files.found(table)
        if _PATH.fullmatch(each.path)  # no key of a store leads out of the folder
    }
    if not found:
        raise UsageError(f"{place}: holds no dataset; `deltatape scan` makes a dataset")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".") as drafts:

        def copy(each: "FoundFile") -> None:
            draft = Path(drafts, hashlib.sha256(each.path.encode()).hexdigest())
            with files.local(each.path) as local:
                shutil.copyfile(local, draft)
            os.utime(draft, ns=(each.modified_us * 1000, each.modified_us * 1000))
            to = folder / each.path
            to.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(to)

        new = [each for each in found.values() if not _is_same(folder / each.path, each)]
        with ThreadPoolExecutor(_AT_ONCE) as executor:
            list(executor.map(copy, new))
    for table in _TABLES:
        for path in (folder / table).rglob(f"*{SUFFIX}"):
            if path.relative_to(folder).as_posix() not in found:
                path.unlink()
    return folder


def _is_same(path: Path, found: "FoundFile") -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return (status.st_size, status.st_mtime_ns // 1000) == (found.size, found.modified_us)
