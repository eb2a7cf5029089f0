"""Conversations by a script: the same one in every dialect, as requests, answers and digests.

A script is what is said, in terms that no dialect has; a `Language` writes it down as histories of
requests and as answers. Answers are whole documents: how they stream is told elsewhere.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    def text(self) -> str:
        """The arguments as text; "" if there are none."""
        return "" if self.arguments is None else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message: `user`, `assistant` or `tool`; results name their call."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: Call | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A request with its history, and the answer to it; `previous` is the answer before."""

    history: tuple[Said, ...]
    answer: Said
    id: str = "r"
    previous: str | None = None


def user(text: str) -> Said:
    """What the user says."""
    return Said(role="user", text=text)


def result(call: Call, text: str = "ok") -> Said:
    """The result of a call."""
    return Said(role="tool", text=text, answers=call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A dialect as the script needs it."""

    name: str
    url: str
    ask: Callable[[Turn], Json]
    answer: Callable[[Turn], Json]
    has_ids: bool = True
    stores: bool = False
    """Whether requests bring only what is new."""


def digests(language: Language, turns: Sequence[Turn]) -> list[Digest]:
    """What a tape of `turns`, one after the other, is remembered as."""
    found = []
    for number, turn in enumerate(turns, 1):
        exchange = Exchange.from_body(
            json.dumps(language.answer(turn)).encode(),
            content_type="application/json",
            url=f"http://127.0.0.1{language.url}",
            request=language.ask(turn),
        )
        found.append(digest(replace(exchange, number=number, tape="x.tape")))
    return found


def _function(call: Call) -> Json:
    return {"name": call.name, "arguments": call.text}


def _nested(call: Call) -> Json:
    return {"id": call.id, "type": "function", "function": _function(call)}


def _chat_message(said: Said) -> Json:
    message: Json = {"role": said.role, "content": said.text or None}
    if said.calls:
        message["tool_calls"] = [_nested(call) for call in said.calls]
    if said.answers:
        message["tool_call_id"] = said.answers.id
    return message


def _chat(turn: Turn) -> Json:
    return {"model": "m", "messages": [_chat_message(one) for one in turn.history]}


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


def _ollama_message(said: Said) -> Json:
    message: Json = {"role": said.role, "content": said.text}
    if said.calls:
        calls = [{"name": one.name, "arguments": one.arguments or {}} for one in said.calls]
        message["tool_calls"] = [{"function": call} for call in calls]
    if said.answers:
        message["tool_name"] = said.answers.name
    return message


def _ollama(turn: Turn) -> Json:
    messages = [_ollama_message(one) for one in turn.history]
    return {"model": "m", "messages": messages, "stream": False}


def _ollama_answer(turn: Turn) -> Json:
    message = _ollama_message(turn.answer)
    return {"model": "m", "created_at": "", "message": message, "done": True, "done_reason": "stop"}


def _blocks(said: Said) -> list[Json]:
    found: list[Json] = []
    if said.answers:
        answers: Json = {"type": "tool_result", "tool_use_id": said.answers.id}
        return [{**answers, "content": said.text}]
    if said.text:
        found.append({"type": "text", "text": said.text})
    for call in said.calls:
        use: Json = {"type": "tool_use", "id": call.id, "name": call.name}
        found.append({**use, "input": call.arguments or {}})
    return found


def _grouped(history: Sequence[Said]) -> Iterator[tuple[str, list[Said]]]:
    """Messages of the same role in a row, results being the user's."""
    group: list[Said] = []
    for said in history:
        if group and (said.role == "assistant") != (group[0].role == "assistant"):
            yield group[0].role, group
            group = []
        group.append(said)
    if group:
        yield group[0].role, group


def _anthropic(turn: Turn) -> Json:
    messages = [
        {
            "role": "assistant" if role == "assistant" else "user",
            "content": [block for said in group for block in _blocks(said)],
        }
        for role, group in _grouped(turn.history)
    ]
    return {"model": "m", "max_tokens": 9, "messages": messages}


def _anthropic_answer(turn: Turn) -> Json:
    return {
        "id": turn.id,
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": _blocks(turn.answer),
        "stop_reason": "tool_use" if turn.answer.calls else "end_turn",
    }


def _converse_blocks(said: Said) -> list[Json]:
    found: list[Json] = []
    if said.answers:
        content = [{"text": said.text}]
        return [{"toolResult": {"toolUseId": said.answers.id, "content": content}}]
    if said.text:
        found.append({"text": said.text})
    for call in said.calls:
        use = {"toolUseId": call.id, "name": call.name, "input": call.arguments or {}}
        found.append({"toolUse": use})
    return found


def _converse(turn: Turn) -> Json:
    messages = [
        {
            "role": "assistant" if role == "assistant" else "user",
            "content": [block for said in group for block in _converse_blocks(said)],
        }
        for role, group in _grouped(turn.history)
    ]
    return {"messages": messages}


def _converse_answer(turn: Turn) -> Json:
    message = {"role": "assistant", "content": _converse_blocks(turn.answer)}
    reason = "tool_use" if turn.answer.calls else "end_turn"
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    return {"output": {"message": message}, "stopReason": reason, "usage": usage}


def _parts(said: Said) -> list[Json]:
    if said.answers:
        response = {"name": said.answers.name, "response": {"output": said.text}}
        return [{"functionResponse": response}]
    found: list[Json] = [{"text": said.text}] if said.text else []
    calls = [{"name": call.name, "args": call.arguments or {}} for call in said.calls]
    found += [{"functionCall": call} for call in calls]
    return found


def _gemini(turn: Turn) -> Json:
    contents = [
        {
            "role": "model" if role == "assistant" else "user",
            "parts": [part for said in group for part in _parts(said)],
        }
        for role, group in _grouped(turn.history)
    ]
    return {"contents": contents}


def _gemini_answer(turn: Turn) -> Json:
    content = {"role": "model", "parts": _parts(turn.answer)}
    candidate = {"content": content, "index": 0, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": turn.id}


def _items(said: Said) -> Iterator[Json]:
    if said.answers:
        output: Json = {"type": "function_call_output", "call_id": said.answers.id}
        yield {**output, "output": said.text}
        return
    if said.text:
        kind = "output_text" if said.role == "assistant" else "input_text"
        content = [{"type": kind, "text": said.text}]
        yield {"type": "message", "role": said.role, "content": content}
    for call in said.calls:
        yield {"type": "function_call", "call_id": call.id, **_function(call)}


def _responses(turn: Turn) -> Json:
    items = [item for said in turn.history for item in _items(said)]
    return {"model": "m", "input": items}


def _stored(turn: Turn) -> Json:
    """Only what came after the last answer."""
    new = _after_the_last_answer(turn.history)
    asked = _responses(replace(turn, history=new))
    return {**asked, "previous_response_id": turn.previous} if turn.previous else asked


def _after_the_last_answer(history: Sequence[Said]) -> tuple[Said, ...]:
    places = [place for place, said in enumerate(history) if said.role == "assistant"]
    return tuple(history[places[-1] + 1 :] if places else history)


def _responses_answer(turn: Turn) -> Json:
    output = [
        {"id": f"item_{place}", "status": "completed", **item}
        for place, item in enumerate(_items(turn.answer))
    ]
    return {
        "id": turn.id,
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": output,
    }


def _steps(said: Said) -> Iterator[Json]:
    if said.answers:
        answers: Json = {"type": "function_result", "call_id": said.answers.id}
        yield {**answers, "name": said.answers.name, "result": {"output": said.text}}
        return
    if said.text:
        kind = "model_output" if said.role == "assistant" else "user_input"
        yield {"type": kind, "content": [{"type": "text", "text": said.text}]}
    for call in said.calls:
        step: Json = {"type": "function_call", "id": call.id, "name": call.name}
        yield {**step, "arguments": call.arguments or {}}


def _interactions(turn: Turn) -> Json:
    return {"model": "m", "input": [step for said in turn.history for step in _steps(said)]}


def _stored_interactions(turn: Turn) -> Json:
    new = _after_the_last_answer(turn.history)
    asked = _interactions(replace(turn, history=new))
    return {**asked, "previous_interaction_id": turn.previous} if turn.previous else asked


def _interactions_answer(turn: Turn) -> Json:
    status = "requires_action" if turn.answer.calls else "completed"
    steps = list(_steps(turn.answer))
    base: Json = {"id": turn.id, "object": "interaction", "model": "m"}
    return {**base, "status": status, "steps": steps}


_CHAT = "/v1/chat/completions"
_RESPONSES = "/v1/responses"
_INTERACTIONS = "/v1beta/interactions"
_GEMINI = "/v1beta/models/m:generateContent"
LANGUAGES = (
    Language(name="openai-chat", url=_CHAT, ask=_chat, answer=_chat_answer),
    Language(name="cohere", url="/v2/chat", ask=_chat, answer=_cohere_answer),
    Language(name="anthropic", url="/v1/messages", ask=_anthropic, answer=_anthropic_answer),
    Language(name="converse", url="/model/m/converse", ask=_converse, answer=_converse_answer),
    Language(name="responses", url=_RESPONSES, ask=_responses, answer=_responses_answer),
    Language(
        name="interactions", url=_INTERACTIONS, ask=_interactions, answer=_interactions_answer
    ),
    Language(name="gemini", url=_GEMINI, ask=_gemini, answer=_gemini_answer, has_ids=False),
    Language(name="ollama", url="/api/chat", ask=_ollama, answer=_ollama_answer, has_ids=False),
    Language(
        name="responses-stored", url=_RESPONSES, ask=_stored, answer=_responses_answer, stores=True
    ),
    Language(
        name="interactions-stored",
        url=_INTERACTIONS,
        ask=_stored_interactions,
        answer=_interactions_answer,
        stores=True,
    ),
)
"""Every dialect in which requests have a history, and those in which the provider keeps it."""
