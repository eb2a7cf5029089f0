"""URLs of object stores, wherever a path or a URL may be given; obstore is loaded only for a URL.

Commands that take paths of tapes take URLs, too: `Path("s3://bucket/x.tape")`, whose text is
`s3:/bucket/x.tape`. `url_of` restores the URL.
"""

import functools
import os
import re
from typing import TYPE_CHECKING

from deltatape.errors import UsageError

if TYPE_CHECKING:
    from deltatape.objects.store import ObjectRanges, ObjectStore

ACCEPTED = "file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NAMED = re.compile(r"(file:)/+(?=[^/])|(s3:|gs:|az:)/{1,2}(?=[^/])")
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")


def is_store_url(text: str) -> bool:
    """Check whether a text is a URL, not a path."""
    return _URL.match(text) is not None


def check_store_url(text: str) -> None:
    """Check that a text is no URL, or that of an object store.

    Raises:
        UsageError: it is another URL.
    """
    if is_store_url(text) and url_of(text) is None:
        raise _no_store(text)


def _no_store(text: str) -> UsageError:
    return UsageError(f"{text!r}: not the URL of an object store; use {ACCEPTED}")


def url_of(path: "str | os.PathLike[str]") -> str | None:
    """Return the URL that a path was made from; None: it is a path of this machine."""
    text = os.fspath(path)
    found = _NAMED.match(text)
    if found is None:
        return None
    scheme = f"{found[1]}///" if found[1] else f"{found[2]}//"
    return scheme + text[found.end() :]


def open_store(url: str, *, makes: bool = False) -> "ObjectStore":
    """Return the store at a URL; see `ObjectStore`.

    Raises:
        UsageError: the URL is not that of an object store, or obstore is not installed.
    """
    if not is_store_url(url):
        raise _no_store(url)
    try:
        from deltatape.objects.store import ObjectStore  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise UsageError(
            f'{url}: object stores need {error.name}: pip install "deltatape[fleet]"'
        ) from None
    return ObjectStore(url, makes=makes)


def open_object(url: str) -> "ObjectRanges":
    """Return an object at its own URL.

    Raises:
        UsageError: see `open_store`.
    """
    folder, _, key = url.rpartition("/")
    store = folder_store(folder)
    from deltatape.objects.store import ObjectRanges  # noqa: PLC0415 - see above

    return ObjectRanges(store, key)


def folder_store(url: str) -> "ObjectStore":
    """Return the store at a URL, to read from; the same one for the same URL and credentials.

    Raises:
        UsageError: see `open_store`.
    """
    variables = (each for each in os.environ.items() if each[0].startswith(_VARIABLES))
    return _folder_store(url, tuple(sorted(variables)))


@functools.lru_cache(maxsize=32)
def _folder_store(url: str, _: tuple[tuple[str, str], ...]) -> "ObjectStore":
    """Keep stores: making one takes as long as many requests."""
    return open_store(url)
