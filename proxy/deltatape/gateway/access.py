"""Who may ask: programs on this machine, not a web page that found the port.

What tells them apart is in `http1.access`. Where others than this machine can reach the port, a
token is needed; who has it may use any name of the host.
"""

from http import HTTPStatus

from deltatape.gateway.addressing import Addressed
from deltatape.gateway.routes import Refusal
from deltatape.http1.access import check_origin
from deltatape.http1.head import RequestHead


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
    foreign = check_origin(head, local=local and not addressed.token)
    if foreign is None:
        return None
    return Refusal(HTTPStatus.FORBIDDEN, foreign.code, foreign.message)
