"""What a recorder says when it starts: where it tapes, where it forwards, what to set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deltatape import __version__
from deltatape.gateway.routes import PROVIDERS, Routes

NO_TRAFFIC_S = 20.0
_SHOWN = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What there is to say.

    Attributes:
        base: the gateway's URL, with the token where one is needed.
        tape: the tape's path; "" when there is none.
        routes: where it forwards.
        variables: what an app has to have set; see `environment.plan`.
        alone: whether the user has to point an app here: no command is run.
        guarded: whether other machines can reach the gateway.
    """

    base: str
    tape: str
    routes: Routes
    variables: Mapping[str, str]
    alone: bool
    guarded: bool = False


def introduce(beginning: Beginning) -> Iterator[str]:
    """The first lines."""
    alone, base = beginning.alone, beginning.base
    yield f"deltatape {__version__} is recording" + ("; Ctrl-C ends the tape" if alone else "")
    yield f"  tape     {beginning.tape or 'none: see above'}"
    yield from _where_to(beginning)
    if alone and base.startswith("http+unix:"):
        yield "  set      your HTTP client's Unix socket, and a base URL of http://localhost"
    elif alone:
        named = [name for name in _SHOWN if name in beginning.variables]
        for at, name in enumerate(named):
            yield f"  {'' if at else 'set':<8} {name}={beginning.variables[name]}"
    if beginning.guarded:
        yield "  reach    from other machines by the name of this one, with the same token"


def _where_to(beginning: Beginning) -> Iterator[str]:
    base, routes = beginning.base, beginning.routes
    if routes.single is not None:
        upstream = routes.single
        yield f"  forward  {base} -> {upstream.origin.url}{upstream.path}"
        return
    names = f"; NAME: {' '.join(routes.named)}" if beginning.alone else ""
    yield f"  forward  {base}/NAME -> the provider{names}"
    for name, upstream in routes.named.items():
        if PROVIDERS.get(name) != upstream.origin.url + upstream.path:
            yield f"           {base}/{name} -> {upstream.origin.url}{upstream.path}"


def no_traffic(base: str, *, clients: int, child: str | None) -> str:
    """What to look at when nothing has come for a while.

    Args:
        base: the gateway's URL.
        clients: how many connections there were, none with a request.
        child: the command that runs, if any.
    """
    if clients:
        return "a client connected but sent no request: is it speaking HTTPS to this HTTP port?"
    waited = f"no traffic for {NO_TRAFFIC_S:.0f} s"
    if child is not None:
        return (
            f"{waited}: {child} has not called a provider through {base}; it may not have come to"
            " it yet, or it does not read the base URL from its environment: deltatape doctor looks"
            " for that"
        )
    return (
        f"{waited}: does the app read the base URL that you set, in the process that calls the"
        f" provider? A container reaches {base} only on the host's network; deltatape doctor looks"
        f" for more; try: curl {base}"
    )
