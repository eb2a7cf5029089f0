"""`deltatape mitm`: runs mitmproxy with the addon, for apps that cannot be configured."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from deltatape.cli.options import (
    CONTROL,
    DURABILITY,
    GRACE,
    KEEP,
    NEVER,
    NO_BODIES,
    ON_FINDING,
    OPEN,
    OTLP,
    QUIET,
    READY_FILE,
    STRICT,
    TO,
    certificates,
    fail_on,
    option,
)
from deltatape.cli.record_command import (
    Judgement,
    TapingArguments,
    mitm_options,
    run,
    taping_options,
)
from deltatape.cli.terminal import write
from deltatape.errors import UsageError
from deltatape.gateway.routes import parse_upstream
from deltatape.http1.listener import parse_address
from deltatape.mitm.mitmdump import ADDON
from deltatape.record.recording import RecordOptions

_LOGIN = "proxyauth"


@dataclass(frozen=True, slots=True, kw_only=True)
class MitmArguments(TapingArguments):
    """The options."""

    listen: str
    upstream: str | None
    to: Path
    addon_path: bool
    mitmproxy_options: tuple[str, ...]


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
@QUIET
@NO_BODIES
@KEEP
@ON_FINDING
@fail_on("Exit with 1 for a finding of this severity or worse.", default=NEVER)
@certificates
@CONTROL
@OTLP
@OPEN
@READY_FILE
@GRACE
@DURABILITY
@STRICT
@option(
    "--addon-path",
    is_flag=True,
    help="Print the addon's path for a mitmproxy of your own: mitmdump -s PATH.",
)
@click.argument("mitmproxy_options", nargs=-1, metavar="[-- MITMPROXY OPTIONS]")
def command(**options: Any) -> int:
    """Record an app whose base URL cannot be set, with mitmproxy.

    Apps use it as HTTPS_PROXY and trust its CA; it prints what to set. Only hosts of LLM providers
    are decrypted and taped. With --upstream it is a reverse proxy for one provider.
    """
    arguments = MitmArguments(**options)
    if arguments.addon_path:
        write(f"{ADDON}\n")
        return 0
    recording = _recording(arguments)
    _refuse_strangers(arguments, recording)
    mitm = mitm_options(
        recording,
        host=recording.listen.host,
        port=recording.listen.port,
        hosts=arguments.hosts,
        upstream=None if arguments.upstream is None else _reverse(arguments.upstream),
        more=arguments.mitmproxy_options,
    )
    judgement = Judgement(quiet=arguments.quiet, fail_on=arguments.fail_on, strict=arguments.strict)
    return run(recording, judgement, os.environ, mitm)


def _recording(arguments: MitmArguments) -> RecordOptions:
    listen = parse_address(arguments.listen)
    if listen.path:
        raise UsageError(f"--listen {arguments.listen}: mitmproxy listens on HOST:PORT only")
    return taping_options(arguments, os.environ, listen, arguments.to)


def _refuse_strangers(arguments: MitmArguments, recording: RecordOptions) -> None:
    """Refuse to listen where others can use the proxy, unless they have to log in."""
    if recording.listen.loopback or any(_LOGIN in each for each in arguments.mitmproxy_options):
        return
    raise UsageError(
        f"--listen {arguments.listen}: others than this machine could use the proxy; say who may,"
        " with mitmproxy's own option: deltatape mitm ... -- --proxyauth USER:PASSWORD"
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
