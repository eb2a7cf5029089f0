"""Who may ask: programs on this machine, not a web page that found the port.

A page of any site can send a simple POST to a port of loopback, and a DNS name of the attacker's
can be made to point there (DNS rebinding). Both are told by what the browser adds.
"""

from urllib.parse import urlsplit

from deltatape.gateway.routes import Refusal
from deltatape.http1.head import RequestHead, field
from deltatape.http1.listener import is_loopback


def check_access(head: RequestHead) -> Refusal | None:
    """Why a request must not be served; None when it may."""
    if head.method == "CONNECT":
        return Refusal(405, "not_a_proxy", "CONNECT: this is a gateway for base URLs, not a proxy")
    host = (field(head.fields, b"host") or b"").decode("latin-1")
    if host and not is_loopback(_host_name(host)):
        return Refusal(
            403,
            "foreign_host",
            f"the request is for host {host[:80]!r}, which is not this machine; ask for 127.0.0.1"
            " or localhost",
        )
    origin = (field(head.fields, b"origin") or b"").decode("latin-1")
    if origin and not is_loopback(_host_name(origin.partition("://")[2])):
        return Refusal(
            403, "foreign_origin", f"a web page of {origin[:80]!r} must not reach your provider"
        )
    site = (field(head.fields, b"sec-fetch-site") or b"").lower()
    if site == b"cross-site" and not origin:
        return Refusal(403, "cross_site", "a web page of another site must not reach your provider")
    return None


def _host_name(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""
