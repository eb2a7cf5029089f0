"""What the marker's faults and cuts do to an exchange."""

import pytest

from deltatape.errors import UsageError
from deltatape.match.schedule import ReplayTempo
from deltatape.pytest_plugin.faults import staged
from deltatape.pytest_plugin.marker_options import Marked
from helpers.plugged import hello


def test_reads_are_cut_and_faults_strike_at_the_marker_s_speed() -> None:
    stage = staged(
        Marked(reads="bytes:1", faults=("cut,at=text,times=1",), tempo=ReplayTempo(factor=2))
    )
    first, second = stage(0, hello()), stage(0, hello())
    assert first.exchange.cut
    assert not first.spent
    assert {len(read.data) for read in second.exchange.reads} == {1}
    assert second.exchange.body == hello().body
    plain = staged(Marked(tempo=ReplayTempo(factor=2)))(0, hello()).exchange
    assert [read.t_ns for read in plain.reads] == [5_000_000, 10_000_000, 15_000_000]


@pytest.mark.parametrize(
    ("marked", "says"),
    [
        (Marked(faults=("fire",)), "@pytest.mark.tape(fault='fire'): unknown fault 'fire'; "),
        (Marked(reads="some"), "@pytest.mark.tape(reads='some'): invalid; use "),
        (Marked(faults=("cut,times=1,times=2",)), "use another fault= for the second"),
    ],
)
def test_what_is_not_known_is_told_by_its_argument(marked: Marked, says: str) -> None:
    with pytest.raises(UsageError) as told:
        staged(marked)
    assert says in str(told.value)
    assert "--" not in str(told.value)
