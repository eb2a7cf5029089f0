"""Which dialect claims a response, and which serves a path."""

import pytest

from deltatape.dialects import DIALECTS, Hints
from deltatape.model.stream import Format
from helpers import responses
from helpers.chat import URL, choice
from helpers.hints import hints

BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
JSON, NDJSON, STREAM = Format.JSON, Format.NDJSON, Format.EVENTSTREAM
SOCKET = Format.WEBSOCKET
Json = dict[str, object]

MESSAGE: Json = {"type": "message", "content": [], "stop_reason": "end_turn"}
CONVERSE: Json = {"output": {"message": {"content": []}}, "stopReason": "end_turn"}
LLAMA: Json = {"generation": "Hi", "stop_reason": "stop"}
MISTRAL: Json = {"id": "0123456789abcdef0123456789abcdef", "object": "chat.completion.chunk"}
LINE: Json = {"model": "m", "message": {"role": "assistant", "content": "a"}, "done": False}
GENERATED: Json = {"model": "m", "response": "", "done": True}
AMAZON = ["x-amzn-bedrock-output-token-count"]
UI = ["x-vercel-ai-ui-message-stream"]
RESPONSES: list[Json] = [
    responses.created(),
    {"type": "response.output_text.delta", "delta": "x"},
    {"type": "error", "sequence_number": 2, "message": "no"},
    responses.response(),
]

CLAIMED: dict[str, list[Hints]] = {
    "openai-chat": [hints({"choices": []}), hints({"object": "chat.completion"})],
    "mistral": [hints({**MISTRAL, **choice({"content": ""})})],
    "openai-completions": [
        hints({"object": "text_completion"}),
        hints({"choices": [{"text": "a"}]}),
    ],
    "openai-realtime": [
        *(
            hints({"type": kind}, form=SOCKET)
            for kind in ("session.created", "conversation.item.added", "rate_limits.updated")
        ),
        hints(
            {"type": "response.created", "response": {"object": "realtime.response"}}, form=SOCKET
        ),
        hints({"type": "response.done", "event_id": "e", "response": {}}, form=SOCKET),
    ],
    "openai-responses": [
        *(hints(first, form=form) for first in RESPONSES for form in (Format.SSE, JSON)),
        # Its data cannot be read: the event line says what it is.
        hints(types=("response.created",)),
    ],
    "anthropic-messages": [
        hints({"type": "ping"}, {"type": "message_start"}),
        hints(MESSAGE, form=JSON),
        hints({"type": "error", "error": {"type": "api_error"}}),
    ],
    "gemini": [
        hints({"candidates": []}),
        hints({"candidates": [{}]}),
        hints({"candidates": [5, {"finishReason": "STOP"}]}),
        hints({"usageMetadata": {}}),
        hints({"promptFeedback": {"blockReason": "SAFETY"}}),
        hints({"response": {"candidates": []}, "traceId": "x"}),
    ],
    "gemini-interactions": [
        hints({"event_type": "interaction.created", "interaction": {}}),
        hints({"event_type": "step.start"}),
        hints({"event_type": "content.delta"}),
        hints({"object": "interaction", "status": "completed"}),
    ],
    "cohere": [
        hints({"type": "message-start"}),
        hints({"type": "ping"}, {"type": "content-delta"}),
        hints({"event_type": "stream-start"}, form=NDJSON),
        hints({"generation_id": "g", "text": ""}, form=JSON),
        hints({"message": {}, "finish_reason": "COMPLETE"}, form=JSON),
    ],
    "ollama": [
        hints(LINE, form=NDJSON),
        hints(GENERATED, form=JSON),
        hints({**GENERATED, "model": None}, form=JSON),
    ],
    "bedrock-converse": [
        hints(form=STREAM, types=("messageStart",)),
        hints(form=STREAM, types=("x", "contentBlockDelta")),
        hints(CONVERSE, form=JSON),
    ],
    "bedrock-invoke": [
        hints({"bytes": ""}, form=STREAM, types=("chunk",)),
        hints({"a": 1}, form=JSON, headers=AMAZON),
        hints(LLAMA, form=JSON),
    ],
    "ai-sdk-ui": [
        hints(headers=UI),
        hints({"type": "data-x"}, {"type": "start", "messageId": "m"}),
        hints({"type": "data-x"}, {"type": "start-step"}),
        hints({"type": "data-x"}, {"type": "reasoning-start", "id": "r"}),
        hints({"type": "data-x"}, {"type": "text-start", "id": "0"}),
        hints({"type": "data-x"}, {"type": "tool-input-start", "toolCallId": "c", "toolName": "f"}),
    ],
}
LEFT_TO_OTHERS: dict[str, list[Hints]] = {
    "openai-chat": [hints({"type": "message_start"}), hints({"object": None})],
    "mistral": [
        hints({**MISTRAL, "choices": []}),
        hints({"id": "chatcmpl-1", "choices": []}),
        hints({"id": MISTRAL["id"], "type": "message"}),
    ],
    "openai-completions": [hints({"choices": [{"delta": {}, "text": ""}]})],
    "openai-realtime": [
        hints({"type": "session.created"}),
        hints({"type": 7}, form=SOCKET),
        hints({"type": "error", "event_id": "e"}, form=SOCKET),
        *(hints(first, form=SOCKET) for first in RESPONSES),
    ],
    "openai-responses": [
        hints({"type": "response.done", "event_id": "e", "response": {}}, form=SOCKET),
        *(hints(first, form=NDJSON) for first in RESPONSES),
        hints({"type": "message_start"}),
        hints({"type": "error", "error": {"message": "no"}}),
        hints({"object": "chat.completion.chunk"}),
        hints({"object": "response.deleted"}),
        hints({"type": 7}),
        # The types of the realtime API begin alike.
        hints(
            {"type": "session.created"}, {"type": "response.created"}, types=("message", "message")
        ),
    ],
    "anthropic-messages": [
        hints({"type": "ping"}),
        hints({"choices": []}),
        # The same document, but in answer to a request to Amazon.
        hints(MESSAGE, form=JSON, headers=["x-amzn-bedrock-input-token-count"]),
    ],
    "gemini": [
        hints({"choices": []}),
        hints({"candidates": "two"}),
        hints({"candidates": ["two", {"name": "Ann", "votes": 3}]}),
        hints({"type": "response.created", "response": {"object": "response", "usage": {}}}),
        hints({"model": "m", "response": "text", "done": False}),
        hints({"error": {"code": 400}}),
    ],
    "gemini-interactions": [
        hints({"event_type": "text-generation"}),
        hints({"event_type": 5}),
        hints({"candidates": []}),
    ],
    "cohere": [
        hints({"type": "message_start"}, {"event_type": "step.start"}),
        hints({"message": "no", "finish_reason": "x"}, {"text": "x"}),
    ],
    "ollama": [
        hints({"response": "ok", "done": True}, form=JSON),
        hints(LINE, form=Format.SSE),
        hints({"message": {}, "done": "no"}, form=NDJSON),
    ],
    "bedrock-converse": [
        hints(form=STREAM, types=("chunk",)),
        hints({"stopReason": "x"}, types=("messageStart",)),
        hints({"output": {}, "stopReason": "end_turn"}, form=JSON),
    ],
    "bedrock-invoke": [
        hints({}, form=STREAM, types=("messageStart",)),
        hints({"type": "message_start"}, types=("chunk",)),
        hints(form=Format.OTHER, headers=AMAZON),
        hints({"type": "message"}, form=JSON),
        hints(LLAMA),
    ],
    "ai-sdk-ui": [
        hints({"type": "start"}, {"type": "text-delta", "id": "0"}),
        hints({"type": "tool-input-start", "id": "c"}, {"type": 3}),
    ],
}
VERTEX = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-fake@1"
SERVED: dict[str, list[str]] = {
    "openai-chat": ["/api/v1/chat/completions"],
    "openai-completions": ["/v1/completions"],
    "openai-realtime": ["/v1/realtime", "/openai/realtime/"],
    "openai-responses": ["/v1/responses", "/openai/responses/", "/v1/responses/resp_fake"],
    "anthropic-messages": [
        "/api/v1/messages/",
        "/anthropic/messages",
        f"{VERTEX}:streamRawPredict",
        f"{VERTEX}:rawPredict",
    ],
    "gemini": [
        "/v1beta/models/gemini-x:streamGenerateContent",
        "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
        "/v1internal:streamGenerateContent",
        "/gemini/v1beta/models/g%3AgenerateContent",
    ],
    "gemini-interactions": ["/v1beta/interactions", "/gemini/v1beta/interactions/v1_abc"],
    "cohere": ["/cohere/v2/chat", "/v1/chat/"],
    "ollama": ["/api/chat/"],
    "bedrock-converse": ["/bedrock/model/a.b%3A0/converse-stream", "/model/m/converse"],
    "bedrock-invoke": [
        "/model/m/invoke",
        "/model/some.model-v1%3A0/invoke-with-response-stream",
        "/bedrock/model/m/invoke",
        "/model/arn%3Aaws%3Aa%2Fb/invoke",
    ],
}
NOT_SERVED: dict[str, list[str]] = {
    "openai-chat": ["/v1/messages"],
    "mistral": [URL],
    "openai-completions": ["/v1/chat/completions/"],
    "openai-realtime": ["/v1/responses", "/v1/realtime/client_secrets"],
    "openai-responses": ["/v1/chat/completions", "/"],
    "anthropic-messages": [
        f"{VERTEX}:predict",
        "/v1/threads/t/messages",
        "/v1/projects/p/publishers/mistralai/models/m:rawPredict",
    ],
    "gemini": ["/v1beta/models/g:countTokens", "/v1beta/openai/chat/completions", "/"],
    "gemini-interactions": ["/v1beta/models/x:generateContent"],
    "cohere": ["/api/chat"],
    "ollama": ["/v2/chat"],
    "bedrock-converse": ["/model/m/invoke-with-response-stream"],
    "bedrock-invoke": [
        "/model/m/converse-stream",
        "/model/m/converse",
        "/model//invoke",
        "/models/invoke",
    ],
    "ai-sdk-ui": ["/api/chat"],
    "app-events": ["/api/chat"],
}


@pytest.mark.parametrize(
    ("name", "seen"), [(n, one) for n, each in CLAIMED.items() for one in each]
)
def test_a_dialect_claims_its_own_responses(name: str, seen: Hints) -> None:
    assert BY_NAME[name].claims(seen)


@pytest.mark.parametrize(
    ("name", "seen"), [(n, one) for n, each in LEFT_TO_OTHERS.items() for one in each]
)
def test_a_dialect_leaves_the_responses_of_others(name: str, seen: Hints) -> None:
    assert not BY_NAME[name].claims(seen)


@pytest.mark.parametrize(
    ("name", "path", "serves"),
    [
        *((name, path, True) for name, paths in SERVED.items() for path in paths),
        *((name, path, False) for name, paths in NOT_SERVED.items() for path in paths),
    ],
)
def test_a_path_belongs_to_the_dialects_that_serve_it(
    name: str, path: str, *, serves: bool
) -> None:
    assert BY_NAME[name].serves(path) is serves


def test_every_dialect_is_in_the_tables() -> None:
    # What an application's own events look like depends on its names: see test_app_events.
    others = set(BY_NAME) - {"app-events"}
    assert set(CLAIMED) == set(LEFT_TO_OTHERS) == others, "see CLAIMED and LEFT_TO_OTHERS above"
    assert SERVED.keys() | NOT_SERVED.keys() == set(BY_NAME), "see SERVED and NOT_SERVED above"
