"""Innocent scenes about reasoning that does not come back with its calls. Rule C013."""

from collections.abc import Mapping
from dataclasses import replace

from helpers import gemini, messages, responses
from helpers.chat import FINISH, choice
from helpers.exchanges import assistant, result
from helpers.scenes import Scene, chat, weather
from helpers.scenes_apps import CITIES
from helpers.scenes_turns import told, turn
from helpers.scenes_wire import GREETED, claude, response
from helpers.scripted_tapes import Json, Staged

QUESTION = "What is the weather in Gent?"
USER: Json = {"role": "user", "content": QUESTION}
ENABLED: Json = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
DISABLED: Json = {"thinking": {"type": "disabled"}}
ADAPTIVE: Json = {"thinking": {"type": "adaptive"}}
THOUGHT = "The user wants the weather."
USE: Json = {"type": "tool_use", "id": "c1", "name": "get", "input": {}}
CALLED: Json = {"role": "assistant", "content": [USE]}
BROUGHT: Json = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "13 °C"}],
}
SIGNED: Json = {"type": "thinking", "thinking": THOUGHT, "signature": "fake-signature"}
KEPT: Json = {"role": "assistant", "content": [SIGNED, USE]}
SAID: Json = {"role": "assistant", "content": "Hello"}
REASONING: Json = {"id": "rs_1", "type": "reasoning", "summary": []}
ENCRYPTED: Json = {**REASONING, "encrypted_content": "fake-encrypted"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_1", "output": "13 °C"}
ASKED: Json = {"type": "message", "role": "user", "content": QUESTION}
SKIPPED = "skip_thought_signature_validator"


def innocent() -> Mapping[str, Scene]:
    """By what happens in them, scenes in which nobody lost any reasoning."""
    first = _thinks()
    old = _later(2.0, KEPT, BROUGHT)
    summary: Json = {"role": "user", "content": "So far: it is 13 °C in Gent. And tomorrow?"}
    reasons = choice({"reasoning_content": THOUGHT})
    asks = assistant(("call_fake0", "get_weather", CITIES[0]))
    function = responses.function('{"a":1}')
    chained = _responds(2.0, OUTPUT, previous_response_id="resp_fake")
    chained = replace(chained, request={**chained.request, "input": [OUTPUT]})
    reference: Json = {"type": "item_reference", "id": "rs_1"}
    return {
        "thinking-turned-off": told(first, _later(2.0, CALLED, BROUGHT, **DISABLED)),
        "another-model": told(first, _later(2.0, CALLED, BROUGHT, model="n")),
        "an-older-turn": told(
            first, old, _later(4.0, CALLED, BROUGHT, SAID, {**USER, "content": "And tomorrow?"})
        ),
        "summarised": told(first, old, _asks(4.0, summary)),
        "kept-by-the-provider": told(_reasons(ENCRYPTED), chained),
        "by-reference": told(_reasons(REASONING), _responds(2.0, reference, function, OUTPUT)),
        "nothing-kept": told(
            _reasons(REASONING, store=False), _responds(2.0, function, OUTPUT, store=False)
        ),
        "reasoning-content": told(
            chat(reasons, *weather(*CITIES[:1]), FINISH),
            turn(2.0, asks, result("call_fake0", "13 °C")),
        ),
        "a-placeholder": told(
            _google("gemini-3-pro-preview"), _google_later("gemini-3-pro-preview", SKIPPED)
        ),
        "an-older-gemini": told(_google("gemini-2.5-flash"), _google_later("gemini-2.5-flash")),
        "the-latest-gemini-of-its-day": told(
            _google("gemini-flash-latest"), _google_later("gemini-flash-latest")
        ),
        "adaptive": told(_thinks(**ADAPTIVE), _later(2.0, CALLED, BROUGHT, **ADAPTIVE)),
        "calls-without-their-reasoning": told(
            _reasons(ENCRYPTED), _responds(2.0, function, OUTPUT)
        ),
    }


def _asks(at_s: float, *history: Json, **more: object) -> Staged:
    """A request to Anthropic's API with just this history, answered with a text."""
    request = {**messages.request(get={"type": "object"}), **ENABLED, **more}
    return replace(claude(*GREETED), request={**request, "messages": list(history)}, at_s=at_s)


def _thinks(**more: object) -> Staged:
    """A reply of Anthropic's with signed thinking and a call."""
    called = (messages.tool_block(1), messages.piece("{}", 1), messages.stop(1))
    thought = messages.thinking(THOUGHT, "fake-signature")
    frames = claude(messages.start(), *thought, *called, *messages.END)
    return replace(frames, request=_asks(0.0, USER, **more).request)


def _later(at_s: float, *history: Json, **more: object) -> Staged:
    return _asks(at_s, USER, *history, **more)


def _reasons(item: Json, **more: object) -> Staged:
    """A reply of the Responses API with an item of reasoning and a call."""
    call = responses.call(index=1)
    ended = responses.ended(item, responses.function('{"a":1}'))
    base = response(responses.created(), responses.added(item), responses.done(item), *call, ended)
    return replace(base, request=_body(ASKED, **more))


def _responds(at_s: float, *items: Json, **more: object) -> Staged:
    """The request that goes on with these items, answered with a text."""
    return replace(answering("It is 13 °C."), request=_body(ASKED, *items, **more), at_s=at_s)


def answering(text: str) -> Staged:
    """An answer of the Responses API in text, with an id of its own."""
    begun = responses.response("in_progress", id="resp_fake2")
    message = responses.message(text)
    return response(
        {"type": "response.created", "response": begun},
        responses.added(responses.message()),
        responses.say(text),
        responses.done(message),
        responses.ended(message, id="resp_fake2"),
    )


def _body(*items: Json, **more: object) -> Json:
    tool = {"type": "function", "name": "get", "parameters": {"type": "object"}}
    return {"model": "m", "stream": True, "input": list(items), "tools": [tool], **more}


def _google(model: str, *contents: Json, reply: object = None, at_s: float = 0.0) -> Staged:
    """An exchange with Gemini; without a `reply` it calls, with a signature."""
    called = gemini.call("get", args={"a": 1}, signature="ZmFrZQ==")
    declared = [{"name": "get", "parametersJsonSchema": {"type": "object"}}]
    asked: Json = {"role": "user", "parts": [{"text": QUESTION}]}
    return Staged(
        reads=[gemini.sse(gemini.candidate(reply or called, finish="STOP"))],
        request={"contents": [asked, *contents], "tools": [{"functionDeclarations": declared}]},
        host="https://generativelanguage.googleapis.com",
        target=f"/v1beta/models/{model}:streamGenerateContent?alt=sse",
        at_s=at_s,
    )


def _google_later(model: str, signature: str = "") -> Staged:
    """The request that brings the result, the call under this signature."""
    called = gemini.call("get", args={"a": 1}, signature=signature)
    answer = {"functionResponse": {"name": "get", "response": {"result": "13 °C"}}}
    return _google(
        model,
        {"role": "model", "parts": [called]},
        {"role": "user", "parts": [answer]},
        reply={"text": "It is 13 °C."},
        at_s=2.0,
    )
