"""How a mitmproxy that deltatape starts gets out: whom it trusts, what it shows, its login.

What `gateway.outbound` has read, in mitmproxy's own options. Left to itself, mitmproxy trusts the
roots that it brings along, reads no variable, and goes everywhere directly. Where mitmproxy differs
from the gateway:

- It takes one proxy for everything, the one for `https://` upstreams, and `NO_PROXY` cannot be
  expressed: what reaches mitmproxy goes through that proxy. Applications still see `NO_PROXY`, to
  which loopback is added, and reach what it lists past mitmproxy.
- In front of one upstream (reverse mode) it takes no proxy at all.
- A client certificate is also shown to a proxy that is spoken to with TLS and asks for one.
- An intermediate certificate alone ends no chain: the root is needed.

What has to be put together lies in a folder of the run's own, for its owner only, until it ends.

Source: https://docs.mitmproxy.org/stable/concepts/options/; the same in versions 11 and 12.
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
from deltatape.gateway.outbound import Proxy, Trust
from deltatape.mitm.environment import state_folder, system_roots
from deltatape.mitm.mitmdump import MitmOptions
from deltatape.mitm.talk import CA_FILE, CA_FOLDER, CLIENT_CERTS, PROXY_LOGIN, inherited

_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


@contextlib.contextmanager
def outward(options: MitmOptions, environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment for mitmproxy; what it names is there until the end of the block.

    Args:
        options: `outbound` decides.
        environment: of the user.

    Raises:
        UsageError: a file cannot be read or written, or mitmproxy cannot log in like this.
    """
    with contextlib.ExitStack() as stack:
        values = {} if options.proxy is None else _login(options.proxy)
        try:
            folder = _folder(options.outbound.trust, stack, environment)
            values |= _trusted(options.outbound.trust, folder)
            values |= _shown(options.outbound.trust, folder)
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}") from None
        yield {**environment, **inherited(values)}


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


def _folder(trust: Trust, stack: contextlib.ExitStack, environment: Mapping[str, str]) -> Path:
    """Where files are put together; made only where there are any."""
    state = state_folder(environment)
    if trust.ca is None and trust.client_key is None:
        return state
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mitm-", dir=state)))


def _trusted(trust: Trust, folder: Path) -> dict[str, str]:
    """As `Trust` has it: a file and a folder, each the user's or the system's, and `--ca`."""
    file = Path(trust.ca_file) if trust.ca_file else system_roots()
    if trust.ca is not None:
        parts = [each.read_bytes().strip() for each in (file, trust.ca) if each is not None]
        file = _written(folder / "ca.pem", *parts)
    capath = trust.ca_folder or ssl.get_default_verify_paths().openssl_capath
    found = {}
    if file is not None:
        found[CA_FILE] = str(file.absolute())
    if all(Path(each).is_dir() for each in capath.split(os.pathsep)):
        found[CA_FOLDER] = capath
    return found


def _shown(trust: Trust, folder: Path) -> dict[str, str]:
    """The certificate and its key in one file, as mitmproxy wants them."""
    if trust.client_cert is None:
        return {}
    one = trust.client_cert
    if trust.client_key is not None:
        key = _KEY.search(trust.client_key.read_bytes())
        assert key is not None  # else `outbound_from` had refused it
        # First: the file with the certificate may hold the key of another.
        one = _written(folder / "client.pem", key[0], one.read_bytes().strip())
    return {CLIENT_CERTS: str(one.absolute())}


def _written(path: Path, *parts: bytes) -> Path:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(b"\n".join(parts) + b"\n")
    return path
