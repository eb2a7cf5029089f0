"""`deltatape demo`."""

import tempfile
from pathlib import Path

import click

from deltatape.cli.options import FOLDER, option
from deltatape.cli.terminal import width
from deltatape.demo.demo import Demo
from deltatape.errors import UsageError
from deltatape.render.lines import hanging, plain

_INDENT = "    "


@click.command("demo")
@option(
    "--to",
    default=None,
    type=FOLDER,
    show_default="a temporary folder, removed at the end",
    help="Keep the demo's tapes in this folder.",
)
def command(*, to: Path | None) -> int:
    """Record, check and replay an app on an embedded provider: no key, no network.

    A broken app is recorded, explained, repaired and tested against the capture. Exit code: 1 if a
    step fails.
    """
    if to is not None:
        try:
            to.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="demo-", dir=to))
        except OSError as error:
            raise UsageError(f"--to {to}: {error.strerror}") from None
        return _run(folder, kept=True)
    with tempfile.TemporaryDirectory(prefix="deltatape-demo-") as made:
        return _run(Path(made), kept=False)


def _run(folder: Path, *, kept: bool) -> int:
    return 0 if Demo(folder, _tell, kept=kept).run() else 1


def _tell(text: str) -> None:
    """Print a step's output, indented; commands to copy stay on one line."""
    if text.startswith(_INDENT) and len(text) > width():
        text = plain(hanging(text, width(), 2 * len(_INDENT))).removesuffix("\n")
    click.echo(text)
