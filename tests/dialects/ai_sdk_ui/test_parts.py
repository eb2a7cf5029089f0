from deltatape.dialects.ai_sdk_ui import AISDKUI
from helpers.fed import events, reduced, said


def test_texts_may_interleave_and_each_needs_its_start() -> None:
    reply = reduced(
        AISDKUI(),
        events(
            {"type": "text-start", "id": "a"},
            {"type": "reasoning-start", "id": "a"},
            {"type": "text-delta", "id": "a", "delta": "1"},
            {"type": "reasoning-delta", "id": "a", "delta": "2"},
            {"type": "text-end", "id": "a"},
            {"type": "text-delta", "id": "a", "delta": "3"},
            {"type": "reasoning-end", "id": "a"},
            "[DONE]",
        ),
    )
    assert (reply.text, reply.reasoning) == ("13", "2")
    assert said(reply, "S006") == ["a piece of text that never started"]


def test_the_end_of_a_step_ends_its_texts() -> None:
    reply = reduced(
        AISDKUI(),
        events(
            {"type": "text-start", "id": "a"},
            {"type": "finish-step"},
            {"type": "text-delta", "id": "a", "delta": "1"},
            "[DONE]",
        ),
    )
    assert said(reply, "S006") == ["a piece of text that never started"]
