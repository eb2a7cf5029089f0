"""`deltatape record`: the gateway with its options, its live lines and its summary."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from deltatape import __version__
from deltatape.cli.loop import Signals
from deltatape.cli.options import option, seconds
from deltatape.cli.terminal import aside, say
from deltatape.clock import SystemClock, file_stamp
from deltatape.errors import UsageError
from deltatape.gateway.analysis import Ended
from deltatape.gateway.gateway import Gateway
from deltatape.gateway.routes import PROVIDERS, Refusal, Routes, parse_upstream
from deltatape.http1.listener import parse_address
from deltatape.model.exchange import Source
from deltatape.render.summary import exchange_line
from deltatape.rules.words import count
from deltatape.store.mask_key import mask_key
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker

NO_TRAFFIC_S = 20.0
TAPING_FAILED = 125


class Reporter:
    """Tells on stderr what happens; see `gateway.Observer`."""

    def __init__(self) -> None:
        self.exchanges = 0
        self.with_findings = 0
        self.trouble = False

    def exchange(self, ended: Ended) -> None:
        """See `Observer.exchange`."""
        self.exchanges += 1
        self.with_findings += bool(ended.findings)
        if ended.analysis is None:
            say(f"#{ended.number} ended; not analysed live: deltatape check says more")
        else:
            say(exchange_line(ended.analysis, ended.findings))

    def refused(self, refusal: Refusal) -> None:
        """See `Observer.refused`."""
        say(f"refused a request ({refusal.status} {refusal.code}): {refusal.message}")

    def alarm(self, problem: str) -> None:
        """See `Observer.alarm`."""
        self.trouble = True
        say(f"TAPING IN TROUBLE: {problem}")


@click.command("record")
@option("--listen", default="127.0.0.1:8377", metavar="HOST:PORT", help="Where to listen.")
@option(
    "--upstream",
    multiple=True,
    metavar="[NAME=]URL",
    help="A provider of your own at /NAME, or one URL that serves everything.",
)
@option(
    "--to",
    default=".deltatape",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for tapes.",
)
@option(
    "--grace",
    default="5s",
    callback=seconds,
    metavar="DURATION",
    help="How long streams may go on after Ctrl-C.",
)
@option(
    "--durability",
    type=click.Choice(["exchange", "none"]),
    default="exchange",
    help="When the tape is synced to disk: after each exchange, or by the system.",
)
@option("--strict", is_flag=True, help="Exit with 125 if anything could not be taped.")
def command(
    *,
    listen: str,
    upstream: tuple[str, ...],
    to: Path,
    grace: float,
    durability: str,
    strict: bool,
) -> int:
    """Sit between an app and its provider, and tape every stream.

    Point the app's base URL at the address that is printed. Every byte, boundary and ending passes
    through untouched; Ctrl-C ends the tape.
    """
    host, port = parse_address(listen)
    routes = Routes(parse_upstream(each) for each in upstream)
    reporter = Reporter()
    clock = SystemClock()
    writer = TapeWriter.create(
        to,
        file_stamp(clock.wall_ns()),
        clock=clock,
        tool=f"deltatape {__version__}",
        source=Source.GATEWAY,
        alarm=reporter.alarm,
    )
    masker = Masker(mask_key(os.environ, reporter.alarm))
    gateway = Gateway(routes, writer, masker, clock, reporter, durable=durability == "exchange")
    try:
        with aside():
            asyncio.run(
                _run(gateway, host, port, grace, lambda: _introduce(gateway, routes, writer))
            )
    except UsageError:
        _discard(writer)
        raise
    _summarise(writer, reporter)
    return TAPING_FAILED if strict and reporter.trouble else 0


def _discard(writer: TapeWriter) -> None:
    """Leave no empty tape where nothing was ever listened to: it would be the latest one."""
    writer.close()
    if writer.path is not None:
        writer.path.unlink(missing_ok=True)


async def _run(
    gateway: Gateway, host: str, port: int, grace: float, listening: Callable[[], None]
) -> None:
    await gateway.start(host, port)
    signals = Signals(gateway.hurry)
    listening()
    reminder = asyncio.get_running_loop().call_later(NO_TRAFFIC_S, _remind, gateway)
    reason = await signals.wait()
    reminder.cancel()
    active = len(gateway.counts.active)
    if active:
        say(f"stopping: {count(active, 'stream')} may go on for {grace:g} s; Ctrl-C again cuts")
    await gateway.stop(reason, grace_s=grace)


def _introduce(gateway: Gateway, routes: Routes, writer: TapeWriter) -> None:
    base = gateway.listener.url
    say(f"deltatape {__version__} is recording; Ctrl-C ends the tape")
    say(f"  tape     {writer.path or 'none: see above'}")
    if routes.single is not None:
        upstream = routes.single
        say(f"  forward  {base} -> {upstream.origin.url}{upstream.path}")
        say(f"  set      OPENAI_BASE_URL={base}/v1  (or your SDK's base URL, with the same path)")
    else:
        say(f"  forward  {base}/NAME -> the provider; NAME: {' '.join(routes.named)}")
        for name, upstream in routes.named.items():
            if PROVIDERS.get(name) != upstream.origin.url:
                say(f"           {base}/{name} -> {upstream.origin.url}{upstream.path}")
        say(f"  set      OPENAI_BASE_URL={base}/openai/v1")
        say(f"           ANTHROPIC_BASE_URL={base}/anthropic")


def _remind(gateway: Gateway) -> None:
    if gateway.counts.exchanges or gateway.counts.refused:
        return
    base = gateway.listener.url
    if gateway.counts.clients:
        say("a client connected but sent no request: is it speaking HTTPS to this HTTP port?")
    else:
        say(
            f"no traffic for {NO_TRAFFIC_S:.0f} s: does the app read the base URL that you set, in"
            f" the process that calls the provider? A container reaches {base} only on the host's"
            " network; try: curl " + base
        )


def _summarise(writer: TapeWriter, reporter: Reporter) -> None:
    say(f"{count(reporter.exchanges, 'exchange')} taped, {reporter.with_findings} with findings")
    if writer.lost_records:
        say(
            f"NOT ON THE TAPE: {writer.lost_records} records, {writer.lost_bytes} bytes;"
            " the streams themselves were not touched"
        )
    if writer.path is not None:
        say(f"tape: {writer.path}")
        if reporter.exchanges:
            say(f"next: deltatape why {writer.path}")
    sys.stderr.flush()
