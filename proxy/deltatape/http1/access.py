"""Checks that a request comes from this machine and not from a web page.

A page of any site can send a simple POST to a port of loopback, and a DNS name of the attacker's
can be made to point there (DNS rebinding). Both are recognised by what the browser adds. Pages of
this machine, such as those of a development server, may ask.
"""

from dataclasses import dataclass

from deltatape.http1.head import Fields, field
from deltatape.http1.listener import host_name, is_loopback

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class ForeignOrigin:
    """Why a request is foreign, for a 403 answer."""

    code: str
    message: str


def check_origin(fields: Fields, *, local: bool = True) -> ForeignOrigin | None:
    """Return why a request must not be served; None if it may.

    Args:
        fields: the fields of the request.
        local: whether `Host` has to name this machine; on a Unix socket it means nothing.
    """
    host = (field(fields, b"host") or b"").decode("latin-1")
    named = any(name.lower() == b"host" for name, _ in fields)
    if local and named and not is_loopback(host_name(host)):
        return ForeignOrigin(
            "foreign_host",
            f"the request is for host {host[:_SHOWN]!r}, which is not this machine; ask for"
            " 127.0.0.1 or localhost",
        )
    origins = [value.decode("latin-1") for name, value in fields if name.lower() == b"origin"]
    for origin in origins:
        if is_loopback(host_name(origin.partition("://")[2])):
            continue
        return ForeignOrigin(
            "foreign_origin",
            f"a web page of {origin[:_SHOWN]!r} must not ask here; pages of localhost may",
        )
    site = (field(fields, b"sec-fetch-site") or b"").lower()
    if site == b"cross-site" and not origins:
        return ForeignOrigin("cross_site", "a web page of another site must not ask here")
    return None
