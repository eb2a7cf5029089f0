"""The two environments of a run: for the application, and for mitmproxy.

The application gets proxy variables and a bundle of CAs. Most clients read HTTPS_PROXY, and each
family has its own variable for CAs. SSL_CERT_FILE and similar variables *replace* the CAs that a
client trusts, so the bundle holds those that it trusted before and the CA of mitmproxy.

Node.js reads HTTPS_PROXY from 22.21 and 24 on if NODE_USE_ENV_PROXY is set. For older versions,
NODE_OPTIONS loads a module that sends `fetch` and the default agent of `https` through the proxy.
In every version it does so for `http2`, which AWS's SDK uses for Bedrock.

Not covered: aiohttp without `trust_env=True`; clients whose code sets a proxy, an agent or CAs;
certificate pinning.

Source: run with each of these clients; https://nodejs.org/api/cli.html#node_use_env_proxy1.
"""

import base64
import contextlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from deltatape.errors import UsageError
from deltatape.gateway.outbound import Proxy, TrustSettings
from deltatape.mitm.ipc import CA_FILE, CA_FOLDER, CLIENT_CERTS, PROXY_LOGIN, options_variable
from deltatape.mitm.mitmdump import MitmOptions
from deltatape.store.names import state_folder

NODE_PROXY = Path(__file__).resolve().with_name("node_proxy.cjs")
"""What Node.js loads."""
CA_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "DENO_CERT",
)
PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
LOOPBACK = "localhost,127.0.0.1,::1"
_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Root certificates of systems where OpenSSL knows none: Debian, Fedora, SUSE; macOS, Alpine."""
_BUNDLE = "mitm-ca-bundle.pem"


def proxy_variables(proxy_url: str, bundle: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to add for a command; for NO_PROXY see `no_proxy`.

    Args:
        proxy_url: where mitmproxy listens.
        bundle: see `ca_bundle`.
        environment: the environment of the command; its NODE_OPTIONS are kept.
    """
    node = f"{environment.get('NODE_OPTIONS', '')} --require {_quoted(NODE_PROXY)}".strip()
    return {
        **dict.fromkeys(PROXY_VARIABLES, proxy_url),
        **dict.fromkeys(CA_VARIABLES, str(bundle)),
        "NODE_USE_ENV_PROXY": "1",
        "NODE_OPTIONS": node,
    }


def no_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """Return NO_PROXY with loopback, where a corporate proxy behind mitmproxy cannot reach."""
    so_far = environment.get("no_proxy") or environment.get("NO_PROXY")
    return dict.fromkeys(("NO_PROXY", "no_proxy"), f"{so_far},{LOOPBACK}" if so_far else LOOPBACK)


def _quoted(path: Path) -> str:
    """Quote a path for NODE_OPTIONS, where blanks separate options."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def ca_bundle(ca: Path, folder: Path, environment: Mapping[str, str]) -> Path:
    """Write the trusted CAs and mitmproxy's CA into one file of `folder`; return its path.

    Args:
        ca: mitmproxy's certificate.
        folder: made if missing, for its owner only.
        environment: whose variables name what the user trusts; else the system's roots.

    Raises:
        UsageError: a file cannot be read or written.
    """
    path = folder / _BUNDLE
    draft = folder / f"{_BUNDLE}.{os.getpid()}"
    try:
        parts = [each.read_bytes().strip() for each in (*_trusted_files(environment, path), ca)]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(b"\n".join(parts) + b"\n")
        # In one step: another run's child may be reading it.
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    return path


def _trusted_files(environment: Mapping[str, str], bundle: Path) -> Iterator[Path]:
    """Yield the CA files in force, each once."""
    named = [environment[name] for name in CA_VARIABLES if environment.get(name)]
    replaced = environment.get("SSL_CERT_FILE")
    files = [*([] if replaced else [system_roots()]), *map(Path, named)]
    for file in dict.fromkeys(files):
        if file is not None and file != bundle:
            yield file


def system_roots() -> Path | None:
    """Return the file of the system's root certificates; None if there is none."""
    paths = ssl.get_default_verify_paths()
    for name in (paths.cafile, paths.openssl_cafile, *_SYSTEM):
        if name and Path(name).is_file():
            return Path(name)
    return None


# How mitmproxy reaches upstreams: trusted CAs, client certificate, login at the corporate proxy.
#
# The settings of `gateway.outbound` as mitmproxy's options. By default, mitmproxy trusts the roots
# that it brings along, reads no variable, and uses no proxy. Where it differs from the gateway:
#
# - It takes one proxy for everything, the one for `https://` upstreams, and has no `NO_PROXY`: what
#   reaches mitmproxy goes through that proxy. Applications still see `NO_PROXY`, with loopback
#   added, and bypass mitmproxy for the hosts that it lists.
# - In front of one upstream (reverse mode) it takes no proxy at all.
# - A client certificate is also shown to a TLS proxy that asks for one.
# - An intermediate certificate does not end a chain: the root is needed.
#
# Combined files lie in a folder that only the owner can read, until the run ends.
#
# Source: https://docs.mitmproxy.org/stable/concepts/options/; the same in versions 11 and 12.

_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


@contextlib.contextmanager
def mitmproxy_environment(
    options: MitmOptions, environment: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Yield the environment for mitmproxy; its files exist until the end of the block.

    Args:
        options: `outbound` decides.
        environment: the environment of the user.

    Raises:
        UsageError: a file cannot be read or written, or mitmproxy cannot log in like this.
    """
    with contextlib.ExitStack() as stack:
        values = {} if options.proxy is None else _login(options.proxy)
        try:
            folder = _certificate_folder(options.outbound.trust, stack, environment)
            values |= _root_certificates(options.outbound.trust, folder)
            values |= _client_certificate(options.outbound.trust, folder)
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}") from None
        yield {**environment, **options_variable(values)}


def _login(proxy: Proxy) -> dict[str, str]:
    if proxy.authorization is None:
        return {}
    pair = base64.b64decode(proxy.authorization.removeprefix(b"Basic ")).decode()
    if pair.startswith(":"):
        raise UsageError(
            f"{proxy.variable}: a password without a user's name, which mitmproxy does not take;"
            " http://USER:PASSWORD@HOST:PORT is accepted"
        )
    return {PROXY_LOGIN: pair}


def _certificate_folder(
    trust: TrustSettings, stack: contextlib.ExitStack, environment: Mapping[str, str]
) -> Path:
    """Create the folder for joined files, only if there are any."""
    state = state_folder(environment)
    if trust.ca is None and trust.client_key is None:
        return state
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mitm-", dir=state)))


def _root_certificates(trust: TrustSettings, folder: Path) -> dict[str, str]:
    """Return file and folder as in `TrustSettings`: each the user's or the system's, and `--ca`."""
    file = Path(trust.ca_file) if trust.ca_file else system_roots()
    if trust.ca is not None:
        parts = [each.read_bytes().strip() for each in (file, trust.ca) if each is not None]
        file = _write_private(folder / "ca.pem", *parts)
    capath = trust.ca_folder or ssl.get_default_verify_paths().openssl_capath
    found = {}
    if file is not None:
        found[CA_FILE] = str(file.absolute())
    if all(Path(each).is_dir() for each in capath.split(os.pathsep)):
        found[CA_FOLDER] = capath
    return found


def _client_certificate(trust: TrustSettings, folder: Path) -> dict[str, str]:
    """Write the certificate and its key into one file, as mitmproxy requires."""
    if trust.client_cert is None:
        return {}
    certificate = trust.client_cert
    if trust.client_key is not None:
        key = _KEY.search(trust.client_key.read_bytes())
        assert key is not None  # `outbound_from` refuses a file without a key
        # The key comes first: the certificate's file may contain another key.
        certificate = _write_private(
            folder / "client.pem", key[0], certificate.read_bytes().strip()
        )
    return {CLIENT_CERTS: str(certificate.absolute())}


def _write_private(path: Path, *parts: bytes) -> Path:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(b"\n".join(parts) + b"\n")
    return path
