from collections.abc import Sequence

import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.model.rule_settings import DEFAULTS
from deltatape.why.survey import ExchangeSurvey, survey
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    pasted,
    result,
)
from helpers.watched import CALLS, watched

BAD = [calls(entry(0, "c1", name="get", arguments="[1]")), FINISH]
ONE = [*call(), FINISH]
HEALTHY = [TEXT, FINISH_TEXT]
MORE: dict[str, object] = {"role": "user", "content": "Hello?"}
FORCED = {"type": "function", "function": {"name": "get"}}


def of(*exchanges: tuple[dict[str, object], Sequence[object]]) -> ExchangeSurvey:
    return survey(conversation(*exchanges), DEFAULTS)


def test_the_worst_is_the_first_with_the_gravest_finding() -> None:
    assert of((asks(USER), HEALTHY), (asks(), BAD), (asks(), BAD)).worst() == 2


def test_a_spoiled_reply_is_worse_than_the_request_that_shows_it() -> None:
    spoiled = asks(USER, assistant(("c1", "get", "")), result("c1"))
    assert of((asks(USER), ONE), (spoiled, [*HEALTHY, FINISH])).worst() == 1


def test_without_findings_it_is_the_last_reply_or_the_last_exchange() -> None:
    assert of((asks(USER), HEALTHY), (asks(), HEALTHY), (asks(), [])).worst() == 2
    assert survey([pasted(done=False, status=204)], DEFAULTS).worst() == 1


def test_what_a_request_shows_is_known_at_both_ends() -> None:
    spoiled = asks(USER, assistant(("c1", "get", "")), result("c1"))
    seen = of((asks(USER), ONE), (spoiled, HEALTHY))
    assert [each.code for each in seen.about_reply(1)] == ["C002"]
    assert seen.about_request(2) == seen.about_reply(1)
    assert seen.about_reply(2) == seen.about_request(1) == ()
    assert seen.continued_by(1) is None


@pytest.mark.parametrize(
    ("request_", "chunks", "later", "number"),
    [
        (asks(USER), ONE, asks(USER, MORE), 2),
        (asks(USER), ONE, asks(MORE), None),
        (asks(USER), ONE, asks(USER), None),
        (asks(USER), ONE, asks(USER, assistant(text="Sure:")), None),
        (asks(USER), HEALTHY, asks(USER, MORE), None),
        (asks(USER), [*BAD[:1], {"error": {"message": "x"}}], asks(USER, MORE), None),
        (asks(USER, tool_choice=FORCED), ONE, asks(USER, MORE), None),
        (asks(), ONE, asks(MORE), None),
    ],
)
def test_a_request_that_goes_on_without_the_calls_is_noticed(
    request_: dict[str, object],
    chunks: Sequence[object],
    later: dict[str, object],
    number: int | None,
) -> None:
    assert of((request_, chunks), (later, [])).continued_by(1) == number


def test_what_is_found_elsewhere_leaves_out_what_is_told_of_the_exchange() -> None:
    spoiled = asks(USER, assistant(("c1", "get", "")), result("c1"))
    seen = of((asks(USER), ONE), (spoiled, HEALTHY), (asks(MORE), BAD))
    assert [(each.exchange, each.code) for each in seen.elsewhere(3)] == [(2, "C002")]
    assert [(each.exchange, each.code) for each in seen.elsewhere(1)] == [(3, "T006")]


def test_an_unanswered_reply_is_the_worst_where_nothing_graver_is() -> None:
    tape = watched(conversation(CALLS, (asks(MORE), HEALTHY)), 100)
    seen = survey(tape, DEFAULTS)
    assert seen.worst() == 1
    assert [each.code for each in seen.about_reply(1)] == ["D003"]
    assert not seen.about_reply(2)
    assert [each.code for each in seen.elsewhere(2)] == ["D003"]


def test_there_must_be_exchanges_and_numbers_that_exist() -> None:
    with pytest.raises(UsageError, match="no exchange on the tape"):
        survey([], DEFAULTS)
    exchange: Exchange = pasted(TEXT)
    with pytest.raises(UsageError, match="#7: no such exchange; there are 1"):
        survey([exchange], DEFAULTS).own(7)
