"""Many exchanges: the findings of a scan are those of `check`, on one tape and on several."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fleet.conversations import conversations
from fleet.tapes import Maker, Plan, write

from deltatape.ask.dataset import Dataset
from deltatape.cli.parallel_check import check_one
from deltatape.clock import SystemClock
from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan.dataset import open_files
from deltatape.scan.engine import LocalEngine
from deltatape.scan.scan import scan, tapes_of
from deltatape.secret_text.search import without_secrets
from deltatape.store.reader import open_tape
from deltatape.store.splice import SpliceSource, splice

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
NAMES = ("tape", "exchange", "code", "severity", "blame", "message", "line", "fingerprint")


NUMBER = 10_000


@pytest.mark.slow
def test_a_scan_has_exactly_the_findings_of_check(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    plan = Plan(exchanges=NUMBER, per_tape=NUMBER // 4)
    sources = sorted((RECORDINGS / "apps").glob("*.tape"))
    write(Maker(plan, conversations(sources)), plan, source, range(plan.tapes))

    summary = scan(str(source), str(out), LocalEngine(1), DEFAULTS)

    found: Counter[tuple[object, ...]] = Counter()
    for path in (out / "findings").rglob("*.parquet"):
        rows = pq.read_table(path, partitioning=None).to_pylist()
        found.update(tuple(row[name] for name in NAMES) for row in rows if not row["across"])
    checked = Counter(
        (
            key,
            each.finding.exchange,
            each.finding.code,
            each.finding.severity.value,
            each.finding.blame.value if each.finding.blame else None,
            without_secrets(each.finding.message),
            each.finding.line,
            each.fingerprint,
        )
        for key, file in tapes_of(open_files(str(source))).items()
        for each in check_one(str(source / file.path), DEFAULTS, excerpts=False).reported
    )
    assert (summary.exchanges, summary.problems) == (NUMBER, ())
    assert found == checked
    assert found.total() > NUMBER / 100


_ON_ONE_TAPE = frozenset({"C014", "C021", "C023", "C024", "C025", "C026", "D003"})
"""What only a tape that has all can show: docs/scan.md says why."""
_ONCE = frozenset({"C004", "C005", "C009"})
"""What `check` reports once for a tape, and joining once for a conversation."""


@pytest.mark.slow
def test_several_tapes_have_the_findings_of_one_with_all_exchanges(tmp_path: Path) -> None:
    plan = Plan(exchanges=240, per_tape=240, gateways=1)
    folders = (RECORDINGS / "apps", *sorted((RECORDINGS / "rules").glob("C*")))
    sources = [path for folder in folders for path in sorted(folder.glob("*.tape"))]
    write(Maker(plan, conversations(sources)), plan, tmp_path / "one", range(1))
    (one,) = (tmp_path / "one").rglob("*.tape")
    tape = open_tape(str(one))
    ids = {each.number: each.id for each in tape}
    (tmp_path / "parts").mkdir()
    for part in range(3):
        numbers = frozenset(number for number in ids if number % 3 == part)
        source = SpliceSource(tape=tape, numbers=numbers)
        splice([source], tmp_path / "parts" / f"{part}.tape", SystemClock())

    summary = scan(str(tmp_path / "parts"), str(tmp_path / "out"), LocalEngine(1), DEFAULTS)
    with Dataset(tmp_path / "out") as opened:
        asked = "SELECT id, code FROM findings JOIN exchanges USING (tape, exchange)"
        found = Counter((str(own), str(code)) for own, code in opened.ask(asked).rows)
    joined = Counter({each: n for each, n in found.items() if each[1] not in _ON_ONE_TAPE})
    checked = Counter(
        (ids[each.finding.exchange], each.finding.code)
        for each in check_one(str(one), DEFAULTS, excerpts=False).reported
        if each.finding.code not in _ON_ONE_TAPE
    )

    assert (summary.exchanges, summary.problems) == (240, ())
    assert summary.across > 10
    assert checked - joined == Counter()
    assert {code for _, code in joined - checked} <= _ONCE
