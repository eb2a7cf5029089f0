import pytest

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, call, found, one, pasted


def told(**usage: object) -> list[Finding]:
    return found(pasted(TEXT, {**FINISH_TEXT, "usage": usage}), "S012")


@pytest.mark.parametrize(
    ("usage", "how"),
    [
        ({"prompt_tokens": -1}, "the count of the prompt is -1"),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -1}},
            "the count of the cached tokens is -1",
        ),
        (
            {"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 50},
            "the total is 50, of 90 and 20",
        ),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}},
            "9 tokens of a prompt of 5 were cached",
        ),
        (
            {"promptTokenCount": 5, "cachedContentTokenCount": 9},
            "9 tokens of a prompt of 5 were cached",
        ),
    ],
)
def test_counts_that_contradict_each_other(usage: dict[str, object], how: str) -> None:
    (finding,) = told(**usage)
    assert finding.message == f"the usage cannot be: {how}"
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.UPSTREAM)
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 14},
        {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 10},
        {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9},
    ],
)
def test_a_total_that_is_off_and_an_answer_of_no_tokens_are_remarks(
    usage: dict[str, object],
) -> None:
    (finding,) = told(**usage)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.POSSIBLE)


def test_a_call_of_no_tokens_is_a_remark_too() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 0}
    assert one(pasted(*call(), {**FINISH, "usage": usage}), "S012").severity is Severity.INFO


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 900},
        {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "total_tokens": 16,
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        {
            "promptTokenCount": 9,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 5,
            "toolUsePromptTokenCount": 4,
            "totalTokenCount": 20,
        },
        {"inputTokens": 9, "outputTokens": 2, "cacheReadInputTokens": 7, "totalTokens": 18},
        {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None},
        {"completion_tokens": 2},
        {"prompt_tokens": "9"},
        {},
    ],
)
def test_counts_that_can_be(usage: dict[str, object]) -> None:
    assert not told(**usage)


def test_an_answer_that_was_cut_or_says_nothing_is_not_looked_at() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 0}
    assert not found(pasted({**TEXT, "usage": usage}, done=False), "S012")
    assert not found(pasted({**FINISH_TEXT, "usage": usage}), "S012")
