"""Object stores by URL: s3://, gs://, az:// and file://, through obstore.

Strategy: an `ObjectStore` is a bucket, or a folder, with a prefix before all keys. Objects are sent
in parts and read by range, so memory is bounded. Each error of obstore becomes
one of three: `UsageError` (the URL or the bucket is wrong), `StoreRefusedError` (credentials
or rights) and `StoreUnreachableError` (trying again may help).

Invariant: an object is either complete or not there. Stores promise that for single requests and
for uploads in parts; a folder gets it by a rename.
"""

import contextlib
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta  # noqa: TID251 - a length of time; it reads no clock
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

import obstore
from obstore import exceptions, store

from deltatape.errors import (
    DeltatapeError,
    StoreRefusedError,
    StoreUnreachableError,
    UsageError,
)
from deltatape.objects.urls import ACCEPTED
from deltatape.urls import split_url

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""Variables that name another server, by the scheme of the URLs that go there."""
_FORBIDDEN = frozenset({"401", "403"})
_LATER = frozenset({"408", "409", "425", "429"})
"""HTTP statuses after which a retry may succeed."""

PART_BYTES = 5 << 20
"""The smallest part that S3 accepts."""
_MOST_PARTS = 10_000
_STEP = 1 << 20
"""The size of a request when a whole object is read."""
_HELD = 256 << 10
_HELD_BLOCKS = 32
"""The size of the blocks in which `ObjectRanges` reads, and how many it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object in a store."""

    key: str
    size: int
    """In bytes."""
    modified_us: int
    """When it was stored, in microseconds since 1970-01-01T00:00:00Z."""
    etag: str | None = None
    """The store's identifier of this version (ETag)."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Metadata given to `put`; empty where it was not asked for, and in a folder."""


class ObjectStore:
    """A bucket or folder, with the prefix in its URL.

    Credentials and endpoints come from the environment: `AWS_*`, `GOOGLE_*`, `AZURE_*`.

    Args:
        url: see `urls.ACCEPTED`.
        makes: whether the folder of a file:// URL is created if it is missing.

    Raises:
        UsageError: it is not such a URL, or the folder does not exist.
    """

    def __init__(self, url: str, *, makes: bool = False) -> None:
        self.url = url.rstrip("/")
        self.folder: Path | None = None
        """The folder of a file:// URL."""
        parts = split_url(url)
        plain = not (parts.query or parts.fragment)
        if "@" in parts.netloc:  # which may be a password, so it is not repeated
            raise UsageError(f"the URL of an object store must not contain a user; use {ACCEPTED}")
        local = parts.netloc in {"", "localhost"} and parts.path.startswith("/")
        if parts.scheme == "file" and plain and local:
            self.folder = Path(unquote(parts.path))
            if self.folder.is_file():
                raise UsageError(f"{url}: is a file; name a folder")
            if not self.folder.is_dir() and not makes:
                raise UsageError(f"{url}: there is no such folder")
            self._store = self._local(self.folder, makes=makes)
        elif parts.scheme in _ENDPOINTS and plain and parts.netloc:
            self._store = self._remote(_ENDPOINTS[parts.scheme])
        else:
            raise UsageError(f"{url!r}: not the URL of an object store; use {ACCEPTED}")

    def _local(self, folder: Path, *, makes: bool) -> "store.ObjectStore":
        try:
            return store.LocalStore(folder, mkdir=makes)
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise UsageError(f"{self.url}: {reason_of(error)}") from None

    def _remote(self, endpoints: tuple[str, ...]) -> "store.ObjectStore":
        http = any(os.environ.get(name, "").startswith("http://") for name in endpoints)
        client: ClientConfig = {"connect_timeout": "5s", "timeout": "2min"}
        if http:
            client["allow_http"] = True
        # Whoever ships waits longer, and says so; see `Shipper`.
        retry: RetryConfig = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
        try:
            return store.from_url(self.url, client_options=client, retry_config=retry)
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise UsageError(f"{self.url}: {reason_of(error)}; {ACCEPTED} is accepted") from None

    def head(self, key: str) -> StoredObject | None:
        """Return the object under `key`; None if there is none.

        Raises:
            StoreUnreachableError, StoreRefusedError: see the module.
        """
        try:
            with self._translated(f"{self.url}/{key}"):
                found = obstore.get(self._store, key, options={"head": True})
        except FileNotFoundError:
            return None
        metadata = {name: str(value) for name, value in found.attributes.items()}
        return _object(found.meta, key, metadata)

    def list(self, below: str = "") -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with the folder `below`, in no certain order.

        Raises:
            StoreUnreachableError, StoreRefusedError: see the module.
            UsageError: there is no such bucket.
        """
        with self._translated(self.url):
            for batch in obstore.list(self._store, below or None, chunk_size=1000):
                for found in batch:
                    yield _object(found, found["path"], {})

    def put(
        self,
        key: str,
        blocks: Iterable[bytes],
        *,
        size: int,
        sha256: str,
        metadata: Mapping[str, str] = MappingProxyType({}),
        memory: int = 2 * PART_BYTES,
    ) -> None:
        """Store an object; one of the same key is replaced at the end, atomically.

        Args:
            key: see `StoredObject`.
            blocks: the content. An exception from it ends the upload, and nothing is stored.
            size: the size of the content, in bytes.
            sha256: the sha256 of the content, in hexadecimal digits; stored as metadata.
            metadata: more of it, under keys of small letters and digits; a folder keeps none.
            memory: the most bytes held, at least `PART_BYTES`; more sends parts in parallel.

        Raises:
            StoreUnreachableError, StoreRefusedError: see the module.
            UsageError: there is no such bucket.
        """
        part = max(PART_BYTES, -(-size // _MOST_PARTS))
        if self.folder is not None:
            self._remove_drafts(key)
        with self._translated(f"{self.url}/{key}"):
            try:
                obstore.put(
                    self._store,
                    key,
                    b"".join(blocks) if size <= part else iter(blocks),
                    attributes=None if self.folder is not None else {"sha256": sha256, **metadata},
                    use_multipart=size > part,
                    chunk_size=part,
                    max_concurrency=max(1, memory // part - 1),
                )
                if self.folder is not None:
                    _sync(self.folder / key)
            except FileNotFoundError:
                raise self._missing() from None

    def _missing(self) -> DeltatapeError:
        if self.folder is not None:
            return StoreUnreachableError(f"{self.url}: the folder is gone")
        return UsageError(f"{self.url}: there is no such bucket")

    def _remove_drafts(self, key: str) -> None:
        """Remove the drafts of an object in a folder that killed writers left."""
        assert self.folder is not None
        path = self.folder / key
        for draft in path.parent.glob(f"{path.name}#*"):
            draft.unlink(missing_ok=True)

    def remove(self, key: str) -> None:
        """Remove an object, if there is one.

        Raises:
            StoreUnreachableError, StoreRefusedError: see the module.
        """
        with contextlib.suppress(FileNotFoundError), self._translated(f"{self.url}/{key}"):
            obstore.delete(self._store, key)

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Return `length` bytes of an object from `offset` on; fewer at its end.

        Raises:
            StoreUnreachableError, StoreRefusedError: see the module.
            UsageError: there is no such object.
        """
        if length <= 0:
            return b""
        place = f"{self.url}/{key}"
        with self._translated(place):
            try:
                return bytes(obstore.get_range(self._store, key, start=offset, length=length))
            except FileNotFoundError:
                raise UsageError(f"{place}: there is no such object") from None

    def blocks(self, found: StoredObject) -> Iterator[bytes]:
        """Yield the content of an object.

        Raises: as `read`.
        """
        for offset in range(0, found.size, _STEP):
            yield self.read(found.key, offset, min(_STEP, found.size - offset))

    @contextlib.contextmanager
    def _translated(self, place: str) -> Iterator[None]:
        """Raise errors of the store as ours; exceptions of a caller's blocks pass unchanged."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise self._refused(place, error) from None
        except (exceptions.BaseError, NotImplementedError, OSError, ValueError) as error:
            text = str(error)
            status = _STATUS.search(text)
            code = status[1][:3] if status else ""
            if _NO_BUCKET.search(text):
                raise UsageError(f"{self.url}: there is no such bucket") from None
            if code in _FORBIDDEN or (code.startswith("4") and code not in _LATER):
                raise self._refused(place, error) from None
            if _ROLES.search(text):
                raise StoreRefusedError(
                    f"{place}: no credentials; expected are those of {self._variables}"
                ) from None
            raise StoreUnreachableError(f"{place}: {reason_of(error)}") from None

    def _refused(self, place: str, error: Exception) -> StoreRefusedError:
        hint = f"; the credentials are those of {self._variables}" if self._variables else ""
        return StoreRefusedError(f"{place}: refused: {reason_of(error)}{hint}")

    @property
    def _variables(self) -> str:
        return _VARIABLES.get(split_url(self.url).scheme, "")


def _object(found: "obstore.ObjectMeta", key: str, metadata: Mapping[str, str]) -> StoredObject:
    return StoredObject(
        key=key,
        size=found["size"],
        modified_us=round(found["last_modified"].timestamp() * 1_000_000),
        etag=found["e_tag"],
        metadata=metadata,
    )


class ObjectRanges:
    """An object read by range, as a sealed tape is; holds the blocks read last.

    Args:
        store: it lies in.
        key: the key of the object.
    """

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store = store
        self._key = key
        self._size: int | None = None
        self._held: OrderedDict[int, bytes] = OrderedDict()
        """Blocks by their numbers, those that were used last at the end."""
        self.name = f"{store.url}/{key}"

    def size(self) -> int:
        """Return how many bytes it has.

        Raises: as `read`.
        """
        if self._size is None:
            found = self._store.head(self._key)
            if found is None:
                raise UsageError(f"{self.name}: there is no such object")
            self._size = found.size
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on; see `ObjectStore.read`.

        Small reads are rounded to blocks: a request costs more than the bytes.
        """
        end = min(offset + length, self.size())
        if offset >= end:
            return b""
        first, last = offset // _HELD, (end - 1) // _HELD
        missing = [number for number in range(first, last + 1) if number not in self._held]
        if missing:
            at = missing[0] * _HELD
            until = min((missing[-1] + 1) * _HELD, self.size())
            data = self._store.read(self._key, at, until - at)
            for number in range(missing[0], missing[-1] + 1):
                start = number * _HELD - at
                self._held[number] = data[start : start + _HELD]
        parts = []
        for number in range(first, last + 1):
            self._held.move_to_end(number)
            parts.append(self._held[number])
        while len(self._held) > _HELD_BLOCKS:
            self._held.popitem(last=False)
        start = offset - first * _HELD
        return b"".join(parts)[start : start + end - offset]


_STATUS = re.compile(r"status code: ([0-9]{3} [A-Za-z ]+)")
_ANSWER = re.compile(r"<Code>([^<]*)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_NO_BUCKET = re.compile(r"<Code>(?:NoSuchBucket|ContainerNotFound)<")
_SYSTEM = re.compile(r'kind: \w+,\s*message: "([^"]*)"')
_ROLES = re.compile(r"/latest/api/token|//169\.254\.|//metadata\.google\.internal")
"""The URLs at which obstore asks for the machine's role if it finds no credentials."""
_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or of the machine's role",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or of the machine's service account",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or of the machine's identity",
}


def reason_of(error: Exception) -> str:
    """Return the short reason in a long error message of obstore."""
    text = str(error)
    if answer := _ANSWER.search(text):
        return ": ".join(filter(None, answer.groups()))
    if status := _STATUS.search(text):
        return f"it answers {status[1].strip()}"
    if system := _SYSTEM.search(text):
        return system[1]
    return text.partition("\n")[0].rpartition(": ")[2].strip() or type(error).__name__


def _sync(path: Path) -> None:
    """Sync a file and its folder to disk: its source may be deleted afterwards."""
    for each in (path, path.parent, path.parent.parent, path.parent.parent.parent):
        fd = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
