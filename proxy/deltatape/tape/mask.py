"""Keeps credentials out of tapes: which header fields and query parameters carry them, and a hash.

A masked value leaves its length in bytes and eight hex digits of HMAC-SHA256 under a key of the
user's own: enough to tell "the same key as before?", not enough to guess it. Masking goes by
name, since a value that looks harmless may still be a credential; and a credential that was seen
under such a name is masked wherever else it comes up, see `literals`.

Only what is written is masked, never what is forwarded. Source: `HEADERS` and `QUERY` follow what
providers, gateways and clouds document as credentials.
"""

import functools
import hashlib
import hmac
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from deltatape.model.exchange import Headers, HeaderValue, Masked, MaskedSpan
from deltatape.tape import credentials
from deltatape.tape.literals import Literals, blanked, merged

HEADERS = frozenset(
    {
        "api-key",
        "apikey",
        "authorization",
        "cookie",
        "openai-organization",
        "openai-project",
        "set-cookie",
        "x-apikey",
    }
)
"""Lower case, with hyphens; together with every name that ends in one of `SUFFIXES`."""

QUERY = frozenset(
    {
        "accesstoken",
        "api-key",
        "apikey",
        "auth",
        "authorization",
        "jwt",
        "key",
        "password",
        "secret",
        "sig",
        "signature",
        "token",
        "x-amz-credential",
        "x-amz-signature",
        "x-goog-credential",
        "x-goog-signature",
    }
)
"""Lower case, with hyphens for underscores; together with `SUFFIXES`."""

SUFFIXES = ("-token", "-secret", "-key", "-auth", "-authorization", "-password")

HARMLESS = frozenset(
    {
        "cache-key",
        "continuation-token",
        "idempotency-key",
        "next-page-token",
        "next-token",
        "page-token",
        "sec-websocket-key",
        "surrogate-key",
        "x-cache-key",
        "x-idempotency-key",
    }
)
"""Names with such an ending that carry no credential and are needed to understand a tape."""

URL_HEADERS = frozenset({"content-location", "link", "location", "referer", "refresh"})
"""Header fields that repeat URLs, and with them what is secret in those."""

_HASH_DIGITS = 8

_USERINFO = re.compile(rb"://([^/?#&\s<>]*)@")
# `;`, `?` and `#` do not end a value, but clients that glue two query strings together, or use
# `;` as a separator, hide a parameter behind them.
_PARAMETER = re.compile(rb"[^;?#]+")


@functools.lru_cache(maxsize=1024)
def is_credential_header(name: bytes) -> bool:
    """Whether a header field of this name (any case) carries a credential."""
    return _is_listed(name, HEADERS)


def is_credential_parameter(name: bytes) -> bool:
    """Whether a query parameter of this name (any case, percent-encoded or not) carries one."""
    return _is_listed(unquote_to_bytes(name.replace(b"+", b" ")).strip(), QUERY)


def _is_listed(name: bytes, names: frozenset[str]) -> bool:
    plain = name.decode("latin-1").lower().replace("_", "-")
    return plain not in HARMLESS and (plain in names or plain.endswith(SUFFIXES))


def credential_spans(target: bytes) -> Iterator[tuple[int, int]]:
    """Where credentials are in a request target or URL: ascending, disjoint `[start, end)`.

    That is URL userinfo, and the values of credential query parameters, each up to its `&`. Takes
    time in proportion to the length, whatever the bytes.
    """
    query = target.find(b"?") + 1 or len(target)
    yield from (match.span(1) for match in _USERINFO.finditer(target, 0, query))
    while query < len(target):
        end = target.find(b"&", query)
        end = len(target) if end < 0 else end
        yield from _parameter_spans(target, query, end)
        query = end + 1


def _parameter_spans(target: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Credentials between two `&` of a query."""
    for part in _PARAMETER.finditer(target, start, end):
        name, equals, _ = part.group().partition(b"=")
        if equals and is_credential_parameter(name):
            yield part.start() + len(name) + 1, end
            return
        yield from (match.span(1) for match in _USERINFO.finditer(target, *part.span()))


class Masker:
    """Masks under one key: the same credential has the same hash on every tape of this key.

    Attributes:
        literals: the credentials that this process has seen.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.literals = Literals(self._digest)

    def _digest(self, value: bytes) -> str:
        return hmac.new(self._key, value, hashlib.sha256).hexdigest()[:_HASH_DIGITS]

    def learn(self, credential: bytes) -> None:
        """Mask `credential` wherever it comes up from now on, as long as this process lives."""
        self.literals.keep(credential)

    def see(self, headers: Headers, *urls: bytes) -> None:
        """Mask the credentials of a head wherever they come up from now on.

        Args:
            headers: the head's fields.
            urls: the request target, and what else there is.
        """
        for name, value in headers:
            if isinstance(value, Masked):
                continue
            if is_credential_header(name):
                for credential in credentials.in_field(name, value):
                    self.literals.learn(credential)
            elif _repeats_urls(name):
                self._see_url(value)
        for url in urls:
            self._see_url(url)

    def _see_url(self, url: bytes) -> None:
        for start, end in credential_spans(url):
            for credential in credentials.in_url(url, start, end):
                self.literals.learn(credential)

    def value(self, value: bytes) -> Masked:
        """`value`, unreadable."""
        return Masked(length=len(value), hash=self._digest(value))

    def headers(self, headers: Headers) -> Headers:
        """`headers` with credentials masked; order, names and lengths are kept."""
        named = tuple((name, self._by_name(name, value)) for name, value in headers)
        plain = [part for field in named for part in field if isinstance(part, bytes)]
        # One search for all of them: hardly ever is there anything to find.
        if self.literals.clean(b"\n".join((*plain, b""))):
            return named
        return tuple((self.data(name), self._by_content(value)) for name, value in named)

    def _by_name(self, name: bytes, value: HeaderValue) -> HeaderValue:
        if isinstance(value, bytes) and _must_be_masked(name, value):
            return self.value(value)
        return value

    def _by_content(self, value: HeaderValue) -> HeaderValue:
        if isinstance(value, bytes) and self.literals.spans(value):
            return self.value(value)
        return value

    def data(self, data: bytes) -> bytes:
        """`data` with asterisks for the credentials that were seen."""
        spans = self.literals.spans(data)
        return blanked(data, spans) if spans else data

    def text(self, text: str) -> str:
        """`text` with asterisks for the credentials that were seen."""
        data = text.encode(errors="surrogatepass")
        masked = self.data(data)
        return text if masked is data else masked.decode(errors="replace")

    def target(self, target: bytes) -> tuple[HeaderValue, ...]:
        """`target` in parts, credentials masked: one part when there are none."""
        parts: list[HeaderValue] = []
        at = 0
        for start, end, _ in self._spans(target):
            parts.append(target[at:start])
            parts.append(self.value(target[start:end]))
            at = end
        if at < len(target) or not parts:
            parts.append(target[at:])
        return tuple(parts)

    def _spans(self, target: bytes) -> tuple[MaskedSpan, ...]:
        named = ((start, end, "") for start, end in credential_spans(target))
        return merged((*named, *self.literals.spans(target)))


def _must_be_masked(name: bytes, value: bytes) -> bool:
    if is_credential_header(name):
        return True
    if not _repeats_urls(name):
        return False
    return _USERINFO.search(value) is not None or any(credential_spans(value))


def _repeats_urls(name: bytes) -> bool:
    return name.lower().decode("latin-1") in URL_HEADERS


def content_coding(headers: Headers) -> str:
    """What a body is coded in, such as `gzip`; "" where its bytes are what they mean."""
    found = [
        value.decode("latin-1").strip().lower()
        for name, value in headers
        if name.lower() == b"content-encoding" and isinstance(value, bytes)
    ]
    return ", ".join(coding for coding in found if coding not in {"", "identity"})


def without_userinfo(url: str) -> str:
    """`url` without the `user:password@` in its authority."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}" if separator else url
