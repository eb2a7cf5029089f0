from dataclasses import replace

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules.settings import DEFAULTS, Settings
from helpers.exchanges import USER, asks, digests

NS = 1_000_000_000


def attempts(number: int, *, every_s: float = 1.0, lasts_s: float = 0.5) -> list[Digest]:
    """The same request again and again, each refused."""
    made = digests(*[(asks(USER), [])] * number)
    return [
        replace(
            each,
            t_ns=round(at * every_s * NS),
            end_ns=round((at * every_s + lasts_s) * NS),
            status=429,
            error="slow down",
            failed=True,
        )
        for at, each in enumerate(made)
    ]


def storms(tape: list[Digest], settings: Settings = DEFAULTS) -> list[Finding]:
    return [each for each in check_conversation(tape, settings) if each.code == "C008"]


def test_the_fifth_attempt_in_a_minute_is_told_and_then_each_doubling() -> None:
    found = storms(attempts(11))
    assert [finding.exchange for finding in found] == [5, 10]
    assert found[0].message == (
        "the same request came 5 times in 4.0 s, each time after the one before had failed (#1 and"
        " on): 429, 429, 429, 429"
    )
    assert (found[0].severity, found[0].blame) == (Severity.WARNING, Blame.APP)
    assert (found[0].confidence, found[0].evidence) == (Confidence.LIKELY, "slow down")
    assert found[0].against is not None
    assert (found[0].against.exchange, found[0].against.evidence) == (1, "slow down")


def test_the_limits_are_settings() -> None:
    assert [each.exchange for each in storms(attempts(3), Settings(retries=3))] == [3]
    assert not storms(attempts(5), Settings(retries_time_s=3.5))


def test_whether_the_last_attempt_succeeds_does_not_matter_and_then_it_is_over() -> None:
    tape = attempts(10)
    tape[4] = replace(tape[4], failed=False, status=200, error=None)
    assert [each.exchange for each in storms(tape)] == [5, 10]


def test_broken_and_missing_answers_are_failures_too() -> None:
    tape = attempts(5)
    tape[0] = replace(tape[0], status=200, error=None)
    tape[3] = replace(tape[3], status=None, error=None)
    (finding,) = storms(tape)
    assert finding.message.endswith("broke off, 429, 429, no response")
    assert finding.evidence == ""


def test_pauses_that_the_provider_asks_for_are_no_storm() -> None:
    tape = [replace(each, wait_s=10) for each in attempts(5, every_s=10.5)]
    assert not storms(tape)
    assert storms([replace(each, wait_s=11) for each in tape])
    assert storms([*tape[:2], replace(tape[2], wait_s=0), *tape[3:]])


def test_requests_side_by_side_are_no_retries() -> None:
    assert not storms(attempts(9, lasts_s=1.5))


def test_requests_without_times_or_without_history_tell_nothing() -> None:
    assert not storms([replace(each, t_ns=None) for each in attempts(5)])
    empty = digests(*[(asks(), [])] * 5)
    assert not storms([replace(each, failed=True) for each in empty])


def test_another_request_in_between_does_not_count() -> None:
    other = digests((asks(USER, USER), []))[0]
    tape = attempts(5)
    assert len(storms([*tape[:3], other, *tape[3:]])) == 1


def test_pauses_that_grow_are_how_it_should_be() -> None:
    grows = [
        replace(each, t_ns=round(2**at * NS), end_ns=round((2**at + 0.1) * NS))
        for at, each in enumerate(attempts(5))
    ]
    assert not storms(grows)
    hasty = [replace(grows[0], end_ns=grows[1].t_ns), *grows[1:]]
    assert storms(hasty)
