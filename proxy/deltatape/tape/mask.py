"""Keeps credentials out of tapes: which header fields and query parameters carry them, and a hash.

A masked value leaves its length in bytes and eight hex digits of HMAC-SHA256 under a key of the
user's own: enough to tell "the same key as before?", not enough to guess it. The field's name
decides, since a value that looks harmless may still be a credential; a credential that was seen in
such a field is masked wherever else it occurs, see `seen_credentials`.

Only what is written is masked, never what is forwarded. Source: `HEADERS` and `QUERY` follow what
providers, gateways and clouds document as credentials.
"""

import functools
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote_to_bytes

from deltatape.model.exchange import Headers, HeaderValue, MaskedCredential
from deltatape.tape import credentials, encode, fields
from deltatape.tape.seen_credentials import SeenCredentials, blanked, merged

HEADERS = frozenset(
    {
        "api-key",
        "apikey",
        "authorization",
        "cookie",
        "cookie2",
        "credentials",
        "openai-organization",
        "openai-project",
        "password",
        "secret",
        "set-cookie",
        "set-cookie2",
        "token",
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
        "bearer",
        "credentials",
        "jwt",
        "key",
        "pass",
        "passwd",
        "password",
        "pwd",
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

SUFFIXES = (
    "-token",
    "-secret",
    "-key",
    "-keys",
    "-auth",
    "-authorization",
    "-credentials",
    "-password",
)

HARMLESS = frozenset(
    {
        "access-control-allow-credentials",
        "cache-key",
        "cache-keys",
        "continuation-token",
        "idempotency-key",
        "next-page-token",
        "next-token",
        "page-token",
        "sec-websocket-key",
        "surrogate-key",
        "surrogate-keys",
        "x-cache-key",
        "x-idempotency-key",
    }
)
"""Names with such an ending that carry no credential and are needed to understand a tape."""

URL_HEADERS = frozenset(
    {
        "content-location",
        "http-referer",
        "link",
        "location",
        "referer",
        "refresh",
        "x-envoy-original-path",
        "x-forwarded-uri",
        "x-forwarded-url",
        "x-original-uri",
        "x-original-url",
        "x-rewrite-url",
    }
)
"""Header fields that repeat URLs, and with them what is secret in those."""

_HASH_DIGITS = 8

_MEMBER = re.compile(rb'"([^"\\]{1,64})"\s*+:\s*+"([^"\\]++)"')
"""A member of a configuration that gateways take as JSON in a header field."""
_BOT = re.compile(rb"/bot(\d{6,12}:[\w-]{20,}+)")
"""A path of Telegram's API."""
_CODING_LENGTH = len(b"content-encoding")
_USERINFO = re.compile(rb"://([^/?#&\s<>]*)@")
_QUERY = re.compile(rb"[?#]")
_SECTION = re.compile(rb"[^&]+")
# `;`, `?` and `#` do not end a value, but clients that glue two query strings together, or use
# `;` as a separator, hide a parameter behind them.
_PARAMETER = re.compile(rb"[^;?#]+")


@functools.lru_cache(maxsize=1024)
def is_credential_header(name: bytes) -> bool:
    """Return whether a header field of this name (any case) carries a credential."""
    return _is_listed(name, HEADERS)


def is_credential_parameter(name: bytes) -> bool:
    """Whether a query parameter of this name (any case, percent-encoded or not) carries one."""
    return _is_listed(unquote_to_bytes(name.replace(b"+", b" ")).strip(), QUERY)


@functools.lru_cache(maxsize=1024)
def is_credential_member(name: str) -> bool:
    """Return whether a member of a JSON body, named so, carries a credential.

    By the rules for query parameters, except for names that end in a harmless one: members have
    prefixes, as in `prompt_cache_key`, which is the id of a session.
    """
    plain = name.lower().replace("_", "-")
    return is_credential_parameter(name.encode(errors="replace")) and not plain.endswith(
        tuple(f"-{harmless}" for harmless in HARMLESS)
    )


def _is_listed(name: bytes, names: frozenset[str]) -> bool:
    plain = name.decode("latin-1").lower().replace("_", "-")
    return plain not in HARMLESS and (plain in names or plain.endswith(SUFFIXES))


def credential_spans(target: bytes) -> tuple[tuple[int, int], ...]:
    """Return where credentials are in a request target or URL: ascending, disjoint `[start, end)`.

    That is URL userinfo, a bot's token in the path, and the values of credential parameters: in the
    path from its first `;`, in the query and in the fragment, each up to its `&` or the end of the
    path. Takes time in proportion to the length, whatever the bytes.
    """
    match = _QUERY.search(target)
    query = match.start() if match else len(target)
    path = target.find(b";", 0, query)
    users = ((*match.span(1), "") for each in (_USERINFO, _BOT) for match in each.finditer(target))
    found = (
        (start, end, "")
        for where in ((query if path < 0 else path, query), (query, len(target)))
        for section in _SECTION.finditer(target, *where)
        for start, end in _in_section(target, *section.span())
    )
    return tuple((start, end) for start, end, _ in merged((*users, *found)))


def _in_section(target: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the credential between two `&`, if there is one."""
    for part in _PARAMETER.finditer(target, start, end):
        name, equals, _ = part.group().partition(b"=")
        if equals and is_credential_parameter(name):
            yield part.start() + len(name) + 1, end
            return


class Masker:
    """Masks under one key: the same credential has the same hash on every tape of this key.

    Attributes:
        seen: the credentials that this process has seen.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        # Requests repeat the key of their application.
        self._digest = functools.lru_cache(maxsize=256)(self._fresh_digest)
        self.seen = SeenCredentials(self._digest)
        # The texts of what came masked under `_version` of what was seen.
        self._version = 0
        self._field_texts = fields.FieldMemory(self._field_text)
        self._line_text = functools.lru_cache(maxsize=fields.REMEMBERED)(self._fresh_line_text)
        self._data_text = functools.lru_cache(maxsize=fields.REMEMBERED)(self._fresh_data_text)

    def _fresh_digest(self, value: bytes) -> str:
        return hmac.digest(self._key, value, hashlib.sha256).hex()[:_HASH_DIGITS]

    def learn(self, credential: bytes) -> None:
        """Mask all later occurrences of `credential`, as long as this process runs."""
        self.seen.learn(credential)

    def see(self, headers: Headers, *urls: bytes) -> None:
        """Mask all later occurrences of the credentials of a head, unless they are words.

        Args:
            headers: the head's fields.
            urls: the request target, and what else there is.
        """
        found: list[bytes] = []
        for field in headers:
            found += _CREDENTIALS_IN[field]
        for url in urls:
            found += _credentials_of(url)
        if found:
            self.seen.see(found)

    def value(self, value: bytes) -> MaskedCredential:
        """Return `value` masked."""
        return MaskedCredential(length=len(value), hash=self._digest(value))

    def headers(self, headers: Headers) -> Headers:
        """Return `headers` with credentials masked; order, names and lengths are kept."""
        return tuple(map(self._masked_field, headers))

    def _masked_field(self, field: fields.Field) -> fields.Field:
        name, value = field
        if isinstance(value, bytes) and _judged(name, value)[0]:
            value = self.value(value)
        plain = value if isinstance(value, bytes) else b""
        # A field is whole: what only begins as a credential, such as an id, is none.
        if self.seen.clean(b"%b\n%b\n" % (name, plain)):
            return name, value
        return self.data(name), self.value(plain) if self.seen.spans(plain) else value

    # The same as JSON, for records. A client sends nearly the same head with each of its requests,
    # and what was masked once need not be searched again until another credential has been seen.

    def headers_text(self, headers: Headers) -> str:
        """Return `headers` as JSON, with credentials masked."""
        self._forget_texts()
        texts = self._field_texts
        return f"[{','.join([texts[field] for field in headers])}]"

    def line_text(self, method: str, target: bytes, upstream: str) -> str:
        """Return the members `method`, `target` and `upstream` of a request, masked."""
        self._forget_texts()
        short = len(method) + len(target) + len(upstream) <= fields.SHORT_BYTES
        return (self._line_text if short else self._fresh_line_text)(method, target, upstream)

    def data_text(self, data: bytes) -> str:
        """Return `data` as JSON, with asterisks for the credentials that were seen."""
        self._forget_texts()
        return (self._data_text if len(data) <= fields.SHORT_BYTES else self._fresh_data_text)(data)

    def _forget_texts(self) -> None:
        if self._version != self.seen.version:
            self._version = self.seen.version
            self._field_texts.clear()
            self._line_text.cache_clear()
            self._data_text.cache_clear()

    def _field_text(self, field: fields.Field) -> str:
        return encode.field_text(self._masked_field(field))

    def _fresh_line_text(self, method: str, target: bytes, upstream: str) -> str:
        line = {
            "method": self.text(method),
            "target": fields.target_to_json(self.target(target)),
            "upstream": self.text(upstream),
        }
        return encode.json_text(line)[1:-1]

    def _fresh_data_text(self, data: bytes) -> str:
        return encode.json_bytes(self.data(data))

    def data(self, data: bytes) -> bytes:
        """Return `data` with asterisks for the credentials that were seen."""
        spans = self.seen.spans(data)
        return blanked(data, spans) if spans else data

    def text(self, text: str) -> str:
        """Return `text` with asterisks for the credentials that were seen."""
        data = text.encode(errors="surrogatepass")
        masked = self.data(data)
        return text if masked is data else masked.decode(errors="replace")

    def target(self, target: bytes) -> tuple[HeaderValue, ...]:
        """Return `target` in parts, credentials masked: one part when there are none."""
        parts: list[HeaderValue] = []
        at = 0
        named = ((start, end, "") for start, end in credential_spans(target))
        for start, end, _ in merged((*named, *self.seen.spans(target))):
            parts.append(target[at:start])
            parts.append(self.value(target[start:end]))
            at = end
        if at < len(target) or not parts:
            parts.append(target[at:])
        return tuple(parts)


def _judged(name: bytes, value: bytes) -> tuple[bool, tuple[bytes, ...]]:
    """Return whether a header field must be masked, and the credentials in it that are no words.

    Nearly all fields come with every request of an application.
    """
    return (_judge_again if len(value) <= fields.SHORT_BYTES else _judge)(name, value)


def _judge(name: bytes, value: bytes) -> tuple[bool, tuple[bytes, ...]]:
    return must_be_masked(name, value), _no_words(_in_header(name, value))


_judge_again = functools.lru_cache(maxsize=fields.REMEMBERED)(_judge)


def _credentials_in(field: fields.Field) -> tuple[bytes, ...]:
    name, value = field
    return _judged(name, value)[1] if isinstance(value, bytes) else ()


_CREDENTIALS_IN = fields.FieldMemory(_credentials_in)


def _no_words(found: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(credential for credential in found if not credentials.is_word(credential))


def _in_header(name: bytes, value: bytes) -> Iterator[bytes]:
    if is_credential_header(name):
        yield from credentials.in_field(name, value)
        return
    yield from credentials.in_other_field(name, value)
    yield from _in_members(value)
    if _repeats_urls(name):
        yield from _in_url(value)


def _in_members(value: bytes) -> Iterator[bytes]:
    if b"{" in value:
        for name, found in _MEMBER.findall(value):
            if _is_listed(name, QUERY):
                yield found


def _credentials_of(url: bytes) -> tuple[bytes, ...]:
    """Return the credentials in a URL that are no words; cached, since requests repeat URLs."""
    return (_look_again if len(url) <= fields.SHORT_BYTES else _look)(url)


def _look(url: bytes) -> tuple[bytes, ...]:
    return _no_words(_in_url(url))


_look_again = functools.lru_cache(maxsize=fields.REMEMBERED)(_look)


def _in_url(url: bytes) -> Iterator[bytes]:
    for start, end in credential_spans(url):
        yield from credentials.in_url(url, start, end)


def must_be_masked(name: bytes, value: bytes) -> bool:
    """Return whether a header field is a credential, or contains one, by its name."""
    return (
        is_credential_header(name)
        or any(credentials.in_other_field(name, value))
        or any(_in_members(value))
        or (_repeats_urls(name) and bool(credential_spans(value)))
    )


def _repeats_urls(name: bytes) -> bool:
    return name.lower().decode("latin-1") in URL_HEADERS


def content_coding(headers: Headers) -> str:
    """Return a body's content-coding, such as `gzip`; "" if it has none."""
    found = [
        value.decode("latin-1").strip().lower()
        for name, value in headers
        if len(name) == _CODING_LENGTH
        and name.lower() == b"content-encoding"
        and isinstance(value, bytes)
    ]
    if not found:
        return ""
    return ", ".join(coding for coding in found if coding not in {"", "identity"})


def without_userinfo(url: str) -> str:
    """Return `url` without the `user:password@` in its authority."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}" if separator else url
