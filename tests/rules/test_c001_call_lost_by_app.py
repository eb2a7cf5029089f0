import pytest

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Confidence, Finding, Severity
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import TEXT, USER, asks, assistant, call, digests, result

TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
MORE: dict[str, object] = {"role": "user", "content": "Hello?"}


def lost(*pairs: Digest) -> list[Finding]:
    return [finding for finding in check_conversation(pairs) if finding.code == "C001"]


@pytest.mark.parametrize(
    ("kept", "hint", "words"),
    [
        (
            ("c2", "put", '{"b":2}'),
            "only the last call survived",
            "of 2 calls it repeats only call 1",
        ),
        (
            ("c1", "get", '{"a":1}'),
            "only the first call survived",
            "of 2 calls it repeats only call 0",
        ),
    ],
)
def test_one_of_two_calls_is_lost(kept: tuple[str, str, str], hint: str, words: str) -> None:
    after = asks(USER, assistant(kept), result(kept[0]))
    (finding,) = lost(*digests((asks(USER), TWO), (after, [])))
    assert hint in finding.hint
    assert words in finding.message
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.PROVEN)


def test_all_calls_are_lost() -> None:
    findings = lost(*digests((asks(USER), TWO), (asks(USER, assistant(), MORE), [])))
    assert [finding.evidence for finding in findings] == ['{"a":1}', '{"b":2}']
    assert "its message has no call at all" in findings[0].message
    assert "keep one entry per index" in findings[0].hint


def test_calls_made_of_single_fragments_are_no_repetition() -> None:
    after = asks(USER, assistant((None, None, '{"a"'), (None, None, ":1}")), MORE)
    findings = lost(*digests((asks(USER), [*call(), FINISH]), (after, [])))
    assert "it repeats 2 calls that the wire did not deliver" in findings[0].message


def test_another_text_in_its_place_is_possible_at_most() -> None:
    after = asks(USER, assistant(text="Sorry, something went wrong."), MORE)
    (finding,) = lost(*digests((asks(USER), [*call(), FINISH]), (after, [])))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_call_that_was_broken_on_the_wire_may_be_dropped() -> None:
    half = [TEXT, calls(entry(0, "c1", name="get", arguments='{"a":')), FINISH]
    assert not lost(*digests((asks(USER), half), (asks(USER, assistant(text="Hello"), MORE), [])))


def test_what_is_repeated_is_not_lost() -> None:
    after = asks(USER, assistant(("c1", "get", '{"a": 1}'), ("c2", "put", '{"b":2}')), result("c1"))
    assert not lost(*digests((asks(USER), TWO), (after, [])))
