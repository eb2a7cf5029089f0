"""The credentials that a process can know of before any request: those in its environment.

They go to the masker, so that a key which an application logs or an error message repeats is not
on the tape. Names decide, as for header fields; what is shorter than a credential is left alone,
since masking `true` would make a tape unreadable.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from deltatape.harness.dotenv import DotenvFile
from deltatape.tape.mask import is_credential_header

MIN_BYTES = 8

_NAMES = re.compile(
    r"(?:API_?KEY|(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|BEARER_TOKEN_BEDROCK))$"
)
_HEADERS = re.compile(r"_(?:CUSTOM|EXTRA)_HEADERS$")
_USERINFO = re.compile(r"://([^/?#\s@]*)@")
_SCHEME = re.compile(r"[A-Za-z]+\s+(?=\S)")


def known_secrets(
    environment: Mapping[str, str], dotenv: Iterable[DotenvFile]
) -> tuple[bytes, ...]:
    """Values of at least 8 bytes that variables named like a credential have, each once, sorted.

    Together with credentials in `..._CUSTOM_HEADERS`, and with passwords in URLs.
    """
    pairs = [*environment.items()]
    pairs += ((entry.name, entry.value) for file in dotenv for entry in file.entries)
    found = {secret for name, value in pairs for secret in _secrets(name.upper(), value)}
    encoded = {secret.encode("utf-8", "surrogateescape") for secret in found}
    return tuple(sorted(each for each in encoded if len(each) >= MIN_BYTES))


def _secrets(name: str, value: str) -> Iterator[str]:
    if _NAMES.search(name):
        yield value.strip()
    if _HEADERS.search(name):
        yield from _header_values(value)
    for match in _USERINFO.finditer(value):
        password = match[1].rpartition(":")[2]
        yield password
        yield unquote(password)


def _header_values(value: str) -> Iterator[str]:
    """`Name: value` per line, as SDKs read them."""
    for line in value.splitlines():
        name, colon, content = line.partition(":")
        if colon and is_credential_header(name.strip().encode("utf-8", "surrogateescape")):
            yield content.strip()
            yield _SCHEME.sub("", content.strip(), count=1)
