"""How to reach upstreams: corporate proxy, trusted certificates, client certificate.

The environment and the options are read once, so that mistakes are reported at the start. Proxy
variables are read as curl does: `https_proxy` for `https://` upstreams, `http_proxy` for `http://`,
then `all_proxy`; lower case before upper case; the first that exists decides, and an empty one
means no proxy. `NO_PROXY` lists what is reached directly. An upstream on loopback never goes
through a proxy.

TLS trusts what OpenSSL trusts by default (`SSL_CERT_FILE` replaces its file, `SSL_CERT_DIR` its
folder, each alone), and the certificates of `--ca` besides. An intermediate certificate that is
trusted ends a chain, as with curl.

Source: curl's manual, section Environment; OpenSSL, SSL_CTX_set_default_verify_paths(3).
"""

import base64
import ipaddress
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from deltatape.errors import UsageError
from deltatape.http1.listener import bracketed, is_loopback
from deltatape.http1.tls import ReadableTLSContext

_DEFAULT_PORTS = {"http": 80, "https": 443}
_CREDENTIALS = re.compile(r"^([A-Za-z0-9+.-]+://)?.*@", re.DOTALL)
_BRACKETED = re.compile(r"\[([^\]]+)\](?::(\d+))?")
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A corporate proxy, used with CONNECT."""

    scheme: str
    host: str
    port: int
    authorization: bytes | None = field(default=None, repr=False)
    """The value of `Proxy-Authorization`."""
    variable: str
    """The variable that names the proxy."""

    @property
    def url(self) -> str:
        """The URL without credentials."""
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyBypass:
    """`NO_PROXY`: hosts reached directly, each for one port or all (None)."""

    everything: bool = False
    names: tuple[tuple[str, int | None], ...] = ()
    """Each matches itself and all names below it."""
    networks: tuple[tuple[_Network, int | None], ...] = ()

    def covers(self, host: str, port: int) -> bool:
        """Check whether `host` is reached directly; names are not resolved."""
        name = host.lower().rstrip(".")
        if self.everything or is_loopback(name):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return any(
                only in (None, port) and (name == each or name.endswith(f".{each}"))
                for each, only in self.names
            )
        return any(only in (None, port) and address in net for net, only in self.networks)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSettings:
    """Trusted certificates, and the client certificate."""

    ca_file: str | None = None
    """In place of OpenSSL's default file."""
    ca_folder: str | None = None
    """In place of OpenSSL's default folder."""
    ca: Path | None = None
    """Besides these."""
    client_cert: Path | None = None
    client_key: Path | None = None
    key_log: str | None = None
    """`SSLKEYLOGFILE`: where TLS secrets are written for a network analyser."""

    def upstream_context(self) -> ssl.SSLContext:
        """Return the TLS context for upstreams.

        Raises:
            UsageError: a file cannot be used; the message says which and why.
        """
        context = self.proxy_context()
        if self.client_cert is not None:
            _show_certificate(context, self.client_cert, self.client_key)
        return context

    def proxy_context(self) -> ssl.SSLContext:
        """Return the TLS context for a proxy: without the client certificate.

        Raises:
            UsageError: a file cannot be used; the message says which and why.
        """
        context = ReadableTLSContext(ssl.PROTOCOL_TLS_CLIENT)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        defaults = ssl.get_default_verify_paths()
        if self.ca_file is not None:
            _trust_file(context, "SSL_CERT_FILE", self.ca_file)
        elif Path(defaults.openssl_cafile).is_file():
            context.load_verify_locations(cafile=defaults.openssl_cafile)
        if self.ca_folder is not None:
            _trust_folders(context, self.ca_folder)
        elif Path(defaults.openssl_capath).is_dir():
            context.load_verify_locations(capath=defaults.openssl_capath)
        if self.ca is not None:
            _trust_file(context, "--ca", str(self.ca))
        if self.key_log is not None:
            context.keylog_filename = self.key_log
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundSettings:
    """All settings for reaching an upstream; the default is directly."""

    https_proxy: Proxy | None = None
    http_proxy: Proxy | None = None
    direct: ProxyBypass = ProxyBypass()
    trust: TrustSettings = TrustSettings()

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy for an upstream; None if it is reached directly."""
        proxy = self.https_proxy if scheme == "https" else self.http_proxy
        return None if proxy is None or self.direct.covers(host, port) else proxy


def outbound_from(
    environment: Mapping[str, str],
    *,
    ca: Path | None = None,
    client_cert: Path | None = None,
    client_key: Path | None = None,
) -> OutboundSettings:
    """Read the environment variables, and try each named file.

    Args:
        environment: the environment of the user.
        ca: a PEM file with certificates to trust besides the system's.
        client_cert: a PEM file with the certificate to show, and its key unless `client_key`.
        client_key: a PEM file with the key of `client_cert`, without a passphrase.

    Raises:
        UsageError: a variable or a file cannot be used; the message says which and why.
    """
    if client_key is not None and client_cert is None:
        raise UsageError(
            f"--client-key {str(client_key)!r}: a key without its certificate; add --client-cert"
            " FILE"
        )
    trust = TrustSettings(
        ca_file=environment.get("SSL_CERT_FILE") or None,
        ca_folder=environment.get("SSL_CERT_DIR") or None,
        ca=ca,
        client_cert=client_cert,
        client_key=client_key,
        key_log=environment.get("SSLKEYLOGFILE") or None,
    )
    if trust != TrustSettings():
        trust.upstream_context()
    direct = _direct(_first(environment, "no_proxy", "NO_PROXY")[1])
    https, http = (
        None if direct.everything else _proxy(environment, scheme) for scheme in ("https", "http")
    )
    return OutboundSettings(https_proxy=https, http_proxy=http, direct=direct, trust=trust)


# Proxies.


def _first(environment: Mapping[str, str], *names: str) -> tuple[str, str]:
    """Return the first existing variable and its value; ("", "") if there is none."""
    name = next((name for name in names if name in environment), "")
    return name, environment.get(name, "").strip()


def _proxy(environment: Mapping[str, str], scheme: str) -> Proxy | None:
    name, value = _first(
        environment, f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY"
    )
    if not value:
        return None
    shown = _CREDENTIALS.sub(r"\1***@", value)
    accepted = (
        "use http://[USER:PASSWORD@]HOST:PORT or https://...; NO_PROXY='*' reaches every upstream"
        " directly"
    )
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{name} {shown!r}: invalid proxy URL: {error}; {accepted}") from None
    if parts.scheme.startswith("socks"):
        raise UsageError(f"{name} {shown!r}: SOCKS is not supported; {accepted}")
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise UsageError(f"{name} {shown!r}: invalid proxy URL; {accepted}")
    return Proxy(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or _DEFAULT_PORTS[parts.scheme],
        authorization=_basic(parts.username, parts.password),
        variable=name,
    )


def _basic(user: str | None, password: str | None) -> bytes | None:
    if user is None:
        return None
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return b"Basic " + base64.b64encode(pair.encode())


def _direct(text: str) -> ProxyBypass:
    """Parse `NO_PROXY`; ignore unknown entries."""
    names: list[tuple[str, int | None]] = []
    networks: list[tuple[_Network, int | None]] = []
    entries = [entry.lower() for entry in re.split(r"[,\s]+", text) if entry]
    for entry in entries:
        host, port = _host_and_port(entry)
        try:
            networks.append((ipaddress.ip_network(host, strict=False), port))
        except ValueError:
            if name := host.removeprefix("*").strip("."):
                names.append((name, port))
    return ProxyBypass(everything="*" in entries, names=tuple(names), networks=tuple(networks))


def _host_and_port(entry: str) -> tuple[str, int | None]:
    """Split `host:443`, `[::1]:443`, `host`, `::1` or `10.0.0.0/8` into host and port."""
    if match := _BRACKETED.fullmatch(entry):
        return match[1], int(match[2]) if match[2] else None
    host, colon, port = entry.partition(":")
    return (host, int(port)) if colon and port.isdecimal() else (entry, None)


# Certificates.


def _trust_file(context: ssl.SSLContext, name: str, path: str) -> None:
    accepted = "use a PEM file with certificates"
    _check_readable(name, path, accepted)
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        raise UsageError(
            f"{name} {path!r}: no certificates: {_words(error)}; {accepted} (openssl x509"
            " -inform der converts a DER file)"
        ) from None


def _trust_folders(context: ssl.SSLContext, paths: str) -> None:
    for path in paths.split(os.pathsep):
        if not Path(path).is_dir():
            raise UsageError(
                f"SSL_CERT_DIR {path!r}: no such folder; use one prepared by openssl rehash"
            )
    context.load_verify_locations(capath=paths)


def _show_certificate(context: ssl.SSLContext, cert: Path, key: Path | None) -> None:
    accepted = "use PEM files with a certificate and its key, without a passphrase"
    _check_readable("--client-cert", str(cert), accepted)
    if key is not None:
        _check_readable("--client-key", str(key), accepted)
    named = f"--client-cert {str(cert)!r}" + (f" --client-key {str(key)!r}" if key else "")

    def ask() -> NoReturn:
        """Replace OpenSSL's question at the terminal."""
        raise UsageError(f"{named}: the key has a passphrase; {accepted}")

    try:
        context.load_cert_chain(cert, key, password=ask)
    except ssl.SSLError as error:
        # Without a reason, OpenSSL found no certificate, or no key.
        problem = _words(error) if error.reason else "no certificate with its key"
        raise UsageError(f"{named}: {problem}; {accepted}") from None


def _check_readable(name: str, path: str, accepted: str) -> None:
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError as error:
        raise UsageError(f"{name} {path!r}: {error.strerror}; {accepted}") from None


def _words(error: ssl.SSLError) -> str:
    """OpenSSL's reason as words: `KEY_VALUES_MISMATCH` becomes `key values mismatch`."""
    return (error.reason or str(error)).replace("_", " ").lower()
