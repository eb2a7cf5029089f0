"""Scripted conversations: the same one in every dialect, as requests, answers and digests.

A script is what is said, in terms that no dialect has; a `ScriptDialect` writes it as the history
of a request and as an answer. Answers are whole documents; how they stream is tested elsewhere.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool."""

    id: str
    name: str
    arguments: Mapping[str, object] | None

    @property
    def function(self) -> Json:
        """Name and arguments, the arguments as text; "" if there are none."""
        text = "" if self.arguments is None else json.dumps(self.arguments)
        return {"name": self.name, "arguments": text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message: `user`, `assistant` or `tool`; results name their call."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: Call | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A request with its history, and the answer to it; `previous` is the answer before."""

    history: tuple[Message, ...]
    answer: Message
    id: str = "r"
    previous: str | None = None


def user(text: str) -> Message:
    """A message of the user."""
    return Message(role="user", text=text)


def result(call: Call, text: str = "ok") -> Message:
    """The result of a call."""
    return Message(role="tool", text=text, answers=call)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptDialect:
    """How a dialect writes a turn.

    Args:
        name: of the dialect.
        url: the path of the endpoint.
        request: the body of the request.
        answer: the body of the response.
        has_ids: whether calls have ids.
        previous: the member of a request that names the answer before it, for a dialect whose
            provider keeps the history; its requests bring only what is new.
    """

    name: str
    url: str
    request: Callable[[Turn], Json]
    answer: Callable[[Turn], Json]
    has_ids: bool = True
    previous: str = ""

    def exchange(self, turn: Turn) -> Exchange:
        """`turn` as a response that is not streamed."""
        request = self.request(turn)
        if self.previous:
            request = self.request(replace(turn, history=_after_last_answer(turn.history)))
        if self.previous and turn.previous:
            request = {**request, self.previous: turn.previous}
        return Exchange.from_body(
            json.dumps(self.answer(turn)).encode(),
            content_type="application/json",
            url=f"http://127.0.0.1{self.url}",
            request=request,
        )


def _after_last_answer(history: Sequence[Message]) -> tuple[Message, ...]:
    places = [place for place, message in enumerate(history) if message.role == "assistant"]
    return tuple(history[places[-1] + 1 :] if places else history)


def digests(dialect: ScriptDialect, turns: Sequence[Turn]) -> list[Digest]:
    """The digests of a tape of `turns`, one after the other."""
    return [
        digest(replace(dialect.exchange(turn), number=number, tape="x.tape"))
        for number, turn in enumerate(turns, 1)
    ]


def _grouped(
    history: Sequence[Message], write: Callable[[Message], Iterable[Json]], assistant: str
) -> Iterator[tuple[str, list[Json]]]:
    """The output of `write` for each run of messages of one role; results count as the user's."""
    last_role = ""
    written: list[Json] = []
    for message in history:
        role = assistant if message.role == "assistant" else "user"
        if last_role not in {"", role}:
            yield last_role, written
            written = []
        last_role = role
        written += write(message)
    if last_role:
        yield last_role, written


def _chat_message(message: Message) -> Json:
    body: Json = {"role": message.role, "content": message.text or None}
    if message.calls:
        body["tool_calls"] = [
            {"id": call.id, "type": "function", "function": call.function} for call in message.calls
        ]
    if message.answers:
        body["tool_call_id"] = message.answers.id
    return body


def _chat_request(turn: Turn) -> Json:
    return {"model": "m", "messages": [_chat_message(message) for message in turn.history]}


def _chat_answer(turn: Turn) -> Json:
    reason = "tool_calls" if turn.answer.calls else "stop"
    choice = {"index": 0, "message": _chat_message(turn.answer), "finish_reason": reason}
    return {"id": turn.id, "object": "chat.completion", "model": "m", "choices": [choice]}


def _cohere_answer(turn: Turn) -> Json:
    reason = "TOOL_CALL" if turn.answer.calls else "COMPLETE"
    message = _chat_message(turn.answer)
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    return {"id": turn.id, "message": message, "finish_reason": reason}


def _ollama_message(message: Message) -> Json:
    body: Json = {"role": message.role, "content": message.text}
    if message.calls:
        body["tool_calls"] = [
            {"function": {"name": call.name, "arguments": call.arguments or {}}}
            for call in message.calls
        ]
    if message.answers:
        body["tool_name"] = message.answers.name
    return body


def _ollama_request(turn: Turn) -> Json:
    messages = [_ollama_message(message) for message in turn.history]
    return {"model": "m", "messages": messages, "stream": False}


def _ollama_answer(turn: Turn) -> Json:
    message = _ollama_message(turn.answer)
    return {"model": "m", "created_at": "", "message": message, "done": True, "done_reason": "stop"}


def _anthropic_blocks(message: Message) -> Iterator[Json]:
    if message.answers:
        yield {
            "type": "tool_result",
            "tool_use_id": message.answers.id,
            "content": message.text,
        }
    elif message.text:
        yield {"type": "text", "text": message.text}
    for call in message.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}}


def _anthropic_request(turn: Turn) -> Json:
    groups = _grouped(turn.history, _anthropic_blocks, "assistant")
    messages = [{"role": role, "content": blocks} for role, blocks in groups]
    return {"model": "m", "max_tokens": 9, "messages": messages}


def _anthropic_answer(turn: Turn) -> Json:
    return {
        "id": turn.id,
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(_anthropic_blocks(turn.answer)),
        "stop_reason": "tool_use" if turn.answer.calls else "end_turn",
    }


def _converse_blocks(message: Message) -> Iterator[Json]:
    if message.answers:
        content = [{"text": message.text}]
        yield {"toolResult": {"toolUseId": message.answers.id, "content": content}}
    elif message.text:
        yield {"text": message.text}
    for call in message.calls:
        use = {"toolUseId": call.id, "name": call.name, "input": call.arguments or {}}
        yield {"toolUse": use}


def _converse_request(turn: Turn) -> Json:
    groups = _grouped(turn.history, _converse_blocks, "assistant")
    return {"messages": [{"role": role, "content": blocks} for role, blocks in groups]}


def _converse_answer(turn: Turn) -> Json:
    message = {"role": "assistant", "content": list(_converse_blocks(turn.answer))}
    reason = "tool_use" if turn.answer.calls else "end_turn"
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return {"output": {"message": message}, "stopReason": reason, "usage": usage}


def _gemini_parts(message: Message) -> Iterator[Json]:
    if message.answers:
        response = {"name": message.answers.name, "response": {"output": message.text}}
        yield {"functionResponse": response}
    elif message.text:
        yield {"text": message.text}
    for call in message.calls:
        yield {"functionCall": {"name": call.name, "args": call.arguments or {}}}


def _gemini_request(turn: Turn) -> Json:
    groups = _grouped(turn.history, _gemini_parts, "model")
    return {"contents": [{"role": role, "parts": parts} for role, parts in groups]}


def _gemini_answer(turn: Turn) -> Json:
    content = {"role": "model", "parts": list(_gemini_parts(turn.answer))}
    candidate = {"content": content, "index": 0, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": turn.id}


def _responses_items(message: Message) -> Iterator[Json]:
    if message.answers:
        yield {
            "type": "function_call_output",
            "call_id": message.answers.id,
            "output": message.text,
        }
    elif message.text:
        kind = "output_text" if message.role == "assistant" else "input_text"
        content = [{"type": kind, "text": message.text}]
        yield {"type": "message", "role": message.role, "content": content}
    for call in message.calls:
        yield {"type": "function_call", "call_id": call.id, **call.function}


def _responses_request(turn: Turn) -> Json:
    items = [item for message in turn.history for item in _responses_items(message)]
    return {"model": "m", "input": items}


def _responses_answer(turn: Turn) -> Json:
    output = [
        {"id": f"item_{place}", "status": "completed", **item}
        for place, item in enumerate(_responses_items(turn.answer))
    ]
    return {
        "id": turn.id,
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": output,
    }


def _interaction_steps(message: Message) -> Iterator[Json]:
    if message.answers:
        yield {
            "type": "function_result",
            "call_id": message.answers.id,
            "name": message.answers.name,
            "result": {"output": message.text},
        }
    elif message.text:
        kind = "model_output" if message.role == "assistant" else "user_input"
        yield {"type": kind, "content": [{"type": "text", "text": message.text}]}
    for call in message.calls:
        arguments = call.arguments or {}
        yield {"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments}


def _interactions_request(turn: Turn) -> Json:
    steps = [step for message in turn.history for step in _interaction_steps(message)]
    return {"model": "m", "input": steps}


def _interactions_answer(turn: Turn) -> Json:
    return {
        "id": turn.id,
        "object": "interaction",
        "model": "m",
        "status": "requires_action" if turn.answer.calls else "completed",
        "steps": list(_interaction_steps(turn.answer)),
    }


_RESPONSES = ScriptDialect(
    name="responses", url="/v1/responses", request=_responses_request, answer=_responses_answer
)
_INTERACTIONS = ScriptDialect(
    name="interactions",
    url="/v1beta/interactions",
    request=_interactions_request,
    answer=_interactions_answer,
)
RESPONSES_STORED = replace(_RESPONSES, name="responses-stored", previous="previous_response_id")
SCRIPT_DIALECTS = (
    ScriptDialect(
        name="openai-chat",
        url="/v1/chat/completions",
        request=_chat_request,
        answer=_chat_answer,
    ),
    ScriptDialect(name="cohere", url="/v2/chat", request=_chat_request, answer=_cohere_answer),
    ScriptDialect(
        name="anthropic", url="/v1/messages", request=_anthropic_request, answer=_anthropic_answer
    ),
    ScriptDialect(
        name="converse",
        url="/model/m/converse",
        request=_converse_request,
        answer=_converse_answer,
    ),
    _RESPONSES,
    _INTERACTIONS,
    ScriptDialect(
        name="gemini",
        url="/v1beta/models/m:generateContent",
        request=_gemini_request,
        answer=_gemini_answer,
        has_ids=False,
    ),
    ScriptDialect(
        name="ollama",
        url="/api/chat",
        request=_ollama_request,
        answer=_ollama_answer,
        has_ids=False,
    ),
    RESPONSES_STORED,
    replace(_INTERACTIONS, name="interactions-stored", previous="previous_interaction_id"),
)
"""Every dialect in which requests have a history, and those in which the provider keeps it."""
