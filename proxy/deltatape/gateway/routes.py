"""Routing, fixed by configuration and never by the client (no open proxy, no SSRF).

With prefixes (`/openai/v1/...`), since every SDK keeps a path prefix; or one upstream at `/`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from deltatape.errors import UsageError
from deltatape.match.endpoint import shown
from deltatape.providers import PROVIDERS, UPSTREAMS
from deltatape.urls import split_url

TAPE_FIELD = b"x-deltatape-tape"
"""The field of a request that names its tape."""
UPSTREAM_FIELD = b"x-deltatape-upstream"
"""The field that names the upstream of a request that our proxy has redirected here."""
OWN_FIELD_PREFIX = b"x-deltatape-"
"""Fields with this prefix are never forwarded."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CREDENTIALS = re.compile(r"([?#]).*|[^/@=]*@", re.DOTALL)
"""The parts of a mistyped URL that may hold credentials."""
_VISIBLE = re.compile(r"[!-~]*")
"""Visible ASCII: with other characters, the request would be no HTTP."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """An upstream server."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The value of `Host`: the port only if it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """`https://api.openai.com`."""
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Route:
    """The route of one request: origin, target to send, and the configured URL."""

    origin: Origin
    target: bytes
    base: str
    tape: str | None = None
    """The name of the requested tape."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A configured upstream: its origin, and the path before every target."""

    name: str
    origin: Origin
    path: str

    def route(self, target: bytes) -> Route:
        """Return the route of `target` below this upstream."""
        return Route(self.origin, self.path.encode() + target, self.origin.url + self.path)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request has no route."""

    status: int
    code: str
    message: str


def parse_upstream(text: str) -> Upstream:
    """Parse `URL` or `NAME=URL`; the name is "" for the first form.

    Raises:
        UsageError: `text` is neither.
    """
    name, url = "", text
    # For messages; that there is a query remains visible.
    text = _CREDENTIALS.sub(lambda found: f"{found[1]}..." if found[1] else "", text)
    head, equals, tail = url.partition("=")
    if equals and "/" not in head:
        name, url = head, tail
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--upstream {text!r}: invalid name before `=`; use letters, digits, . _ -"
            )
    if not _VISIBLE.fullmatch(url):
        raise UsageError(
            f"--upstream {text!r}: blanks and letters beyond ASCII cannot be part of an upstream;"
            " write %20 for a blank in a path, xn--... for a letter in a host name"
        )
    parts = split_url(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise UsageError(
            f"--upstream {text!r}: invalid upstream; use [NAME=]http://HOST or [NAME=]https://HOST,"
            " such as https://api.openai.com"
        )
    if "@" in parts.netloc:
        raise UsageError(
            "--upstream: credentials in the URL are not accepted; send them as a header"
        )
    if parts.query or parts.fragment:
        raise UsageError(f"--upstream {text!r}: a query or fragment cannot be part of an upstream")
    try:
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except ValueError:
        raise UsageError(f"--upstream {text!r}: invalid port; use a number up to 65535") from None
    origin = Origin(parts.scheme, parts.hostname, port)
    return Upstream(name, origin, parts.path.rstrip("/"))


class Routes:
    """The routing table: either one upstream at `/`, or names as prefixes."""

    def __init__(self, upstreams: Iterable[Upstream]) -> None:
        """Args: upstreams: the user's; each replaces the provider of the same name.

        Raises:
            UsageError: an upstream without a name is not the only one.
        """
        given = tuple(upstreams)
        unnamed = [upstream for upstream in given if not upstream.name]
        if unnamed and len(given) > 1:
            raise UsageError(
                "--upstream: a URL without a name serves every path, so it must be the only one;"
                " with several, write NAME=URL for each"
            )
        self.single = unnamed[0] if unnamed else None
        builtin = (parse_upstream(f"{name}={url}") for name, url in UPSTREAMS.items())
        self.named = {u.name: u for u in (*builtin, *given) if u.name}

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All upstreams."""
        return (self.single,) if self.single else tuple(self.named.values())

    def resolve(self, target: bytes) -> Route | Refusal:
        """Return the route of a request."""
        if not target.startswith(b"/"):
            return Refusal(
                400,
                "not_a_proxy",
                f"the request target {shown(target, 80)!r} is not a path:"
                " this is a gateway for base URLs, not a forward proxy",
            )
        if self.single is not None:
            return self.single.route(target)
        name, rest = _split_prefix(target)
        upstream = self.named.get(name)
        if upstream is None:
            return self._unknown(name)
        return upstream.route(_repair_path(name, rest))

    def _unknown(self, name: str) -> Refusal:
        known = " ".join(f"/{each}" for each in self.named)
        if name in PROVIDERS and PROVIDERS[name].own_url:
            message = (
                f"/{name} has no upstream yet, since each account has its own: start deltatape with"
                f" --upstream {name}=https://YOUR-ENDPOINT"
            )
        else:
            message = (
                f"no upstream for /{name[:64]}; the base URL needs one of {known}, such as"
                " http://127.0.0.1:8377/openai/v1, or start deltatape with --upstream URL"
            )
        return Refusal(404, "unknown_upstream", message)


def _split_prefix(target: bytes) -> tuple[str, bytes]:
    """Split the first path segment from the target."""
    match = re.match(rb"/([^/?]*)(.*)", target, re.DOTALL)
    assert match is not None
    rest = match[2]
    return match[1].decode("ascii", "replace"), rest if rest.startswith(b"/") else b"/" + rest


def _repair_path(name: str, rest: bytes) -> bytes:
    """Add the API version that a client left out: `/messages` becomes `/v1/messages` for Anthropic.

    See `Provider.optional_path`.
    """
    missing = PROVIDERS[name].optional_path if name in PROVIDERS else None
    if missing is not None:
        beginning, path = map(str.encode, missing)
        if re.match(rb"%b(?:[/?]|$)" % re.escape(path), rest):
            return beginning + rest
    return rest
