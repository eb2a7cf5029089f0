"""`deltatape import`: make a tape from a response that deltatape did not record."""

import os
from pathlib import Path

import click

from deltatape import __version__
from deltatape.cli.options import option, output
from deltatape.cli.tapes import material, write_tape
from deltatape.cli.terminal import say
from deltatape.clock import SystemClock, rfc3339
from deltatape.importers import import_exchange
from deltatape.importers.taping import tape_lines
from deltatape.model.exchange import Source
from deltatape.store.mask_key import mask_key
from deltatape.store.names import ulid
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header

_FILE = click.Path(exists=True, path_type=Path)


@click.command("import")
@click.argument("file", type=_FILE)
@option("--request", type=_FILE, help="The request as JSON: {method, url, headers, body}.")
@option(
    "--response", type=_FILE, help="Status and headers of the response as JSON: {status, headers}."
)
@output("The new tape.", required=True)
def command(
    *,
    file: Path,
    request: Path | None,
    response: Path | None,
    output: Path,
) -> int:
    """Make a tape from a response body, a pasted stream or a captured case.

    FILE is the raw body of a response, an HTTP archive (HAR), text copied from a terminal or a
    log, or a folder with body.raw, request.json and response.json. The tape has no times and no
    ending, since a file does not contain them.
    """
    exchange = import_exchange(material(file, request, response))
    clock = SystemClock()
    header = Header(
        id=ulid(clock),
        tool=f"deltatape {__version__}",
        recorded_at=rfc3339(clock.wall_ns()),
        source=Source.IMPORT,
    )
    masker = Masker(mask_key(os.environ, say))
    lines = tape_lines(exchange, header=header, ident=ulid(clock), masker=masker)
    write_tape(output, lines)
    for note in exchange.notes:
        say(f"note: {note.text}")
    say(f"tape: {output}")
    say(f"next: deltatape why {output}")
    return 0
