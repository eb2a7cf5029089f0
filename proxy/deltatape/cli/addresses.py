"""Addresses: where a server listens, and upstreams, also those of deltatape.yaml."""

from collections.abc import Sequence

from deltatape.errors import UsageError
from deltatape.gateway.routes import Upstream, parse_upstream
from deltatape.http1.listener import Address, parse_address
from deltatape.settings.defaults import current_settings


def listen_address(text: str | None, port: int, command: Sequence[str]) -> Address:
    """Parse `--listen`; default: `port` on loopback, or any free port if a command is run.

    Raises:
        UsageError: it is no address, or a command would have to find a Unix socket.
    """
    address = parse_address(text or f"127.0.0.1:{0 if command else port}")
    if command and address.path:
        raise UsageError(
            f"--listen {address}: no base URL can name a Unix socket, so the command would not"
            " find it; omit --listen, or start the app yourself"
        )
    return address


def player_address(text: str | None, port: int, command: Sequence[str]) -> Address:
    """Parse `--listen` of a player, which only this machine may reach; see `listen_address`.

    Raises:
        UsageError: others could reach it, too.
    """
    listen = listen_address(text, port, command)
    if not listen.loopback:
        raise UsageError(
            f"--listen {text!r}: use a loopback address (127.0.0.1, [::1], localhost) or"
            " unix:PATH, since anyone who can reach the player can read the tape"
        )
    return listen


def upstreams_of(texts: Sequence[str]) -> tuple[Upstream, ...]:
    """Return the upstreams of the options, then those of deltatape.yaml with other names.

    Raises:
        UsageError: one is invalid.
    """
    options = tuple(parse_upstream(text) for text in texts)
    settings = current_settings()
    if settings is None or any(not upstream.name for upstream in options):
        return options
    more = []
    for name, url in settings.upstreams.items():
        if name not in {upstream.name for upstream in options}:
            with settings.at_upstream(name):
                more.append(parse_upstream(f"{name}={url}"))
    return (*options, *more)


def upstream_without_name(url: str, option: str) -> Upstream:
    """Parse the value of an option that takes one URL.

    Raises:
        UsageError: it is invalid, or has a name; the message names `option`.
    """
    try:
        upstream = parse_upstream(url)
    except UsageError as error:
        problem = str(error).replace("--upstream", option).replace("[NAME=]", "")
        raise UsageError(problem) from None
    if upstream.name:
        raise UsageError(f"{option} {url!r}: one URL is accepted, without a name")
    return upstream
