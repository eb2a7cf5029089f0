"""What a recorder says when it starts: where it tapes, where it forwards, what to set."""

from collections.abc import Iterator

from deltatape import __version__
from deltatape.gateway.routes import PROVIDERS, Routes

NO_TRAFFIC_S = 20.0


def introduce(
    base: str, tape: str, routes: Routes, *, alone: bool, guarded: bool = False
) -> Iterator[str]:
    """The first lines.

    Args:
        base: the gateway's URL, with the token where one is needed.
        tape: the tape's path; "" when there is none.
        routes: where it forwards.
        alone: whether the user has to point an app here: no command is run.
        guarded: whether other machines can reach the gateway.
    """
    yield f"deltatape {__version__} is recording" + ("; Ctrl-C ends the tape" if alone else "")
    yield f"  tape     {tape or 'none: see above'}"
    if routes.single is not None:
        upstream = routes.single
        yield f"  forward  {base} -> {upstream.origin.url}{upstream.path}"
    else:
        yield f"  forward  {base}/NAME -> the provider; NAME: {' '.join(routes.named)}"
        for name, upstream in routes.named.items():
            if PROVIDERS.get(name) != upstream.origin.url + upstream.path:
                yield f"           {base}/{name} -> {upstream.origin.url}{upstream.path}"
    if alone:
        yield from _what_to_set(base, routes)
    if guarded:
        yield "  reach    from other machines by the name of this one, with the same token"


def _what_to_set(base: str, routes: Routes) -> Iterator[str]:
    if base.startswith("http+unix:"):
        yield "  set      your HTTP client's Unix socket, and a base URL of http://localhost"
    elif routes.single is not None:
        path = "" if routes.single.path.endswith("/v1") else "/v1"
        yield f"  set      OPENAI_BASE_URL={base}{path}  (or your SDK's base URL, with its path)"
    else:
        yield f"  set      OPENAI_BASE_URL={base}/openai/v1"
        yield f"           ANTHROPIC_BASE_URL={base}/anthropic"


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
