"""A player that reads back what the client makes of its answers."""

import json
from collections.abc import Sequence

import pytest

from deltatape.match.request import MatchLevel
from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayOptions, PlayReport, RunReadBack
from deltatape.replay.playback import Playback
from helpers.broken_app_tape import ASKED, RIGHT, WRONG, Json, mistaken
from helpers.playing import ask

AT_ONCE = ReplayTempo(factor=0.0)


def run(
    exchanges: Sequence[Exchange], *requests: Json, playing: PlayOptions | None = None
) -> tuple[list[tuple[int, bytes]], PlayReport]:
    """What requests get, and the report."""
    how = playing or PlayOptions(tempo=AT_ONCE, read_back=RunReadBack())
    with Playback(exchanges, how) as playback:
        answers = [ask(playback.url, json.dumps(each).encode()) for each in requests]
        return answers, playback.report


def test_a_mistake_that_is_made_again_is_in_the_report() -> None:
    answers, report = run(mistaken(), ASKED, WRONG)
    assert [status for status, _ in answers] == [200, 200]
    assert {each.finding.code for each in report.failures} == {"C002"}
    assert not report.whole
    assert not report.missed


def test_a_right_request_gets_the_answer_to_the_wrong_one() -> None:
    answers, report = run(mistaken(), ASKED, RIGHT)
    assert [status for status, _ in answers] == [200, 200]
    assert b"Hello" in answers[1][1]
    assert report.whole
    last = report.played[-1]
    assert last.level is MatchLevel.CORRECTED
    assert last.matched == "differs from the recorded request only where that was wrong (C002)"


def test_a_refusal_of_the_wrong_request_is_not_played_to_a_right_one() -> None:
    answers, report = run(mistaken(refused=True), ASKED, RIGHT)
    status, body = answers[1]
    assert status == 400
    error = json.loads(body)["error"]
    assert error["code"] == "end_of_tape"
    assert "the recorded app made a mistake (C002)" in error["message"]
    assert "x.tape#2 is the provider's error for the wrong one" in error["message"]
    assert report.whole
    (ended,) = report.ended
    assert ended.codes == ("C002",)
    assert not report.unplayed
    assert not report.missed


def test_a_request_that_differs_elsewhere_is_missed() -> None:
    answers, report = run(mistaken(), ASKED, {**RIGHT, "model": "n"})
    assert answers[1][0] == 400
    assert b"not_on_tape" in answers[1][1]
    assert len(report.missed) == 1
    assert not report.failures


def test_a_missed_request_that_shows_a_mistake_says_so() -> None:
    _, report = run(mistaken()[:1], ASKED, WRONG)
    assert len(report.missed) == 1
    assert [each.finding.code for each in report.failures] == ["C002"]


@pytest.mark.parametrize(
    "playing",
    [
        PlayOptions(tempo=AT_ONCE),
        PlayOptions(tempo=AT_ONCE, read_back=RunReadBack(), repeat=True),
        PlayOptions(tempo=AT_ONCE, read_back=RunReadBack(ignored=("C002",))),
    ],
)
def test_what_is_not_to_be_read_back_is_not(playing: PlayOptions) -> None:
    _, report = run(mistaken(), ASKED, WRONG, playing=playing)
    assert report.whole
    answers, report = run(mistaken(), ASKED, RIGHT, playing=playing)
    assert answers[1][0] == 400
    assert len(report.missed) == 1


def test_a_request_to_another_place_is_missed_as_ever() -> None:
    how = PlayOptions(tempo=AT_ONCE, read_back=RunReadBack())
    with Playback(mistaken(), how) as playback:
        ask(playback.url, json.dumps(ASKED).encode())
        status, _ = ask(playback.url, b"{}", path="/v1/elsewhere")
        assert status == 400
        assert len(playback.report.missed) == 1


def test_what_is_told_of_a_mistake_hides_credentials() -> None:
    how = PlayOptions(tempo=AT_ONCE, read_back=RunReadBack(), secrets=(b"delivered with",))
    _, report = run(mistaken(), ASKED, WRONG, playing=how)
    assert "was ************** " in report.failures[0].finding.message
