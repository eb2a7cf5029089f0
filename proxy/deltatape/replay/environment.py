"""The environment of a command that is to talk to a player and to nobody else.

Every base-URL variable names the player, also those that the user points elsewhere. SDKs refuse to
start without a key, and a CI job has none: the providers of the tapes get a placeholder where the
user has set no key. Other providers get none, since programs choose their provider by which key
they find. What names a proxy is left out: a player is on this machine.

Pure but for `.env` files, which applications load by themselves and which are read to know what
they say.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from deltatape.environment.application import Purpose, plan
from deltatape.environment.dotenv import DotenvFile, read_dotenv, settings
from deltatape.environment.variables import KEY_VARIABLES, ON_DEMAND, SERVED
from deltatape.gateway.llm_hosts import provider_of_host
from deltatape.gateway.routes import Upstream, parse_upstream
from deltatape.model.exchange import Exchange

PLACEHOLDER = "sk-replay-000000"
"""A key that no provider takes."""

_BEARER = "AWS_BEARER_TOKEN_BEDROCK"
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NODE_USE_ENV_PROXY"})

_ALSO: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "azure": ("AZURE_OPENAI_AD_TOKEN",),
    "bedrock": ("AWS_PROFILE",),
}
"""Names beside which none of the provider's keys is needed."""

_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_REGION = "us-east-1"

_PATHS = (
    ("/messages", ("anthropic",)),
    (":generateContent", ("gemini",)),
    (":streamGenerateContent", ("gemini",)),
    ("/chat/completions", ("openai",)),
    ("/responses", ("openai",)),
)
"""Whose SDK asks so, where the host tells nothing: a server of the user's own, or a gateway."""


def replay_environment(
    url: str,
    environ: Mapping[str, str],
    folder: Path,
    exchanges: Iterable[Exchange] = (),
) -> Mapping[str, str]:
    """The complete environment of a command that runs in `folder` against the player at `url`.

    Args:
        url: `http://127.0.0.1:8378`.
        environ: the environment as the user has it.
        folder: where the command is started: `.env` files count.
        exchanges: what is played. Without any, every provider gets a placeholder key.
    """
    dotenv = read_dotenv(folder, environ)
    providers = _whose(exchanges)
    planned = plan(url, environ, dotenv, tuple(_needed(providers)), Purpose.REPLAY)
    kept = {name: value for name, value in environ.items() if name.upper() not in _PROXIES}
    if "bedrock" in providers:
        # AWS's SDKs send a token over https alone, which a player does not speak: let them sign.
        kept.pop(_BEARER, None)
    found = _set(environ, dotenv)
    # An app that talks to Azure as well: a recording leaves OpenAI's own alone then.
    own = {name: url + path for name, path in SERVED["openai"].items() if "openai" in providers}
    own = own if found.isdisjoint(own) else {}
    return {**own, **kept, **planned.variables, **dict(_placeholders(providers, found))}


def placeholders(
    exchanges: Iterable[Exchange], environ: Mapping[str, str], dotenv: Sequence[DotenvFile]
) -> Mapping[str, str]:
    """What `replay_environment` sets in place of keys that are not there."""
    return dict(_placeholders(_whose(exchanges), _set(environ, dotenv)))


def _set(environ: Mapping[str, str], dotenv: Sequence[DotenvFile]) -> frozenset[str]:
    """The variables that have a value."""
    known, _ = settings(dotenv, environ)
    return frozenset(name for name, setting in known.items() if setting.value.strip())


def _whose(exchanges: Iterable[Exchange]) -> frozenset[str]:
    """The providers of the tapes; without any all that there are."""
    return frozenset(_providers(exchanges)) or frozenset(KEY_VARIABLES) - ON_DEMAND.keys()


def _providers(exchanges: Iterable[Exchange]) -> Iterator[str]:
    """Whose keys the client of these exchanges had."""
    for host, path in {(_host(one), one.request.path) for one in exchanges}:
        provider = provider_of_host(host)
        if provider is not None and provider in KEY_VARIABLES:
            yield provider
        else:
            named = (names for end, names in _PATHS if path.endswith(end))
            yield from next(named, ("openai", "anthropic"))


def _host(exchange: Exchange) -> str:
    return urlsplit(exchange.request.upstream).hostname or ""


def _needed(providers: Iterable[str]) -> Iterator[Upstream]:
    """The upstreams whose variables are set only where somebody uses them."""
    for name in sorted(providers):
        if name in ON_DEMAND:
            yield parse_upstream(f"{name}=http://{name}.invalid")


def _placeholders(providers: Iterable[str], found: frozenset[str]) -> Iterator[tuple[str, str]]:
    for provider in sorted(providers):
        names = KEY_VARIABLES[provider]
        if found.isdisjoint((*names, *_ALSO.get(provider, ()))):
            yield from ((name, PLACEHOLDER) for name in names)
        if provider == "bedrock" and found.isdisjoint(_REGIONS):
            yield from ((name, _REGION) for name in _REGIONS)
