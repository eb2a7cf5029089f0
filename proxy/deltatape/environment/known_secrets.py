"""Finds credentials that are known before any request: those in the environment.

They go to the masker, so that a key which an application logs or an error message repeats is not on
the tape. Names decide, as for header fields; a value in a provider's exact key format counts
whatever its name. Words such as `postgres` or `true`, numbers, paths and URLs are not masked: they
occur everywhere on a tape and protect nothing.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from deltatape.environment.dotenv import DotenvFile
from deltatape.secret_text import patterns
from deltatape.tape.credentials import basic, in_url, is_word
from deltatape.tape.mask import credential_spans, is_credential_header

MIN_BYTES = 8

_WORDS = frozenset(
    {
        *("APIKEY", "APIKEYS", "KEY", "KEYS", "PAT", "PATS", "TOKEN", "TOKENS"),
        *("CREDENTIAL", "CREDENTIALS", "SECRET", "SECRETS"),
        *("PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "PWD"),
    }
)
_ENDINGS = ("APIKEY", "PASSWD", "PASSWORD", "SECRET", "TOKEN")
"""Words at the end of a name without separators, such as `PGPASSWORD`."""

_HARMLESS = re.compile(
    r"(?:^|_)(?:PUBLIC_KEYS?|KEY_ID)$|_(?:ALGORITHM|ALIAS|ARN|FORMAT|HEADER|NAME|PREFIX|SUFFIX|TYPE)$"
)
"""Names of data about a key."""

_PLAIN_VALUE = re.compile(
    r"[\d\s.,:_+-]+"  # numbers
    r"|[A-Za-z][A-Za-z0-9+.-]*://.*"  # URLs: the credentials in them are looked for
    r"|(?:~|\.\.?)[/\\].*|[A-Za-z]:[/\\].*"
    # A key may begin with a slash, but rarely looks like a path.
    r"|/[A-Za-z]{1,12}/[\w.@ /-]*"
    r"|[\w./-]+\.(?:cer|crt|json|key|p12|pem|pub|toml|txt|ya?ml)",
    re.DOTALL,
)
_SEPARATOR = re.compile(r"[,;\s]+")
_HEADERS = re.compile(r"_(?:CUSTOM|EXTRA)_HEADERS$")
_SCHEME = re.compile(r"[A-Za-z]+\s+(?=\S)")
_USER = b"://"
_DEPTH_LIMIT = 8


def known_secrets(
    environment: Mapping[str, str], dotenv: Iterable[DotenvFile]
) -> tuple[bytes, ...]:
    """Return credentials of at least 8 bytes, each once, sorted.

    Those are: values of variables named like a credential, as a whole, in lists and in JSON;
    credentials in `..._CUSTOM_HEADERS` and in URLs, passwords also as `Basic` sends them; and what
    has the exact format of a provider's key.
    """
    pairs = [*environment.items()]
    pairs += ((entry.name, entry.value) for file in dotenv for entry in file.entries)
    found = {secret for name, value in pairs for secret in _secrets(name.upper(), value)}
    return tuple(sorted(each for each in found if len(each) >= MIN_BYTES and not is_word(each)))


def _secrets(name: str, value: str) -> Iterator[bytes]:
    if _is_named(name):
        yield from _named(name, value.strip())
    if _HEADERS.search(name):
        yield from _header_values(value)
    data = _bytes(value)
    if _USER in data:
        yield from _in_urls(data)
    text = data.decode("latin-1")
    for match in patterns.find(text):
        if match.certain:
            yield data[match.start : match.end]


def _is_named(name: str) -> bool:
    """Check whether the upper-case `name` names a credential."""
    if _HARMLESS.search(name):
        return False
    words = [word.rstrip("0123456789") for word in re.split(r"[^A-Z0-9]+", name)]
    return any(word in _WORDS or word.endswith(_ENDINGS) for word in words)


def _named(name: str, value: str) -> Iterator[bytes]:
    """Yield the credentials in a variable whose name says so."""
    leaves = _leaves(name, value)
    if leaves is None:
        for each in (value, *_SEPARATOR.split(value)):
            if not _PLAIN_VALUE.fullmatch(each):
                yield _bytes(each)
        return
    yield _bytes(value)
    for key, leaf in leaves:
        # `API_KEYS={"eu": ...}`; but of an account, only what its own name tells.
        outer = "" if "CREDENTIAL" in name else f"{name}_"
        if _is_named(f"{outer}{key}".upper()) and not _PLAIN_VALUE.fullmatch(leaf):
            yield _bytes(leaf)


def _leaves(name: str, value: str) -> list[tuple[str, str]] | None:
    """Return the strings of a JSON object or array with their keys; None if it is not JSON."""
    if value[:1] not in {"{", "["}:
        return None
    try:
        return list(_strings(name, json.loads(value), 0))
    except (ValueError, RecursionError):
        return None


def _strings(key: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEPTH_LIMIT:
        return
    match value:
        case str():
            yield key, value
        case dict():
            for inner, each in value.items():
                yield from _strings(str(inner), each, depth + 1)
        case list():
            for each in value:
                yield from _strings(key, each, depth + 1)
        case _:
            pass


def _in_urls(data: bytes) -> Iterator[bytes]:
    for start, end in credential_spans(data):
        found = tuple(dict.fromkeys(in_url(data, start, end)))
        yield from found
        if data.endswith(_USER, 0, start):
            user, _, password = data[start:end].partition(b":")
            for each in found if password else (b"",):
                yield from basic(user, each)


def _header_values(value: str) -> Iterator[bytes]:
    """Yield the values of `Name: value` lines, as SDKs read them."""
    for line in value.splitlines():
        name, colon, content = line.partition(":")
        if colon and is_credential_header(_bytes(name.strip())):
            yield _bytes(content.strip())
            yield _bytes(_SCHEME.sub("", content.strip(), count=1))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
