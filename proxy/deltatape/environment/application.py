"""The environment that leads an application's traffic through the gateway.

A value that the user already has decides where the traffic goes, whether from the environment or
from a `.env` file; it becomes an upstream of the gateway, and the application gets the gateway's
prefix for it with the same path. Otherwise the variable points at its provider's own prefix. The
environment wins over `.env` files in every common loader (a loader with `override` set bypasses the
gateway).

Known programs (`clients`) get what they need besides, or a note with the line that is missing.

Pure: mappings in, values out. Invariant: which provider answers never changes by being recorded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import urlsplit

from deltatape.environment.clients import Client, ConfiguredUrl, Invocation, StartedClients
from deltatape.environment.dotenv import DotenvFile, ResolvedValue, settings
from deltatape.environment.known_secrets import known_secrets
from deltatape.environment.variables import (
    ON_DEMAND,
    SERVED,
    SIGNED,
    TLS_ONLY,
    UNSIGNED_BY,
    is_listed,
    may_be_redirected,
    sounds_like_base_url,
)
from deltatape.errors import UsageError
from deltatape.gateway.routes import Origin, Upstream, parse_upstream
from deltatape.providers import PROVIDERS, UPSTREAMS, provider_of_host
from deltatape.urls import split_url

GATEWAY = "DELTATAPE_URL"
"""The gateway's base URL, for applications, and for a deltatape started inside of another."""
_NO_PROXY = ("127.0.0.1", "localhost", "::1")


# Map the URL that a user has set to a prefix of the gateway.
#
# An origin of a known provider keeps the provider's prefix; another one gets an upstream named
# after its host, such as `llm.corp.example` or `127.0.0.1-8000`.

DEFAULT_PORT = 8377
"""Where `deltatape record` listens by default."""
_RESERVED = frozenset({"s", "t"})
"""First path segments that the gateway reads itself."""
_MAX_NAME = 64
_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseUrl:
    """A base URL: its host, and the rest after the authority."""

    origin: Origin
    userinfo: str
    """`user:password@` as written, or ""."""
    path: str
    """The path with its query, as written: `/api/v1`, or ""."""

    @property
    def shown(self) -> str:
        """Return it without secrets, for people."""
        return f"{self.origin.url}{self.path.partition('?')[0]}"


def parse_url(name: str, value: str) -> BaseUrl | None:
    """Parse the URL in the variable `name`; None if requests cannot go there."""
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
    return BaseUrl(origin=upstream.origin, userinfo=userinfo + at, path=parts.path + query)


def problem_of(name: str, value: str) -> str:
    """Say what is wrong with a value that `parse_url` does not accept."""
    url = _ollama(value) if name == "OLLAMA_HOST" else value
    if _ABSOLUTE.match(url):
        try:
            _ = split_url(url).port
        except ValueError:
            return "has an invalid port"
    return "is not an http or https URL"


def _ollama(value: str) -> str:
    """Return Ollama's short forms (`HOST`, `HOST:PORT`, `:PORT`, listening addresses) as a URL."""
    if not _ABSOLUTE.match(value):
        authority, slash, path = value.strip().partition("/")
        host, colon, port = authority.rpartition(":")
        if not colon or "]" in port:
            host, port = authority, PROVIDERS["ollama"].local_port
        value = f"http://{host or '127.0.0.1'}:{port}{slash}{path}"
    return re.sub(r"//(?:0\.0\.0\.0|\[::\])(?=[:/]|$)", "//127.0.0.1", value)


def is_loopback(host: str) -> bool:
    """Check whether a host name means this machine."""
    return host in {"localhost", "::1"} or host.startswith("127.")


def is_deltatape(url: BaseUrl, gateways: Iterable[str]) -> bool:
    """Check whether a URL points at one of `gateways`, or at the default port."""
    host, port = url.origin.host, url.origin.port
    own = {port_of(each) for each in gateways}
    return is_loopback(host) and (port in own or port == DEFAULT_PORT)


def port_of(url: str) -> int | None:
    """Return the port of a gateway's base URL on loopback; None elsewhere."""
    parsed = parse_url("", url)
    return parsed.origin.port if parsed and is_loopback(parsed.origin.host) else None


class ProxyPrefixes:
    """Finds the prefix for an origin, and collects the upstreams needed for it."""

    def __init__(self, configured: Iterable[Upstream]) -> None:
        """Args: configured: those of the user, which come first and replace a provider's."""
        self._upstreams = {upstream.name: upstream for upstream in configured}
        for name, url in UPSTREAMS.items():
            self._upstreams.setdefault(name, parse_upstream(f"{name}={url}"))
        self.added: list[str] = []
        """`NAME=URL` each."""

    def has(self, url: BaseUrl) -> bool:
        """Check whether the gateway already reaches `url`."""
        return self._find(url) is not None

    def _find(self, url: BaseUrl) -> Upstream | None:
        for upstream in self._upstreams.values():
            if _is_same_origin(upstream.origin, url.origin) and _is_below(upstream.path, url.path):
                return upstream
        return None

    def split(self, url: BaseUrl) -> tuple[str, str]:
        """Return name and rest of the path by which the gateway reaches `url`."""
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


def _is_same_origin(one: Origin, other: Origin) -> bool:
    if one == other:
        return True
    # What listens on this machine is commonly reached by either name.
    local = is_loopback(one.host) and is_loopback(other.host)
    names = {one.host, other.host} <= {"127.0.0.1", "localhost"}
    return local and names and (one.scheme, one.port) == (other.scheme, other.port)


def _is_below(base: str, path: str) -> bool:
    return not base or path == base or path.startswith((f"{base}/", f"{base}?"))


def without_overlap(upstream_path: str, path: str) -> str:
    """Remove the end of `upstream_path` from the start of `path`: `/api/v1`, `/v1` give "".

    People give an upstream with the `/v1` of its documentation, and variables carry it too.
    """
    steps = path.split("/")
    for length in range(len(steps), 1, -1):
        head = "/".join(steps[:length])
        if upstream_path.endswith(head):
            return path[len(head) :]
    return path


NO_CLIENTS = StartedClients()


class EnvironmentPurpose(Enum):
    """The receiver of the child's requests."""

    RECORD = auto()
    """A gateway, which forwards them."""
    REPLAY = auto()
    """A player, which does not: no variable may point elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPlan:
    """The variables to set, and notes."""

    variables: Mapping[str, str]
    """Variables to add to the child's environment."""
    upstreams: tuple[str, ...]
    """Further routes, as `gateway.routes.parse_upstream` takes them."""
    notes: tuple[str, ...]
    """Lines for the user."""
    client_notes: tuple[str, ...]
    """More of them: what keeps known programs from what listens there."""
    secrets: tuple[bytes, ...]
    """Credentials found on the way, for masking."""


def plan(
    base: str,
    environment: Mapping[str, str],
    dotenv: Sequence[DotenvFile],
    upstreams: Sequence[Upstream] = (),
    purpose: EnvironmentPurpose = EnvironmentPurpose.RECORD,
    started: StartedClients = NO_CLIENTS,
) -> EnvironmentPlan:
    """Decide what to set for a child that talks to the gateway or player at `base`.

    Args:
        base: `http://127.0.0.1:8377`, also with a path such as `/t/TOKEN`.
        environment: the child's, before anything is set.
        dotenv: the files that the child may load; see `dotenv.read_dotenv`.
        upstreams: the upstreams that the user configured. One without a name serves everything.
        purpose: what listens there.
        started: the known programs that the child is or starts; see `clients.started_clients`.
    """
    dotenv = (*started.files, *dotenv)
    known, problems = settings(dotenv, environment)
    planner = _Planner(base, known, upstreams, purpose)
    planner.run()
    planner.serve(started)
    variables = {**planner.variables, **_no_proxy(known), GATEWAY: planner.base}
    unread = [problem for file in dotenv for problem in file.problems]
    return EnvironmentPlan(
        variables=variables,
        upstreams=tuple(planner.prefixes.added),
        notes=(*unread, *problems, *planner.notes),
        client_notes=(*started.problems, *planner.client_notes),
        secrets=known_secrets(environment, dotenv),
    )


def _no_proxy(known: Mapping[str, ResolvedValue]) -> dict[str, str]:
    """Return both spellings, since some programs read only one."""
    values = {}
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        setting = known.get(name) or known.get(other)
        listed = [each.strip() for each in setting.value.split(",")] if setting else []
        hosts = [each for each in listed if each]
        if "*" not in hosts:
            hosts += [host for host in _NO_PROXY if host not in hosts]
        values[name] = ",".join(hosts)
    return values


class _Planner:
    """Processes the variables, family by family."""

    def __init__(
        self,
        base: str,
        known: Mapping[str, ResolvedValue],
        upstreams: Sequence[Upstream],
        purpose: EnvironmentPurpose,
    ) -> None:
        self.base = base.rstrip("/")
        self.variables: dict[str, str] = {}
        self.notes: list[str] = []
        self.client_notes: list[str] = []
        self.prefixes = ProxyPrefixes(each for each in upstreams if each.name)
        self._known = known
        self._named = {each.name: each for each in upstreams if each.name}
        self._single = next((each for each in upstreams if not each.name), None)
        self._purpose = purpose
        self._settled: set[str] = set()

    def run(self) -> None:
        """Decide about each variable once."""
        for provider, names in {**SERVED, **self._on_demand()}.items():
            self._settled.update(names)
            if self._single is not None or provider in self._named:
                self._point(provider, names)
            elif own := [name for name in names if self._has(name)]:
                for name in own:
                    self._redirect(name)
            elif provider == "openai" and (
                "azure" in self._named or self._has("AZURE_OPENAI_ENDPOINT")
            ):
                # Clients for Azure take OPENAI_BASE_URL for their own, or refuse both.
                self.notes.append(_AZURE)
            else:
                self.variables |= {n: f"{self.base}/{provider}{p}" for n, p in names.items()}
        for name in self._own_names():
            self._redirect(name)
        is_signed = any(PROVIDERS[name].is_signed for name in self._named if name in PROVIDERS)
        if is_signed and self._purpose is EnvironmentPurpose.RECORD:
            self.notes.append(_CONFIGURED_UNSIGNED if self._is_unsigned() else _CONFIGURED_SIGNED)

    def serve(self, started: StartedClients) -> None:
        """Decide what known programs need besides base URLs; after `run`."""
        for each in started.invocations:
            client = each.client
            configured = [url for url in started.urls if url.client is client]
            elsewhere = [url for url in configured if not self._leads_here(url)]
            for url in elsewhere:
                self.client_notes.append(self._wins(url))
            if not configured:
                self._complete(each)
            if not configured and self._has_own_host(client):
                self.variables |= {
                    name: value
                    for name, value in client.set_with_own_host.items()
                    if name not in self._known
                }

    def _complete(self, invocation: Invocation) -> None:
        """Tell what is missing where a program reads no base URL from the environment."""
        client = invocation.client
        verb = "replay" if self._purpose is EnvironmentPurpose.REPLAY else "record"
        if missing := invocation.missing():
            self.client_notes.append(
                f"{client.title} reads no base URL from its environment; start it with:"
                f" deltatape {verb} -- {missing}"
            )
        elif client.listen and not invocation.is_pointed:
            self.client_notes.append(
                f"{client.title} reads its base URL from its configuration alone. Once:"
                f" {client.configure}; then {verb} with --listen {client.listen}"
            )

    def _leads_here(self, configured: ConfiguredUrl) -> bool:
        url = parse_url(configured.key, configured.url.strip())
        return (
            url is not None
            and is_loopback(url.origin.host)
            and (url.origin.port == port_of(self.base))
        )

    def _wins(self, configured: ConfiguredUrl) -> str:
        """Say that a file leads a program elsewhere, and what to do."""
        client, key = configured.client, configured.key
        verb = "replay" if self._purpose is EnvironmentPurpose.REPLAY else "record"
        url = parse_url(key, configured.url.strip())
        if url is None:
            return f"{key} in {configured.file} {problem_of(key, configured.url.strip())}"
        place = f"{key} in {configured.file} points at {url.shown}"
        if is_deltatape(url, ()):
            return f"{place}: {verb} with --listen {url.origin.host}:{url.origin.port}"
        past = f"{place}, and wins over the environment: {client.title} goes there past deltatape"
        if client.base_urls:
            return f"{past}. Set {client.base_urls[0]} in the environment instead: it is kept"
        prefix, rest = self.prefixes.split(url)
        own = "" if prefix in UPSTREAMS else f" --upstream {prefix}={url.origin.url}"
        there = f"http://127.0.0.1:{DEFAULT_PORT}"
        return (
            f"{past}. Write {there}/{prefix}{rest} there, and {verb} with"
            f" --listen 127.0.0.1:{DEFAULT_PORT}{own}"
        )

    def _has_own_host(self, client: Client) -> bool:
        """Check whether the user lets a program talk to its provider's own host."""
        for name in client.base_urls:
            if self._has(name):
                url = parse_url(name, self._known[name].value.strip())
                owner = None if url is None else provider_of_host(url.origin.host)
                if owner is None or name not in PROVIDERS[owner].base_urls:
                    return False
        return True

    def _on_demand(self) -> dict[str, dict[str, str]]:
        """Return the variables of configured upstreams, without those that break apps."""
        return {
            provider: {name: path for name, path in names.items() if not self._reason_to_stay(name)}
            for provider, names in ON_DEMAND.items()
            if provider in self._named
        }

    def _has(self, name: str) -> bool:
        return name in self._known and bool(self._known[name].value.strip())

    def _own_names(self) -> Iterator[str]:
        """Yield the user's own variables with base URLs that are not settled yet, sorted."""
        for name in sorted(self._known):
            if name in self._settled or not self._has(name) or not may_be_redirected(name):
                continue
            if is_listed(name) or sounds_like_base_url(name):
                yield name
            else:
                url = parse_url(name, self._known[name].value.strip())
                if url is not None and self.prefixes.has(url):
                    yield name

    def _point(self, provider: str, names: Mapping[str, str]) -> None:
        """Point everything to the user's upstream, whatever the variables say."""
        upstream = self._single or self._named[provider]
        prefix = f"/{upstream.name}" if upstream.name else ""
        for name, path in names.items():
            if self._has(name):
                self._note_unused(name, upstream)
            self.variables[name] = self.base + prefix + without_overlap(upstream.path, path)

    def _note_unused(self, name: str, upstream: Upstream) -> None:
        url = parse_url(name, self._known[name].value.strip())
        if url is None or url.origin != upstream.origin:
            self.notes.append(
                f"{self._described(name, url)} is not used: --upstream sends everything there to"
                f" {upstream.origin.url}{upstream.path}"
            )

    def _redirect(self, name: str) -> None:
        """Lead the user's own URL through the gateway."""
        value = self._known[name].value.strip()
        url = parse_url(name, value)
        if url is None:
            if is_listed(name):
                problem = problem_of(name, value)
                self.notes.append(f"{self._described(name, url)} {problem} and stays as it is")
            return
        if self._must_stay(name, url):
            return
        if self._single is not None:
            self._note_unused(name, self._single)
            path = without_overlap(self._single.path, url.path)
            self.variables[name] = self._join(url, path)
            return
        prefix, rest = self.prefixes.split(url)
        self.variables[name] = self._join(url, f"/{prefix}{rest}")
        if not self._is_default(name, url):
            where = f"{self._described(name, url)}: taped as /{prefix}{rest.partition('?')[0]}"
            self.notes.append(where + self._hidden(name, url))

    def _must_stay(self, name: str, url: BaseUrl) -> bool:
        """Check whether the URL must stay."""
        if self._purpose is EnvironmentPurpose.REPLAY:
            return False
        gateways = [self.base, *(self._known[n].value for n in (GATEWAY,) if self._has(n))]
        if is_deltatape(url, gateways):
            self.notes.append(f"{self._described(name, url)}, a deltatape already: left as it is")
            return True
        if reason := self._reason_to_stay(name, url):
            self.notes.append(f"{self._described(name, url)}: not taped. {reason}")
            return True
        return False

    def _reason_to_stay(self, name: str, url: BaseUrl | None = None) -> str:
        """Return why an app fails if this variable names a gateway; "" if it works."""
        if self._purpose is EnvironmentPurpose.REPLAY:
            return ""
        if name in TLS_ONLY or (url is not None and not is_listed(name) and _is_for_boto3(url)):
            return _OVER_TLS
        return _SIGNED if name in SIGNED and not self._is_unsigned() else ""

    def _is_unsigned(self) -> bool:
        return any(self._has(name) for name in UNSIGNED_BY)

    def _join(self, url: BaseUrl, path: str) -> str:
        """Join path and URL; clients turn text before `@` into a header, which is kept."""
        scheme, separator, rest = self.base.partition("://")
        return f"{scheme}{separator}{url.userinfo}{rest}{path}"

    def _is_default(self, name: str, url: BaseUrl) -> bool:
        """Check whether the URL equals the variable's default."""
        named = ((provider, names.get(name)) for provider, names in SERVED.items())
        return any(
            path is not None and self.prefixes.split(url) == (provider, path)
            for provider, path in named
        )

    def _described(self, name: str, url: BaseUrl | None) -> str:
        place = f"{name} in {self._known[name].where}"
        return f"{place} points at {url.shown}" if url is not None else place

    def _hidden(self, name: str, url: BaseUrl) -> str:
        """Say that a loader which reads fewer files gets another URL."""
        others: Iterable[tuple[str, BaseUrl | None]] = (
            (where, parse_url(name, value.strip())) for where, value in self._known[name].hidden
        )
        shown = [f"{other.shown} in {where}" for where, other in others if other and other != url]
        return f" (not {', '.join(shown)})" if shown else ""


def _is_for_boto3(url: BaseUrl) -> bool:
    """Check whether AWS SDKs read it; Bedrock URLs for other SDKs have a path."""
    owner = provider_of_host(url.origin.host)
    return owner is not None and PROVIDERS[owner].is_signed and not url.path.strip("/")


_AZURE = (
    "AZURE_OPENAI_ENDPOINT is set, and some of its clients refuse OPENAI_BASE_URL beside it: what"
    " this app sends to OpenAI itself is not taped unless you set"
    " OPENAI_BASE_URL=https://api.openai.com/v1"
)
_VIA_MITM = "`deltatape record --via mitm -- CMD` tapes them"
_SIGNED = (
    "Requests to it are signed for its host, which a gateway cannot keep, unless"
    f" AWS_BEARER_TOKEN_BEDROCK is set: {_VIA_MITM}"
)
_OVER_TLS = (
    "AWS's SDKs sign for its host or send a token over https alone, and a gateway cannot have"
    f" either: {_VIA_MITM}"
)
_CONFIGURED_SIGNED = (
    "no variable points at /bedrock: without AWS_BEARER_TOKEN_BEDROCK requests are signed, and"
    f" would be refused for naming another host: {_VIA_MITM}"
)
_CONFIGURED_UNSIGNED = (
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME does not point at /bedrock: AWS's SDKs, such as boto3, send"
    f" tokens over https alone: {_VIA_MITM}"
)
