"""`deltatape demo`."""

import tempfile
from pathlib import Path

import click

from deltatape.cli.options import option
from deltatape.errors import UsageError
from deltatape.harness.demo import Demo


@click.command("demo")
@option(
    "--to",
    default=None,
    type=click.Path(file_okay=False, path_type=Path),
    show_default="a temporary folder, removed at the end",
    help="Keep the demo's tapes in this folder.",
)
def command(*, to: Path | None) -> int:
    """Run the whole story on an embedded provider: no key, no network.

    A broken app is recorded, explained, repaired and tested against the capture. Exit code 1 when
    a step did not go as it should.
    """
    if to is not None:
        try:
            to.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="demo-", dir=to))
        except OSError as error:
            raise UsageError(f"--to {to}: {error.strerror}") from None
        return _run(folder)
    with tempfile.TemporaryDirectory(prefix="deltatape-demo-") as made:
        return _run(Path(made))


def _run(folder: Path) -> int:
    return 0 if Demo(folder, click.echo).run() else 1
