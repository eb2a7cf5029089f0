"""What the apps share: the registry, and plain clients that do what the documents say.

Apps that use an SDK need none of the clients. All of them find the provider as any app does: in
the environment.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from .provider import Script

CHAT_MODEL = "gpt-4.1-mini"
CLAUDE_MODEL = "claude-sonnet-4-5"
GEMINI_MODEL = "gemini-2.5-flash"
OLLAMA_MODEL = "qwen3:8b"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A program and the provider it meets."""

    name: str
    run: Callable[..., object] | None
    script: Script
    why: str
    times: int = 1  # how often it is started on one tape
    exit_code: int = 0
    options: tuple[str, ...] = ()  # of the recorder
    arguments: tuple[str, ...] = ()
    source: str | None = None  # a program in JavaScript, in tests/clients/odd_apps


APPS: dict[str, App] = {}


def app(script: Script, **more: Any) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Register a program; its docstring says why it is right."""

    def register(run: Callable[[], object]) -> Callable[[], object]:
        name = run.__name__.replace("_", "-")
        assert name not in APPS, name
        why = " ".join((run.__doc__ or "").split())
        APPS[name] = App(name=name, run=run, script=script, why=why, **more)
        return run

    return register


def node_app(name: str, script: Script, why: str, **more: Any) -> None:
    """Register a program of tests/clients/odd_apps, in JavaScript."""
    assert name not in APPS, name
    APPS[name] = App(name=name, run=None, source=f"{name}.mjs", script=script, why=why, **more)


# Tools.


def schema(properties: dict[str, Any] | None = None, required: list[str] | None = None) -> Any:
    """A JSON schema of an object; a property given as a word is of that type."""
    made = {
        name: {"type": kind} if isinstance(kind, str) else kind
        for name, kind in (properties or {}).items()
    }
    return {
        "type": "object",
        "properties": made,
        "required": list(made) if required is None else required,
    }


def tool(name: str, properties: Any = None, required: list[str] | None = None) -> Any:
    """A tool for chat completions."""
    function = {
        "name": name,
        "description": name.replace("_", " ").capitalize() + ".",
        "parameters": schema(properties, required),
    }
    return {"type": "function", "function": function}


def claude_tool(name: str, properties: Any = None, required: list[str] | None = None) -> Any:
    """A tool for Anthropic."""
    function = tool(name, properties, required)["function"]
    return {
        "name": name,
        "description": function["description"],
        "input_schema": function["parameters"],
    }


def flat_tool(name: str, properties: Any = None, required: list[str] | None = None) -> Any:
    """A tool for Responses."""
    return {"type": "function", **tool(name, properties, required)["function"]}


def gemini_tools(*tools: Any) -> Any:
    """Tools of chat completions, for Gemini."""
    return [{"functionDeclarations": [one["function"] for one in tools]}]


def user(text: Any) -> Any:
    """A user's message."""
    return {"role": "user", "content": text}


def system(text: str) -> Any:
    """A system prompt."""
    return {"role": "system", "content": text}


def result(call: Any, value: Any) -> Any:
    """The result of a call of chat completions."""
    content = value if isinstance(value, str) else json.dumps(value)
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


def arguments(call: Any) -> Any:
    """The arguments of a call of chat completions."""
    return json.loads(call["function"]["arguments"] or "{}")


def claude_result(block: Any, value: Any, **more: Any) -> Any:
    """The result of a tool_use block."""
    content = value if isinstance(value, str | list) else json.dumps(value)
    return {"type": "tool_result", "tool_use_id": block["id"], "content": content, **more}


# Clients.


def client(**more: Any) -> Any:
    """An HTTP client."""
    import httpx

    return httpx.Client(timeout=20, **more)


def openai_url() -> str:
    """Where OpenAI's API is."""
    return os.environ["OPENAI_BASE_URL"]


HEADERS = {"authorization": "Bearer sk-none", "x-api-key": "none"}
_clients: list[Any] = []


def shared() -> Any:
    """The client of this process."""
    if not _clients:
        _clients.append(client())
    return _clients[0]


def lines(url: str, body: Any, http: Any = None) -> Iterator[str]:
    """The lines of a streamed response."""
    with (http or shared()).stream("POST", url, json=body, headers=HEADERS) as response:
        if response.status_code >= 400:
            response.read()
        response.raise_for_status()
        yield from response.iter_lines()


def events(url: str, body: Any, http: Any = None) -> Iterator[Any]:
    """The JSON events of a stream."""
    for line in lines(url, body, http):
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            yield json.loads(line[5:])


def post(url: str, body: Any, http: Any = None, **more: Any) -> Any:
    """The JSON answer to a request."""
    response = (http or shared()).post(url, json=body, headers=HEADERS, **more)
    response.raise_for_status()
    return response.json()


def chat(messages: Any, tools: Any = None, *, http: Any = None, **more: Any) -> Any:
    """Ask by chat completions, streamed; returns the message, as it goes into the history."""
    body = {"model": CHAT_MODEL, "messages": messages, "stream": True, **more}
    if tools:
        body["tools"] = tools
    return chat_message(events(openai_url() + "/chat/completions", body, http))


def chat_message(stream: Any) -> Any:
    """Put the deltas of the first choice together."""
    message: Any = {"role": "assistant", "content": ""}
    made: dict[int, Any] = {}
    for event in stream:
        for choice in event["choices"]:
            delta = choice["delta"]
            if choice["index"]:
                continue
            message["content"] += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                one = made.setdefault(
                    piece["index"],
                    {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
                )
                one["id"] = piece.get("id") or one["id"]
                function = piece.get("function") or {}
                one["function"]["name"] = function.get("name") or one["function"]["name"]
                one["function"]["arguments"] += function.get("arguments") or ""
    if made:
        message["tool_calls"] = [made[index] for index in sorted(made)]
        message["content"] = message["content"] or None
    return message


def chat_whole(messages: Any, tools: Any = None, *, http: Any = None, **more: Any) -> Any:
    """Ask by chat completions, not streamed."""
    body = {"model": CHAT_MODEL, "messages": messages, **more}
    if tools:
        body["tools"] = tools
    message = post(openai_url() + "/chat/completions", body, http)["choices"][0]["message"]
    return {name: value for name, value in message.items() if value is not None}


def claude(messages: Any, tools: Any = None, *, http: Any = None, **more: Any) -> Any:
    """Ask Anthropic, streamed; returns the assistant's message."""
    body = {
        "model": CLAUDE_MODEL,
        "max_tokens": 1024,
        "messages": messages,
        "stream": True,
        **more,
    }
    if tools:
        body["tools"] = tools
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    return {"role": "assistant", "content": claude_blocks(events(url, body, http))}


def claude_blocks(stream: Any) -> Any:
    """Put the deltas of a message together."""
    blocks: list[Any] = []
    for event in stream:
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"]})
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            if delta["type"] == "input_json_delta":
                block["json"] = block.get("json", "") + delta["partial_json"]
            else:
                word = delta["type"].removesuffix("_delta")
                block[word] = block.get(word, "") + delta[word]
        elif event["type"] == "content_block_stop" and "json" in blocks[-1]:
            blocks[-1]["input"] = json.loads(blocks[-1].pop("json") or "{}")
        elif event["type"] == "error":
            raise ConnectionError(event["error"]["message"])
    return blocks


def respond(asked: Any, tools: Any = None, *, http: Any = None, **more: Any) -> Any:
    """Ask by Responses, streamed; returns the response object."""
    body = {"model": CHAT_MODEL, "input": asked, "stream": True, **more}
    if tools:
        body["tools"] = tools
    ended = None
    for event in events(openai_url() + "/responses", body, http):
        if event["type"] in ("response.completed", "response.incomplete"):
            ended = event["response"]
    return ended


def gemini(contents: Any, tools: Any = None, *, http: Any = None, **more: Any) -> Any:
    """Ask Gemini, streamed; returns the model's content."""
    body = {"contents": contents, **more}
    if tools:
        body["tools"] = tools
    base = os.environ["GOOGLE_GEMINI_BASE_URL"]
    url = f"{base}/v1beta/models/{GEMINI_MODEL}:streamGenerateContent?alt=sse"
    parts: list[Any] = []
    for event in events(url, body, http):
        for part in event["candidates"][0]["content"]["parts"]:
            if part.get("thought"):
                continue
            if "text" in part and parts and "text" in parts[-1]:
                parts[-1]["text"] += part["text"]
            else:
                parts.append(part)
    return {"role": "model", "parts": parts}


def ollama(messages: Any, tools: Any = None, *, http: Any = None, **more: Any) -> Any:
    """Ask Ollama, streamed; returns the message."""
    body = {"model": OLLAMA_MODEL, "messages": messages, **more}
    if tools:
        body["tools"] = tools
    message: Any = {"role": "assistant", "content": ""}
    for line in lines(os.environ["OLLAMA_HOST"] + "/api/chat", body, http):
        part = json.loads(line)["message"]
        message["content"] += part.get("content") or ""
        if part.get("tool_calls"):
            message.setdefault("tool_calls", []).extend(part["tool_calls"])
    return message
