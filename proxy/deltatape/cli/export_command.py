"""`deltatape export`: write a tape in the format of another program."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from deltatape import __version__
from deltatape.cli.options import TapeArgument, option
from deltatape.cli.tapes import all_of, each_recording_once, latest, named
from deltatape.cli.terminal import say, write, write_bytes
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import UsageError
from deltatape.exporters import EXPORTERS, export
from deltatape.model.case_files import BODY
from deltatape.printable import count
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import Unreadable
from deltatape.store.rewrite import PRIVATE, write_new

_FORMATS = {each.name: each for each in EXPORTERS}


@click.command("export")
@click.argument("tapes", cls=TapeArgument, nargs=-1, metavar="[TAPE[#N]]...")
@option("--format", type=click.Choice(list(_FORMATS)), required=True, help="The format.")
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The new file; with --format raw a new folder.  [default: stdout]",
)
def command(*, tapes: Sequence[str], format: str, output: Path | None) -> int:  # noqa: A002 - the option's name
    """Write tapes in the format of another program.

    Without TAPE: the latest one. har: an HTTP archive. vcr: a cassette of vcrpy. raw: the bodies as
    they were sent. curl: commands that send the requests again, with variables for masked
    credentials. jsonl: an object per event, with its time. otlp: spans of OpenTelemetry, with the
    messages and the rebuilt tool calls. What a format cannot hold is told; see docs/formats.md.
    Credentials that the tape masks stay masked; others do not: redact the tape before you share it.
    """
    exporter = _FORMATS[format]
    made = export(_analyses(tapes), exporter, __version__)
    if output is None:
        _print(made.files)
    elif exporter.is_folder:
        _write_folder(output, made.files)
    else:
        _write(output, made.files[""])
    for note in made.notes:
        say(f"note: {note}")
    if output is not None:
        say(f"{count(made.exchanges, 'exchange')} as {exporter.title}: {output}")
    return 0


def _refuse(folder: Unreadable) -> NoReturn:
    raise UsageError(folder.problem)


def _analyses(tapes: Sequence[str]) -> list[Analysis]:
    """Return the exchanges that the command line names."""
    names = [name for text in tapes for name in all_of(text, _refuse)]
    sources = [named(name, alone=True) for name in each_recording_once(names)]
    app = current_rules().app
    return [
        analyse(exchange, app)
        for source in sources or [latest()]
        for exchange in source.exchanges
        if source.number in (None, exchange.number)
    ]


def _print(files: Mapping[str, bytes]) -> None:
    if "" in files:
        write(files[""].decode())
    elif BODY not in files:
        raise UsageError("--format raw: has several bodies; add #N, or -o FOLDER")
    elif sys.stdout.isatty():
        raise UsageError(
            "--format raw on a terminal would let the taped bytes act on it; redirect it, or use -o"
        )
    else:
        write_bytes(files[BODY])


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    if folder.exists():
        raise UsageError(f"-o {folder}: already exists; name a new folder")
    for name, data in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {folder}: {error.strerror or error}") from None
        _write(path, data)


def _write(path: Path, data: bytes) -> None:
    try:
        write_new(path, PRIVATE, (data,))
    except FileExistsError:
        raise UsageError(f"-o {path}: already exists; nothing is overwritten") from None
    except OSError as error:
        raise UsageError(f"-o {path}: {error.strerror or error}") from error
