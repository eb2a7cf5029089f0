"""A request's endpoint: method, path and query, as dictionary keys.

A tape holds the target as sent upstream, which begins with the path of the upstream's URL. An
application may ask for it bare, below a gateway's prefix for a provider, or without the upstream's
path. So a recorded request and a new one have several places each, and match if they share one. The
gateway's own path segments, for a tape's name and a token, are ignored.

Ignored are percent-encoding that does not change the path (RFC 3986 section 6.2.2; Amazon's clients
encode the colon in model names differently), the order of query parameters, and the values of those
that carry credentials.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

from deltatape.match.body import fits
from deltatape.model.exchange import Request
from deltatape.printable import excerpt
from deltatape.providers import PROVIDERS
from deltatape.tape.mask import credential_spans, is_credential_parameter
from deltatape.urls import split_url

Place: TypeAlias = tuple[str, bytes, tuple[tuple[str, str], ...]]
"""Method, path, and the parameters of the query by name."""

_MAX_CACHED = 256
_ORIGIN = re.compile(rb"https?://[^/?]*(?=[/?]|$)", re.IGNORECASE)
_OWN = re.compile(rb"/[st]/[^/]*(?=/)")
_TOKEN = re.compile(rb"((?:https?://[^/?]*)?(?:/s/[^/?]*)?/t/)[^/?]+")
_ENCODED = re.compile(rb"%[0-9A-Fa-f]{2}")
_RESERVED = b"/?#%"
_OPTIONAL = {
    name.encode(): each.optional_path[0].encode()
    for name, each in PROVIDERS.items()
    if each.optional_path is not None
}
"""By prefix, the path that the gateway inserts if it is missing."""


def shown(target: bytes, most: int = 2048, hide: Callable[[str], str] = str) -> str:
    """Return a request target without credentials, shortened to `most` characters.

    Args:
        target: the target of a request to a gateway or a player, or of a recorded one.
        most: >= 1.
        hide: overwrites other secrets.
    """
    if own := _TOKEN.match(target):
        target = own[1] + b"***" + target[own.end() :]
    parts, at = [], 0
    for start, end in credential_spans(target):
        parts += [target[at:start], b"***"]
        at = end
    # Masked before it is cut: half a credential would not be recognised.
    return excerpt(hide(b"".join((*parts, target[at:])).decode("ascii", "replace")), most)


def recorded_places(request: Request) -> tuple[Place, ...]:
    """Return the endpoints at which a recorded request can be repeated."""
    path, query = _parts(request.target_bytes)
    base = _normal(split_url(request.upstream).path.encode("utf-8", "replace")).rstrip(b"/")
    paths = [path]
    if base and path.startswith(base + b"/"):
        paths.append(path.removeprefix(base))
    return tuple((request.method, each, query) for each in paths)


@lru_cache(maxsize=_MAX_CACHED)
def asked_places(method: str, target: bytes) -> tuple[Place, ...]:
    """Return the endpoints that a request may mean."""
    path, query = _parts(target)
    paths = [path]
    while own := _OWN.match(paths[-1]):
        paths.append(paths[-1][own.end() :])
    prefix, _, rest = paths[-1].removeprefix(b"/").partition(b"/")
    paths.append(b"/" + rest)
    if prefix in _OPTIONAL:
        paths.append(_OPTIONAL[prefix] + b"/" + rest)
    return tuple((method, each, query) for each in dict.fromkeys(paths))


def masked_pieces(request: Request) -> tuple[bytes, ...]:
    """Split the path where credentials were masked; one piece if none were."""
    pieces = [b""]
    for part in request.target:
        if isinstance(part, bytes):
            pieces[-1] += part
            if b"?" in part:
                break
        else:
            pieces.append(b"")
    pieces[-1] = pieces[-1].partition(b"?")[0]
    return tuple(_normal(piece) for piece in pieces)


def fits_masked(places: tuple[Place, ...], request: Request, pieces: tuple[bytes, ...]) -> bool:
    """Return whether one of `places` is the endpoint of a request whose path has masked parts."""
    _, query = _parts(request.target_bytes)
    return any(
        method == request.method and asked == query and fits(pieces, path)
        for method, path, asked in places
    )


def _parts(target: bytes) -> tuple[bytes, tuple[tuple[str, str], ...]]:
    origin = _ORIGIN.match(target)
    path, _, query = (target[origin.end() :] if origin else target).partition(b"?")
    return _normal(path) or b"/", _query(query.partition(b"#")[0])


def _normal(path: bytes) -> bytes:
    """Decode the characters of `path` that need no percent-encoding."""
    return _ENCODED.sub(_decoded, path) if b"%" in path else path


def _decoded(match: re.Match[bytes]) -> bytes:
    plain = unquote_to_bytes(match[0])
    return match[0].upper() if plain in _RESERVED else plain


def _query(query: bytes) -> tuple[tuple[str, str], ...]:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else ()
    named = (
        (name, "" if is_credential_parameter(name.encode()) else value) for name, value in pairs
    )
    return tuple(sorted(named, key=lambda pair: pair[0]))
