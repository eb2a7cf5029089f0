"""`deltatape ship`: sends finished tapes to an object store, as a process of its own."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from deltatape.cli.options import QUIET, PathArgument, duration, option, size
from deltatape.cli.terminal import say
from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.http1.listener import bracketed, parse_address
from deltatape.objects.urls import open_store
from deltatape.printable import count
from deltatape.settings.defaults import current_rules
from deltatape.ship.state import ShipState, check_gateway, serve_metrics
from deltatape.store.listing import check_folder

if TYPE_CHECKING:
    from deltatape.objects.store import ObjectStore

_PRIVATE = 0o077


@click.command("ship")
@click.argument("folder", cls=PathArgument, type=click.Path(path_type=Path), metavar="DIR")
@click.argument("url", metavar="URL")
@option("--once", is_flag=True, help="End when every finished tape is in the store.")
@option(
    "--gateway",
    metavar="NAME",
    help="The name of the recorder, in the keys after the day; default: the name of this host.",
)
@option("--no-seal", is_flag=True, help="Send tapes unsealed (see deltatape pack).")
@option(
    "--delete-shipped",
    is_flag=True,
    help="Delete a local tape once the whole object was read back and is equal to it.",
)
@size("--bandwidth", None, "Send and read back at most so much per second, such as 10MB/s.")
@size(
    "--memory",
    "20MiB",
    "Hold at most so much of tapes in memory; 10MiB or more.",
    least="10MiB",
    why=", which holds the part that is filled and the part that is sent",
)
@duration(
    "--patience",
    None,
    "How long to retry when the store does not answer; default: for ever, with --once 5m.",
)
@option("--metrics", metavar="HOST:PORT", help="Serve /metrics for Prometheus there.")
@QUIET
def command(
    *,
    folder: Path,
    url: str,
    once: bool,
    gateway: str | None,
    no_seal: bool,
    delete_shipped: bool,
    bandwidth: int | None,
    memory: int,
    patience: float | None,
    metrics: str | None,
    quiet: bool,
) -> int:
    """Send the finished tapes of DIR, and of all folders below, to an object store.

    Follows DIR until it is stopped; Ctrl-C and SIGTERM stop it after the current part. URL is
    s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER; credentials
    and endpoints come from the usual variables, such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL.
    A tape is sealed and stored as dt=DAY/gateway=NAME/ID.tape.zst below URL: once, however often
    it is shipped. Tapes that are being written are not shipped; damaged ones are reported.

    Exit code: 1 if a tape was not shipped, because it is damaged, another tape in the store has
    its id or its folder cannot be read; 2 if the store refuses, or does not answer within
    --patience.
    """
    name = check_gateway(gateway if gateway is not None else socket.gethostname())
    if once or folder.exists():
        check_folder(folder)
    with _private_files():
        store = open_store(url, makes=True)
        from deltatape.ship.shipper import ShipOptions, Shipper  # noqa: PLC0415 - needs obstore

        _refuse_within(folder, store)
        options = ShipOptions(
            folder=folder,
            gateway=name,
            seal=not no_seal,
            rules=current_rules(),
            delete=delete_shipped,
            memory=memory,
            bandwidth=bandwidth,
            patience_s=patience if patience is not None or not once else 300.0,
        )
        state, stop = ShipState(), threading.Event()
        _answer_metrics(metrics, state)
        shipper = Shipper(
            store,
            options,
            clock=SystemClock(),
            stop=stop,
            tell=_nothing if quiet else say,
            alarm=say,
            state=state,
        )
        with _stopped_by_signals(stop), ThreadPoolExecutor(1) as thread:
            # Not in this thread, since signals would have to wait until the store answers.
            thread.submit(shipper.run, once=once).result()
    if not quiet:
        _say_what_is_left(state, ended=not stop.is_set())
    return int(bool(state.refused or state.unreadable))


def _nothing(_: str) -> None:
    pass


def _refuse_within(folder: Path, store: "ObjectStore") -> None:
    """Reject a store inside the folder: its objects would be shipped again."""
    if store.folder is not None and store.folder.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{store.url}: lies in {folder}, which it would ship; use another folder")


def _answer_metrics(text: str | None, state: ShipState) -> None:
    if text is None:
        return
    address = parse_address(text, "--metrics")
    if address.path:
        raise UsageError(f"--metrics {text!r}: not a Unix socket; use HOST:PORT")
    port = serve_metrics(state, SystemClock(), address.host, address.port)
    say(f"metrics: http://{bracketed(address.host)}:{port}/metrics")


def _say_what_is_left(state: ShipState, *, ended: bool) -> None:
    say(f"{count(state.shipped, 'tape')} shipped")
    if not ended:
        say(f"stopped: {count(len(state.backlog), 'tape')} left to ship")
    if state.recording:
        say(f"{count(state.recording, 'tape')} being written: left alone")


@contextmanager
def _private_files() -> Iterator[None]:
    """Make what is created in a folder its owner's only: tapes hold prompts."""
    before = os.umask(_PRIVATE)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Have the first signal request the end, and a second one end the process."""

    def requested(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield  # nobody else may handle signals
        return
    before = {each: signal.signal(each, requested) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
