"""Who may ask: programs on this machine, not a web page that found the port.

A page of any site can send a simple POST to a port of loopback, and a DNS name of the attacker's
can be made to point there (DNS rebinding). Both are told by what the browser adds. Where others
than this machine can reach the port, a token is needed; who has it may use any name of the host.
"""

from deltatape.gateway.addressing import Addressed
from deltatape.gateway.routes import Refusal
from deltatape.http1.head import RequestHead, field
from deltatape.http1.listener import host_name, is_loopback


def check_access(
    head: RequestHead, addressed: Addressed, *, guarded: bool, local: bool = True
) -> Refusal | None:
    """Why a request must not be served; None when it may.

    Args:
        head: of the request.
        addressed: what it says to the gateway.
        guarded: whether the token is needed.
        local: whether the name in `Host` tells something: not so on a Unix socket.
    """
    if head.method == "CONNECT":
        return Refusal(405, "not_a_proxy", "CONNECT: this is a gateway for base URLs, not a proxy")
    if guarded and not addressed.token:
        return Refusal(
            403,
            "token_needed",
            "this gateway can be reached by other machines, so it wants its token: put /t/TOKEN"
            " before the path of the base URL, or send x-deltatape-token; deltatape record prints"
            " it when it starts",
        )
    host = (field(head.fields, b"host") or b"").decode("latin-1")
    if local and not addressed.token and host and not is_loopback(host_name(host)):
        return Refusal(
            403,
            "foreign_host",
            f"the request is for host {host[:80]!r}, which is not this machine; ask for 127.0.0.1"
            " or localhost",
        )
    return _check_page(head)


def _check_page(head: RequestHead) -> Refusal | None:
    """Whether a web page of this machine asks, if it is one."""
    origin = (field(head.fields, b"origin") or b"").decode("latin-1")
    if origin and not is_loopback(host_name(origin.partition("://")[2])):
        return Refusal(
            403,
            "foreign_origin",
            f"a web page of {origin[:80]!r} must not ask here; pages of localhost may",
        )
    site = (field(head.fields, b"sec-fetch-site") or b"").lower()
    if site == b"cross-site" and not origin:
        return Refusal(403, "cross_site", "a web page of another site must not ask here")
    return None
