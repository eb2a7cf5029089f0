"""URLs that users and tapes name, which may be anything."""

from urllib.parse import SplitResult, urlsplit

_NONE = urlsplit("")


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL; all of them empty where its host has brackets without an address.

    The same goes for a host whose characters change under NFKC. Its `port` raises `ValueError` for
    what is no port.
    """
    try:
        return urlsplit(url)
    except ValueError:
        return _NONE
