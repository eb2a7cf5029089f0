"""Streams in the dialects of OpenAI's APIs and of Mistral's, which is one of their kind.

Source: https://platform.openai.com/docs/api-reference/chat-streaming,
https://platform.openai.com/docs/api-reference/responses-streaming,
https://platform.openai.com/docs/api-reference/completions,
https://docs.mistral.ai/api/#tag/chat
"""

from collections.abc import Iterator, Sequence

from helpers.sample_streams import DONE, QUESTION, TEXT, TOOLS, Spoken, Tool, sse, text_of

OPENAI = "https://api.openai.com"
CREATED = 1795000000
NESTED = [
    {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
        },
    }
    for tool in TOOLS
]
ASKED: dict[str, object] = {
    "messages": [{"role": "user", "content": QUESTION}],
    "stream": True,
    "tools": NESTED,
}
IDS = ("call_fake00000000000000000Gent", "call_fake00000000000000SaoTome")


def openai_chat() -> Spoken:
    """Chat Completions, with usage asked for."""
    return Spoken(
        name="openai-chat",
        upstream=OPENAI,
        target="/v1/chat/completions",
        request={"model": "gpt-4o", "stream_options": {"include_usage": True}, **ASKED},
        pieces=tuple(_chat()),
        headers=(("openai-processing-ms", "229"), ("x-request-id", "req_fake0000")),
    )


def _chat() -> Iterator[bytes]:
    yield _chunk([_choice({"role": "assistant", "content": "", "refusal": None})])
    for piece in TEXT:
        yield _chunk([_choice({"content": piece})])
    for index, tool in enumerate(TOOLS):
        function = {"name": tool.name, "arguments": ""}
        opened = {"index": index, "id": IDS[index], "type": "function", "function": function}
        yield _chunk([_choice({"tool_calls": [opened]})])
        for piece in tool.pieces:
            fragment = {"index": index, "function": {"arguments": piece}}
            yield _chunk([_choice({"tool_calls": [fragment]})])
    yield _chunk([_choice({}, "tool_calls")])
    usage = {"prompt_tokens": 96, "completion_tokens": 51, "total_tokens": 147}
    yield _chunk([], usage)
    yield DONE


def _choice(delta: dict[str, object], finish: str | None = None) -> dict[str, object]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _chunk(choices: Sequence[object], usage: object = None) -> bytes:
    return sse(
        {
            "id": "chatcmpl-Fake000000000000000000000",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": "gpt-4o-2024-08-06",
            "system_fingerprint": "fp_fake000000",
            "choices": choices,
            "usage": usage,
        }
    )


def openai_responses() -> Spoken:
    """Responses; no `[DONE]` ends them."""
    return Spoken(
        name="openai-responses",
        upstream=OPENAI,
        target="/v1/responses",
        request={"model": "gpt-4.1", "input": QUESTION, "stream": True, "tools": _flat()},
        pieces=[
            sse({"type": kind, "sequence_number": number, **event}, kind)
            for number, (kind, event) in enumerate(_responses())
        ],
    )


Item = dict[str, object]
Event = tuple[str, dict[str, object]]


def _flat() -> list[object]:
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": False,
        }
        for tool in TOOLS
    ]


def _responses() -> Iterator[Event]:
    yield "response.created", {"response": _response("in_progress", [])}
    yield "response.in_progress", {"response": _response("in_progress", [])}
    yield from _message()
    for index, tool in enumerate(TOOLS, 1):
        yield from _function_call(index, tool)
    items = [_message_item("completed"), *map(_call_item, (1, 2), TOOLS)]
    yield "response.completed", {"response": _response("completed", items)}


def _response(status: str, output: Sequence[object]) -> dict[str, object]:
    usage = {
        "input_tokens": 96,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 51,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 147,
    }
    return {
        "id": "resp_fake000000000000",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": "gpt-4.1-2025-04-14",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": _flat(),
        "usage": usage if status == "completed" else None,
        "metadata": {},
    }


def _message() -> Iterator[Event]:
    place: Item = {"item_id": "msg_fake0000", "output_index": 0, "content_index": 0}
    whole = "".join(TEXT)
    yield (
        "response.output_item.added",
        {"output_index": 0, "item": _message_item("in_progress")},
    )
    yield "response.content_part.added", {**place, "part": _part("")}
    for piece in TEXT:
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": whole, "logprobs": []}
    yield "response.content_part.done", {**place, "part": _part(whole)}
    yield "response.output_item.done", {"output_index": 0, "item": _message_item("completed")}


def _part(text: str) -> Item:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _message_item(status: str) -> Item:
    return {
        "id": "msg_fake0000",
        "type": "message",
        "status": status,
        "content": [_part("".join(TEXT))] if status == "completed" else [],
        "role": "assistant",
    }


def _call_item(index: int, tool: Tool, status: str = "completed") -> Item:
    return {
        "id": f"fc_fake000{index}",
        "type": "function_call",
        "status": status,
        "arguments": tool.arguments if status == "completed" else "",
        "call_id": IDS[index - 1],
        "name": tool.name,
    }


def _function_call(index: int, tool: Tool) -> Iterator[Event]:
    place: Item = {"item_id": f"fc_fake000{index}", "output_index": index}
    arguments = "response.function_call_arguments"
    added = _call_item(index, tool, "in_progress")
    yield "response.output_item.added", {"output_index": index, "item": added}
    for number, piece in enumerate(tool.pieces):
        # Padding that hides the length of what a piece says.
        yield f"{arguments}.delta", {**place, "delta": piece, "obfuscation": "x7Kq2"[number % 5 :]}
    yield f"{arguments}.done", {**place, "arguments": tool.arguments}
    yield "response.output_item.done", {"output_index": index, "item": _call_item(index, tool)}


def openai_completions() -> Spoken:
    """The legacy API, which has no tool calls: a model that was trained to writes them as text."""
    return Spoken(
        name="openai-completions",
        upstream=OPENAI,
        target="/v1/completions",
        request={
            "model": "hermes-fake",
            "prompt": f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n",
            "max_tokens": 200,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        pieces=tuple(_completions()),
    )


def _completions() -> Iterator[bytes]:
    for piece in (*TEXT, *_written()):
        yield _completion([{"text": piece, "index": 0, "logprobs": None, "finish_reason": None}])
    yield _completion([{"text": "", "index": 0, "logprobs": None, "finish_reason": "stop"}])
    usage = {"prompt_tokens": 96, "completion_tokens": 51, "total_tokens": 147}
    yield _completion([], usage)
    yield DONE


def _written() -> Iterator[str]:
    for tool in TOOLS:
        yield "\n<tool"
        yield '_call>\n{"name": "'
        yield f'{tool.name}", "arguments": '
        yield from tool.pieces
        yield "}\n</tool_"
        yield "call>"


def _completion(choices: Sequence[object], usage: object = None) -> bytes:
    return sse(
        {
            "id": "cmpl-Fake000000000000000000000",
            "object": "text_completion",
            "created": CREATED,
            "choices": choices,
            "model": "hermes-fake",
            "usage": usage,
        }
    )


def mistral() -> Spoken:
    """Mistral's chat: both calls whole in the last event, with the finish reason and the usage."""
    return Spoken(
        name="mistral",
        upstream="https://api.mistral.ai",
        target="/v1/chat/completions",
        request={"model": "mistral-large-latest", **ASKED},
        pieces=tuple(_mistral()),
    )


def _mistral() -> Iterator[bytes]:
    yield _mistral_chunk({"role": "assistant", "content": ""})
    for piece in TEXT:
        yield _mistral_chunk({"content": piece})
    calls = [
        {
            "id": call_id,
            "function": {"name": tool.name, "arguments": text_of(tool.value)},
            "index": index,
        }
        for index, (call_id, tool) in enumerate(zip(("fakeGent0", "fakeTome1"), TOOLS, strict=True))
    ]
    usage = {"prompt_tokens": 96, "total_tokens": 147, "completion_tokens": 51}
    yield _mistral_chunk({"content": "", "tool_calls": calls}, "tool_calls", usage)
    yield DONE


def _mistral_chunk(
    delta: dict[str, object], finish: str | None = None, usage: object = None
) -> bytes:
    value: dict[str, object] = {
        "id": "0123456789abcdef0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": "mistral-large-latest",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return sse({**value, "usage": usage} if usage else value)
