from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.rules._base import RuleContext
from deltatape.rules.s002_finish_reason_mismatch import FinishReasonMismatch
from deltatape.rules.settings import DEFAULTS
from helpers.chat import choice
from helpers.exchanges import FINISH_TEXT, USER, asks, call, found, one, pasted

NAMED = {"type": "function", "function": {"name": "get"}}


@pytest.mark.parametrize("wanted", [None, "auto", "required"])
def test_calls_under_a_normal_end_are_reported(wanted: object) -> None:
    request = asks(USER, tool_choice=wanted)
    finding = one(pasted(*call(), FINISH_TEXT, request=request), "S002")
    assert finding.message == "the finish reason is 'stop', but the reply has 1 tool call"


def test_a_forced_tool_ends_with_stop_by_right() -> None:
    request = asks(USER, tool_choice=NAMED)
    assert not found(pasted(*call(), FINISH_TEXT, request=request), "S002")


def test_text_may_end_with_stop_and_calls_with_their_own_word() -> None:
    assert not found(pasted(choice({"content": "a"}), FINISH_TEXT), "S002")
    assert not found(pasted(*call(), choice({}, "tool_calls")), "S002")


def test_a_second_finish_reason_is_told_by_another_rule() -> None:
    exchange = pasted(*call(), choice({}, "tool_calls"), FINISH_TEXT)
    assert not found(exchange, "S002")


def test_dialects_without_a_word_for_calls_are_not_looked_at() -> None:
    analysis = analyse(pasted(*call(), FINISH_TEXT))
    context = RuleContext(
        exchange=analysis.exchange,
        stream=analysis.stream,
        asked=analysis.asked,
        reply=replace(analysis.reply, tool_word=False),
        settings=DEFAULTS,
    )
    assert not list(FinishReasonMismatch().check(context))
