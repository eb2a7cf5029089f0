"""What a request says to the gateway itself: which tape, and the token.

In the path, since a base URL is all that most applications can be given
(`/t/TOKEN/s/NAME/openai/v1`), or in fields, for those that can send some. Neither is forwarded,
and the token never reaches a tape.

Source: design, "Gateway". Providers have no such paths. An application's own endpoint may: in
front of it nothing is reserved but `/t/TOKEN` with the right token, which nobody else can mean.
"""

import hmac
import re
from dataclasses import dataclass

from deltatape.errors import UsageError
from deltatape.gateway.routes import Refusal
from deltatape.http1.head import RequestHead, field
from deltatape.store.names import check_name

TAPE_FIELD = b"x-deltatape-tape"
TOKEN_FIELD = b"x-deltatape-token"

_PREFIX = re.compile(rb"/([st])/([^/?]*)(?=[/?]|$)")


@dataclass(frozen=True, slots=True)
class Addressed:
    """A request's target without what was for the gateway."""

    target: bytes
    tape: str | None
    """The name of the tape that was asked for."""
    token: bool
    """Whether it brought the right token."""


def read_address(head: RequestHead, token: str | None, *, reserved: bool) -> Addressed | Refusal:
    """Take the gateway's own parts off a request.

    Args:
        head: of the request.
        token: the one that opens this gateway; None when there is none.
        reserved: whether `/s/` and `/t/` are the gateway's, whatever follows.
    """
    target = head.target
    taken = {b"s": field(head.fields, TAPE_FIELD), b"t": field(head.fields, TOKEN_FIELD)}
    seen: set[bytes] = set()
    while match := _PREFIX.match(target):
        kind, value = match[1], match[2]
        ours = reserved or (kind == b"t" and _same(value, token))
        if not ours or (kind in seen and not (kind == b"t" and _same(value, token))):
            break
        seen.add(kind)
        taken[kind] = value
        target = target[match.end() :]
        if not target.startswith(b"/"):
            target = b"/" + target
    if token is not None and f"/t/{token}/".encode() in target + b"/":
        return Refusal(400, "token_in_path", "the token belongs at the front of the path")
    name = taken[b"s"]
    if name is not None:
        try:
            check_name(name.decode("latin-1"))
        except UsageError as error:
            return Refusal(400, "bad_tape_name", str(error))
    return Addressed(
        target, None if name is None else name.decode("latin-1"), _same(taken[b"t"], token)
    )


def _same(value: bytes | None, token: str | None) -> bool:
    """In time that does not depend on where they differ."""
    return value is not None and token is not None and hmac.compare_digest(value, token.encode())
