"""Access control: serves programs on this machine, not web pages that found the port.

`http1.access` distinguishes them. Where other machines can reach the port, requests need a token;
with the token, any name in `Host` is accepted.
"""

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from deltatape.errors import UsageError
from deltatape.gateway.routes import TAPE_FIELD, Refusal
from deltatape.http1.access import check_origin
from deltatape.http1.head import Fields, ParsedRequestHead, field
from deltatape.providers import (
    KEY_FIELDS,
    PROVIDERS,
    Provider,
    provider_of_host,
    provider_of_key,
)
from deltatape.store.names import check_name

# What a request says to the gateway itself: which tape, and the token.
#
# In the path (`/t/TOKEN/s/NAME/openai/v1`), since most applications can only be given a base URL,
# or in header fields. Neither is forwarded, and the token never reaches a tape.
#
# Providers have no such paths. An application's own endpoint may have them: in front of it only
# `/t/TOKEN` with the right token is reserved.

TOKEN_FIELD = b"x-deltatape-token"
_PREFIX = re.compile(rb"/([st])/([^/?]*)(?=[/?]|$)")


@dataclass(frozen=True, slots=True)
class AddressedTarget:
    """A request target without the gateway's own parts."""

    target: bytes
    tape: str | None
    """The name of the requested tape."""
    token: bool
    """Whether it brought the right token."""


def read_address(
    head: ParsedRequestHead, token: str | None, *, reserved: bool
) -> AddressedTarget | Refusal:
    """Remove the gateway's own parts from a request.

    Args:
        head: the head of the request.
        token: the one that opens this gateway; None when there is none.
        reserved: whether `/s/` and `/t/` are the gateway's, whatever follows.
    """
    target = head.target
    taken = {b"s": field(head.fields, TAPE_FIELD), b"t": field(head.fields, TOKEN_FIELD)}
    seen: set[bytes] = set()
    while match := _PREFIX.match(target):
        kind, value = match[1], match[2]
        ours = reserved or (kind == b"t" and _is_token(value, token))
        if not ours or (kind in seen and not (kind == b"t" and _is_token(value, token))):
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
    return AddressedTarget(
        target, None if name is None else name.decode("latin-1"), _is_token(taken[b"t"], token)
    )


def _is_token(value: bytes | None, token: str | None) -> bool:
    """Compare in constant time."""
    return value is not None and token is not None and hmac.compare_digest(value, token.encode())


def check_access(
    head: ParsedRequestHead, addressed: AddressedTarget, *, guarded: bool, local: bool = True
) -> Refusal | None:
    """Return why a request must not be served; None if it may.

    Args:
        head: the head of the request.
        addressed: what it says to the gateway.
        guarded: whether the token is needed.
        local: whether the name in `Host` is meaningful: not on a Unix socket.
    """
    if head.method == "CONNECT":
        return Refusal(405, "not_a_proxy", "CONNECT: this is a gateway for base URLs, not a proxy")
    if guarded and not addressed.token:
        return Refusal(
            403,
            "token_needed",
            "other machines can reach this gateway, so requests need its token: put /t/TOKEN"
            " before the path of the base URL, or send x-deltatape-token; deltatape record prints"
            " it when it starts",
        )
    foreign = check_origin(head.fields, local=local and not addressed.token)
    if foreign is None:
        return None
    return Refusal(HTTPStatus.FORBIDDEN, foreign.code, foreign.message)


# Whether a key fits the host it is about to reach.
#
# A key that goes to another provider has leaked, for example into that provider's logs. A request
# is refused only if it must be a mistake: the form of the key belongs to one provider and the host
# to another, both known. Allowed are plain `sk-...` keys, which OpenAI, DeepSeek and many others
# use; unknown hosts, which may be anybody's gateway; and known hosts that pass keys on to their
# owners.
#
# Messages contain only the prefix of a key.

_SCHEME = re.compile(rb"bearer[ \t]+", re.IGNORECASE)


def mismatch(fields: Fields, target: bytes, origin_host: str) -> str | None:
    """Return why a request must not be sent to `origin_host`; None if its keys belong there.

    Args:
        fields: the fields of the request.
        target: the target of the request, as it will be sent; `?key=` is looked at.
        origin_host: the upstream's host name.
    """
    host_owner = provider_of_host(origin_host)
    if host_owner is None or PROVIDERS[host_owner].passes_keys_on:
        return None
    for place, key in _keys(fields, target):
        owner, prefix = provider_of_key(key)
        if owner is not None and host_owner not in (owner.name, *owner.keys_fit):
            return _mismatch_message(owner, prefix, place, origin_host)
    return None


def _keys(fields: Fields, target: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each credential of a request, with its place."""
    for name, value in fields:
        if name.lower() in KEY_FIELDS:
            yield name.decode("latin-1"), _SCHEME.sub(b"", value.strip(), count=1)
    for pair in target.partition(b"?")[2].split(b"&"):
        name, _, value = pair.partition(b"=")
        if name == b"key":
            yield "?key=", unquote_to_bytes(value)


def _mismatch_message(owner: Provider, prefix: str, place: str, host: str) -> str:
    name, asked = owner.name, provider_of_host(host)
    if owner.url:
        base = f"a base URL that ends with /{name}{owner.api_path}"
    else:
        base = (
            f"an upstream of its own (--upstream {name}=https://HOST) and a base URL with /{name}"
        )
    return (
        f"the key in {place} begins with {prefix}, so it belongs to {owner.title}, but this request"
        f" goes to {host} ({asked}), which must not see it; nothing was sent. Give the"
        f" application {base}, or a key of {asked}; --allow-key-mismatch sends it all the same"
    )
