from collections.abc import Sequence

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, calls, choice, entry, request
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    found,
    one,
    pasted,
    result,
    user,
)
from helpers.messages import END, URL, piece, sse, start, stop, tool_block
from helpers.responses import custom_calls, findings


def test_a_call_without_a_name_is_reported() -> None:
    finding = one(pasted(calls(entry(0, "c1", arguments="{}")), FINISH), "T004")
    assert finding.message.startswith("call 0 has no name")


def test_a_fragment_that_belongs_to_no_call_is_reported() -> None:
    finding = one(pasted(calls(entry(0, arguments="{}")), FINISH), "T004")
    assert "belongs to no call" in finding.message


def test_a_call_without_an_id_is_reported() -> None:
    exchange = pasted(calls(entry(0, name="get", arguments="{}")), FINISH)
    assert one(exchange, "T005").message.startswith("call 0 (get): ")


def test_an_id_in_the_first_fragment_is_enough_and_function_call_has_none() -> None:
    legacy = choice({"function_call": {"name": "get", "arguments": "{}"}})
    assert not found(pasted(*call(), FINISH), "T005")
    assert not found(pasted(legacy, choice({}, "function_call")), "T005")


TOOLS = request(get_weather={}, get_time={})


@pytest.mark.parametrize(
    ("name", "blame", "meant"),
    [
        ("get_wether", Blame.MODEL, "; the nearest is get_weather"),
        ("get_time<|channel|>", Blame.UPSTREAM, "; the nearest is get_time"),
        ("zzz", Blame.MODEL, ""),
    ],
)
def test_a_name_that_was_not_offered_is_reported_with_the_nearest(
    name: str, blame: Blame, meant: str
) -> None:
    finding = one(pasted(*call(name), FINISH, request=TOOLS), "T007")
    assert finding.blame is blame
    assert finding.message.endswith(f"is not among the 2 tools of the request{meant}")


def test_an_offered_tool_and_a_request_without_tools_are_fine() -> None:
    assert not found(pasted(*call("get_time"), FINISH, request=TOOLS), "T007")
    assert not found(pasted(*call("get_time"), FINISH), "T007")


def test_a_call_without_a_name_is_reported_by_another_rule() -> None:
    nameless = calls({"index": 0, "id": "c1", "function": {"arguments": "{}"}})
    assert not found(pasted(nameless, FINISH, request=TOOLS), "T007")


def test_tools_that_the_request_does_not_name_are_unknown_to_nobody() -> None:
    base = {"model": "m", "max_tokens": 1, "messages": []}
    tools: list[object] = [{"name": "get_time", "input_schema": {}}]
    frames = (start(), tool_block(name="navigate"), piece("{}"), stop(), *END)

    def codes(*more: object) -> list[str]:
        exchange = Exchange.from_body(
            sse(*frames),
            content_type="text/event-stream",
            url=URL,
            request={**base, "tools": [*tools, *more]},
        )
        return [finding.code for finding in check(exchange)]

    assert codes() == ["T007"]
    assert codes({"type": "browser_toolset_20260801"}) == []


@pytest.mark.parametrize(
    ("code", "chunks", "words"),
    [
        (
            "T009",
            [
                calls(entry(0, "c1", name="get", arguments="")),
                calls(entry(0, name="get", arguments="{}")),
            ],
            "is sent again",
        ),
        (
            "T010",
            [
                calls(entry(0, "c1", name="get", arguments="")),
                calls(entry(0, "c2", arguments="{}")),
            ],
            "changes to 'c2'",
        ),
        ("T011", [calls(entry(None, "c1", name="get", arguments="{}"))], "has no index"),
        (
            "T012",
            [*call("get"), calls(entry(0, "c2", name="put", arguments="{}"))],
            "is used for another call",
        ),
        ("T013", call(index=1), "index of a tool call is 1"),
        (
            "T021",
            [
                calls(entry(0, "c1", name="ge", arguments="")),
                calls(entry(0, name="t", arguments="{}")),
            ],
            "'ge' and 't'",
        ),
    ],
)
def test_what_the_dialect_observes_is_reported(
    code: str, chunks: Sequence[object], words: str
) -> None:
    finding = one(pasted(*chunks, FINISH), code)
    assert finding.blame is Blame.UPSTREAM
    assert words in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    told = {finding.code for finding in check(pasted(*call(), FINISH))}
    assert told.isdisjoint({"T004", "T005", "T009", "T010", "T011", "T012", "T013", "T021"})


def test_the_same_call_twice_is_reported_whatever_its_spelling() -> None:
    again = calls(entry(1, "c2", name="get", arguments='{ "a": 1 }'))
    finding = one(pasted(*call(), again, FINISH), "T020")
    assert finding.message.startswith("call 1 (get) repeats call 0")
    assert finding.confidence is Confidence.POSSIBLE


def test_a_call_sent_at_two_indexes_is_reported() -> None:
    moved = calls(entry(1, "c1", name="get", arguments='{"a":1}'))
    assert one(pasted(*call(), moved, FINISH), "T020").message.startswith("call 0 (get): ")


def free(*inputs: str) -> list[str]:
    """What is found on custom calls with these inputs."""
    return [one.code for one in findings(*custom_calls(*inputs))]


def test_free_text_is_compared_as_it_is() -> None:
    assert free("print(1)", "print(2)") == []
    assert free('{"a": 1}', '{"a":1}') == []
    assert free("print(1)", "print(1)") == ["T020"]


def test_other_arguments_and_calls_without_any_are_fine() -> None:
    other = calls(entry(1, "c2", name="get", arguments='{"a":2}'))
    empty = [calls(entry(at, f"c{at}", name="get", arguments="")) for at in (0, 1)]
    assert not found(pasted(*call(), other, FINISH), "T020")
    assert not found(pasted(*empty, FINISH), "T020")


ROUND = [CALL_MESSAGE, result("c1")]
MORE = user("And tomorrow?")
FIRST = (asks(USER), CALL_REPLY)


def reused(tape: Sequence[Digest]) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "T026"]


def test_a_new_call_with_the_id_of_a_delivered_one() -> None:
    (finding,) = reused(digests(FIRST, (asks(USER, *ROUND), [*call("put"), FINISH])))
    assert finding.message == (
        "call 0 (put, c1) of #2 has the id of call 0 (get, c1) of #1: a result with this"
        " id can be assigned to the wrong call"
    )
    assert (finding.severity, finding.exchange) == (Severity.WARNING, 2)
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert finding.excluded[0].because == "the provider sent the id in #1 and again in #2"
    assert finding.against
    assert finding.against.exchange == 1


def test_it_is_reported_once_for_each_id_and_in_one_finding_per_reply() -> None:
    both = calls(entry(0, "c1", name="a", arguments="{}"), entry(1, "c2", name="b", arguments="{}"))
    again = [assistant(("c1", "a", "{}"), ("c2", "b", "{}")), result("c1"), result("c2")]
    tape = digests(
        (asks(USER), [both, FINISH]),
        (asks(USER, *again), [both, FINISH]),
        (asks(USER, *again, *again), [both, FINISH]),
    )
    (finding,) = reused(tape)
    assert finding.exchange == 2
    assert "(and 1 more ids)" in finding.message


def test_other_ids_and_a_request_that_is_sent_again_are_fine() -> None:
    other = calls(entry(0, "c9", name="get", arguments='{"a":1}'))
    assert not reused(digests(FIRST, (asks(USER, *ROUND), [other, FINISH])))
    assert not reused(digests(FIRST, FIRST))
    assert not reused(digests(FIRST, (asks(USER, *ROUND), TEXT_REPLY)))


def test_an_id_that_only_the_history_has_is_a_remark_about_nobody() -> None:
    (finding,) = reused(digests((asks(USER, *ROUND, MORE), CALL_REPLY)))
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert "no reply on the tape delivered" in finding.message


def test_in_a_trimmed_history_an_equal_call_shows_that_the_wire_delivered_it() -> None:
    later = asks(MORE, *ROUND, MORE)
    (finding,) = reused(digests(FIRST, (later, [*call("put"), FINISH])))
    assert finding.blame is Blame.UPSTREAM
    other = asks(MORE, assistant(("c1", "get", '{"a":2}')), result("c1"), MORE)
    (finding,) = reused(digests(FIRST, (other, [*call("put"), FINISH])))
    assert finding.blame is None


def test_another_conversation_may_have_the_same_ids() -> None:
    tape = digests(FIRST, (asks(MORE), CALL_REPLY))
    assert not reused(tape)
