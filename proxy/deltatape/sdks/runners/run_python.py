"""Read streams with SDKs for Python: a program for the Python of an environment that has them.

argv: the name of a package. On stdout first a line with the versions, then for each line of stdin
one line, both of them JSON:

    in   {"url": "http://127.0.0.1:4711/3", "dialect": "openai-chat", "tools": ["get"]}
    out  {"calls": [{"id", "name", "arguments"}], "refused": [...], "text", "finish", "error"}

`refused` are calls that the SDK itself marks as unusable, `error` is {"type", "text"} or null. Each
SDK is used as its documentation says. The program imports nothing of deltatape.
"""  # noqa: INP001 - a program, run by another Python

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, TypeAlias

KEY = "sk-fake-000000"
LIMIT_S = 10
MODEL = "m"
QUESTION = "?"
ANYTHING = {"type": "object"}

Made: TypeAlias = dict[str, Any]
Sdk: TypeAlias = Callable[[str, Sequence[str]], Made]


def made(calls: Iterable[Made], text: str, finish: object, refused: Iterable[Made] = ()) -> Made:
    """Return one answer; `calls` and `refused` as `call` makes them."""
    told = None if finish is None else str(getattr(finish, "value", finish))
    return {"calls": list(calls), "refused": list(refused), "text": text, "finish": told}


def call(call_id: object, name: object, arguments: object) -> Made:
    """Return a call; arguments that are not text are written as JSON."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=repr)
    return {"id": call_id, "name": name, "arguments": arguments}


def functions(names: Sequence[str]) -> list[Made]:
    """Return tools without a fixed schema, in the form of chat completions."""
    return [
        {"type": "function", "function": {"name": name, "parameters": ANYTHING}} for name in names
    ]


def asked(names: Sequence[str]) -> Made:
    """Return a request for a chat completion."""
    question = {"role": "user", "content": QUESTION}
    tools = {"tools": functions(names)} if names else {}
    return {"model": MODEL, "messages": [question], **tools}


def openai_client(url: str) -> Any:
    """Return the official client without retries."""
    own = import_module("openai").OpenAI
    return own(base_url=f"{url}/v1", api_key=KEY, max_retries=0, timeout=LIMIT_S)


def from_message(message: Any, finish: object) -> Made:
    """Return the content of a chat completion's message, calls of the old API included."""
    calls = [
        call(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ()
    ]
    old = getattr(message, "function_call", None)
    if old:
        calls.append(call(None, old.name, old.arguments))
    return made(calls, message.content or "", finish)


def openai_chat(url: str, tools: Sequence[str]) -> Made:
    """Read with openai's helper `chat.completions.stream`."""
    client = openai_client(url)
    helper = getattr(client.chat.completions, "stream", None) or client.beta.chat.completions.stream
    with helper(**asked(tools)) as stream:
        choices = stream.get_final_completion().choices[:1]
    return next((from_message(one.message, one.finish_reason) for one in choices), made((), "", ""))


def openai_responses(url: str, tools: Sequence[str]) -> Made:
    """Read with openai's helper `responses.stream`."""
    offered = [{"type": "function", "name": name, "parameters": ANYTHING} for name in tools]
    request = {"model": MODEL, "input": QUESTION, "tools": offered}
    with openai_client(url).responses.stream(**request) as stream:
        response = stream.get_final_response()
    calls = (one for one in response.output if one.type == "function_call")
    return made(
        (call(one.call_id, one.name, one.arguments) for one in calls),
        response.output_text,
        response.status,
    )


def anthropic_messages(url: str, tools: Sequence[str]) -> Made:
    """Read with anthropic's helper `messages.stream`."""
    own = import_module("anthropic").Anthropic
    client = own(base_url=url, api_key=KEY, max_retries=0, timeout=LIMIT_S)
    request = asked(()) | {"max_tokens": 64}
    if tools:
        request["tools"] = [{"name": name, "input_schema": ANYTHING} for name in tools]
    with client.messages.stream(**request) as stream:
        message = stream.get_final_message()
    return made(
        (call(one.id, one.name, one.input) for one in message.content if one.type == "tool_use"),
        "".join(one.text for one in message.content if one.type == "text"),
        message.stop_reason,
    )


def google_genai(url: str, tools: Sequence[str]) -> Made:
    """Read the chunks of google-genai, which joins nothing: the calls of each in order."""
    own = import_module("google.genai").Client
    client = own(api_key=KEY, http_options={"base_url": url, "timeout": LIMIT_S * 1000})
    offered = [{"name": name} for name in tools]
    config: Made = {"automatic_function_calling": {"disable": True}}
    if offered:
        config["tools"] = [{"function_declarations": offered}]
    calls, texts, finish = [], [], None
    for chunk in client.models.generate_content_stream(
        model=MODEL, contents=QUESTION, config=config
    ):
        calls += [call(one.id, one.name, one.args) for one in chunk.function_calls or ()]
        for candidate in (chunk.candidates or ())[:1]:
            finish = candidate.finish_reason or finish
            parts = candidate.content.parts if candidate.content else None
            texts += [part.text for part in parts or () if part.text and not part.thought]
    return made(calls, "".join(texts), finish)


def langchain(url: str, tools: Sequence[str], *, responses: bool = False) -> Made:
    """Read the chunks of langchain-openai, joined as its documentation says: `whole + chunk`."""
    model: Any = import_module("langchain_openai").ChatOpenAI(
        model=MODEL,
        base_url=f"{url}/v1",
        api_key=KEY,
        max_retries=0,
        timeout=LIMIT_S,
        use_responses_api=responses,
    )
    if tools:
        model = model.bind_tools(functions(tools))
    whole: Any = None
    for chunk in model.stream(QUESTION):
        whole = chunk if whole is None else whole + chunk
    if whole is None:
        return made((), "", None)
    told = whole.response_metadata
    calls = [call(one["id"], one["name"], one["args"]) for one in whole.tool_calls]
    old = whole.additional_kwargs.get("function_call")
    if old:
        calls.append(call(None, old.get("name"), old.get("arguments")))
    return made(
        calls,
        str(whole.text),
        told.get("status") if responses else told.get("finish_reason"),
        (call(one["id"], one["name"], one["args"]) for one in whole.invalid_tool_calls),
    )


def langchain_responses(url: str, tools: Sequence[str]) -> Made:
    """Read with langchain-openai over the Responses API."""
    return langchain(url, tools, responses=True)


def litellm(url: str, tools: Sequence[str], *, of: str = "openai", path: str = "/v1") -> Made:
    """Read the chunks of `litellm.completion`, joined by its `stream_chunk_builder`."""
    own: Any = import_module("litellm")
    vars(own).update(suppress_debug_info=True, telemetry=False)
    request = asked(tools) | {"model": f"{of}/{MODEL}", "stream": True}
    chunks = list(
        own.completion(**request, api_base=url + path, api_key=KEY, max_retries=0, timeout=LIMIT_S)
    )
    whole = own.stream_chunk_builder(chunks, messages=request["messages"])
    if whole is None or not whole.choices:
        return made((), "", None)
    return from_message(whole.choices[0].message, whole.choices[0].finish_reason)


def litellm_messages(url: str, tools: Sequence[str]) -> Made:
    """Read with litellm from Anthropic's API."""
    return litellm(url, tools, of="anthropic", path="")


SDKS: dict[str, dict[str, Sdk]] = {
    "openai": {"openai-chat": openai_chat, "openai-responses": openai_responses},
    "anthropic": {"anthropic-messages": anthropic_messages},
    "google-genai": {"gemini": google_genai},
    "langchain-openai": {"openai-chat": langchain, "openai-responses": langchain_responses},
    "litellm": {"openai-chat": litellm, "anthropic-messages": litellm_messages},
}
MODULES = {"google-genai": "google.genai", "langchain-openai": "langchain_openai"}
"""Modules that are not named like their package."""
ALSO = {"langchain-openai": ("langchain-core", "openai"), "litellm": ("openai",)}
"""Packages that do a part of the work."""


def answer(sdk: Sdk, url: str, tools: Sequence[str]) -> Made:
    """Return what `sdk` reads from the stream at `url`, or its exception."""
    try:
        return {**sdk(url, tools), "error": None}
    except Exception as problem:  # noqa: BLE001 - whatever the SDK throws is what was asked for
        error = {"type": type(problem).__name__, "text": str(problem)}
        return {**made((), "", None), "error": error}


def main() -> None:
    """Answer each line of stdin."""
    sdks = SDKS[sys.argv[1]]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an SDK prints must not come between

    def tell(value: Made) -> None:
        out.write(json.dumps(value, default=repr) + "\n")
        out.flush()

    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network at import
    import_module(MODULES.get(sys.argv[1], sys.argv[1]))  # now, as it may take long
    tell({name: version(name) for name in (sys.argv[1], *ALSO.get(sys.argv[1], ()))})
    for line in sys.stdin:
        wanted = json.loads(line)
        tell(answer(sdks[wanted["dialect"]], wanted["url"], wanted["tools"]))


if __name__ == "__main__":
    main()
