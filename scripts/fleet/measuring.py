"""Measures a fleet's tapes through what deltatape does with them, part by part.

For each part: make its tapes, seal them, ship them to one store, and scan that into one dataset;
delete the journals. Then, for some of the parts: make the tapes again, and run `check`, `scan` by
one worker and `scan` by two, in turn, over the same tapes. The results of each are written at once,
so that an interrupted run can continue, and the disk holds one part, the store and the dataset. CPU
time is that of a command and all its processes, from start to end.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.page import machine, python_version
from benchmarks.processes import outside

from deltatape.clock import SystemClock, rfc3339
from fleet.tapes import Maker, Plan, write

_DELTATAPE = (sys.executable, "-m", "deltatape")
_FOUND = 1
"""The exit code of a command that worked and found defects."""
_NS = 1e9
_SHIPPERS = 2
"""How many run at once."""


class MeasuringError(Exception):
    """A measured command failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The cost of a command.

    Attributes:
        cpu_s: of all its processes.
        wall_s: from its start to its end.
        kib: resident memory of its largest process.
    """

    cpu_s: float
    wall_s: float
    kib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The measurements of a part.

    Attributes:
        number: from 1.
        exchanges: on its tapes.
        tapes: how many.
        journal_bytes: of its tapes.
        load: the load average at its start.
        made: writing the tapes, without memory.
        pack: sealing all tapes, by two processes.
        sealed_bytes: of the sealed tapes.
        ship: to the store, and verifying.
        scan: of the tapes new in the store, by two workers.
    """

    number: int
    exchanges: int
    tapes: int
    journal_bytes: int
    load: float
    made: Step
    pack: Step
    sealed_bytes: int
    ship: Step
    scan: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The costs of `check` and `scan` on the tapes of a part, in journals.

    Attributes:
        part: its number.
        exchanges: on its tapes.
        journal_bytes: of its tapes.
        others: how many processors other programs used meanwhile, on average.
        check: by one process.
        scan_one: by one worker.
        scan_two: by two workers.
    """

    part: int
    exchanges: int
    journal_bytes: int
    others: float
    check: Step
    scan_one: Step
    scan_two: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The number and the bytes of the files of a table."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measurements of a run.

    Attributes:
        exchanges: the number requested.
        seed: of the tapes.
        machine: and its system.
        versions: of programs and libraries.
        day: on which it ended.
        corpus: whether the tapes have streams of the corpus.
        parts: those that were measured.
        comparisons: of some of them.
        objects: in the store.
        store_bytes: of them.
        tables: of the dataset, by name.
        nothing_new: a scan of the whole store without any new tape.
        joined: number of findings from joining tapes.
    """

    exchanges: int
    seed: int
    machine: str
    versions: str
    day: str
    corpus: bool
    parts: Sequence[Part]
    comparisons: Sequence[Comparison]
    objects: int
    store_bytes: int
    tables: Mapping[str, Table]
    nothing_new: Step
    joined: int


@dataclass(frozen=True, slots=True)
class _Folders:
    work: Path

    @property
    def journals(self) -> Path:
        return self.work / "journals"

    @property
    def compared(self) -> Path:
        return self.work / "compared"

    @property
    def store(self) -> Path:
        return self.work / "store"

    @property
    def dataset(self) -> Path:
        return self.work / "dataset"

    def part(self, number: int) -> Path:
        return self.work / f"part-{number:03}.json"

    def comparison(self, number: int) -> Path:
        return self.work / f"comparison-{number:03}.json"


def measure(
    work: Path,
    maker: Maker,
    plan: Plan,
    *,
    parts: int,
    compared: int,
    corpus: bool,
    log: Callable[[str], None],
) -> Measured:
    """Measure the parts that are missing, and return all.

    Args:
        work: a folder for all files; an earlier run in it is continued.
        maker: of the tapes.
        plan: of the tapes.
        parts: number of parts.
        compared: for how many of them to compare `check` and `scan`.
        corpus: whether the corpus is there.
        log: gets lines about the progress.

    Raises:
        MeasuringError: a command failed.
    """
    folders = _Folders(work.resolve())
    work.mkdir(parents=True, exist_ok=True)

    def tapes(number: int) -> range:
        return range(plan.tapes * (number - 1) // parts, plan.tapes * number // parts)

    found = []
    for number in range(1, parts + 1):
        path = folders.part(number)
        if not path.exists():
            part = _part(folders, maker, plan, number, tapes(number))
            _keep(path, asdict(part))
            log(f"part {number} of {parts}: {part.exchanges:,} exchanges")
        found.append(part_of(json.loads(path.read_text())))
    nothing_new = _scan(folders, 2)
    comparisons = []
    for place in range(compared):
        number = 1 + place * parts // compared
        path = folders.comparison(number)
        if not path.exists():
            reverse = place % 2 == 1
            made = _comparison(folders, maker, plan, number, tapes(number), reverse=reverse)
            _keep(path, asdict(made))
            log(f"compared `check` and `scan` on part {number}")
        comparisons.append(comparison_of(json.loads(path.read_text())))
    objects = [each for each in folders.store.rglob("*") if each.is_file()]
    return Measured(
        exchanges=plan.exchanges,
        seed=plan.seed,
        machine=machine(found[0].load),
        versions=_versions(),
        day=rfc3339(SystemClock().wall_ns())[:10],
        corpus=corpus,
        parts=found,
        comparisons=comparisons,
        objects=len(objects),
        store_bytes=sum(each.stat().st_size for each in objects),
        tables=dict(_tables(folders.dataset)),
        nothing_new=nothing_new,
        joined=_joined(folders.dataset),
    )


def _keep(path: Path, measured: dict[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(measured))
    draft.rename(path)


def _part(folders: _Folders, maker: Maker, plan: Plan, number: int, tapes: Sequence[int]) -> Part:
    load = os.getloadavg()[0]
    # What an interrupted part left is made again; what it shipped is in the store already.
    shutil.rmtree(folders.journals, ignore_errors=True)
    clock = SystemClock()
    # `os.times` counts in hundredths of a second: a few tapes take less than one.
    began_ns, cpu = clock.now_ns(), resource.getrusage(resource.RUSAGE_SELF)
    made = write(maker, plan, folders.journals, tapes)
    now = resource.getrusage(resource.RUSAGE_SELF)
    making = Step(
        cpu_s=now.ru_utime + now.ru_stime - cpu.ru_utime - cpu.ru_stime,
        wall_s=(clock.now_ns() - began_ns) / _NS,
        kib=0,
    )
    pack = run(folders.work, "pack", "--jobs", "2", str(folders.journals))
    sealed = sum(path.stat().st_size for path in folders.journals.rglob("*.zst"))
    with ThreadPoolExecutor(_SHIPPERS) as threads:  # each gateway has a shipper of its own
        ships = partial(_ship, folders)
        shipped = list(threads.map(ships, sorted(folders.journals.iterdir())))
    if left_over := [path for path in folders.journals.rglob("*") if path.is_file()]:
        raise MeasuringError(f"not shipped: {left_over[0]}")
    return Part(
        number=number,
        exchanges=made.exchanges,
        tapes=made.tapes,
        journal_bytes=made.bytes,
        load=load,
        made=making,
        pack=pack,
        sealed_bytes=sealed,
        ship=Step(
            cpu_s=sum(each.cpu_s for each in shipped),
            wall_s=sum(each.wall_s for each in shipped),
            kib=max(each.kib for each in shipped),
        ),
        scan=_scan(folders, 2),
    )


def _ship(folders: _Folders, gateway: Path) -> Step:
    """Ship the sealed tapes of a gateway, and delete them here."""
    own = folders.work / "shippers" / gateway.name
    own.mkdir(parents=True, exist_ok=True)
    return run(
        own,
        *("ship", str(gateway), folders.store.as_uri(), "--once", "--quiet"),
        *("--gateway", gateway.name, "--delete-shipped"),
    )


def _comparison(
    folders: _Folders,
    maker: Maker,
    plan: Plan,
    number: int,
    tapes: Sequence[int],
    *,
    reverse: bool,
) -> Comparison:
    """Run `check`, and `scan` by one and by two workers, in turn, on the tapes of a part."""
    folder = folders.compared
    shutil.rmtree(folder, ignore_errors=True)
    made = write(maker, plan, folder / "tapes", tapes)

    def scan(workers: int) -> Step:
        out = folder / f"dataset-{workers}"
        return run(folder, "scan", "tapes", "--out", str(out), "--jobs", str(workers))

    steps: dict[str, Callable[[], Step]] = {
        "check": lambda: run(folder, "check", "--jobs", "1", "--format", "json", "tapes"),
        "one": lambda: scan(1),
        "two": lambda: scan(2),
    }
    names = list(reversed(steps)) if reverse else list(steps)
    clock = SystemClock()
    began_ns, before = clock.now_ns(), _busy_s()
    found = {name: steps[name]() for name in names}
    took_s, busy = (clock.now_ns() - began_ns) / _NS, _busy_s() - before
    shutil.rmtree(folder)
    own = sum(each.cpu_s for each in found.values())
    return Comparison(
        part=number,
        exchanges=made.exchanges,
        journal_bytes=made.bytes,
        others=max(0.0, (busy - own) / took_s),
        check=found["check"],
        scan_one=found["one"],
        scan_two=found["two"],
    )


def _busy_s() -> float:
    """Return the time that all processors have computed since the machine started."""
    user, nice, system, _idle, _waiting, *rest = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    # Guests are in `user` and `nice`; what another machine took from this one is not ours.
    return (user + nice + system + sum(rest[:2])) / os.sysconf("SC_CLK_TCK")


def _scan(folders: _Folders, workers: int) -> Step:
    arguments = ("--out", str(folders.dataset), "--jobs", str(workers))
    return run(folders.work, "scan", str(folders.store), *arguments)


def run(folder: Path, *arguments: str) -> Step:
    """Run `deltatape` with arguments in a folder.

    Raises:
        MeasuringError: it failed; finding defects is no failure.
    """
    clock = SystemClock()
    began_ns = clock.now_ns()
    with (folder / "stderr.txt").open("w+b") as errors:
        process = subprocess.Popen(
            [*_DELTATAPE, *arguments],
            env=outside(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, _FOUND):
            errors.seek(0)
            told = errors.read().decode(errors="replace").strip()[-500:]
            raise MeasuringError(f"deltatape {' '.join(arguments)}: {told}")
    return Step(
        cpu_s=used.ru_utime + used.ru_stime,
        wall_s=(clock.now_ns() - began_ns) / _NS,
        kib=used.ru_maxrss,
    )


def _tables(dataset: Path) -> Iterator[tuple[str, Table]]:
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for path in dataset.rglob("*.parquet"):
        name = path.relative_to(dataset).parts[0]
        files[name] += 1
        sizes[name] += path.stat().st_size
    for name in sorted(files):
        yield name, Table(files=files[name], bytes=sizes[name])


def _joined(dataset: Path) -> int:
    """Count the findings from joining tapes."""
    import duckdb  # noqa: PLC0415 - an extra

    if not any(dataset.glob("findings/*/*.parquet")):
        return 0
    findings = f"{dataset}/findings/*/*.parquet"
    with duckdb.connect() as connection:
        query = "SELECT count(*) FROM read_parquet(?) WHERE across"
        row = connection.execute(query, [findings]).fetchone()
    return int(row[0]) if row else 0


def _versions() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - once

    names = ("deltatape", "pyarrow", "zstandard", "obstore", "distributed", "duckdb")
    return ", ".join([python_version(), *(f"{name} {version(name)}" for name in names)])


# What was measured, as JSON.


def measured_json(measured: Measured) -> str:
    """Return a run as text."""
    return json.dumps(asdict(measured), indent=1) + "\n"


def read_measured(text: str) -> Measured:
    """Return the run that `measured_json` wrote."""
    read = json.loads(text)
    read["parts"] = [part_of(each) for each in read["parts"]]
    read["comparisons"] = [comparison_of(each) for each in read["comparisons"]]
    read["tables"] = {name: Table(**each) for name, each in read["tables"].items()}
    read["nothing_new"] = Step(**read["nothing_new"])
    return Measured(**read)


def part_of(read: Mapping[str, Any]) -> Part:
    """Return a part from its JSON form."""
    return Part(**_with_steps(read))


def comparison_of(read: Mapping[str, Any]) -> Comparison:
    """Return a comparison from its JSON form."""
    return Comparison(**_with_steps(read))


def _with_steps(read: Mapping[str, Any]) -> dict[str, Any]:
    steps = {name: Step(**each) for name, each in read.items() if isinstance(each, dict)}
    return dict(read) | steps
