"""Who may ask: programs on this machine, not a web page that found the port.

What tells them apart is in `http1.access`. Where others than this machine can reach the port, a
token is needed; who has it may use any name of the host.
"""

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from deltatape.errors import UsageError
from deltatape.gateway.llm_hosts import PASS_KEYS_ON, provider_of_host
from deltatape.gateway.routes import Refusal
from deltatape.http1.access import check_origin
from deltatape.http1.head import Fields, RequestHead, field
from deltatape.store.names import check_name

# What a request says to the gateway itself: which tape, and the token.
#
# In the path, since a base URL is all that most applications can be given
# (`/t/TOKEN/s/NAME/openai/v1`), or in fields, for those that can send some. Neither is forwarded,
# and the token never reaches a tape.
#
# Source: design, "Gateway". Providers have no such paths. An application's own endpoint may: in
# front of it nothing is reserved but `/t/TOKEN` with the right token, which nobody else can mean.

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


# Whether a key fits the host it is about to reach.
#
# A key that goes to another provider has leaked: it stands in a foreign log from then on. Refused
# is only what cannot be meant: the key's form belongs to one provider, the host to another, and
# both are known. Plain `sk-...` is used by OpenAI, DeepSeek and many others, a host that is not in
# the table may be anybody's gateway, and some known ones pass keys on to their owners: all these
# are let pass.
#
# No message holds more of a key than its prefix.
#
# Source: the forms that the providers document and secret scanners look for.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyForm:
    """A prefix that only one provider's keys have."""

    prefix: bytes
    owner: str
    """As people call it."""
    accepted_by: tuple[str, ...]
    """Names of `llm_hosts.LLM_HOSTS`."""
    path: str = ""
    """The path of a base URL at the gateway, where it has a prefix for the owner."""


KEY_FORMS: tuple[KeyForm, ...] = (
    KeyForm(prefix=b"sk-ant-", owner="Anthropic", accepted_by=("anthropic",), path="/anthropic"),
    KeyForm(
        prefix=b"sk-or-", owner="OpenRouter", accepted_by=("openrouter",), path="/openrouter/api/v1"
    ),
    KeyForm(prefix=b"sk-proj-", owner="OpenAI", accepted_by=("openai",), path="/openai/v1"),
    KeyForm(prefix=b"sk-svcacct-", owner="OpenAI", accepted_by=("openai",), path="/openai/v1"),
    KeyForm(prefix=b"sk-admin-", owner="OpenAI", accepted_by=("openai",), path="/openai/v1"),
    KeyForm(prefix=b"gsk_", owner="Groq", accepted_by=("groq",), path="/groq/openai/v1"),
    KeyForm(prefix=b"xai-", owner="xAI", accepted_by=("xai",), path="/xai/v1"),
    KeyForm(prefix=b"AIza", owner="Google", accepted_by=("gemini", "vertex"), path="/gemini"),
    KeyForm(
        prefix=b"fw_", owner="Fireworks", accepted_by=("fireworks",), path="/fireworks/inference/v1"
    ),
    KeyForm(prefix=b"tgp_v1_", owner="Together", accepted_by=("together",), path="/together/v1"),
    KeyForm(prefix=b"pplx-", owner="Perplexity", accepted_by=("perplexity",)),
    KeyForm(prefix=b"hf_", owner="Hugging Face", accepted_by=("huggingface",)),
    KeyForm(prefix=b"nvapi-", owner="NVIDIA", accepted_by=("nvidia",)),
    KeyForm(prefix=b"csk-", owner="Cerebras", accepted_by=("cerebras",)),
    KeyForm(prefix=b"r8_", owner="Replicate", accepted_by=("replicate",)),
    KeyForm(prefix=b"ABSKQmVkcm9ja0FQSUtleS", owner="Amazon Bedrock", accepted_by=("bedrock",)),
    KeyForm(prefix=b"bedrock-api-key-", owner="Amazon Bedrock", accepted_by=("bedrock",)),
    KeyForm(prefix=b"github_pat_", owner="GitHub", accepted_by=("github",)),
    KeyForm(prefix=b"ghp_", owner="GitHub", accepted_by=("github",)),
)
"""Only forms that nobody else uses; the longest word that says so is the prefix."""
_KEY_FIELDS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
_SCHEME = re.compile(rb"bearer[ \t]+", re.IGNORECASE)


def mismatch(fields: Fields, target: bytes, origin_host: str) -> str | None:
    """Why a request must not be sent to `origin_host`; None when its keys may go there.

    Args:
        fields: of the request.
        target: of the request, as it will be sent; `?key=` is looked at.
        origin_host: the upstream's host name.
    """
    host_owner = provider_of_host(origin_host)
    if host_owner is None or host_owner in PASS_KEYS_ON:
        return None
    for place, key in _keys(fields, target):
        form = next((form for form in KEY_FORMS if key.startswith(form.prefix)), None)
        if form is not None and host_owner not in form.accepted_by:
            return _explain(form, place, host_owner, origin_host)
    return None


def _keys(fields: Fields, target: bytes) -> Iterator[tuple[str, bytes]]:
    """Each credential of a request, with the place it stands in."""
    for name, value in fields:
        if name.lower() in _KEY_FIELDS:
            yield name.decode("latin-1"), _SCHEME.sub(b"", value.strip(), count=1)
    for pair in target.partition(b"?")[2].split(b"&"):
        name, _, value = pair.partition(b"=")
        if name == b"key":
            yield "?key=", unquote_to_bytes(value)


def _explain(form: KeyForm, place: str, host_owner: str, host: str) -> str:
    prefix = form.prefix.decode()
    own = form.accepted_by[0]
    if form.path:
        base = f"a base URL that ends with {form.path}"
    else:
        base = f"an upstream of its own (--upstream {own}=https://HOST) and a base URL with /{own}"
    return (
        f"the key in {place} begins with {prefix}, so it belongs to {form.owner}, but this request"
        f" goes to {host} ({host_owner}), which must not see it; nothing was sent. Give the"
        f" application {base}, or a key of {host_owner}; --allow-key-mismatch sends it all the same"
    )
