import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason
from deltatape.model.reply import CallStatus
from deltatape.vary.hostile import HOSTILE_ANSWERS, HOSTILE_ENDS, HOSTILE_EVENTS
from helpers.chat import FINISH
from helpers.mutated import ONE, START, chat, in_pieces
from helpers.varied import made, of, varied


@pytest.mark.parametrize("variation", HOSTILE_ENDS, ids=lambda each: each.name)
def test_every_end_has_its_place_in_a_stream_with_text_and_calls(variation: object) -> None:
    name = getattr(variation, "name", "")
    after = made(name, of("openai-chat"))
    kind = name.partition("-")[0]
    reasons = {
        "cut": EndReason.UPSTREAM_CLOSED,
        "reset": EndReason.UPSTREAM_RESET,
        "stall": EndReason.STOPPED,
    }
    assert after.end
    assert after.end.reason is reasons.get(kind, EndReason.COMPLETE)
    assert (rebuild(after).error is not None) is (kind == "error")


def test_in_arguments_they_are_never_whole() -> None:
    for seed in range(30):
        (call,) = rebuild(made("end-in-arguments", ONE, seed)).tool_calls
        assert call.status is CallStatus.TRUNCATED


def test_behind_a_call_it_is_whole() -> None:
    (call,) = rebuild(made("end-after-call", ONE)).tool_calls
    assert call.arguments == '{"a":"b c"}'


def test_what_says_the_same_all_the_same_is_no_failure() -> None:
    """The finish reason came with the last fragment: a missing [DONE] loses nothing."""
    fragments = in_pieces('{"a":1}')
    last = fragments[-1]
    choices = last["choices"]
    assert isinstance(choices, list)
    choices[0]["finish_reason"] = "tool_calls"
    together = chat(START, *fragments)
    assert varied("cut-before-end", chat(START, *in_pieces('{"a":1}'), FINISH)) is not None
    assert varied("cut-before-end", together) is None or rebuild(together).terminated


def test_answers_have_their_status() -> None:
    statuses = []
    for variation in HOSTILE_ANSWERS:
        after = made(variation.name, ONE)
        assert after.response
        statuses.append(f"status-{after.response.status}")
    assert statuses == [variation.name for variation in HOSTILE_ANSWERS]


def test_a_damaged_event_loses_what_it_brought() -> None:
    for variation in HOSTILE_EVENTS:
        after = made(variation.name, of("openai-chat"))
        assert len(after.body) == len(of("openai-chat").body)
