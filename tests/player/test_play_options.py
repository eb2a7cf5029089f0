from deltatape.match.request import MatchQuery, NoMatch
from deltatape.player.play_options import MissedRequest, PlayReport
from helpers.taped import taped


def test_a_report_is_whole_when_nothing_was_missed_and_nothing_is_left() -> None:
    asking = MatchQuery(method="GET", target=b"/", body=b"")
    miss = NoMatch(nearest=None, problem="", differences=())
    missed = MissedRequest(asking=asking, miss=miss, nearest=None, message="")
    assert PlayReport().whole
    assert not PlayReport(missed=(missed,)).whole
    assert not PlayReport(unplayed=(taped(),)).whole
