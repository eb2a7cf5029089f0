"""Ten thousand exchanges: the findings of a scan are exactly those of `check`."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fleet.conversations import conversations
from fleet.tapes import Maker, Plan, write

from deltatape.cli.parallel_check import check_one
from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan.dataset import open_files
from deltatape.scan.engine import LocalEngine
from deltatape.scan.scan import scan, tapes_of
from deltatape.secret_text.search import without_secrets

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
NAMES = ("tape", "exchange", "code", "severity", "blame", "message", "line", "fingerprint")


NUMBER = 10_000


@pytest.mark.exhaustive
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
