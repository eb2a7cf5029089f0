"""`deltatape cut`: copies exchanges of tapes to a new tape."""

from pathlib import Path

import click

from deltatape.cli.options import TapeArgument
from deltatape.cli.splice_command import OUTPUT, join
from deltatape.errors import UsageError
from deltatape.store.listing import locate
from deltatape.store.reader import open_tape


@click.command("cut")
@click.argument("exchanges", cls=TapeArgument, nargs=-1, required=True, metavar="TAPE#N...")
@OUTPUT
def command(*, exchanges: tuple[str, ...], output: Path) -> int:
    """Copy chosen exchanges to a new tape; the original stays unchanged.

    Like `deltatape splice` with single exchanges, it keeps ids, bytes, boundaries, endings and
    times, and renumbers the exchanges. Prints the path of the new tape.
    """
    places = [locate(text) for text in exchanges]
    for text, place in zip(exchanges, places, strict=True):
        if place.exchange is None:
            open_tape(place.path)  # raises unless it is one
            raise UsageError(f"{text}: is a whole tape; name exchanges of it, such as {text}#1")
    join(places, output)
    return 0
