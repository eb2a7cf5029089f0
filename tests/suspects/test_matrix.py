from deltatape.suspects.bench import Bench
from deltatape.suspects.matrix import rows
from deltatape.suspects.search import WORK_LIMIT
from helpers.chat import FINISH, calls, entry, sse
from helpers.suspected import deliver, told

STREAM = sse(
    calls(entry(0, "c1", name="get", arguments="")),
    calls(entry(0, arguments='{"a":1}')),
    FINISH,
)


def test_every_preset_of_the_dialect_has_a_row() -> None:
    found = {row.name: row for row in rows(Bench(deliver(STREAM)))}
    assert not found["single-current-call"].differs
    assert found["single-current-call"].says == ""
    each = found["each-event-is-a-call"]
    assert each.differs
    assert told(each.made.calls) == [("c1", "get", ""), (None, None, '{"a":1}')]
    assert each.says.endswith("; of the call in the stream it makes 2")
    assert "arguments-at-item-added" not in found


def test_rows_end_where_time_does() -> None:
    bench = Bench(deliver(STREAM))
    bench.spent = WORK_LIMIT + 1
    assert rows(bench) == ()
