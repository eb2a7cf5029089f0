"""Whether a test holds, going by what its tapes report."""

import pytest

from deltatape.match.difference import JsonDifference
from deltatape.match.request import MatchLevel, MatchQuery, NoMatch
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import MissedRequest, PlayedRequest, PlayReport, UnusedFault
from deltatape.pytest_plugin.verdict import FinishedTest, RaisedException, complaint
from deltatape.run_check import RunMistake
from helpers.explanations import lost_arguments
from helpers.pytest_projects import hello

ONE = hello()
TWO = hello("Bye", number=2)
ASKING = MatchQuery(method="POST", target=b"/openai/v1/chat/completions", body=b"{}")


def played(exchange: Exchange) -> PlayedRequest:
    """A request that was answered."""
    return PlayedRequest(query=ASKING, exchange=exchange, level=MatchLevel.EXACT)


def missed() -> MissedRequest:
    """A request that was not."""
    difference = JsonDifference(path="$.model", recorded='"m"', received='"n"')
    problem = "the nearest recorded request differs"
    miss = NoMatch(nearest=1, problem=problem, differences=(difference,))
    return MissedRequest(query=ASKING, miss=miss, nearest=TWO, message="")


def test_a_test_that_was_true_to_its_tape_holds() -> None:
    assert complaint(FinishedTest(report=PlayReport(played=(played(ONE),)))) == ""


def test_a_miss_names_the_nearest_request_and_what_differs() -> None:
    told = complaint(FinishedTest(report=PlayReport(played=(played(ONE),), missed=(missed(),))))
    assert told.splitlines() == [
        "1 request is not on the tape:",
        "  POST /openai/v1/chat/completions: the nearest recorded request differs",
        "    nearest: x.tape#2",
        '    $.model: recorded "m", received "n"',
    ]


def test_a_miss_of_a_tape_without_requests_names_none_and_no_key() -> None:
    asking = MatchQuery(method="GET", target=b"/gemini/v1beta/models?key=fake-000000", body=b"")
    miss = NoMatch(nearest=None, problem="nothing is recorded", differences=())
    one = MissedRequest(query=asking, miss=miss, nearest=None, message="")
    assert complaint(FinishedTest(report=PlayReport(missed=(one,)))).splitlines() == [
        "1 request is not on the tape:",
        "  GET /gemini/v1beta/models?key=***: nothing is recorded",
    ]


def test_an_exchange_that_nobody_asked_for_is_named() -> None:
    told = complaint(FinishedTest(report=PlayReport(played=(played(ONE),), unplayed=(TWO,))))
    assert told.splitlines() == [
        "1 exchange was not asked for:",
        "  x.tape#2 POST /v1/chat/completions",
    ]


def test_of_many_the_first_are_reported() -> None:
    told = complaint(FinishedTest(report=PlayReport(missed=(missed(),) * 9, unplayed=(ONE,) * 7)))
    assert "9 requests are not on the tape" in told
    assert "  ... and 4 more" in told
    assert "7 exchanges were not asked for" in told
    assert "  ... and 2 more" in told


def test_that_no_request_came_at_all_is_explained() -> None:
    told = complaint(FinishedTest(report=PlayReport(unplayed=(ONE, TWO))))
    assert "no request came at all: the base URL is read from the environment" in told


def test_that_requests_went_to_the_provider_is_told_instead() -> None:
    told = complaint(FinishedTest(report=PlayReport(unplayed=(ONE,)), forwarded=2))
    assert told.splitlines()[2:] == ["2 requests went to the provider, not being on the tape"]


def test_a_fault_that_strikes_nothing_is_a_complaint() -> None:
    idle = (UnusedFault("cut", "nothing was played"), UnusedFault("drop", "it has no place"))
    assert complaint(
        FinishedTest(report=PlayReport(played=(played(ONE),)), unused_faults=idle)
    ).splitlines() == [
        "fault='cut' changed nothing: nothing was played",
        "fault='drop' changed nothing: it has no place",
    ]


BROKEN = PlayReport(played=(played(ONE),), unplayed=(TWO,))


def test_a_broken_stream_wants_an_error_and_nothing_else() -> None:
    assert complaint(FinishedTest(report=BROKEN, broken=ONE, raised=RaisedException.ERROR)) == ""


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (FinishedTest(report=BROKEN, broken=ONE), "half an answer was accepted as a complete one"),
        (
            FinishedTest(report=BROKEN, broken=ONE, raised=RaisedException.ASSERTION),
            "only the test's own assertion failed",
        ),
        (
            FinishedTest(report=BROKEN, broken=ONE, raised=RaisedException.ERROR, late_s=2.0),
            "there was no error within 2 s",
        ),
        (
            FinishedTest(report=BROKEN, broken=TWO, raised=RaisedException.ERROR),
            "x.tape#2 was not asked for",
        ),
        (
            FinishedTest(
                report=PlayReport(played=(played(ONE),), missed=(missed(),)),
                broken=ONE,
                raised=RaisedException.ERROR,
            ),
            "continued as if the response were complete:\n1 request is not on the tape",
        ),
    ],
)
def test_a_broken_stream_that_nobody_tells_of_is_a_complaint(run: FinishedTest, says: str) -> None:
    assert says in complaint(run)


def test_a_mistake_is_named_before_all_else() -> None:
    (finding, *_) = lost_arguments().findings
    mistake = RunMistake(finding=finding, request=2, recorded=TWO)
    report = PlayReport(played=(played(ONE),), missed=(missed(),), mistakes=(mistake,) * 7)
    lines = complaint(FinishedTest(report=report)).splitlines()
    assert lines[0] == "the app made 7 mistakes with what it was sent:"
    assert lines[1].startswith(f"  {finding.code} in request 2 (x.tape#2): ")
    assert lines[6:8] == ["  ... and 2 more", "1 request is not on the tape:"]
