"""What the end of a connection tells a client about the body before it."""

from deltatape.http1.head import RequestHead
from deltatape.model.exchange import Framing


def fin_completes(framing: Framing | None, *, bare: bool) -> bool:
    """Whether a FIN makes a body look whole, so that a cut has to be shown by RST.

    `framing` None: no head was sent; `bare`: a chunked body goes out without its chunks.
    """
    return framing is Framing.CLOSE or (framing is Framing.CHUNKED and bare)


def keeps_client(request: RequestHead, framing: Framing | None) -> bool:
    """Whether the client's connection can serve another request after such a response."""
    known = framing is not None and framing is not Framing.CLOSE
    return known and request.keep_alive and request.http == "1.1"
