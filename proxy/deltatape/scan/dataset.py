"""The files of a dataset, in a folder or an object store.

Each file is written under another name and then renamed, so it is always complete. The files of a
tape are published one after the other, that in `tapes` last: a tape with a file there is complete,
and what a killed scan leaves is ignored.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow.parquet as pq

from deltatape.errors import UsageError
from deltatape.objects.urls import is_store_url, open_store
from deltatape.scan.arrow import batch_of, schema_of
from deltatape.scan.rows import Row, TapeRows
from deltatape.scan.schema import (
    BEFORE,
    FINDINGS,
    SUFFIX,
    TABLES,
    TAPES,
    Table,
    Type,
    file_name,
    path_of,
)
from deltatape.store.listing import OnUnreadable, error_handler, unheeded

if TYPE_CHECKING:
    from deltatape.objects.store import ObjectStore

DRAFTS = ".drafts"
_TEMPORARY = "deltatape-scan-"
_BLOCK = 1 << 20
_OLD_US = 24 * 3600 * 1_000_000
"""The age at which drafts count as left by a killed scan."""
_PATH = re.compile(r"([a-z_]+)/day=([0-9-]{10})/([^/]+)-([^/-]+)" + re.escape(SUFFIX))


class FoundFile(NamedTuple):
    """A file by its path in a folder or a store."""

    path: str
    size: int
    modified_us: int
    """When it was written, in microseconds since 1970."""
    etag: str | None = None


class Files(Protocol):
    """Files by their paths below a folder or the URL of a store."""

    def found(self, below: str = "", on_unreadable: OnUnreadable = unheeded) -> Iterator[FoundFile]:
        """Yield the files in a folder and all folders below it, in no certain order.

        Calls `on_unreadable` for each folder whose files are left out.
        """

    def local(self, path: str) -> AbstractContextManager[Path]:
        """Return a file's path on this machine, valid within the block."""

    def publish(self, draft: Path, path: str) -> None:
        """Turn a draft into a file; replaces one of that name atomically."""

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""

    def move(self, path: str, to: str) -> None:
        """Rename a file; one of the new name is replaced."""

    def drafts(self, scan: str) -> Path:
        """Return a new folder for the drafts of a scan."""

    def clear(self, scan: str, now_us: int) -> None:
        """Remove the drafts of a scan, and those that killed scans left."""


class LocalFiles:
    """Files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def found(self, below: str = "", on_unreadable: OnUnreadable = unheeded) -> Iterator[FoundFile]:
        failed = error_handler(on_unreadable)
        for parent, folders, names in os.walk(self._folder / below, onerror=failed):
            folders[:] = [each for each in folders if not each.startswith(".")]
            for name in names:
                path = Path(parent, name)
                try:
                    status = path.lstat()
                except OSError as error:  # such as one that was removed meanwhile
                    failed(error)
                    continue
                if stat.S_ISREG(status.st_mode):  # a link may lead anywhere
                    place = path.relative_to(self._folder).as_posix()
                    yield FoundFile(place, status.st_size, status.st_mtime_ns // 1000)

    @contextlib.contextmanager
    def local(self, path: str) -> Iterator[Path]:
        yield self._folder / path

    def publish(self, draft: Path, path: str) -> None:
        to = self._folder / path
        to.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(to)

    def remove(self, path: str) -> None:
        (self._folder / path).unlink(missing_ok=True)

    def move(self, path: str, to: str) -> None:
        self.publish(self._folder / path, to)

    def drafts(self, scan: str) -> Path:
        folder = self._folder / DRAFTS / scan
        folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=folder))

    def clear(self, scan: str, now_us: int) -> None:
        drafts = self._folder / DRAFTS
        for each in drafts.iterdir() if drafts.is_dir() else ():
            if each.name == scan or now_us - each.stat().st_mtime_ns // 1000 > _OLD_US:
                shutil.rmtree(each, ignore_errors=True)
        if drafts.is_dir() and not any(drafts.iterdir()):
            drafts.rmdir()


class StoreFiles:
    """Files in an object store, read and written through this machine's temporary folder."""

    def __init__(self, store: "ObjectStore") -> None:
        self._store = store

    def found(
        self,
        below: str = "",
        on_unreadable: OnUnreadable = unheeded,  # noqa: ARG002 - a store has no folders
    ) -> Iterator[FoundFile]:
        for each in self._store.list(below):
            yield FoundFile(each.key, each.size, each.modified_us, each.etag)

    @contextlib.contextmanager
    def local(self, path: str) -> Iterator[Path]:
        found = self._store.head(path)
        if found is None:
            raise UsageError(f"{self._store.url}/{path}: there is no such object")
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY) as folder:
            copy = Path(folder, path.rpartition("/")[2])
            with copy.open("wb") as file:
                for block in self._store.blocks(found):
                    file.write(block)
            yield copy

    def publish(self, draft: Path, path: str) -> None:
        with draft.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            blocks = iter(lambda: file.read(_BLOCK), b"")
            self._store.put(path, blocks, size=size, sha256=sha256)

    def remove(self, path: str) -> None:
        self._store.remove(path)

    def move(self, path: str, to: str) -> None:
        with self.local(path) as copy:
            self.publish(copy, to)
        self.remove(path)

    def drafts(self, scan: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{scan}-"))

    def clear(self, scan: str, now_us: int) -> None:
        """Do nothing: drafts are in temporary folders of the machines that wrote them."""


@lru_cache(maxsize=16)
def open_files(place: str) -> Files:
    """Return the files below a folder or the URL of a store.

    Raises:
        UsageError: it is a file, or not such a URL.
    """
    if not is_store_url(place):
        if Path(place).is_file():
            raise UsageError(f"{place}: is a file; name a folder")
        return LocalFiles(Path(place))
    store = open_store(place, makes=True)
    return StoreFiles(store) if store.folder is None else LocalFiles(store.folder)


class StoredRows(NamedTuple):
    """A file with rows of a tape."""

    table: str
    day: str
    tape: str
    rules: str
    modified_us: int

    @property
    def path(self) -> str:
        return path_of(self.table, self.day, file_name(self.tape, self.rules))


def stored_rows(files: Files, tables: Iterable[str] = (*TABLES, BEFORE)) -> Iterator[StoredRows]:
    """Yield the files of tables."""
    for table in tables:
        for each in files.found(table):
            match = _PATH.fullmatch(each.path)
            if match is not None:
                yield StoredRows(match[1], match[2], match[3], match[4], each.modified_us)


class TapeWriter:
    """Writes the rows of one tape.

    Args:
        files: the files of the dataset.
        scan: names the run; see `Files.clear`.
        key: the key of the tape.
        rules: the version of the rules.
    """

    def __init__(self, files: Files, scan: str, key: str, rules: str) -> None:
        self._files = files
        self._key = key
        self._rules = rules
        self._drafts = files.drafts(scan)
        self._open: dict[str, pq.ParquetWriter] = {}

    def write(self, rows: TapeRows) -> None:
        """Add rows to the drafts."""
        for name, own in rows.items():
            self._write(TABLES[name], own)

    def _write(self, table: Table, rows: Sequence[Row]) -> None:
        if table.name not in self._open:
            self._open[table.name] = pq.ParquetWriter(
                self._drafts / table.name,
                schema_of(table, self._rules),
                compression="zstd",
                use_dictionary=[each.name for each in table.columns if each.type is Type.WORD],
                write_statistics=[each.name for each in table.columns if each.type is Type.TIME],
                store_schema=False,
            )
        self._open[table.name].write_batch(batch_of(table, self._rules, rows))

    def publish(self, day: str, tape: Row, before: Sequence[StoredRows] = ()) -> None:
        """Make the drafts part of the dataset.

        Args:
            day: the day of the tape.
            tape: its row in table `tapes`.
            before: the files that the dataset has of the tape.
        """
        self._write(TAPES, [tape])
        written = set()
        for name in sorted(self._open, key=lambda each: each == TAPES.name):
            writer = self._open[name]
            writer.add_key_value_metadata(dict(schema_of(TABLES[name], self._rules).metadata))
            writer.close()
            path = path_of(name, day, file_name(self._key, self._rules))
            if name == TAPES.name:
                self._keep_findings(day, before)
            self._files.publish(self._drafts / name, path)
            written.add(path)
        for each in before:
            if each.path not in written and each.table != BEFORE:
                self._files.remove(each.path)

    def _keep_findings(self, day: str, before: Sequence[StoredRows]) -> None:
        """Keep the findings of the version of the rules before, and of no other."""
        older = [each for each in before if each.rules != self._rules]
        last = max(
            (each for each in older if each.table == TAPES.name),
            key=lambda each: each.modified_us,
            default=None,
        )
        if last is None:
            return
        kept = path_of(BEFORE, day, file_name(self._key, last.rules))
        for each in before:
            if each.table == BEFORE and each.path != kept:
                self._files.remove(each.path)
        for each in older:
            if each.table == FINDINGS.name and each.rules == last.rules:
                self._files.move(each.path, kept)
                return
        if any(each.path == kept for each in before):
            return  # by a scan that was killed then
        # That there were none is told by a file without rows.
        draft = self._drafts / BEFORE
        pq.write_table(schema_of(FINDINGS, last.rules).empty_table(), draft)
        self._files.publish(draft, kept)

    def restart(self) -> None:
        """Forget the rows so far."""
        for writer in self._open.values():
            writer.close()
        self._open = {}

    def close(self) -> None:
        """Remove what is left of the drafts."""
        for writer in self._open.values():
            writer.close()
        shutil.rmtree(self._drafts, ignore_errors=True)
