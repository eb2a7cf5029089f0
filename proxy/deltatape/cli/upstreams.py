"""The upstreams of the options and of deltatape.yaml."""

from collections.abc import Sequence

from deltatape.gateway.routes import Upstream, parse_upstream
from deltatape.settings.defaults import current_settings


def upstreams_of(texts: Sequence[str]) -> tuple[Upstream, ...]:
    """Return the upstreams of the options, then those of deltatape.yaml with other names.

    Raises:
        UsageError: one is no upstream.
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
