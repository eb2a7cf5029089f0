from dataclasses import replace

from deltatape.diagnose.rebuild import rebuild
from deltatape.rules.finish import FinishMeaning, finish_of, meaning
from helpers.chat import FINISH
from helpers.exchanges import pasted


def test_words_of_all_dialects_in_any_case_have_one_meaning() -> None:
    assert (
        meaning("tool_calls") is meaning("TOOL_CALL") is meaning("tool_use") is FinishMeaning.TOOLS
    )
    assert meaning("MAX_TOKENS") is FinishMeaning.LENGTH
    assert meaning("no such word") is meaning(None) is meaning("") is FinishMeaning.OTHER


def test_the_detail_of_a_finish_reason_tells_more_than_the_reason() -> None:
    choice = rebuild(pasted(FINISH)).choices[0]
    cut = replace(choice, finish_reason_raw="incomplete", finish_detail="content_filter")
    assert finish_of(cut) is FinishMeaning.FILTER
    assert finish_of(replace(cut, finish_detail=None)) is FinishMeaning.LENGTH
    assert finish_of(replace(choice, finish_detail="whatever")) is FinishMeaning.TOOLS


def test_a_message_that_waits_for_the_next_request_is_paused() -> None:
    assert meaning("pause_turn") is meaning("compaction") is FinishMeaning.PAUSE
