"""What became of a replay, in lines and as JSON, without a credential."""

import json

from deltatape.match.endpoint import shown
from deltatape.match.request import MatchLevel, MatchQuery, NoMatch, RequestMatcher
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import CorrectedRequest, MissedRequest, PlayedRequest, PlayReport
from deltatape.replay.report import (
    MOST,
    MOST_ALIKE,
    json_report,
    request_lines,
    summary,
)
from deltatape.run_check import RunMistake
from helpers.broken_app_tape import mistaken
from helpers.explanations import lost_arguments
from helpers.taped import taped

ONE = taped(body={"a": 1})
ASKING = MatchQuery(method="POST", target=b"/v1/chat/completions?key=fake&a=1", body=b'{"a":2}')


def missed(*recorded: Exchange) -> MissedRequest:
    asking = MatchQuery(method="POST", target=ONE.request.target_bytes, body=ASKING.body)
    miss = RequestMatcher(recorded).match(asking)
    assert isinstance(miss, NoMatch)
    near = None if miss.nearest is None else recorded[miss.nearest]
    return MissedRequest(query=ASKING, miss=miss, nearest=near, message="not on the tape")


def played(note: str = "") -> PlayedRequest:
    return PlayedRequest(query=ASKING, exchange=ONE, level=MatchLevel.CANONICAL, note=note)


def test_a_request_is_a_line_without_its_key() -> None:
    assert list(request_lines(played())) == [
        "playing x.tape#1 POST /v1/chat/completions (same JSON)"
    ]
    assert next(request_lines(played("fault cut"))).endswith(" (same JSON; fault cut)")
    assert list(request_lines(missed())) == [
        "MISSED POST /v1/chat/completions?key=***&a=1: not on the tape",
    ]
    assert shown(b"/v1/models?a=1") == "/v1/models?a=1"


def test_others_that_would_match_are_told() -> None:
    level = MatchLevel.WITHOUT_VOLATILE
    one = PlayedRequest(query=ASKING, exchange=ONE, level=level, alike=(ONE,) * 2)
    told = (
        "would match as well: what differs is volatile, so exchanges play in their recorded order"
    )
    assert list(request_lines(one)) == [
        "playing x.tape#1 POST /v1/chat/completions (same JSON except for what is volatile)",
        f"  note: x.tape#1, x.tape#1 {told}",
    ]
    alike = (ONE,) * (MOST_ALIKE + 2)
    many = PlayedRequest(query=ASKING, exchange=ONE, level=level, alike=alike)
    assert list(request_lines(many))[1] == f"  note: x.tape#1, x.tape#1, x.tape#1 and 2 more {told}"
    (shown,) = json.loads(json_report(PlayReport(played=(one,))))["played"]
    assert [each["exchange"] for each in shown["alike"]] == [1, 1]


def test_what_was_missed_is_held_against_the_nearest_request() -> None:
    assert list(request_lines(missed(ONE)))[1:] == [
        "  nearest: x.tape#1",
        "  $.a: recorded 1, received 2",
        "  to accept that: --volatile '$.a'",
    ]


def test_all_differences_are_shown_and_what_accepts_them() -> None:
    many = taped(body=dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1))
    lines = list(request_lines(missed(many)))
    assert len(lines) == 2 + 26 + 1
    assert lines[-1].startswith("  to accept that: --volatile '$.a' --volatile '$.b' ")
    recorded = taped(body={"a": [{"id": 1}, {"id": 2}, {"id": 3}], "t": "on 2026-11-26 at 1"})
    asked = b'{"a":[{"id":4},{"id":5},{"id":3}],"t":"on 2026-12-03 at 2"}'
    miss = RequestMatcher([recorded], ("date", "x")).match(
        MatchQuery(method="POST", target=recorded.request.target_bytes, body=asked)
    )
    assert isinstance(miss, NoMatch)
    one = MissedRequest(query=ASKING, miss=miss, nearest=recorded, message="")
    assert list(request_lines(one))[2:] == [
        "  $.a[0].id: recorded 1, received 4 (and 1 more at $.a[*].id)",
        '  $.t: recorded "on <date> at 1", received "on <date> at 2"',
        "  volatile: date, x",
        "  to accept that: --volatile '/at ([0-9]+)/' --volatile '$.a[*].id'",
    ]
    shown = json.loads(json_report(PlayReport(missed=(one,))))["missed"][0]
    assert shown["suggested"] == ["/at ([0-9]+)/", "$.a[*].id"]
    assert (shown["volatile"], shown["more_differences"]) == (["date", "x"], 0)


def test_thousands_of_differences_are_counted() -> None:
    recorded = taped(body=list(range(1, 1201)))
    asking = MatchQuery(
        method="POST", target=recorded.request.target_bytes, body=json.dumps([0] * 1200).encode()
    )
    miss = RequestMatcher([recorded]).match(asking)
    assert isinstance(miss, NoMatch)
    one = MissedRequest(query=ASKING, miss=miss, nearest=recorded, message="")
    assert list(request_lines(one))[2:] == [
        "  $[0]: recorded 1, received 0 (and 999 more at $[*])",
        "  and 200 other differences",
    ]


def test_the_summary_counts_and_names_what_was_left_over() -> None:
    assert list(summary(PlayReport(played=(played(),)))) == ["1 played, 0 missed, 0 unplayed"]
    assert list(summary(PlayReport(unplayed=(ONE,)), 2)) == [
        "0 played, 0 missed, 1 unplayed, 2 recorded",
        "  unplayed: x.tape#1 /v1/chat/completions",
    ]
    lines = list(summary(PlayReport(unplayed=(ONE,) * (MOST + 3))))
    assert len(lines) == MOST + 2
    assert lines[-1] == "  and 3 other exchanges"


def test_the_document_has_all_of_it() -> None:
    report = PlayReport(
        played=(played("fault cut"),), missed=(missed(ONE), missed()), unplayed=(ONE,)
    )
    found = json.loads(json_report(report, (ONE,), (("api.openai.com", "openai"),)))
    path = "/v1/chat/completions"
    exchange = {"tape": "x.tape", "exchange": 1, "id": ONE.id, "method": "POST", "path": path}
    assert found["version"] == 1
    assert found["played"] == [
        {**exchange, "matched": "canonical", "note": "fault cut", "codes": [], "alike": []}
    ]
    assert found["unplayed"] == found["recorded"] == [exchange]
    assert found["refused"] == [{"host": "api.openai.com", "provider": "openai"}]
    near, none = found["missed"]
    assert near["nearest"] == exchange
    assert near["target"] == f"{path}?key=***&a=1"
    assert near["differences"] == [{"path": "$.a", "recorded": "1", "received": "2"}]
    assert near["message"] == "not on the tape"
    assert none["nearest"] is None
    assert none["problem"].endswith("it has no request")


ENDED = CorrectedRequest(query=ASKING, codes=("C002",), message="the tape ends here")
(FINDING, *_) = lost_arguments().findings


def mistake(*, fails: bool = True, silent: bool = False) -> RunMistake:
    return RunMistake(finding=FINDING, request=2, recorded=ONE, fails=fails, silent=silent)


def test_an_answer_to_a_corrected_request_says_what_was_wrong() -> None:
    one = PlayedRequest(
        query=ASKING, exchange=ONE, level=MatchLevel.CORRECTED, codes=("C001", "C002")
    )
    (line,) = request_lines(one)
    assert line.endswith(
        " (differs from the recorded request only where that was wrong (C001, C002))"
    )
    assert list(request_lines(ENDED)) == [
        "END OF TAPE POST /v1/chat/completions?key=***&a=1: the tape ends here"
    ]


def test_the_summary_tells_mistakes_and_what_is_none() -> None:
    silent = mistake(silent=True)
    report = PlayReport(
        mistakes=(mistake(), silent, mistake(fails=False)),
        left_behind=(ONE,),
        unseen=(FINDING, FINDING),
    )
    _, *lines = summary(report)
    code = FINDING.code
    assert (
        lines[0]
        == "  not needed: x.tape#1: they follow a recorded mistake that this run did not repeat"
    )
    assert lines[1].startswith(f"MISTAKE {code} in request 2 (x.tape#1): ")
    assert lines[2].startswith(
        f"MISTAKE {code} after request 2 (x.tape#1): no request with the results"
    )
    assert lines[3].startswith(f"note: {code} in request 2 ")
    assert lines[4].startswith(f"note: a replay cannot show {code} of this tape")
    assert len(lines) == 5
    many = list(summary(PlayReport(mistakes=(mistake(),) * (MOST + 2))))
    assert many[-1] == "  and 2 other mistakes"


def test_the_document_has_mistakes_and_where_the_tape_ended() -> None:
    first = mistaken()[0]
    report = PlayReport(
        mistakes=(mistake(), mistake(silent=True)), ended=(ENDED,), left_behind=(first,)
    )
    found = json.loads(json_report(report))
    one, other = found["mistakes"]
    assert (one["code"], one["request"], one["fails"]) == (FINDING.code, 2, True)
    assert one["message"] == FINDING.message
    assert one["recorded"]["exchange"] == 1
    assert other["message"].startswith("no request with the results")
    assert [each["codes"] for each in found["ended"]] == [["C002"]]
    assert [each["exchange"] for each in found["left_behind"]] == [1]
