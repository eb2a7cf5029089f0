"""The engines in examples/: scans by them have the same rows.

Ray and Spark are not installed where the tests run. What the examples ask of them stands in, in a
process; with Ray installed, Ray itself does the work.
"""

import importlib.util
import runpy
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan.engine import LocalEngine, Lost
from deltatape.scan.scan import scan
from helpers.engine_work import square
from helpers.incidents import BROKEN, CUT, FIXED

ENGINES = Path(__file__).resolve().parents[2] / "examples" / "engines"


class CrashedError(Exception):
    pass


class Task:
    """A function of Ray's: its results are there at once."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def remote(self, item: Any) -> Callable[[], Any]:
        return lambda: self._function(item)


def ray() -> Any:
    """What the example asks of Ray."""
    return SimpleNamespace(
        remote=lambda **_: Task,
        cluster_resources=lambda: {"CPU": 2.0},
        wait=lambda running, **_: (running[-1:], running[:-1]),
        get=lambda done: done(),
        exceptions=SimpleNamespace(WorkerCrashedError=CrashedError),
    )


class Context:
    """What the example asks of Spark."""

    defaultParallelism = 1  # noqa: N815 - Spark's name

    def __init__(self, items: Sequence[Any] = ()) -> None:
        self._items = items

    def parallelize(self, items: Sequence[Any], parts: int) -> "Context":
        assert parts == len(items)
        return Context(items)

    def map(self, function: Callable[[Any], Any]) -> "Context":
        return Context([function(item) for item in self._items])

    def collect(self) -> Sequence[Any]:
        return self._items


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "spark":
        return runpy.run_path(str(ENGINES / "spark_scan.py"))["SparkEngine"](Context())
    if importlib.util.find_spec("ray") is None:
        monkeypatch.setitem(sys.modules, "ray", ray())
    return runpy.run_path(str(ENGINES / "ray_scan.py"))["RayEngine"]()


@pytest.mark.parametrize("engine", ["ray", "spark"], indirect=True)
def test_a_scan_by_another_engine_reads_all_tapes(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for path in (BROKEN, CUT, FIXED):
        shutil.copy(path, tmp_path / "in")
    summary = scan(str(tmp_path / "in"), str(tmp_path / "out"), engine, DEFAULTS)
    here = scan(str(tmp_path / "in"), str(tmp_path / "here"), LocalEngine(1), DEFAULTS)
    assert (summary.tapes, summary.exchanges, summary.findings) == (
        here.tapes,
        here.exchanges,
        here.findings,
    )


@pytest.mark.parametrize("engine", ["ray", "spark"], indirect=True)
def test_every_item_is_done_once_however_many_there_are(engine: Any) -> None:
    assert sorted(engine.map(square, range(50))) == [(each, each * each) for each in range(50)]


@pytest.mark.parametrize("engine", ["ray"], indirect=True)
@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="crashes a stand-in")
def test_a_task_whose_workers_crash_is_lost(engine: Any) -> None:
    def crash(_: int) -> None:
        raise CrashedError("died")

    assert [*engine.map(crash, [1])] == [(1, Lost("died"))]
