"""The URL that a user has set, and the gateway's prefix that stands for its origin.

An origin of a known provider keeps the provider's prefix; another one gets an upstream named after
its host, such as `llm.corp.example` or `127.0.0.1-8000`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from deltatape.errors import UsageError
from deltatape.gateway.routes import PROVIDERS, Origin, Upstream, parse_upstream

DEFAULT_PORT = 8377
"""Where `deltatape record` listens when nothing else is asked for."""

_RESERVED = frozenset({"s", "t"})
"""First path segments that the gateway reads itself."""
_MAX_NAME = 64
_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """A base URL: where it goes, and what follows the authority."""

    origin: Origin
    userinfo: str
    """`user:password@` as written, or ""."""
    path: str
    """With the query, as written: `/api/v1`, or ""."""

    @property
    def shown(self) -> str:
        """For the user: without what is secret in it."""
        return f"{self.origin.url}{self.path.partition('?')[0]}"


def parse_url(name: str, value: str) -> Url | None:
    """The URL in the variable `name`; None: its value is none that requests can go to."""
    if name == "OLLAMA_HOST":
        value = _ollama(value)
    if not _ABSOLUTE.match(value) or _BLANK.search(value) or not value.isascii():
        return None
    try:
        parts = urlsplit(value)
        userinfo, at, authority = parts.netloc.rpartition("@")
        upstream = parse_upstream(f"{parts.scheme}://{authority}")
    except (UsageError, ValueError):
        return None
    query = f"?{parts.query}" if parts.query else ""
    return Url(origin=upstream.origin, userinfo=userinfo + at, path=parts.path + query)


def _ollama(value: str) -> str:
    """Its own short forms: `HOST`, `HOST:PORT`, `:PORT`, and addresses to listen at."""
    if not _ABSOLUTE.match(value):
        authority, slash, path = value.strip().partition("/")
        host, colon, port = authority.rpartition(":")
        if not colon or "]" in port:
            host, port = authority, "11434"
        value = f"http://{host or '127.0.0.1'}:{port}{slash}{path}"
    return re.sub(r"//(?:0\.0\.0\.0|\[::\])(?=[:/]|$)", "//127.0.0.1", value)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, going by its name."""
    return host in {"localhost", "::1"} or host.startswith("127.")


def is_deltatape(url: Url, gateways: Iterable[str]) -> bool:
    """Whether a URL points at one of `gateways` (base URLs) or where one listens by default."""
    host, port = url.origin.host, url.origin.port
    own = {port_of(each) for each in gateways}
    return is_loopback(host) and (port in own or port == DEFAULT_PORT)


def port_of(url: str) -> int | None:
    """The port of a gateway's base URL on loopback; None elsewhere."""
    parsed = parse_url("", url)
    return parsed.origin.port if parsed and is_loopback(parsed.origin.host) else None


class Prefixes:
    """Finds the prefix for an origin, and collects the upstreams that are needed for it."""

    def __init__(self, configured: Iterable[Upstream]) -> None:
        """Args: configured: those of the user, which come first and replace a provider's."""
        self._upstreams = {upstream.name: upstream for upstream in configured}
        for name, url in PROVIDERS.items():
            self._upstreams.setdefault(name, parse_upstream(f"{name}={url}"))
        self.added: list[str] = []
        """`NAME=URL` each."""

    def has(self, url: Url) -> bool:
        """Whether the gateway reaches `url` as it is configured."""
        return self._find(url) is not None

    def _find(self, url: Url) -> Upstream | None:
        for upstream in self._upstreams.values():
            if _same(upstream.origin, url.origin) and _is_below(upstream.path, url.path):
                return upstream
        return None

    def split(self, url: Url) -> tuple[str, str]:
        """Name and rest of path by which the gateway reaches `url`."""
        found = self._find(url)
        if found is not None:
            return found.name, url.path[len(found.path) :]
        upstream = parse_upstream(f"{self._name(url.origin)}={url.origin.url}")
        self._upstreams[upstream.name] = upstream
        self.added.append(f"{upstream.name}={url.origin.url}")
        return upstream.name, url.path

    def _name(self, origin: Origin) -> str:
        host = f"ipv6-{origin.host}" if ":" in origin.host else origin.host
        host = re.sub(r"[^A-Za-z0-9._-]", "-", host).lstrip("._-")[: _MAX_NAME - 10] or "host"
        name = host if (origin.scheme, origin.port) == ("https", 443) else f"{host}-{origin.port}"
        taken = _RESERVED | self._upstreams.keys()
        if name in taken:
            name = f"{host}-{origin.port}"
        number = 2
        while name in taken:
            name = f"{host}-{origin.port}-{number}"
            number += 1
        return name


def _same(one: Origin, other: Origin) -> bool:
    if one == other:
        return True
    # What listens on this machine is commonly reached by either name.
    local = is_loopback(one.host) and is_loopback(other.host)
    names = {one.host, other.host} <= {"127.0.0.1", "localhost"}
    return local and names and (one.scheme, one.port) == (other.scheme, other.port)


def _is_below(base: str, path: str) -> bool:
    return not base or path == base or path.startswith((f"{base}/", f"{base}?"))


def without_overlap(upstream_path: str, path: str) -> str:
    """`path` without what `upstream_path` already ends with: `/api/v1` and `/v1` leave "".

    People give an upstream with the `/v1` of its documentation, and variables carry it too.
    """
    steps = path.split("/")
    for length in range(len(steps), 1, -1):
        head = "/".join(steps[:length])
        if upstream_path.endswith(head):
            return path[len(head) :]
    return path
