"""What `deltatape record` was asked to do, as values."""

from dataclasses import dataclass
from pathlib import Path

from deltatape.gateway.outbound import Outbound
from deltatape.gateway.routes import Upstream
from deltatape.http1.listener import Address
from deltatape.rules.settings import Settings
from deltatape.store.ring import Keep


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """All settings of a run of the recorder.

    Attributes:
        listen: where the gateway listens.
        upstreams: the user's own.
        to: the folder for tapes.
        app: the application's own endpoint, to be tapped at `app_listen`.
        token: opens the gateway where others than this machine can reach it.
        check_keys: refuse a key of one provider that is about to go to another.
        outbound: how upstreams are reached.
        grace_s: how long streams may go on at the end.
        durable: sync the tape after each exchange.
        bodies: tape the bodies of requests.
        keep: the budget of the flight recorder's ring; None keeps everything.
        on_finding: a command for exchanges with findings.
        ready_file: written when the gateway listens.
        control: where health and status are told.
        command: the application to run; empty to wait for a signal.
        log: tee what it prints onto the tape.
        tunnel: watch what it reaches past the gateway.
        rules: the thresholds for findings.
    """

    listen: Address
    upstreams: tuple[Upstream, ...]
    to: Path
    app: Upstream | None
    app_listen: Address
    token: str | None
    check_keys: bool
    outbound: Outbound
    grace_s: float
    durable: bool
    bodies: bool
    keep: Keep | None
    on_finding: str | None
    ready_file: Path | None
    control: Address | None
    command: tuple[str, ...]
    log: bool
    tunnel: bool
    rules: Settings
