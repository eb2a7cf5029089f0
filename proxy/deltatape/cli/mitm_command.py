"""`deltatape mitm`: runs mitmproxy with the addon, for apps that cannot be configured."""

import asyncio
import os
import sys
from pathlib import Path

import click

from deltatape.cli.options import GRACE, STRICT, TAPING_FAILED, TO, certificates, option
from deltatape.cli.terminal import aside, say, write
from deltatape.errors import UsageError
from deltatape.gateway.outbound import OutboundSettings, outbound_from
from deltatape.gateway.routes import parse_upstream
from deltatape.http1.listener import parse_address
from deltatape.mitm.hosts import Hosts
from deltatape.mitm.mitmdump import ADDON, MitmOptions
from deltatape.mitm.session import serve

_LOGIN = "proxyauth"


@click.command("mitm", context_settings={"ignore_unknown_options": False})
@option("--listen", default="127.0.0.1:8377", metavar="HOST:PORT", help="Where to listen.")
@option(
    "--upstream",
    metavar="URL",
    help="Forward everything to this provider (reverse proxy); else a proxy for HTTPS_PROXY.",
)
@TO
@option(
    "--hosts",
    multiple=True,
    metavar="HOST",
    help="Tape this host besides those of LLM providers; * stands for any characters.",
)
@certificates
@GRACE
@STRICT
@option(
    "--addon-path",
    is_flag=True,
    help="Print the addon's path for a mitmproxy of your own: mitmdump -s PATH.",
)
@click.argument("mitmproxy_options", nargs=-1, metavar="[-- MITMPROXY OPTIONS]")
def command(
    *,
    listen: str,
    upstream: str | None,
    to: Path,
    hosts: tuple[str, ...],
    ca: Path | None,
    client_cert: Path | None,
    client_key: Path | None,
    grace: float,
    strict: bool,
    addon_path: bool,
    mitmproxy_options: tuple[str, ...],
) -> int:
    """Record an app whose base URL cannot be set, with mitmproxy.

    Apps use it as HTTPS_PROXY and trust its CA; it prints what to set. Only hosts of LLM providers
    are decrypted and taped. With --upstream it is a reverse proxy for one provider.
    """
    if addon_path:
        write(f"{ADDON}\n")
        return 0
    outbound = outbound_from(os.environ, ca=ca, client_cert=client_cert, client_key=client_key)
    options = _options(listen, upstream, to, hosts, mitmproxy_options, outbound)
    with aside():
        outcome = asyncio.run(serve(options, grace_s=grace, tell=say))
    sys.stderr.flush()
    failed = not outcome.ended.in_order or (strict and outcome.trouble)
    return TAPING_FAILED if failed else 0


def _options(
    listen: str,
    upstream: str | None,
    to: Path,
    hosts: tuple[str, ...],
    mitmproxy_options: tuple[str, ...],
    outbound: OutboundSettings,
) -> MitmOptions:
    Hosts(hosts)  # fails for a wrong pattern before anything starts
    address = parse_address(listen)
    if address.path:
        raise UsageError(f"--listen {listen}: mitmproxy listens on HOST:PORT only")
    if not address.loopback and not any(_LOGIN in option for option in mitmproxy_options):
        raise UsageError(
            f"--listen {listen}: others than this machine could use the proxy; say who may, with"
            " mitmproxy's own option: deltatape mitm ... -- --proxyauth USER:PASSWORD"
        )
    return MitmOptions(
        host=address.host,
        port=address.port,
        upstream=None if upstream is None else _reverse(upstream),
        to=to,
        hosts=hosts,
        more=mitmproxy_options,
        outbound=outbound,
    )


def _reverse(url: str) -> str:
    """Return `url` in the form of mitmproxy's reverse mode.

    Raises:
        UsageError: it has a name or a path, which that mode does not support.
    """
    upstream = parse_upstream(url)
    if upstream.name or upstream.path:
        raise UsageError(
            f"--upstream {url!r}: here a plain origin is accepted, such as"
            f" {upstream.origin.url}; the app's base URL keeps the path"
        )
    return upstream.origin.url
