import json

import pytest

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.openai_completions import OpenAICompletions
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.chat import sse


def reply_to(*chunks: object, done: bool = True) -> Reply:
    url = "http://127.0.0.1/v1/completions"
    body = sse(*chunks, done=done)
    return rebuild(Exchange.from_body(body, content_type="text/event-stream", url=url))


def piece(text: object, finish: object = None, index: object = 0) -> dict[str, object]:
    choice = {"text": text, "index": index, "finish_reason": finish}
    return {"object": "text_completion", "model": "m", "choices": [choice]}


def test_the_texts_of_each_choice_are_concatenated() -> None:
    reply = reply_to(
        piece("Hel"),
        piece("other", "length", 1),
        piece("lo"),
        {"choices": [{"text": "!", "finish_reason": "stop"}], "usage": {"total_tokens": 3}},
        {"choices": [{"reasoning": "Hm"}]},
    )
    assert (reply.dialect, reply.text, reply.reasoning) == ("openai-completions", "Hello!", "Hm")
    assert (reply.choices[1].text, reply.choices[1].finish_reason_raw) == ("other", "length")
    assert (reply.finish_reason_raw, reply.usage, reply.model) == ("stop", {"total_tokens": 3}, "m")
    assert (reply.terminated, reply.observations) == (True, ())


@pytest.mark.parametrize(
    ("finish", "done", "terminated"),
    [("stop", False, True), (None, True, True), (None, False, False)],
)
def test_a_finish_reason_or_the_sentinel_ends_it(
    finish: object, *, done: bool, terminated: bool
) -> None:
    assert reply_to(piece("a", finish), done=done).terminated is terminated


def test_errors_and_odd_shapes_are_noted() -> None:
    reply = reply_to(piece("a"), {"choices": [5]}, "x", {"error": {"message": "full"}})
    assert (reply.error, reply.terminated) == ("full", False)
    assert [seen.code for seen in reply.observations] == ["S006", "W004", "S005"]


def test_the_prompt_is_the_only_message() -> None:
    def asked(**request: object) -> tuple[str, ...]:
        body = json.dumps(request).encode()
        found = OpenAICompletions().read_request(body, "")
        return tuple(message.text for message in found.history)

    assert asked(model="m", stream=True, prompt="Hi") == ("Hi",)
    assert asked(prompt=["a", "b", 5]) == ("a\nb",)
    assert asked() == ()
    assert OpenAICompletions().read_request(b"[]", "") == NOTHING_ASKED
