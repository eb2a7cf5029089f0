"""What leads an application through mitmproxy: proxy variables, and a bundle of CAs.

Most clients read HTTPS_PROXY, and each family has its own variable for CAs. SSL_CERT_FILE and its
like *replace* what a client trusts, so they get a bundle: what was trusted before and the CA of
mitmproxy.

Node.js reads HTTPS_PROXY from 22.21 and 24 on, when NODE_USE_ENV_PROXY says so. Before, a module
that NODE_OPTIONS loads leads `fetch` and the default agent of `https` through the proxy; `http2`,
by which AWS's SDK reaches Bedrock, it leads there in every version.

What none of this reaches: aiohttp without `trust_env=True`, a client with a proxy, an agent or CAs
set in its code, certificate pinning.

Source: run with each of these clients; https://nodejs.org/api/cli.html#node_use_env_proxy1.
"""

import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from deltatape.errors import UsageError

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
"""Where systems keep their roots, should OpenSSL not know: Debian, Fedora, SUSE; macOS, Alpine."""
_BUNDLE = "mitm-ca-bundle.pem"


def state_folder(environment: Mapping[str, str]) -> Path:
    """Where deltatape keeps what outlives a run: `$XDG_STATE_HOME/deltatape`."""
    # "All paths must be absolute. If [...] relative, [...] ignore it" (XDG Base Directory 0.8)
    stated = Path(environment.get("XDG_STATE_HOME", ""))
    home = Path(environment.get("HOME", "/")) / ".local" / "state"
    return (stated if stated.is_absolute() else home) / "deltatape"


def variables(proxy_url: str, bundle: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What to set for a command, besides what is set; for NO_PROXY see `past`.

    Args:
        proxy_url: where mitmproxy listens.
        bundle: see `ca_bundle`.
        environment: of the command; its NODE_OPTIONS are kept.
    """
    node = f"{environment.get('NODE_OPTIONS', '')} --require {_quoted(NODE_PROXY)}".strip()
    return {
        **dict.fromkeys(PROXY_VARIABLES, proxy_url),
        **dict.fromkeys(CA_VARIABLES, str(bundle)),
        "NODE_USE_ENV_PROXY": "1",
        "NODE_OPTIONS": node,
    }


def past(environment: Mapping[str, str]) -> dict[str, str]:
    """NO_PROXY with loopback, to which no company's proxy behind mitmproxy leads back."""
    so_far = environment.get("no_proxy") or environment.get("NO_PROXY")
    return dict.fromkeys(("NO_PROXY", "no_proxy"), f"{so_far},{LOOPBACK}" if so_far else LOOPBACK)


def _quoted(path: Path) -> str:
    """A path in NODE_OPTIONS, where blanks part options."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def ca_bundle(ca: Path, folder: Path, environment: Mapping[str, str]) -> Path:
    """Write what is trusted so far and mitmproxy's CA into one file of `folder`; its path.

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
        parts = [each.read_bytes().strip() for each in (*_trusted(environment, path), ca)]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(b"\n".join(parts) + b"\n")
        # In one step: another run's child may be reading it.
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    return path


def _trusted(environment: Mapping[str, str], bundle: Path) -> Iterator[Path]:
    """The files of CAs in force, each once."""
    named = [environment[name] for name in CA_VARIABLES if environment.get(name)]
    replaced = environment.get("SSL_CERT_FILE")
    files = [*([] if replaced else [system_roots()]), *map(Path, named)]
    for file in dict.fromkeys(files):
        if file is not None and file != bundle:
            yield file


def system_roots() -> Path | None:
    """The file of the system's roots; None where it has none."""
    paths = ssl.get_default_verify_paths()
    for name in (paths.cafile, paths.openssl_cafile, *_SYSTEM):
        if name and Path(name).is_file():
            return Path(name)
    return None
