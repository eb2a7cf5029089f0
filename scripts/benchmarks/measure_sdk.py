"""A program: what the official SDKs make of bodies, and how long they take; runs in .venv-clients.

The SDK's own client asks over an in-memory transport, so nothing is sent. The clock starts when
the stream is open and nothing of its body is read, and stops at the accumulated answer. What is
told is CPU time of this process. Each line of stdin names a language and a file with a body; each
line of stdout is a JSON object.
"""

import gc
import hashlib
import json
import resource
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

KEY = "sk-fake-000000"
MODEL = "m"
QUESTION = [{"role": "user", "content": "Correct the dates."}]


class Answer(NamedTuple):
    """What an SDK made of a body."""

    text: str
    arguments: object


def _chat(transport: Any) -> tuple[Any, Callable[[Any], Answer]]:
    sdk = import_module("openai")
    client = sdk.OpenAI(api_key=KEY, http_client=sdk.DefaultHttpxClient(transport=transport))

    def answer(stream: Any) -> Answer:
        message = stream.get_final_completion().choices[0].message
        return Answer(message.content, message.tool_calls[0].function.arguments)

    return client.chat.completions.stream(model=MODEL, messages=QUESTION), answer


def _responses(transport: Any) -> tuple[Any, Callable[[Any], Answer]]:
    sdk = import_module("openai")
    client = sdk.OpenAI(api_key=KEY, http_client=sdk.DefaultHttpxClient(transport=transport))

    def answer(stream: Any) -> Answer:
        response = stream.get_final_response()
        return Answer(response.output_text, response.output[1].arguments)

    return client.responses.stream(model=MODEL, input=QUESTION), answer


def _messages(transport: Any) -> tuple[Any, Callable[[Any], Answer]]:
    sdk = import_module("anthropic")
    client = sdk.Anthropic(api_key=KEY, http_client=sdk.DefaultHttpxClient(transport=transport))

    def answer(stream: Any) -> Answer:
        text, call = stream.get_final_message().content
        return Answer(text.text, call.input)

    return client.messages.stream(model=MODEL, max_tokens=1024, messages=QUESTION), answer


_SDKS = {"openai-chat": _chat, "openai-responses": _responses, "anthropic-messages": _messages}


def measured(language: str, body: bytes) -> dict[str, object]:
    """The CPU time that the SDK takes for `body`, and digests of what it made of it."""
    http = import_module("httpx2")

    def respond(_: object) -> object:
        return http.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    opened, answer = _SDKS[language](http.MockTransport(respond))
    gc.collect()
    with opened as stream:
        began = _cpu_s()
        text, arguments = answer(stream)
        took = _cpu_s() - began
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    return {"seconds": took, "text": digest(text), "arguments": digest(arguments)}


def digest(value: object) -> str:
    """A hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def versions() -> dict[str, object]:
    """The SDKs' versions."""
    return {name: import_module(name).__version__ for name in ("openai", "anthropic")}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the program."""
    print(json.dumps(versions()), flush=True)
    for line in sys.stdin:
        language, file = json.loads(line)
        print(json.dumps(measured(language, Path(file).read_bytes())), flush=True)


if __name__ == "__main__":
    main()
