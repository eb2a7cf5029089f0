"""A recorded request as bytes that can be sent once more.

A tape has no credentials. Those that stood in the request are put in again from the environment,
under the names that the provider's SDKs read, as the application would. What else was masked is
left out and told: cookies, tokens of others. What makes a request that one request and no other
(idempotency keys, signatures over a time) is left out, too.

Pure: values in, values out.

Source: the variables that the providers' SDKs document.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from deltatape.dialects._unknown import UNKNOWN
from deltatape.environment.key_variables import KEY_VARIABLES
from deltatape.environment.urls import without_overlap
from deltatape.errors import UsageError
from deltatape.gateway.llm_hosts import provider_of_host
from deltatape.gateway.routes import Upstream
from deltatape.http1.head import end_to_end, field, write_request
from deltatape.model.exchange import Exchange, Masked, Request, Tap
from deltatape.model.reply import Reply

_FURTHER: Mapping[str, tuple[str, ...]] = {
    "cerebras": ("CEREBRAS_API_KEY",),
    "github": ("GITHUB_TOKEN",),
    "huggingface": ("HF_TOKEN",),
    "nvidia": ("NVIDIA_API_KEY",),
    "ollama": ("OLLAMA_API_KEY",),
    "perplexity": ("PERPLEXITY_API_KEY",),
}
"""Of providers whose keys are none of `KEY_VARIABLES`."""

_TOKENS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_AUTH_TOKEN",),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
}
"""What goes into `Authorization`, where that is not the key."""

_BY_DIALECT = {
    "anthropic-messages": "anthropic",
    "bedrock-converse": "bedrock",
    "bedrock-invoke": "bedrock",
    "cohere": "cohere",
    "gemini": "gemini",
    "gemini-interactions": "gemini",
    "mistral": "mistral",
    "ollama": "ollama",
    "openai-chat": "openai",
    "openai-completions": "openai",
    "openai-responses": "openai",
}
"""Whose key it is where no host tells."""

_KEYS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_SETTINGS = {
    b"openai-organization": ("OPENAI_ORG_ID", "OPENAI_ORGANIZATION"),
    b"openai-project": ("OPENAI_PROJECT_ID", "OPENAI_PROJECT"),
}
_ONCE = frozenset(
    {
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"idempotency-key",
        b"transfer-encoding",
        b"x-amz-content-sha256",
        b"x-amz-date",
        b"x-idempotency-key",
    }
)
_QUERY_KEY = (b"?key=", b"&key=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A request to be sent."""

    data: bytes
    """Head and body; the connection ends after it."""
    left_out: tuple[str, ...]
    """Header fields that were masked and are not sent."""


def why_not(exchange: Exchange, upstream: Upstream, reply: Reply) -> str:
    """Why `upstream` is not the one to ask for `exchange`; "" when it may be asked.

    Args:
        exchange: recorded.
        upstream: where its request would go.
        reply: what the exchange carried.
    """
    if exchange.tap is Tap.APP or reply.from_app:
        return "it was taken in front of the application"
    if reply.dialect == UNKNOWN:
        return "it is no request to a model that can be read"
    asked, recorded = provider_of_host(upstream.origin.host), _recorded(exchange.request)
    if asked and recorded and asked != recorded:
        return f"it went to {recorded}, and {upstream.origin.host} is {asked}"
    return ""


def request_again(
    exchange: Exchange, upstream: Upstream, environment: Mapping[str, str], dialect: str
) -> Again:
    """The request of `exchange`, for a gateway in front of `upstream`.

    Args:
        exchange: recorded.
        upstream: where it shall go.
        environment: of the application, with what its `.env` files add.
        dialect: what the exchange speaks.

    Raises:
        UsageError: it cannot be sent: it is not whole, or a credential is missing; the message says
            what would do.
    """
    request = exchange.request
    _check_whole(exchange)
    keys = _Keys(_provider(request, upstream) or _BY_DIALECT.get(dialect), environment)
    target = without_overlap(upstream.path, _target(request, keys))
    left_out = [name for name, value in _fields(request, keys) if value is None]
    fields = [(name, value) for name, value in _fields(request, keys) if value is not None]
    fields += [(b"Host", b"127.0.0.1"), (b"Connection", b"close")]
    if request.body:
        fields.append((b"Content-Length", b"%d" % len(request.body)))
    head = write_request(request.method, target.encode("latin-1"), tuple(fields))
    return Again(
        data=head + request.body,
        left_out=tuple(name.decode("latin-1") for name in left_out),
    )


def _check_whole(exchange: Exchange) -> None:
    request = exchange.request
    fields = tuple((name, value) for name, value in request.headers if isinstance(value, bytes))
    length = field(fields, b"content-length") or b"%d" % len(request.body)
    untaped = any("left out on demand" in note.text for note in exchange.notes)
    if not request.method or request.t_end_ns is None or untaped:
        raise UsageError("its request is not whole on the tape")
    if length != b"%d" % len(request.body):
        taped, whole = len(request.body), length.decode("latin-1")
        raise UsageError(f"its request is not whole on the tape: {taped} of {whole} bytes")


def _provider(request: Request, upstream: Upstream) -> str | None:
    """Whose key is needed, if the hosts tell."""
    return provider_of_host(upstream.origin.host) or _recorded(request)


def _recorded(request: Request) -> str | None:
    return provider_of_host(urlsplit(request.upstream).hostname or "")


@dataclass(frozen=True, slots=True)
class _Keys:
    """The credentials of one provider."""

    provider: str | None
    environment: Mapping[str, str]

    def of(self, name: str, variables: tuple[str, ...]) -> str:
        """The credential for what is called `name`.

        Raises:
            UsageError: none of `variables` is set.
        """
        found = self.first(variables)
        if found is None:
            needs = " or ".join(variables)
            known = f"set {needs}" if variables else "no variable is known that holds it"
            raise UsageError(f"{name} is masked on the tape, as it has to be; {known}")
        return found

    def first(self, variables: tuple[str, ...]) -> str | None:
        """The first of `variables` that is set to something."""
        return next((self.environment[v] for v in variables if self.environment.get(v)), None)

    @property
    def variables(self) -> tuple[str, ...]:
        """Where the key stands."""
        provider = self.provider or ""
        return KEY_VARIABLES.get(provider) or _FURTHER.get(provider, ())

    @property
    def tokens(self) -> tuple[str, ...]:
        """Where the credential for `Authorization` stands."""
        return _TOKENS.get(self.provider or "", self.variables)


def _target(request: Request, keys: _Keys) -> str:
    parts: list[bytes] = []
    for part in request.target:
        if isinstance(part, bytes):
            parts.append(part)
        elif parts and parts[-1].endswith(_QUERY_KEY):
            parts.append(keys.of("?key=", keys.variables).encode("latin-1", "replace"))
        else:
            raise UsageError("a part of its path is masked that no variable holds")
    return b"".join(parts).decode("latin-1")


def _fields(request: Request, keys: _Keys) -> Iterator[tuple[bytes, bytes | None]]:
    """The header fields to send; None: masked, and nothing at hand."""
    sent = ((name, value if isinstance(value, bytes) else b"") for name, value in request.headers)
    kept = {name for name, _ in end_to_end(tuple(sent))}
    for name, value in request.headers:
        if name not in kept or name.lower() in _ONCE:
            continue
        yield name, _credential(name, keys) if isinstance(value, Masked) else value


def _credential(name: bytes, keys: _Keys) -> bytes | None:
    lower, shown = name.lower(), name.decode("latin-1")
    value: str | None
    if lower == b"authorization":
        value = f"Bearer {keys.of(shown, keys.tokens)}"
    elif lower in _KEYS:
        value = keys.of(shown, keys.variables)
    else:
        value = keys.first(_SETTINGS.get(lower, ()))
    return None if value is None else value.encode("latin-1", "replace")
