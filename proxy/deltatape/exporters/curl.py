"""Export a command that sends a recorded request again.

It is for a POSIX shell. Masked credentials are variables of the environment: those that the
provider's SDK reads where the provider is known, else ones named after the header field or the
parameter. Fields that curl writes itself are left out, since they would contradict the body.
"""

import base64
import re
import shlex
from collections.abc import Mapping, Sequence

from deltatape.diagnose.exchange_parts import Part, url_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.exporters.parts import refuse_socket, text_of
from deltatape.model.exchange import Exchange, HeaderValue, MaskedCredential, Request
from deltatape.providers import KEY_FIELDS, PROVIDERS, Provider, provider_of_host
from deltatape.urls import split_url

_CURLS_OWN = frozenset(
    b"accept-encoding connection content-encoding content-length expect host keep-alive"
    b" proxy-connection te trailer transfer-encoding upgrade".split()
)
_ADDED = (b"Accept", b"User-Agent", b"Content-Type")
"""Fields that curl adds where it is not told to leave them out."""
_PARAMETER = re.compile(rb"[?&]([^=&?]+)=\Z")
_NAME = re.compile(r"[^A-Z0-9]+")
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\")
"""Bytes that `printf` prints unchanged when they are between quotes."""
_GLOB = re.compile(r"[\[\]{}]")
"""What curl takes for a range of URLs unless it is told not to."""
_DASH = re.compile(r"['\"]?-")
"""The start of what curl would take for an option."""
_WIDTH = 76


class CurlExporter:
    """Exports commands of curl."""

    name = "curl"
    title = "commands of curl"
    holds = frozenset(
        {
            Part.URL,
            Part.REQUEST_HEADERS,
            Part.REQUEST_BODY,
        }
    )
    remark = "fields that curl writes itself are left out; masked credentials are variables"
    is_folder = False

    def refuses(self, analysis: Analysis) -> str:
        return refuse_socket(analysis)

    def files(self, analyses: Sequence[Analysis], version: str) -> Mapping[str, bytes]:  # noqa: ARG002
        commands = [_command(analysis.exchange) for analysis in analyses]
        if len(analyses) > 1:
            commands = [
                f"# {analysis.exchange.number}\n{command}"
                for analysis, command in zip(analyses, commands, strict=True)
            ]
        return {"": "\n".join(commands).encode()}


def _command(exchange: Exchange) -> str:
    request = exchange.request
    provider = provider_of(request)
    content = request.content
    url = _url(exchange, provider)
    parts = ["curl -N -g" if _GLOB.search(url) else "curl -N"]
    parts += _method(request.method, has_body=bool(content))
    parts.append(f"--url {url}" if _DASH.match(url) else url)
    names = {name.lower() for name, _ in request.headers}
    parts += [
        f"-H {_field(text_of(name), value, provider)}"
        for name, value in request.headers
        if name.lower() not in _CURLS_OWN and not name.startswith(b"@")  # curl would read a file
    ]
    parts += [f"-H '{name.decode()}:'" for name in _ADDED if name.lower() not in names]
    if not content:
        return _joined(parts) + "\n"
    text = content.decode(errors="replace")
    if text.encode() == content and _is_safe(text):
        return _joined([*parts, f"--data-raw {shlex.quote(text)}"]) + "\n"
    before, after = _base64(content)
    return f"{before} | {_joined([*parts, '--data-binary @-'])}{after}"


def _method(method: str, *, has_body: bool) -> list[str]:
    if method == "HEAD":
        return ["-I"]
    return [] if method == ("POST" if has_body else "GET") else [f"-X {shell_word(method)}"]


def _joined(parts: Sequence[str]) -> str:
    return " \\\n  ".join(parts)


def _base64(data: bytes) -> tuple[str, str]:
    """Return how a command begins that is given `data`, and the lines after it."""
    text = base64.b64encode(data).decode()
    lines = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
    return "base64 -d <<'END'", "\n" + "\n".join([*lines, "END"]) + "\n"


def _is_safe(text: str) -> bool:
    """Return whether a terminal that shows `text` only prints it."""
    return all(each.isprintable() or each in "\n\t" for each in text)


def shell_word(text: str) -> str:
    """Return `text` as one word of a shell; what a terminal would act on is written by `printf`."""
    if text.isprintable():
        return shlex.quote(text)
    written = "".join(
        chr(byte) if byte in _PLAIN else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "surrogateescape")
    )
    return f"\"$(printf '{written.replace('%', '%%')}')\""


def provider_of(request: Request) -> Provider | None:
    """Return the known provider that a request went to."""
    host = split_url(request.upstream).hostname or ""
    return PROVIDERS.get(provider_of_host(host) or "")


def _field(name: str, value: HeaderValue, provider: Provider | None) -> str:
    """Return a header field as an argument."""
    if isinstance(value, bytes):
        text = text_of(value)
        return shell_word(f"{name}: {text}" if text else f"{name};")
    known = provider is not None and name.lower().encode() in KEY_FIELDS and provider.keys
    variable = known[0] if known else _shouted(name)
    scheme = "Bearer " if known and name.lower() == "authorization" else ""
    return shell_word(f"{name}: {scheme}") + f'"${variable}"'


def _shouted(name: str) -> str:
    variable = _NAME.sub("_", name.upper()).strip("_")
    return variable if variable[:1].isalpha() else f"CREDENTIAL_{variable}".rstrip("_")


def _url(exchange: Exchange, provider: Provider | None) -> str:
    """Return the URL as an argument, a variable for each masked part."""
    request = exchange.request
    if not any(isinstance(part, MaskedCredential) for part in request.target):
        return shell_word(url_of(exchange))
    origin = url_of(exchange).removesuffix(request.target_bytes.decode("utf-8", "replace"))
    written, before = [shell_word(origin)] if origin else [], b""
    for part in request.target:
        if isinstance(part, bytes):
            written.append(shell_word(part.decode("utf-8", "replace")))
            before = part
        else:
            found = _PARAMETER.search(before)
            name = found[1].decode("utf-8", "replace") if found else ""
            keys = provider.keys if provider is not None and name == "key" else ()
            written.append(f'"${keys[0] if keys else _shouted(name)}"')
    return "".join(written)
