"""`deltatape replay`: play tapes as the provider."""

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from deltatape.child.child import FAILED
from deltatape.cli.addresses import player_address, upstreams_of
from deltatape.cli.options import (
    FILE,
    MITM,
    VOLATILE,
    TapeArgument,
    WholeNumber,
    WrapperCommand,
    codes,
    duration,
    option,
    refuse_useless,
    via_mitm,
)
from deltatape.cli.tapes import (
    each_recording_once,
    exchanges_of,
    read_tape,
    with_stored,
)
from deltatape.cli.terminal import aside, say
from deltatape.clock import SystemClock
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import DeltatapeError, UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.http1.listener import is_loopback
from deltatape.match.schedule import RECORDED as AS_RECORDED
from deltatape.match.schedule import ReplayTempo, parse_speed
from deltatape.mitm.hosts import Hosts
from deltatape.model.exchange import Exchange, Tap
from deltatape.player.play_options import PlayOptions, RunReadBack
from deltatape.player.player import Player
from deltatape.printable import count
from deltatape.replay.environment import (
    client_notes,
    keyed_environment,
    known_telemetry,
    replay_environment,
)
from deltatape.replay.guard import NetworkGuardTunnel
from deltatape.replay.session import (
    REPLAY_FAILED,
    CommandGuard,
    ReplayOptions,
    Responders,
    no_notes,
    replay,
    teller,
)
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import locate
from deltatape.store.mask_key import mask_key
from deltatape.urls import split_url

AUTO = "auto"
_AS_RECORDED = "recorded"
_NOT_VIA = {
    "no_tunnel": "CMD's proxy is mitmproxy, not the tunnel",
    "allow_host": "what is sent to a provider is led to the player",
    "upstream": "a request is led by the host that CMD names; --hosts adds one",
}
"""Options without an effect with --via mitm, and why."""
GRACE_S = 5.0
"""How long an exchange may still be recorded after the end of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayArguments:
    """The parsed arguments and options."""

    tapes: tuple[str, ...]
    listen: str | None
    speed: str
    idle_cap: float | None
    hold: float
    repeat: bool
    volatile: tuple[str, ...]
    reads: str
    fault: tuple[str, ...]
    seed: int
    mode: str
    upstream: tuple[str, ...]
    report: Path | None
    ready_file: Path | None
    no_tunnel: bool
    allow_host: tuple[str, ...]
    via: str | None
    hosts: tuple[str, ...]
    ignore: frozenset[str]


@click.command("replay", cls=WrapperCommand)
@click.argument("tapes", cls=TapeArgument, nargs=-1, required=True, metavar="TAPE[#N]...")
@option(
    "--listen",
    metavar="HOST:PORT",
    help="Where to listen, or unix:PATH.  [default: 127.0.0.1:8378; with CMD, any free port]",
)
@option(
    "--speed",
    default="recorded",
    metavar="SPEED",
    help="recorded, instant, or a factor such as 4x.",
)
@duration("--idle-cap", None, "Shorten each longer silence to this.")
@duration(
    "--hold",
    "30s",
    "How long to send nothing where the recording stops in the middle of a response.",
)
@option(
    "--repeat",
    is_flag=True,
    help="Play an exchange again once every exchange with an equal request was played.",
)
@VOLATILE
@option(
    "--reads",
    default=_AS_RECORDED,
    metavar="HOW",
    help="How bodies are split: recorded, event, bytes:N, every-byte, random:SEED.",
)
@option(
    "--fault",
    multiple=True,
    metavar="FAULT",
    help="A fault to inject, such as cut,at=in-arguments or status=429,retry-after=1,times=2."
    " Kinds: status, stall, drip, cut, reset, end, error-event, drop, duplicate, reorder, corrupt.",
)
@option(
    "--seed",
    default=0,
    type=WholeNumber(0),
    metavar="N",
    help="Seed of the random choices of faults.",
)
@option(
    "--mode",
    type=click.Choice(["replay", AUTO]),
    default="replay",
    help="auto forwards requests that are not on the tape to the provider, and adds them to it.",
)
@option(
    "--upstream",
    multiple=True,
    metavar="[NAME=]URL",
    help="With --mode auto: your own provider at /NAME, or one URL for all requests.",
)
@option(
    "--report",
    type=FILE,
    help="Write a JSON report at the end: what was played, missed and left unplayed.",
)
@option(
    "--ready-file",
    type=FILE,
    help="Write JSON with the URL to this file once the player accepts requests.",
)
@option(
    "--allow-host",
    multiple=True,
    metavar="HOST",
    help="An LLM host that CMD may reach directly, such as one that gets its telemetry.",
)
@codes("--ignore", "Finding codes that do not fail the run, such as C001,C009.")
@option(
    "--no-tunnel",
    is_flag=True,
    help="Allow CMD to reach providers directly instead of through the player.",
)
@via_mitm(
    "Route CMD to the player through mitmproxy, if its base URL cannot be set.",
    "route this host there besides those of LLM providers and of the tape",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Play tapes as the provider: same status, headers, bytes, read boundaries, timing and ending.

    With CMD, run it with its base URLs set to the player and a placeholder for each missing API
    key; HTTPS_PROXY blocks requests that go to a provider directly, or with --via mitm leads them
    to the player. Without CMD, point the app at the printed address.

    A request gets the recorded response whose request has the same body: the same bytes, or the
    same JSON. Any other request gets status 400 and the nearest recorded request. Nothing is sent
    to the network, except with --mode auto.

    The app's next requests are checked with the rules of deltatape check. On the tape of a broken
    app, the run fails as long as the app repeats its mistake; a request that differs from the
    recorded one only where that was wrong is answered.

    Exit code: that of CMD; 1 if a request was missed, an exchange was not played, the app made a
    mistake, or a fault was never injected.
    """
    arguments, argv = ReplayArguments(**options), WrapperCommand.command_of(ctx)
    if not argv:
        _refuse_command(arguments.tapes)
        refuse_useless(
            ctx,
            options.keys() - {"no_tunnel", "allow_host", "via", "hosts"},
            "without a command after --",
        )
    if arguments.via is None:
        refuse_useless(ctx, options.keys() - {"hosts"}, "without --via mitm")
    else:
        refuse_useless(ctx, options.keys() - _NOT_VIA.keys(), "with --via mitm", _NOT_VIA)
    if arguments.mode == AUTO:
        refuse_useless(ctx, options.keys() - {"ignore"}, "with --mode auto")
    else:
        refuse_useless(ctx, options.keys() - {"upstream"}, "without --mode auto")
    try:
        return _replay(arguments, argv, os.environ)
    except DeltatapeError as error:
        if argv:  # distinct from the exit codes of the command, as in env(1)
            error.exit_code = FAILED
        raise


def _refuse_command(tapes: tuple[str, ...]) -> None:
    """Refuse a program among the tapes: the user has forgotten `--`."""
    for at, text in enumerate(tapes[1:], 1):
        if not locate(text).path.exists() and shutil.which(text) is not None:
            command = " ".join(["deltatape replay", *tapes[:at], "--", *tapes[at:]])
            raise UsageError(f"{text}: a program, not a tape; put -- before it: {command}")


def _replay(
    arguments: ReplayArguments, argv: tuple[str, ...], environment: Mapping[str, str]
) -> int:
    listen, playing = player_address(arguments.listen, 8378, argv), _playing(arguments)
    make = _auto if arguments.mode == AUTO else _plain
    responders = make(arguments, playing, environment, argv)
    options = ReplayOptions(
        listen=listen,
        tapes=arguments.tapes,
        command=argv,
        report=arguments.report,
        ready_file=arguments.ready_file,
        grace_s=GRACE_S if arguments.mode == AUTO else 0.0,
        guard=_guard(arguments, environment, responders) if argv else None,
    )
    with aside(options.screen):
        code = asyncio.run(replay(responders, options, say))
    unused_faults = playing.unused_faults()
    for fault, why in unused_faults:
        say(f"fault {fault} was never injected: {why}")
    # A run that passed without its fault has tested nothing.
    return code or (REPLAY_FAILED if unused_faults else 0)


def _guard(
    arguments: ReplayArguments, environment: Mapping[str, str], responders: Responders
) -> CommandGuard | None:
    if arguments.via == MITM:
        Hosts(arguments.hosts)  # fails for a wrong pattern before anything starts
        hosts = (*arguments.hosts, *taped_hosts(arguments.tapes))
        from deltatape.mitm.session import RedirectingProxy  # noqa: PLC0415 - takes long; rare

        return RedirectingProxy(hosts, say, environment)
    if arguments.no_tunnel:
        return None
    return NetworkGuardTunnel(
        outbound_from(environment),
        Path.cwd(),
        say,
        telemetry=responders.telemetry,
        allowed=arguments.allow_host,
    )


def taped_hosts(tapes: tuple[str, ...]) -> Iterator[str]:
    """Yield the hosts of tapes that are not known anyway, each once; never this machine."""
    existing = (each for each in each_recording_once(tapes) if locate(each).path.exists())
    exchanges = (exchange for each in existing for exchange in exchanges_of(each))
    for host in dict.fromkeys(split_url(one.request.upstream).hostname or "" for one in exchanges):
        if not Hosts(()).has(host) and not is_loopback(host):
            yield host


def _playing(arguments: ReplayArguments) -> PlayOptions:
    tempo = ReplayTempo(
        factor=parse_speed(arguments.speed),
        idle_cap_ns=None if arguments.idle_cap is None else round(arguments.idle_cap * 1e9),
    )
    playing = PlayOptions(
        tempo=tempo,
        hold_s=arguments.hold,
        repeat=arguments.repeat,
        volatile=with_stored(arguments.tapes, arguments.volatile),
    )
    if not arguments.fault and arguments.reads == _AS_RECORDED:
        return playing
    # They take long to import: whoever replays as recorded need not wait for them.
    from deltatape.player.playback_changes import ExchangeStaging  # noqa: PLC0415
    from deltatape.vary.fault import parse_fault  # noqa: PLC0415
    from deltatape.vary.reads import parse_reads  # noqa: PLC0415

    faults, cutting = tuple(map(parse_fault, arguments.fault)), parse_reads(arguments.reads)
    staging = ExchangeStaging(faults, cutting, arguments.seed, tempo)
    return replace(playing, tempo=AS_RECORDED, stage=staging, unused_faults=staging.unused_faults)


def _plain(
    arguments: ReplayArguments,
    playing: PlayOptions,
    environment: Mapping[str, str],
    argv: tuple[str, ...],
) -> Responders:
    tapes = [read_tape(each) for each in each_recording_once(arguments.tapes)]
    every = [exchange for _, exchanges in tapes for exchange in exchanges]
    exchanges = _of_provider(every)
    if arguments.fault:
        from deltatape.player.playback_changes import refuse_absent  # noqa: PLC0415 - see above
        from deltatape.vary.fault import parse_fault  # noqa: PLC0415

        refuse_absent(tuple(map(parse_fault, arguments.fault)), exchanges)
    secrets = known_secrets(environment, read_dotenv(Path.cwd(), environment))
    elsewhere = tuple(exchange for exchange in every if exchange.tap is Tap.APP)
    playing = replace(
        playing,
        secrets=secrets,
        read_back=RunReadBack(
            elsewhere=elsewhere,
            settings=current_rules(),
            ignored=tuple(sorted(arguments.ignore)),
            logs={tape.path: tape.logs for tape, _ in tapes},
        ),
    )
    return Responders(
        machine=Player(exchanges, teller(say, alone=not argv), playing),
        number=len(exchanges),
        environment=partial(
            keyed_environment if arguments.via else replay_environment,
            environ=environment,
            folder=Path.cwd(),
            exchanges=exchanges,
            command=argv,
        ),
        notes=(
            no_notes
            if arguments.via
            else partial(client_notes, environ=environment, folder=Path.cwd(), command=argv)
        ),
        telemetry=known_telemetry(argv, exchanges),
    )


def _auto(
    arguments: ReplayArguments,
    playing: PlayOptions,
    environment: Mapping[str, str],
    argv: tuple[str, ...],
) -> Responders:
    from deltatape.replay.auto import AutoPlayer, ProviderRoutes  # noqa: PLC0415 - it also records

    tape = _single_tape(arguments.tapes)
    every = list(exchanges_of(arguments.tapes[0])) if tape.exists() else []
    exchanges = _of_provider(every)
    routes = ProviderRoutes(
        upstreams=upstreams_of(arguments.upstream),
        outbound=outbound_from(environment),
        environment=environment,
        folder=Path.cwd(),
        mask_key=mask_key(environment, say),
        clock=SystemClock(),
        say=say,
        command=argv,
        led=Hosts((*arguments.hosts, *taped_hosts(arguments.tapes))).has
        if arguments.via == MITM
        else None,
    )
    auto = AutoPlayer(tape, exchanges, playing, teller(say, alone=not argv), routes)
    return Responders(
        machine=auto,
        number=len(exchanges),
        environment=auto.environment,
        recorded=lambda: auto.recorded.kept,
        ending=auto.ending,
        notes=(
            no_notes
            if arguments.via
            else partial(client_notes, environ=environment, folder=Path.cwd(), command=argv)
        ),
        telemetry=known_telemetry(argv, exchanges),
    )


def _single_tape(tapes: tuple[str, ...]) -> Path:
    """Return the path of the one tape to play and to add to."""
    if len(tapes) != 1 or (place := locate(tapes[0])).exchange is not None:
        raise UsageError(
            f"{' '.join(tapes)}: --mode auto adds to the tape that it plays; name exactly one TAPE,"
            " without #N; the file need not exist"
        )
    return place.path


def _of_provider(every: list[Exchange]) -> list[Exchange]:
    exchanges = [exchange for exchange in every if exchange.tap is Tap.PROVIDER]
    if len(exchanges) < len(every):
        say(
            f"note: {count(len(every) - len(exchanges), 'exchange')} recorded at the app's own"
            " endpoint: not played"
        )
    return exchanges
