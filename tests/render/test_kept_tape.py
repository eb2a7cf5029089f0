import pytest

from deltatape.render.kept_tape import counted, kept_stem
from deltatape.store.names import check_stem
from deltatape.store.reader import open_tape
from deltatape.why.overview import TapeOverview, overview
from helpers.incidents import EMPTY

DAY = "2026-11-22T01:02:03.000000000Z"


def seen(*models: str) -> TapeOverview:
    return TapeOverview(exchanges=1, apps=(), models=models, findings=0, worst=None)


def test_a_kept_tape_is_named_by_day_model_and_worst_finding() -> None:
    assert kept_stem(DAY, overview(open_tape(EMPTY))) == "2026-11-22-demo-model-empty-arguments"
    assert kept_stem(DAY, seen("gpt-4o", "o1")) == "2026-11-22-gpt-4o-healthy"
    assert kept_stem(DAY, seen()) == "2026-11-22-healthy"


@pytest.mark.parametrize(
    "model", ["../../etc/x", "a/b:c d\x1b", ".hidden", "m" * 500, "東京", "--"]
)
def test_whatever_a_model_is_called_the_name_is_one(model: str) -> None:
    assert check_stem(kept_stem(DAY, seen(model)))
    assert check_stem(kept_stem("....", seen(model)))


def test_what_was_overwritten_is_counted_by_kind() -> None:
    assert counted({"b": 1, "a": 2}) == "2 x a, 1 x b"
    assert counted({}) == "none"
