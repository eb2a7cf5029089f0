"""The pinned SDKs do with varied streams what docs/torture-sdks.md says, and why is told."""

import pytest

from deltatape.model.request_summary import RepeatedCall
from deltatape.sdks.runner import SdkReply
from helpers.clients import SDKS, available
from helpers.sdk_table import COLUMNS
from helpers.sdk_torture import (
    Case,
    failures,
    measured,
    reason_of,
    reasons,
    varied_word,
    written,
)

QUICK = ("openai, Node", "anthropic, Python", "google-genai")
"""Columns of different makers."""
SAMPLE = (
    *("every-byte", "crlf", "comments", "no-space", "ids", "finer-arguments", "gzip"),
    *("cut-in-text", "end-in-text", "end-in-arguments", "error-event-in-text", "status-429"),
)

GET = RepeatedCall(id="c1", name="get", arguments='{"a":1}')
PUT = RepeatedCall(id="c2", name="put", arguments='{"b":2}')
WHOLE = SdkReply(calls=(GET, PUT), text="I will", finish="tool_calls")


def is_sampled(case: Case) -> bool:
    return case.name in ("", *SAMPLE)


def test_some_sdks_do_with_some_variations_what_is_written() -> None:
    for client in SDKS:
        available(client)
    columns = [column for column in COLUMNS if column.name in QUICK]
    expected, now = written(), measured(columns, is_sampled)
    for column in columns:
        assert now.versions[column.name] == expected.versions[column.name]
        for dialect, words in expected.words[column.name].items():
            sampled = {name: word for name, word in words.items() if name in SAMPLE}
            assert now.words[column.name][dialect] == sampled, (column.name, dialect)


def test_each_failure_is_explained_and_each_explanation_is_of_use() -> None:
    used = {cell: reason_of(*cell) for cell in failures(written())}
    assert [cell for cell, number in used.items() if number is None] == []
    assert {*used.values()} == {*range(1, len(reasons()) + 1)}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (WHOLE, "same"),
        (SdkReply(calls=(), error="TypeError: x"), "raises TypeError"),
        (SdkReply(calls=(GET,), error="E"), "raises E, gives 1 call"),
        (SdkReply(calls=(), error="Timeout: no end after 13 s"), "hangs"),
        (SdkReply(calls=(), error="Timeout: litellm.Timeout"), "raises Timeout"),
        (
            SdkReply(calls=(GET,), text="I w", finish=None),
            "only its finish tells, None: 1 call lost, text cut",
        ),
        (
            SdkReply(calls=(GET, PUT), text="I will", finish="interrupted"),
            "only its finish tells, interrupted",
        ),
        (
            SdkReply(calls=(), text="I will", finish="stop"),
            "silently: 2 calls lost, finish stop",
        ),
        (SdkReply(calls=(GET, PUT), text="You will", finish="tool_calls"), "silently: text"),
        (
            SdkReply(calls=(GET,), refused=(PUT,), text="I will", finish="tool_calls"),
            "marks 1 call invalid",
        ),
    ],
)
def test_a_word_tells_what_differs_from_the_whole_stream(reply: SdkReply, expected: str) -> None:
    assert varied_word(WHOLE, reply) == expected
