"""The environment of a command that may reach only the player.

Every base-URL variable names the player, also those that the user points elsewhere. SDKs refuse to
start without a key, and a CI job has none: the providers of the tapes get a placeholder where the
user has set no key. Other providers get none, since programs choose their provider by the keys that
are set. Proxy variables are removed: the player is on this machine.

Pure except that it reads `.env` files, which applications load by themselves.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from deltatape.environment.application import EnvironmentPurpose, plan
from deltatape.environment.clients import recognised, started_clients, telemetry_hosts
from deltatape.environment.dotenv import DotenvFile, read_dotenv, settings
from deltatape.environment.variables import KEY_VARIABLES, ON_DEMAND, SERVED
from deltatape.gateway.routes import Upstream, parse_upstream
from deltatape.model.exchange import Exchange, header
from deltatape.providers import COMMON, COMPATIBLE, PROVIDERS, provider_of_host
from deltatape.urls import split_url

PLACEHOLDER = "sk-replay-000000"
"""A key that no provider takes."""

_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NODE_USE_ENV_PROXY"})

_REGION = "us-east-1"


def replay_environment(
    url: str,
    environ: Mapping[str, str],
    folder: Path,
    exchanges: Iterable[Exchange] = (),
    command: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return the complete environment of a command in `folder` that uses the player at `url`.

    Args:
        url: `http://127.0.0.1:8378`.
        environ: the environment as the user has it.
        folder: where the command is started: `.env` files count.
        exchanges: what is played. Without any, every provider gets a placeholder key.
        command: the command, if it is known.
    """
    dotenv = read_dotenv(folder, environ)
    providers = _providers_of(exchanges)
    upstreams = tuple(_needed(providers))
    started = started_clients(command, folder, environ)
    planned = plan(url, environ, dotenv, upstreams, EnvironmentPurpose.REPLAY, started)
    kept = {name: value for name, value in environ.items() if name.upper() not in _PROXIES}
    for each in (PROVIDERS[name] for name in providers if PROVIDERS[name].is_signed):
        # Its SDKs send a token over https alone, which a player does not speak: let them sign.
        for name in each.tokens:
            kept.pop(name, None)
    found = _set(environ, dotenv)
    # An app that talks to Azure as well: a recording leaves OpenAI's own alone then.
    names = SERVED[COMPATIBLE] if COMPATIBLE in providers else {}
    own = {name: url + path for name, path in names.items()}
    own = own if found.isdisjoint(own) else {}
    return {**own, **kept, **planned.variables, **dict(_placeholders(providers, found))}


def client_notes(
    url: str, environ: Mapping[str, str], folder: Path, command: Sequence[str]
) -> tuple[str, ...]:
    """Return what keeps a known program in `command` from the player at `url`, a line each."""
    started = started_clients(command, folder, environ)
    planned = plan(url, environ, (), (), EnvironmentPurpose.REPLAY, started)
    return planned.client_notes


def known_telemetry(command: Sequence[str], exchanges: Iterable[Exchange]) -> Mapping[str, str]:
    """Return the LLM hosts that get telemetry from a command, or from the recorded client."""
    found = {header(each.request.headers, "user-agent") or b"" for each in exchanges}
    user_agents = (each.decode("latin-1") for each in found)
    return telemetry_hosts((each.client for each in recognised(command)), user_agents)


def keyed_environment(
    url: str,
    environ: Mapping[str, str],
    folder: Path,
    exchanges: Iterable[Exchange] = (),
    command: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return the environment of a command whose requests a proxy leads to the player.

    Only placeholders for keys are added. Args: see `replay_environment`.
    """
    del url, command
    return {**environ, **placeholders(exchanges, environ, read_dotenv(folder, environ))}


def placeholders(
    exchanges: Iterable[Exchange], environ: Mapping[str, str], dotenv: Sequence[DotenvFile]
) -> Mapping[str, str]:
    """Return placeholders for keys that are not set."""
    return dict(_placeholders(_providers_of(exchanges), _set(environ, dotenv)))


def _set(environ: Mapping[str, str], dotenv: Sequence[DotenvFile]) -> frozenset[str]:
    """Return the variables that have a value."""
    known, _ = settings(dotenv, environ)
    return frozenset(name for name, setting in known.items() if setting.value.strip())


def _providers_of(exchanges: Iterable[Exchange]) -> frozenset[str]:
    """Return the providers of the tapes; all known ones if there are none."""
    return frozenset(_providers(exchanges)) or frozenset(KEY_VARIABLES) - ON_DEMAND.keys()


def _providers(exchanges: Iterable[Exchange]) -> Iterator[str]:
    """Yield the providers whose keys the client of these exchanges had."""
    for host, path in {(_host(one), one.request.path) for one in exchanges}:
        provider = provider_of_host(host)
        if provider is not None and provider in KEY_VARIABLES:
            yield provider
        else:
            named = (each.name for each in PROVIDERS.values() if path.endswith(each.request_ends))
            found = next(named, None)
            yield from COMMON if found is None else (found,)


def _host(exchange: Exchange) -> str:
    return split_url(exchange.request.upstream).hostname or ""


def _needed(providers: Iterable[str]) -> Iterator[Upstream]:
    """Yield the upstreams whose variables are set only if they are used."""
    for name in sorted(providers):
        if name in ON_DEMAND:
            yield parse_upstream(f"{name}=http://{name}.invalid")


def _placeholders(providers: Iterable[str], found: frozenset[str]) -> Iterator[tuple[str, str]]:
    for provider in sorted(providers):
        known = PROVIDERS[provider]
        if found.isdisjoint((*known.keys, *known.instead_of_keys)):
            yield from ((name, PLACEHOLDER) for name in known.keys)
        if found.isdisjoint(known.regions):
            yield from ((name, _REGION) for name in known.regions)
