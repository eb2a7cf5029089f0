"""`deltatape scan`: reads any number of tapes into tables."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from deltatape.cli.options import FORMAT, PathOption, TapeArgument, jobs, option
from deltatape.cli.terminal import Bar, say, write
from deltatape.cli.workers import cores
from deltatape.errors import DeltatapeError, UsageError
from deltatape.objects.urls import is_store_url
from deltatape.printable import count
from deltatape.render.json_document import document
from deltatape.render.numbers import duration
from deltatape.settings.defaults import current_rules

if TYPE_CHECKING:
    from deltatape.scan.engine import Engine
    from deltatape.scan.scan import ScanProgress, ScanSummary

_SAY_NS = 10_000_000_000
"""The interval of progress lines without a terminal."""
_SHOWN = 20
"""How many tapes that could not be read are named."""


@click.command("scan")
@click.argument("source", cls=TapeArgument, metavar="FOLDER|URL")
@option(
    "--out",
    cls=PathOption,
    required=True,
    metavar="FOLDER|URL",
    help="The dataset; created if it is missing.",
)
@option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    default="local",
    help="Read in processes of this machine, or on a Dask cluster.",
)
@option(
    "--scheduler",
    metavar="ADDRESS",
    help="With --engine dask: the scheduler; without it, a cluster is started on this machine.",
)
@jobs("Processes on this machine that read tapes; default: one per core.")
@FORMAT
def command(
    *,
    source: str,
    out: str,
    engine: str,
    scheduler: str | None,
    jobs: int | None,
    format: str,  # noqa: A002 - the option's name
) -> int:
    """Read all tapes of a folder or store into a dataset that other programs can query.

    The dataset has tables of tapes, exchanges, calls, findings and digests, as Parquet files by
    day. A tape that it has already is read again only if the tape or the rules have changed. Tapes
    that are being recorded are left for the next scan.

    Needs the extra [fleet].

    Exit code: 2 if something cannot be read; the rest is still in the dataset.
    """
    if scheduler is not None and engine != "dask":
        raise UsageError("--scheduler: has no effect without --engine dask")
    if scheduler is not None and jobs is not None:
        raise UsageError("--jobs: has no effect with --scheduler: the cluster has its workers")
    try:
        from deltatape.scan.scan import scan  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(f'scan needs {error.name}: pip install "deltatape[fleet]"') from None
    with _engine(engine, scheduler, jobs or cores()) as chosen, _Teller() as teller:
        summary = scan(_place(source), _place(out), chosen, current_rules(), teller.tell)
    _print(summary, out, format)
    return DeltatapeError.exit_code if summary.problems else 0


def _place(text: str) -> str:
    """Return the absolute path of a folder; a URL unchanged."""
    return text if is_store_url(text) else str(Path(text).absolute())


@contextlib.contextmanager
def _engine(name: str, scheduler: str | None, workers: int) -> Iterator["Engine"]:
    from deltatape.scan.engine import LocalEngine, dask_engine  # noqa: PLC0415 - loads processes

    if name == "local":
        with LocalEngine(workers) as engine:
            yield engine
        return
    with dask_engine(scheduler, workers) as cluster:
        yield cluster


class _Teller:
    """Shows the progress of a scan: a bar on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._said_ns = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.__exit__()

    def tell(self, progress: "ScanProgress") -> None:
        if self._bar is None:
            self._bar = Bar("tapes", progress.of_tapes)
            self._bar.__enter__()
        self._bar.step(f"{progress.rate:,.0f} exchanges/s")
        if not self._bar.shown and progress.ns - self._said_ns >= _SAY_NS:
            self._said_ns = progress.ns
            say(f"scan: {progress_text(progress)}")


def progress_text(progress: "ScanProgress") -> str:
    """Say how far a scan is: `12 of 40 tapes, 3,400 exchanges (1,200 per second), 30 s left`."""
    left = "" if progress.left_ns is None else f", {duration(progress.left_ns)} left"
    return (
        f"{progress.tapes:,} of {count(progress.of_tapes, 'tape')},"
        f" {progress.exchanges:,} exchanges ({progress.rate:,.0f} per second){left}"
    )


def _print(summary: "ScanSummary", out: str, form: str) -> None:
    for path, problem in summary.problems[:_SHOWN]:
        say(f"deltatape: {path}: {problem}")
    if len(summary.problems) > _SHOWN:
        say(f"deltatape: and {len(summary.problems) - _SHOWN} more; see `problem` of table tapes")
    if form == "json":
        write(
            document(
                dataset=out,
                rules=summary.rules,
                tapes=summary.tapes,
                known=summary.known,
                recording=summary.recording,
                problems=len(summary.problems),
                exchanges=summary.exchanges,
                findings=summary.findings,
                across=summary.across,
                withdrawn=summary.withdrawn,
                bytes=summary.bytes,
                duration_ns=summary.ns,
            )
        )
        return
    more = [f"{summary.known:,} known already"] if summary.known else []
    more += [f"{summary.recording:,} being recorded"] if summary.recording else []
    notes = f" ({', '.join(more)})" if more else ""
    across = f" and {summary.across:,} across tapes" if summary.across else ""
    write(
        f"{out}: {count(summary.tapes, 'tape')} read{notes},"
        f" {count(summary.exchanges, 'exchange')}, {count(summary.findings, 'finding')}{across}"
        f" in {duration(summary.ns)}\n"
    )
