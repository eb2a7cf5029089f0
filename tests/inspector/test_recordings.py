"""All recordings are listed, damaged ones with their problem, and those listed can be looked at."""

import json
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError
from deltatape.inspector.documents import Documents
from deltatape.inspector.index import Filter, IndexReader
from deltatape.inspector.indexing import Indexing, Library
from deltatape.model.rule_settings import DEFAULTS
from deltatape.store.reader import open_tape

pytestmark = pytest.mark.slow
RECORDINGS = Path(__file__).parent.parent.parent / "recordings"
EVERY = 40


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("index") / "index"
    indexing = Indexing(Library(folders=[RECORDINGS]), made, DEFAULTS, SystemClock())
    indexing.scan()
    while indexing.busy:
        indexing.work()
    indexing.close()
    return made


@pytest.mark.slow
def test_exactly_the_damaged_ones_have_a_problem(index: Path) -> None:
    reader = IndexReader(index)
    tapes = [state for state, _ in reader.tapes()]
    reader.close()
    assert len(tapes) == len(list(RECORDINGS.rglob("*.tape")))
    damaged = set()
    for tape in tapes:
        assert tape.indexed
        try:
            list(open_tape(tape.path))
        except DeltatapeError:
            damaged.add(tape.id)
    assert {tape.id for tape in tapes if tape.problem} == damaged


@pytest.mark.slow
def test_what_is_listed_can_be_looked_at_and_has_the_same_row_there(index: Path) -> None:
    reader = IndexReader(index)
    total = reader.page(Filter(), "at", offset=0, limit=1).total
    rows = [
        json.loads(row)
        for at in range(0, total, EVERY)
        for row in reader.page(Filter(), "at", offset=at, limit=1).rows
    ]
    reader.close()
    assert len(rows) > 50
    documents = Documents(DEFAULTS)
    for row in rows:
        place = {"tape": row["tape"], "path": str(RECORDINGS / row["tape"])}
        for what in ("show", "why", "steps"):
            answer = documents.answer({**place, "exchange": row["exchange"], "what": what})
            assert answer.status == 200, (row, answer.body)
            if what == "show":
                assert json.loads(answer.body)["exchange"] == row
