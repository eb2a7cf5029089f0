from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.match.schedule import ReplayTempo
from deltatape.model.exchange import Exchange
from deltatape.shrink.body import with_reads
from deltatape.shrink.search import BudgetExhaustedError
from deltatape.trials.shrink_memory import SearchCache
from deltatape.trials.shrink_trials import Trials, TrialSetup, request_member_paths
from helpers.failing import setting, words
from helpers.taped import taped

INSTANT = ReplayTempo(factor=0.0)


def trials(how: TrialSetup, folder: Path, most: int = 9) -> Trials:
    return Trials(how, INSTANT, SearchCache(folder / "memory.jsonl"), limit=most)


def without_first(exchange: Exchange) -> Exchange:
    """An answer without its first event."""
    return with_reads(exchange, exchange.reads[1:])


def test_a_run_that_fails_in_the_same_way_is_taken_and_remembered(tmp_path: Path) -> None:
    marked, plain = words(1, of=3), words(of=3)
    judge = trials(setting(tmp_path, "once"), tmp_path, most=3)
    first = judge.run((marked,), strict=True)
    judge.set_target(first)
    assert first.failure is not None
    assert first.failure.shown.startswith("KeyError: ")
    shorter = without_first(marked)
    assert judge.judge((shorter,)) == (shorter,)
    assert judge.judge((plain,)) is None
    assert judge.count == 3
    again = trials(setting(tmp_path, "once"), tmp_path, most=0)
    assert again.judge((shorter,)) == (shorter,)
    assert again.judge((plain,)) is None
    assert again.count == 0
    with pytest.raises(BudgetExhaustedError):
        again.judge((marked,))


def test_requests_follow_from_smaller_answers_and_nobody_keeps_what_was_not_asked_for(
    tmp_path: Path,
) -> None:
    first, second = words(of=3), words(0, of=1, number=2, said=3)
    headers = ((b"Content-Length", b"99"), (b"a", b"b"))
    second = replace(second, request=replace(second.request, headers=headers))
    third = words(of=1, number=3)
    judge = trials(setting(tmp_path, "twice"), tmp_path)
    judge.set_target(judge.run((first, second, third), strict=False))
    shorter = without_first(first)
    kept = judge.judge((shorter, second, third))
    assert kept is not None
    assert [one.number for one in kept] == [1, 2]
    assert kept[0] == shorter
    assert kept[1].request.body != second.request.body
    assert kept[1].request.body == b'{"number": 2, "said": 2}'
    assert kept[1].request.headers == ((b"Content-Length", b"24"), (b"a", b"b"))
    assert judge.is_target(judge.run(kept, strict=True))
    judge.follows = False
    assert judge.judge((shorter, replace(second, id="other"))) is None  # now it was a miss


def test_volatile_fields_are_not_taken_into_the_tape(tmp_path: Path) -> None:
    exchanges = (words(of=2), words(0, of=1, number=2, date=1))
    judge = trials(setting(tmp_path, "dated", volatile=("$.date",)), tmp_path)
    judge.set_target(judge.run(exchanges, strict=True))
    assert judge.judge(exchanges) == exchanges
    loose = trials(setting(tmp_path, "dated"), tmp_path / "other")
    loose.set_target(loose.run(exchanges, strict=False))
    kept = loose.judge(exchanges)
    assert kept is not None
    assert kept[1].request.body != exchanges[1].request.body


def test_a_request_that_finds_no_answer_is_another_failure(tmp_path: Path) -> None:
    judge = trials(setting(tmp_path, "other", error=""), tmp_path)
    fine = trials(setting(tmp_path, "once", error=""), tmp_path)
    judge.set_target(fine.run((words(0, of=1),), strict=True))
    assert not judge.is_target(judge.run((words(0, of=1),), strict=True))


def test_an_oracle_decides_whatever_the_exit_code_is(tmp_path: Path) -> None:
    says = setting(tmp_path, "says", oracle="grep -q fine || { echo 'not fine'; exit 1; }")
    judge = trials(says, tmp_path)
    ran = judge.run((words(0, of=1),), strict=True)
    assert ran.failure is not None
    assert ran.failure.description == "rejected by the oracle: not fine"
    judge.set_target(ran)
    assert judge.judge((words(0, of=2),)) is not None
    assert judge.judge((words(of=2),)) is None


def test_a_run_without_an_end_is_a_failure(tmp_path: Path) -> None:
    judge = trials(setting(tmp_path, "hang", deadline_s=1.0), tmp_path)
    ran = judge.run((words(0, of=1),), strict=True)
    assert ran.failure is not None
    assert ran.failure.description == "still running at the deadline"


def test_bodies_that_are_no_objects_are_matched_as_they_are() -> None:
    one = taped(body={"a": 1, "it's": 2})
    assert request_member_paths((one,)) == ()
    assert request_member_paths(
        (one, taped(body=b"no json", number=2), taped(body=[1], number=3))
    ) == ("['a']",)


def test_requests_that_are_not_json_are_compared_as_bytes(tmp_path: Path) -> None:
    judge = trials(setting(tmp_path, "once"), tmp_path)
    recorded = taped(body=b"a").request
    assert judge._differs(b"b", recorded)
    assert not judge._differs(b"a", recorded)
    assert not judge._differs(b'{"a": 1}', taped(body=b'{"a":1}').request)
    masked = replace(recorded, body=b"a ****", masked=((2, 6, "0"),))
    assert not judge._differs(b"a sk-f", masked)
    assert judge._differs(b"b sk-f", masked)


def test_a_request_that_differs_in_masked_places_alone_stays_as_recorded(tmp_path: Path) -> None:
    judge = trials(setting(tmp_path, "once", volatile=("$.date",)), tmp_path)
    body = b'{"key": "****", "date": 1}'
    masked = replace(taped(body=body).request, masked=((9, 13, "0"),))
    assert not judge._differs(b'{"date": 2, "key": "sk-fake-000000"}', masked)
    assert judge._differs(b'{"date": 2, "key": "sk-fake-000000", "more": 1}', masked)


def test_no_credential_is_kept_of_a_request_or_of_what_was_printed(tmp_path: Path) -> None:
    key = "sk-fake-000000-of-mine"
    how = setting(tmp_path, "key")
    how = replace(how, environ={**how.environ, "OPENAI_API_KEY": key})
    first, second = words(of=3), words(0, of=1, number=2, said=3, key="other")
    judge = trials(how, tmp_path)
    ran = judge.run((first, second), strict=False)
    assert ran.failure is not None
    assert ran.failure.shown == f"KeyError: '{'*' * len(key)}'"
    judge.set_target(ran)
    kept = judge.judge((first, second))
    assert kept is not None
    request = kept[1].request
    at = request.body.index(b"*")
    assert request.body[at:].startswith(b"*" * len(key) + b'"')
    assert [span[:2] for span in request.masked] == [(at, at + len(key))]
    assert key not in (tmp_path / "memory.jsonl").read_text()
    again = trials(how, tmp_path, most=0)
    again.set_target(ran)
    assert again.judge((first, second)) == kept
    assert judge.is_target(judge.run(kept, strict=True))
