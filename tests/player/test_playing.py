from deltatape.match.request import Asking, Miss
from deltatape.player.playing import Missed, Report
from helpers.taped import taped


def test_a_report_is_whole_when_nothing_was_missed_and_nothing_is_left() -> None:
    asking = Asking(method="GET", target=b"/", body=b"")
    miss = Miss(nearest=None, problem="", differences=())
    missed = Missed(asking=asking, miss=miss, nearest=None, message="")
    assert Report().whole
    assert not Report(missed=(missed,)).whole
    assert not Report(unplayed=(taped(),)).whole
