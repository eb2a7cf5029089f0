from dataclasses import replace

import pytest

from deltatape.rules.progress import Phase, brings, finishes, silences, watched_until
from helpers.chat import choice
from helpers.contexts import context_of
from helpers.exchanges import TEXT, timed
from helpers.taped import MS


@pytest.mark.parametrize(
    ("value", "progress"),
    [
        ({"choices": [{"delta": {"content": "a"}}]}, True),
        ({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, False),
        ({"choices": [], "usage": {"total_tokens": 3}}, False),
        ({"type": "content_block_delta", "delta": {"partial_json": "{"}}, True),
        ({"type": "ping"}, False),
        ({"delta": 3, "content": ["text"]}, False),
    ],
)
def test_only_a_text_under_a_field_for_text_is_progress(
    value: dict[str, object], *, progress: bool
) -> None:
    assert brings(value) is progress


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (choice({}, "stop"), "stop"),
        (choice({}, ""), None),
        ({"error": {"code": 1}}, "error"),
        ({"error": "overloaded"}, "overloaded"),
        ({"error": None}, None),
    ],
)
def test_a_reason_to_finish_is_found_at_any_depth(
    value: dict[str, object], word: str | None
) -> None:
    assert finishes(value) == word


def test_a_sentinel_counts_as_progress_and_is_the_end() -> None:
    exchange = timed((0.1, TEXT), (1.0, b"data: [DONE]\n\n"), end_s=30)
    (silence,) = silences(context_of(exchange), 10_000 * MS)
    assert (silence.phase, silence.open) == (Phase.BEFORE_END, True)


def test_the_tape_watches_until_the_last_thing_it_says() -> None:
    exchange = timed((0.1, TEXT), end_s=2)
    assert watched_until(exchange) == 2_000 * MS
    crashed = replace(exchange, end=None)
    assert watched_until(crashed) == 100 * MS
    assert watched_until(replace(crashed, idle_ns=(7 * MS, 900 * MS))) == 900 * MS
    assert watched_until(replace(crashed, stopped_ns=1_000 * MS)) == 1_000 * MS
