"""Recordings of requests that repeat calls without their reasoning: rule C013."""

from helpers import gemini, messages, responses
from helpers.chat import FINISH, choice
from helpers.exchanges import user
from helpers.rule_recordings.build import (
    GENT,
    GREETING,
    QUESTION,
    STEP,
    USER,
    Recordings,
    anthropic,
    chat,
    next_turn,
    openai_responses,
    openai_responses_text,
    weather_call,
)
from helpers.rule_recordings.tape import Json, ScriptedExchange

THOUGHT = "The user wants the weather."
SIGNATURE = "fake-signature"
USE: Json = {"type": "tool_use", "id": "c1", "name": "get", "input": {}}
CALL_ALONE: Json = {"role": "assistant", "content": [USE]}
SIGNED: Json = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}
CALL_WITH_THINKING: Json = {"role": "assistant", "content": [SIGNED, USE]}
RESULT = user([{"type": "tool_result", "tool_use_id": "c1", "content": "13 °C"}])
DISABLED: Json = {"thinking": {"type": "disabled"}}
ADAPTIVE: Json = {"thinking": {"type": "adaptive"}}
REASONING: Json = {"id": "rs_1", "type": "reasoning", "summary": []}
ENCRYPTED: Json = {**REASONING, "encrypted_content": "fake-encrypted"}
REFERENCE: Json = {"type": "item_reference", "id": "rs_1"}
FUNCTION = responses.function('{"a":1}')
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_1", "output": "13 °C"}


def claude_request(*history: Json, **more: object) -> Json:
    """A request to Anthropic's API with thinking turned on."""
    thinking: Json = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    base = {**messages.request(get={"type": "object"}), **thinking, **more}
    return {**base, "messages": list(history)}


def claude_thinks(**more: object) -> ScriptedExchange:
    """A reply of Anthropic's with signed thinking and a call."""
    return anthropic(
        messages.start(),
        *messages.thinking(THOUGHT, SIGNATURE),
        messages.tool_block(1),
        messages.piece("{}", 1),
        messages.stop(1),
        *messages.END,
        request=claude_request(USER, **more),
    )


def claude_later(*history: Json, **more: object) -> ScriptedExchange:
    """The next request, answered with a text."""
    return anthropic(*GREETING, request=claude_request(USER, *history, **more))


def responses_request(*items: Json, **more: object) -> Json:
    """A request to the Responses API with these items of input."""
    tool = {"type": "function", "name": "get", "parameters": {"type": "object"}}
    return {"model": "m", "stream": True, "input": list(items), "tools": [tool], **more}


QUESTION_ITEM: Json = {"type": "message", **USER}


def responses_reasons(item: Json, **more: object) -> ScriptedExchange:
    """A reply of the Responses API with an item of reasoning and a call."""
    return openai_responses(
        responses.created(),
        responses.added(item),
        responses.done(item),
        *responses.call(index=1),
        responses.ended(item, FUNCTION),
        request=responses_request(QUESTION_ITEM, **more),
    )


def responses_later(*items: Json, **more: object) -> ScriptedExchange:
    """The request that goes on with these items, answered with a text."""
    request = responses_request(QUESTION_ITEM, *items, **more)
    return openai_responses_text("It is 13 °C.", request)


def gemini_exchange(model: str, part: Json, *contents: Json) -> ScriptedExchange:
    """An exchange with Gemini, answered with `part`."""
    declared = [{"name": "get", "parametersJsonSchema": {"type": "object"}}]
    question: Json = {"role": "user", "parts": [{"text": QUESTION}]}
    return ScriptedExchange(
        reads=[gemini.sse(gemini.candidate(part, finish="STOP"))],
        request={"contents": [question, *contents], "tools": [{"functionDeclarations": declared}]},
        host="https://generativelanguage.googleapis.com",
        target=f"/v1beta/models/{model}:streamGenerateContent?alt=sse",
    )


def gemini_pair(model: str, repeated_signature: str = "") -> list[ScriptedExchange]:
    """A signed call, and the request that repeats it under this signature with its result."""
    call, repeated = (
        gemini.call("get", args={"a": 1}, signature=signature)
        for signature in ("ZmFrZQ==", repeated_signature)
    )
    answer = {"functionResponse": {"name": "get", "response": {"result": "13 °C"}}}
    history: list[Json] = [
        {"role": "model", "parts": [repeated]},
        {"role": "user", "parts": [answer]},
    ]
    return [
        gemini_exchange(model, call),
        gemini_exchange(model, {"text": "It is 13 °C."}, *history),
    ]


KEPT = claude_later(CALL_WITH_THINKING, RESULT)

RECORDINGS: Recordings = {
    "C013": {
        "fires": [claude_thinks(), claude_later(CALL_ALONE, RESULT)],
        "silent": [claude_thinks(), KEPT],
        "silent-thinking-turned-off": [
            claude_thinks(),
            claude_later(CALL_ALONE, RESULT, **DISABLED),
        ],
        "silent-another-model": [claude_thinks(), claude_later(CALL_ALONE, RESULT, model="n")],
        "silent-an-older-turn": [
            claude_thinks(),
            KEPT,
            claude_later(
                CALL_ALONE,
                RESULT,
                {"role": "assistant", "content": "Hello"},
                user("And tomorrow?"),
            ),
        ],
        "silent-summarised": [
            claude_thinks(),
            KEPT,
            anthropic(
                *GREETING,
                request=claude_request(user("So far: it is 13 °C in Gent. And tomorrow?")),
            ),
        ],
        "silent-kept-by-the-provider": [
            responses_reasons(ENCRYPTED),
            openai_responses_text(
                "It is 13 °C.", responses_request(OUTPUT, previous_response_id="resp_fake")
            ),
        ],
        "silent-by-reference": [
            responses_reasons(REASONING),
            responses_later(REFERENCE, FUNCTION, OUTPUT),
        ],
        "silent-nothing-kept": [
            responses_reasons(REASONING, store=False),
            responses_later(FUNCTION, OUTPUT, store=False),
        ],
        "silent-reasoning-content": [
            chat(choice({"reasoning_content": THOUGHT}), *weather_call(GENT), FINISH),
            next_turn(*STEP),
        ],
        "silent-a-placeholder": gemini_pair(
            "gemini-3-pro-preview", "skip_thought_signature_validator"
        ),
        "silent-an-older-gemini": gemini_pair("gemini-2.5-flash"),
        "silent-the-latest-gemini-of-its-day": gemini_pair("gemini-flash-latest"),
        "silent-adaptive": [
            claude_thinks(**ADAPTIVE),
            claude_later(CALL_ALONE, RESULT, **ADAPTIVE),
        ],
        "silent-calls-without-their-reasoning": [
            responses_reasons(ENCRYPTED),
            responses_later(FUNCTION, OUTPUT),
        ],
    }
}
