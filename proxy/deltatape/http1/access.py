"""Checks that a request comes from this machine and not from a web page.

A page of any site can send a simple POST to a port of loopback, and a DNS name of the attacker's
can be made to point there (DNS rebinding). Both are recognised by what the browser adds. Pages of
this machine, such as those of a development server, may ask.
"""

from dataclasses import dataclass

from deltatape.http1.head import ParsedRequestHead, field
from deltatape.http1.listener import host_name, is_loopback

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class ForeignOrigin:
    """Why a request is foreign, for a 403 answer."""

    code: str
    message: str


def check_origin(head: ParsedRequestHead, *, local: bool = True) -> ForeignOrigin | None:
    """Return why a request must not be served; None if it may.

    Args:
        head: of the request.
        local: whether `Host` has to name this machine; on a Unix socket it means nothing.
    """
    host = (field(head.fields, b"host") or b"").decode("latin-1")
    if local and host and not is_loopback(host_name(host)):
        return ForeignOrigin(
            "foreign_host",
            f"the request is for host {host[:_SHOWN]!r}, which is not this machine; ask for"
            " 127.0.0.1 or localhost",
        )
    origin = (field(head.fields, b"origin") or b"").decode("latin-1")
    if origin and not is_loopback(host_name(origin.partition("://")[2])):
        return ForeignOrigin(
            "foreign_origin",
            f"a web page of {origin[:_SHOWN]!r} must not ask here; pages of localhost may",
        )
    site = (field(head.fields, b"sec-fetch-site") or b"").lower()
    if site == b"cross-site" and not origin:
        return ForeignOrigin("cross_site", "a web page of another site must not ask here")
    return None
