"""`deltatape replay`: the player with its options, its live lines and its summary."""

import asyncio
from collections.abc import Sequence

import click

from deltatape import __version__
from deltatape.cli.options import option, seconds
from deltatape.cli.tapes import exchanges_of
from deltatape.cli.terminal import aside, say
from deltatape.errors import UsageError
from deltatape.harness.signals import Signals
from deltatape.http1.listener import Address, parse_address
from deltatape.match.request import Rung
from deltatape.match.schedule import Tempo, parse_speed
from deltatape.model.exchange import Exchange, Tap
from deltatape.player.player import Player
from deltatape.player.playing import Missed, Played, Playing
from deltatape.rules.words import count

_RUNGS = {
    Rung.EXACT: "same bytes",
    Rung.CANONICAL: "same JSON",
    Rung.WITHOUT_VOLATILE: "same JSON but for volatile fields",
}


@click.command("replay")
@click.argument("tapes", nargs=-1, required=True, metavar="TAPE[#N]...")
@option("--listen", default="127.0.0.1:8378", metavar="HOST:PORT", help="Where to listen.")
@option(
    "--speed",
    default="recorded",
    metavar="SPEED",
    help="recorded, instant, or a factor such as 4x.",
)
@option(
    "--idle-cap",
    default=None,
    callback=seconds,
    metavar="DURATION",
    help="Shorten each longer silence to this.",
)
@option(
    "--hold",
    default="30s",
    callback=seconds,
    metavar="DURATION",
    help="How long to stay silent where the tape does not say how the provider went on.",
)
@option("--repeat", is_flag=True, help="Play an exchange again when all equal ones were played.")
@option(
    "--volatile",
    multiple=True,
    metavar="PATH",
    help="A field of request bodies that may differ, such as metadata.session or messages.*.id.",
)
def command(  # noqa: PLR0913 - one parameter per option
    *,
    tapes: tuple[str, ...],
    listen: str,
    speed: str,
    idle_cap: float | None,
    hold: float,
    repeat: bool,
    volatile: tuple[str, ...],
) -> int:
    """Play tapes as the provider: same status, head, bytes, boundaries, timing and ending.

    A request is answered by the recorded exchange with the same body: the same bytes, or the same
    JSON. Others get 400 with the nearest recorded request. Nothing ever goes to the network. Exit
    code 1 when a request was missed or an exchange was not played.
    """
    address = parse_address(listen)
    if not address.loopback:
        raise UsageError(
            f"--listen {listen!r}: only loopback is accepted (127.0.0.1, [::1], localhost) or"
            " unix:PATH: who can reach the player can read the tape"
        )
    tempo = Tempo(
        factor=parse_speed(speed),
        idle_cap_ns=None if idle_cap is None else round(idle_cap * 1e9),
    )
    every = [exchange for tape in tapes for exchange in exchanges_of(tape)]
    exchanges = [exchange for exchange in every if exchange.tap is Tap.PROVIDER]
    if len(exchanges) < len(every):
        say(f"note: {count(len(every) - len(exchanges), 'answer')} of the app itself: not played")
    playing = Playing(tempo=tempo, hold_s=hold, repeat=repeat, volatile=volatile)
    player = Player(exchanges, _tell, playing)
    with aside():
        asyncio.run(_run(player, exchanges, address))
    return 0 if player.report.whole else 1


async def _run(player: Player, exchanges: Sequence[Exchange], address: Address) -> None:
    await player.start(address)
    signals = Signals(lambda: None)  # before it says that it is there: then it can be ended
    base = player.listener.url
    say(
        f"deltatape {__version__} plays {count(len(exchanges), 'exchange')} at {base} (Ctrl-C ends)"
    )
    say(f"  set  OPENAI_BASE_URL={base}/v1, or with a provider's prefix {base}/openai/v1")
    await signals.wait()
    await player.stop()
    _summarise(player)


def _tell(what: Played | Missed) -> None:
    if isinstance(what, Missed):
        target = what.asking.target.decode("ascii", "replace")
        say(f"MISSED {what.asking.method} {target}: {what.message}")
    else:
        exchange = what.exchange
        say(
            f"playing {exchange.tape}#{exchange.number} {exchange.request.method}"
            f" {exchange.request.path} ({_RUNGS[what.rung]})"
        )


def _summarise(player: Player) -> None:
    report = player.report
    left = len(report.unplayed)
    say(f"{len(report.played)} played, {len(report.missed)} missed, {left} unplayed")
    for exchange in report.unplayed[:20]:
        say(f"  unplayed: {exchange.tape}#{exchange.number} {exchange.request.path}")
