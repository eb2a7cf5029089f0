"""Engines: everything is done once although workers are killed, here and on a cluster of Dask."""

import contextlib
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltatape.errors import UsageError
from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan.engine import LocalEngine, Lost, dask_engine
from deltatape.scan.scan import scan
from helpers.engine_work import die, die_once, fail, note, process_of, square
from helpers.incidents import BROKEN, CUT, FIXED
from helpers.program import environment

TAPES = 24


def test_this_process_does_all_if_it_is_the_only_one() -> None:
    assert [*LocalEngine(1).map(square, range(4))] == [(0, 0), (1, 1), (2, 4), (3, 9)]


def test_several_processes_do_each_item_once() -> None:
    found = [*LocalEngine(2).map(square, range(20))]
    assert sorted(found) == [(number, number * number) for number in range(20)]


def test_what_a_killed_process_had_is_done_again(tmp_path: Path) -> None:
    items = [(str(tmp_path), number) for number in range(12)]
    found = [*LocalEngine(2).map(die_once, items)]
    assert sorted(result for _, result in found if isinstance(result, int)) == [*range(12)]


def test_an_item_that_kills_its_process_is_lost_and_the_others_are_not() -> None:
    found = dict(LocalEngine(2).map(die, range(8)))
    assert isinstance(found.pop(3), Lost)
    assert found == {number: number for number in range(8) if number != 3}


def test_an_error_ends_the_work_and_leaves_no_process() -> None:
    with pytest.raises(UsageError, match="wrong"):
        [*LocalEngine(2).map(fail, range(8))]


def test_processes_stay_from_one_step_to_the_next_and_end_with_the_last(tmp_path: Path) -> None:
    with LocalEngine(2) as engine:
        found = {pid for _ in range(3) for _, pid in engine.map(process_of, range(8))}
        assert os.getpid() not in found
        assert len(found) <= 2
        assert len([*engine.map(die_once, [(str(tmp_path), each) for each in range(8)])]) == 8
        assert len(dict(engine.map(square, range(8)))) == 8
        with pytest.raises(UsageError, match="wrong"):
            [*engine.map(fail, range(8))]
        assert dict(engine.map(square, range(8)))[3] == 9
    assert not multiprocessing.active_children()


@contextlib.contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers of Dask, each a program of its own, as on several machines."""
    running: list[subprocess.Popen[bytes]] = []
    log = folder / "scheduler.log"

    def start(*words: str, output: Path) -> None:
        with output.open("wb") as file:
            running.append(
                subprocess.Popen(
                    [sys.executable, "-m", *words],
                    stdout=file,
                    stderr=file,
                    cwd=folder,
                    env={**environment(folder), "PYTHONPATH": os.pathsep.join(sys.path)},
                )
            )

    address_file = folder / "scheduler.json"
    start(
        *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"),
        *("--no-dashboard", "--scheduler-file", str(address_file)),
        output=log,
    )
    try:
        from distributed import Client  # noqa: PLC0415 - takes a second

        for number in range(workers):
            start(
                *("distributed.cli.dask_worker", "--scheduler-file", str(address_file)),
                *("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"),
                *("--local-directory", str(folder)),
                output=folder / f"worker-{number}.log",
            )
        with Client(scheduler_file=str(address_file), set_as_default=False, timeout=60) as client:
            client.wait_for_workers(workers, timeout=120)
            address = client.scheduler.address
        yield address, running[1:]
    finally:
        for each in reversed(running):
            each.kill()
            each.wait()


def rows(out: Path, table: str) -> Counter[str]:
    return Counter(
        str({name: value for name, value in row.items() if name != "scanned_at"})
        for path in (out / table).rglob("*.parquet")
        for row in pq.read_table(path, partitioning=None).to_pylist()
    )


def many_tapes(folder: Path) -> Path:
    folder.mkdir()
    for number in range(TAPES):
        shutil.copy((BROKEN, CUT, FIXED)[number % 3], folder / f"{number:02}.tape")
    return folder


def test_a_worker_killed_in_the_middle_of_a_scan_costs_only_its_tape_again(tmp_path: Path) -> None:
    source = many_tapes(tmp_path / "in")
    scan(str(source), str(tmp_path / "alone"), LocalEngine(1), DEFAULTS)
    with cluster(tmp_path) as (address, workers), dask_engine(address, 1) as engine:
        done = 0

        def tell(_: object) -> None:
            nonlocal done
            done += 1
            if done == 3:
                workers[0].send_signal(signal.SIGKILL)

        summary = scan(str(source), str(tmp_path / "out"), engine, DEFAULTS, tell)

    assert workers[0].returncode == -signal.SIGKILL
    assert (summary.tapes, done, summary.problems) == (TAPES, TAPES, ())
    for table in ("tapes", "exchanges", "calls", "findings", "digests"):
        assert rows(tmp_path / "out", table) == rows(tmp_path / "alone", table)
    assert not (tmp_path / "out" / ".drafts").exists()


def test_only_what_a_killed_worker_had_is_done_again(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with cluster(tmp_path) as (address, workers), dask_engine(address, 1) as engine:
        found = []
        for _, result in engine.map(note, ((str(marks), number) for number in range(40))):
            found.append(result)
            if len(found) == 20:
                workers[0].send_signal(signal.SIGKILL)
                workers[0].wait()
    assert sorted(found) == [*range(40)]
    again = [each for each in marks.iterdir() if each.stat().st_size > 1]
    assert len(again) <= 4, "an engine has two items under way for each worker"
    assert {each.stat().st_size for each in again} <= {2}


def test_a_cluster_is_started_here_if_none_is_named(tmp_path: Path) -> None:
    source = many_tapes(tmp_path / "in")
    with dask_engine(None, 1) as engine:
        summary = scan(str(source), str(tmp_path / "out"), engine, DEFAULTS)
    assert (summary.tapes, summary.problems) == (TAPES, ())


def test_what_kills_every_worker_of_a_cluster_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    with cluster(tmp_path) as (address, workers), dask_engine(address, 1) as engine:
        ((item, result),) = engine.map(die, [3])
        for each in workers:
            each.wait()
    assert item == 3
    assert isinstance(result, Lost)
    assert [each.returncode for each in workers] == [-signal.SIGKILL] * 2


def test_what_is_no_address_is_refused_and_leaves_no_thread() -> None:
    before = threading.enumerate()
    with pytest.raises(UsageError, match="--scheduler foo: missing port"), dask_engine("foo", 1):
        pass
    assert [each for each in threading.enumerate() if each not in before] == []


def test_an_address_where_nothing_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.scan.engine._CONNECT_S", 1)
    with (
        pytest.raises(UsageError, match=re.escape("--scheduler tcp://127.0.0.1:1: ")),
        dask_engine("tcp://127.0.0.1:1", 1),
    ):
        pass
