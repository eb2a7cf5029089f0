"""Plays a test's tapes, unchanged or as torture varies them.

What changes streams (faults, cuts, torture) is imported when requested: most tests play
tapes as they are, and pay for no more.
"""

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltatape.errors import UsageError
from deltatape.match.schedule import RECORDED
from deltatape.model.exchange import Exchange, Tap
from deltatape.player.play_options import PlayOptions, RunReadBack
from deltatape.pytest_plugin.fixture import TapeFixture
from deltatape.pytest_plugin.marker_options import AS_READ, Marked, MarkerOptions, parsed
from deltatape.pytest_plugin.tape_paths import Taped, every_at, shown
from deltatape.replay.environment import replay_environment
from deltatape.replay.playback import Playback

if TYPE_CHECKING:
    from deltatape.player.playback_changes import ExchangeStaging
    from deltatape.pytest_plugin.torture import VariationCase, VariedPlay

NO_END_S = 3600.0
"""How long a stream that stalls under torture stays silent: beyond any deadline."""


@contextlib.contextmanager
def replaying(
    item: pytest.Item, options: MarkerOptions, cell: "VariationCase | None"
) -> Iterator[TapeFixture]:
    """Yield the fixture of a test that plays tapes.

    Args:
        item: the test.
        options: the options of its marker.
        cell: what torture does to the tapes; None without torture.

    Raises:
        DeltatapeError: they cannot be played so.
    """
    marked, (every, logs) = options.marked, _taped(item, options)
    exchanges = tuple(exchange for exchange in every if exchange.tap is Tap.PROVIDER)
    if marked.torture is not None:
        _check_torture(item, options, cell)
    now = _varied(cell, options, exchanges)
    played = exchanges if now is None else now.exchanges
    if now is None:
        playing = as_recorded(marked)
    else:
        playing = PlayOptions(
            hold_s=marked.hold_s if now.broken is None else NO_END_S,
            repeat=marked.repeat,
            volatile=marked.volatile,
            stage=now.stage,
        )
    elsewhere = tuple(exchange for exchange in every if exchange.tap is Tap.APP)
    read_back = RunReadBack(elsewhere=elsewhere, ignored=marked.ignored, logs=logs)
    with Playback(played, replace(playing, read_back=read_back)) as playback:
        variables = replay_environment(playback.url, os.environ, Path.cwd(), exchanges)
        with environment(variables):
            yield TapeFixture(
                path=options.places[0].path,
                recordable=len(options.places) == 1 and options.places[0].exchange is None,
                mode="replay",
                variation="" if cell is None else cell.variation,
                machine=playback,
                variables=variables,
                broken=None if now is None else now.broken,
                change="" if now is None else now.change,
                unused_faults=playing.unused_faults,
                deadline_s=marked.deadline_s,
            )


def as_recorded(marked: Marked) -> PlayOptions:
    """Return options that change nothing but what the marker says.

    Raises:
        UsageError: a fault or a way to cut reads is not known.
    """
    playing = PlayOptions(
        tempo=marked.tempo,
        hold_s=marked.hold_s,
        repeat=marked.repeat,
        volatile=marked.volatile,
    )
    if not marked.faults and marked.reads == AS_READ:
        return playing
    stage = staged(marked)
    return replace(playing, tempo=RECORDED, stage=stage, unused_faults=stage.unused_faults)


def staged(marked: Marked) -> "ExchangeStaging":
    """Return a stage that applies the marker's `fault=`, `reads=` and `speed=`.

    Raises:
        UsageError: a fault or a way to cut reads is not known.
    """
    from deltatape.player.playback_changes import ExchangeStaging  # noqa: PLC0415 - see the module
    from deltatape.vary.fault import parse_fault  # noqa: PLC0415
    from deltatape.vary.reads import parse_reads  # noqa: PLC0415

    return ExchangeStaging(
        faults=tuple(parsed("fault", text, parse_fault) for text in marked.faults),
        cutting=parsed("reads", marked.reads, parse_reads),
        seed=marked.seed,
        tempo=marked.tempo,
    )


def _varied(
    cell: "VariationCase | None", options: MarkerOptions, exchanges: Sequence[Exchange]
) -> "VariedPlay | None":
    if cell is None or not cell.variation:
        return None
    from deltatape.pytest_plugin.torture import varied  # noqa: PLC0415 - see the module

    return varied(cell, options, exchanges)


def _taped(item: pytest.Item, options: MarkerOptions) -> Taped:
    for place in options.places:
        if not place.path.exists():
            raise UsageError(
                f"{shown(place.path)}: there is no such tape yet; it is made by"
                f" pytest --tape-mode record {shlex.quote(item.nodeid)}"
            )
    return every_at(options.places)


def _check_torture(item: pytest.Item, options: MarkerOptions, cell: "VariationCase | None") -> None:
    """Check that a torture test was parametrised and has variations.

    Raises:
        UsageError: it was not, or it has none; the message says why.
    """
    if not options.marked.tapes and "[" in options.name:
        raise UsageError(
            "@pytest.mark.tape(torture=...): a test with parameters has a tape for each of them;"
            " for torture, name one in the marker"
        )
    if cell is None:
        from deltatape.pytest_plugin.torture import chosen  # noqa: PLC0415 - see the module

        chosen(options)  # says which there are
        raise UsageError(
            f"@pytest.mark.tape(torture=...): {item.nodeid} is a test that pytest cannot make"
            " several of, such as one of a unittest.TestCase; a function or a method of a plain"
            " class is accepted"
        )


# The process's environment, changed for the length of a test.


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set `os.environ`, and restore it afterwards."""
    before = dict(os.environ)
    changed = {name for name in {*before, *variables} if before.get(name) != variables.get(name)}
    _set(changed, variables)
    try:
        yield
    finally:
        _set(changed, before)


def _set(names: Iterable[str], values: Mapping[str, str]) -> None:
    for name in names:
        if name in values:
            os.environ[name] = values[name]
        else:
            os.environ.pop(name, None)
