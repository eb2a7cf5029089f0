"""The official SDKs for Python, as an application uses them: one streamed turn with tools.

argv: the dialect, the request as JSON. Each line of stdin is a base URL; for each, one line of
stdout: a JSON list of everything that the SDK gave to the application, the final message included
where the SDK makes one.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

Request = dict[str, object]
KEY = "sk-fake-000000"
BEDROCK = "bedrock-runtime"
REGION = "eu-west-1"
ONCE = {"total_max_attempts": 1}
MODEL = "anthropic.claude-3-5-sonnet-20241022-v2:0"


def unstreamed(request: Request) -> Request:
    """The request without `stream`, which the SDK's own method sets."""
    return {key: value for key, value in request.items() if key != "stream"}


def openai_client(url: str) -> Any:
    return import_module("openai").OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)


def openai_chat(url: str, request: Request) -> Iterator[object]:
    with openai_client(url).chat.completions.stream(**unstreamed(request)) as stream:
        yield from stream
        yield stream.get_final_completion()


def openai_responses(url: str, request: Request) -> Iterator[object]:
    with openai_client(url).responses.stream(**unstreamed(request)) as stream:
        yield from stream
        yield stream.get_final_response()


def openai_completions(url: str, request: Request) -> Iterator[object]:
    with openai_client(url).completions.create(**request) as stream:
        yield from stream


def anthropic_messages(url: str, request: Request) -> Iterator[object]:
    client = import_module("anthropic").Anthropic(base_url=url, api_key=KEY, max_retries=0)
    with client.messages.stream(**unstreamed(request)) as stream:
        yield from stream
        yield stream.get_final_message()


def google_client(url: str) -> Any:
    options = {"base_url": url, "api_version": "v1beta"}
    return import_module("google.genai").Client(api_key=KEY, http_options=options)


def gemini(url: str, request: Request) -> Iterator[object]:
    config = {"tools": request["tools"], "automatic_function_calling": {"disable": True}}
    client = google_client(url)  # held: it closes when it is collected
    yield from client.models.generate_content_stream(
        model="gemini-2.5-flash", contents=request["contents"], config=config
    )


def gemini_interactions(url: str, request: Request) -> Iterator[object]:
    client = google_client(url)
    yield from client.interactions.create(**request)


def cohere(url: str, request: Request) -> Iterator[object]:
    client = import_module("cohere").ClientV2(
        api_key=KEY, base_url=url, log_warning_experimental_features=False
    )
    yield from client.chat_stream(**unstreamed(request))


def ollama(url: str, request: Request) -> Iterator[object]:
    yield from import_module("ollama").Client(host=url).chat(**request)


def mistral(url: str, request: Request) -> Iterator[object]:
    client = import_module("mistralai.client").Mistral(api_key=KEY, server_url=url)
    with client.chat.stream(**unstreamed(request)) as stream:
        yield from stream


def bedrock_client(url: str) -> Any:
    """A client with a bearer token: by botocore's own means over https, as it refuses it over http.

    A signature would name another host than the one that a gateway forwards to.
    """
    own = import_module("botocore.config").Config
    session = import_module("botocore.session").Session()
    if url.startswith("https://"):
        config = own(retries=ONCE)
        return session.create_client(BEDROCK, REGION, endpoint_url=url, config=config)

    def authorize(request: Any, **_: object) -> None:
        request.headers["Authorization"] = f"Bearer {os.environ['AWS_BEARER_TOKEN_BEDROCK']}"

    session.register(f"before-send.{BEDROCK}", authorize)
    config = own(signature_version=import_module("botocore").UNSIGNED, retries=ONCE)
    return session.create_client(BEDROCK, REGION, endpoint_url=url, config=config)


def bedrock_converse(url: str, request: Request) -> Iterator[object]:
    answer = bedrock_client(url).converse_stream(modelId=MODEL, **request)
    yield answer["ResponseMetadata"]
    yield from answer["stream"]


def bedrock_invoke(url: str, request: Request) -> Iterator[object]:
    answer = bedrock_client(url).invoke_model_with_response_stream(
        modelId=MODEL, body=json.dumps(request)
    )
    yield answer["ResponseMetadata"]
    for event in answer["body"]:
        yield json.loads(event["chunk"]["bytes"])


SDKS: dict[str, Callable[[str, Request], Iterator[object]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "openai-completions": openai_completions,
    "anthropic-messages": anthropic_messages,
    "gemini": gemini,
    "gemini-interactions": gemini_interactions,
    "cohere": cohere,
    "ollama": ollama,
    "mistral": mistral,
    "bedrock-converse": bedrock_converse,
    "bedrock-invoke": bedrock_invoke,
}


def plain(value: object) -> object:
    """What an SDK gave, as JSON; bytes and the like as they print."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", warnings=False) if dump else repr(value)


def main() -> None:
    """Converse with each base URL in turn."""
    converse, request = SDKS[sys.argv[1]], json.loads(sys.argv[2])
    for line in sys.stdin:
        understood = list(converse(line.strip(), request))
        sys.stdout.write(json.dumps(understood, default=plain) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
