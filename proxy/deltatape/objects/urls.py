"""URLs of object stores, for who may have been given a path: obstore is loaded for a URL alone."""

import re
from typing import TYPE_CHECKING

from deltatape.errors import UsageError

if TYPE_CHECKING:
    from deltatape.objects.store import ObjectStore

ACCEPTED = "file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_store_url(text: str) -> bool:
    """Check whether a text is a URL, and so no path."""
    return _URL.match(text) is not None


def open_store(url: str, *, makes: bool = False) -> "ObjectStore":
    """Return the store at a URL; see `ObjectStore`.

    Raises:
        UsageError: it is no URL of a store, or obstore is not installed.
    """
    if not is_store_url(url):
        raise UsageError(f"{url!r}: no URL of a store; {ACCEPTED} is accepted")
    try:
        from deltatape.objects.store import ObjectStore  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise UsageError(
            f'{url}: object stores need {error.name}: pip install "deltatape[fleet]"'
        ) from None
    return ObjectStore(url, makes=makes)
