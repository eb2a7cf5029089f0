"""`deltatape import`: make a tape from a response that deltatape did not record."""

import os
from pathlib import Path

import click

from deltatape import __version__
from deltatape.cli.options import option, output
from deltatape.cli.tapes import has_tape, material, write_tape
from deltatape.cli.terminal import say
from deltatape.clock import SystemClock, rfc3339
from deltatape.errors import UsageError
from deltatape.importers import import_capture
from deltatape.importers.taping import tape_lines
from deltatape.model.exchange import Source
from deltatape.printable import count
from deltatape.settings.defaults import current_rules
from deltatape.store.mask_key import mask_key
from deltatape.store.names import ulid
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@option(
    "--request",
    type=_FILE,
    help="The request as JSON: {method, url, headers, body}, or its body alone.",
)
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
    """Make a tape from what another program captured.

    FILE is an HTTP archive (HAR), a cassette of vcrpy or VCR, flows that mitmproxy saved, a log of
    LiteLLM, spans of OpenTelemetry, observations of Langfuse, fixtures of aimock, what curl --trace
    wrote, rows of a browser's EventStream tab, the raw body of a response, text copied from a
    terminal or a log, or a folder with body.raw, request.json and response.json. What it is, is
    told by its content. What is no traffic of an LLM is left out; a file without any is refused.
    The tape has no ending, and no times but those in the file. See docs/importing.md.
    """
    if file.is_file() and has_tape(file):  # a pipe can be read only once
        raise UsageError(
            f"{file}: is a tape already; deltatape cut and deltatape splice make tapes of tapes"
        )
    capture = import_capture(material(file, request, response), current_rules().app)
    clock = SystemClock()
    header = Header(
        id=ulid(clock),
        tool=f"deltatape {__version__}",
        recorded_at=rfc3339(clock.wall_ns()),
        source=Source.IMPORT,
    )
    masker = Masker(mask_key(os.environ, say))
    idents = (ulid(clock) for _ in capture.exchanges)
    lines = tape_lines(capture.exchanges, header=header, idents=idents, masker=masker)
    write_tape(output, lines)
    total = count(len(capture.exchanges), "exchange")
    say(f"read as {capture.kind}: {total}")
    for exchange in capture.exchanges:
        which = f"#{exchange.number}: " if len(capture.exchanges) > 1 else ""
        for note in exchange.notes:
            say(f"note: {which}{note.text}")
    say(f"tape: {output}")
    say(f"next: deltatape why {output}")
    return 0
