import pytest

from deltatape.conversation import check_conversation
from deltatape.model.finding import Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import USER, asks, assistant, call, digests, result

MORE: dict[str, object] = {"role": "user", "content": "Hello?"}
TWO = [*call("get"), *call("put", '{"b":2}', 1), FINISH]


def changed(
    *repeated: tuple[str | None, str | None, str], answers: tuple[str, ...] = ()
) -> list[Finding]:
    chunks = [*call(), FINISH] if len(repeated) == 1 else TWO
    after = asks(USER, assistant(*repeated), *map(result, answers), MORE)
    found = check_conversation(digests((asks(USER), chunks), (after, [])))
    return [finding for finding in found if finding.code == "C003"]


def test_a_name_that_was_joined_is_an_error() -> None:
    (finding,) = changed(("c1", "getget", '{"a":1}'), answers=("c1",))
    assert "the name 'getget' instead of 'get' (the original 2 times)" in finding.message
    assert finding.severity is Severity.ERROR


def test_an_id_that_was_joined_throughout_works_by_luck() -> None:
    (finding,) = changed(("c1c1c1", "get", '{"a":1}'), answers=("c1c1c1",))
    assert finding.message.endswith("(the original 3 times), and so does its result")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.PROVEN)


def test_a_lost_id_is_possible_until_its_result_carries_it() -> None:
    (finding,) = changed(("", "get", '{"a":1}'))
    assert "the id empty instead of 'c1'" in finding.message
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    (finding,) = changed(("", "get", '{"a":1}'), answers=("c1",))
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_a_lost_name_is_likely_and_another_name_possible() -> None:
    (finding,) = changed(("c1", "", '{"a":1}'), answers=("c1",))
    assert finding.confidence is Confidence.LIKELY
    (finding,) = changed(("c1", "fetch", '{"a":1}'), answers=("c1",))
    assert finding.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize("name", ["Get", "functions.get", "mcp__web__get"])
def test_a_name_in_another_spelling_is_a_repair(name: str) -> None:
    assert not changed(("c1", name, '{"a":1}'), answers=("c1",))


def test_a_name_that_was_not_offered_may_be_repaired() -> None:
    tool = {"type": "function", "function": {"name": "fetch", "parameters": {}}}
    after = asks(USER, assistant(("c1", "fetch", '{"a":1}')), result("c1"))
    tape = digests((asks(USER, tools=[tool]), [*call(), FINISH]), (after, []))
    assert not [each for each in check_conversation(tape) if each.code == "C003"]


def test_an_id_of_its_own_is_the_applications_right_if_the_result_has_it_too() -> None:
    assert not changed(("mine", "get", '{"a":1}'), answers=("mine",))


def test_an_id_made_unique_is_the_applications_right_if_the_result_has_it_too() -> None:
    assert not changed(("resp_9:c1", "get", '{"a":1}'), answers=("resp_9:c1",))
    assert changed(("resp_9:c1", "get", '{"a":1}'))


def test_a_foreign_id_without_result_may_belong_to_another_reply() -> None:
    assert not changed(("other", "get", '{"a":1}'))


def test_a_foreign_id_beside_a_known_one_may_be_its_own() -> None:
    other = ("other", "put", '{"b":2}')
    assert not changed(("c1", "get", '{"a":1}'), other, answers=("c1",))


def test_what_is_repeated_as_delivered_is_fine() -> None:
    assert not changed(("c1", "get", '{"a":1}'), answers=("c1",))


def test_a_copy_of_a_call_under_another_id_is_told() -> None:
    copy = ("x7", "get", '{"a": 1}')
    after = asks(USER, assistant(("c1", "get", '{"a":1}'), copy), result("c1"), result("x7"))
    tape = digests((asks(USER), [*call(), FINISH]), (after, []))
    (finding,) = [each for each in check_conversation(tape) if each.code == "C003"]
    assert finding.message == (
        "the next request repeats call 0 (get, c1) of #1 twice, the second time with the"
        " id 'x7' instead of 'c1'"
    )
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.against is not None
    assert finding.against.request_span is not None


def test_a_further_call_that_says_something_else_is_no_copy() -> None:
    other = ("x7", "get", '{"a":2}')
    after = asks(USER, assistant(("c1", "get", '{"a":1}'), other), result("c1"), result("x7"))
    tape = digests((asks(USER), [*call(), FINISH]), (after, []))
    assert not [each for each in check_conversation(tape) if each.code == "C003"]
