import pytest

from deltatape.model.token_usage import TokenCount, tokens_in


@pytest.mark.parametrize(
    ("usage", "asked", "replied"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, 3, 4),
        ({"input_tokens": 3, "output_tokens": 4}, 3, 4),
        ({"input_tokens": 3, "input_tokens_details": {"cached_tokens": 2}}, 3, None),
        ({"input_tokens": 3, "cache_read_input_tokens": 5}, 8, None),
        ({"input_tokens": 3, "cache_creation_input_tokens": 7}, 10, None),
        ({"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 9}, 3, 13),
        ({"inputTokens": 3, "outputTokens": 4, "cacheReadInputTokens": 2}, 5, 4),
        ({"total_input_tokens": 3, "total_output_tokens": 4}, 3, 4),
        ({"prompt_eval_count": 3, "eval_count": 4}, 3, 4),
        ({"eval_count": 4}, None, 4),
        ({"inputTokenCount": 3, "outputTokenCount": 4}, 3, 4),
        ({"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 3}}, 3, None),
        ({"billed_units": {"input_tokens": 1, "output_tokens": 2}, "tokens": 5}, 1, 2),
    ],
)  # fmt: skip
def test_every_dialect_states_its_tokens_in_its_own_words(
    usage: dict[str, object], asked: int | None, replied: int | None
) -> None:
    assert tokens_in(usage) == TokenCount(input=asked, output=replied)


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": "3"}, {"prompt_tokens": -1}, {"input_tokens": True}]
)
def test_what_is_no_count_is_none(usage: dict[str, object] | None) -> None:
    assert tokens_in(usage) is None
