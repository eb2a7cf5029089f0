"""Recordings about the wire, the stream and the recorder: rules W, S and X."""

import gzip
from dataclasses import replace

from deltatape.model.exchange import EndReason
from helpers import messages, responses
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import FINISH_TEXT, TEXT
from helpers.rule_recordings.build import (
    CALL,
    CALL_REPLY,
    CITY,
    DONE,
    GREETING,
    ONE_CALL,
    Recordings,
    anthropic,
    chat,
    error_reply,
    openai_responses,
    sample,
    text_reply,
)
from helpers.rule_recordings.tape import ScriptedExchange


def completion(*reads: bytes) -> ScriptedExchange:
    """A stream of the older API for plain completions."""
    request: dict[str, object] = {"model": "m", "stream": True, "prompt": "Say hello."}
    return ScriptedExchange(reads=reads, request=request, target="/v1/completions")


def completed(text: str, finish: str | None = None) -> bytes:
    """An event of such a stream."""
    choices = [{"text": text, "index": 0, "finish_reason": finish}]
    return sse({"object": "text_completion", "choices": choices}, done=False)


PREAMBLE = responses.message("I look it up.", phase="commentary")
OBJECT = responses.message('{"city":"Gent"}', item_id="msg_2", phase="final_answer")


def in_format(text: str) -> ScriptedExchange:
    """An answer to a request for JSON that has a city."""
    schema = {"name": "c", "schema": CITY, "strict": True}
    response_format = {"type": "json_schema", "json_schema": schema}
    return chat(*text_reply(text[:5], text[5:]), tools=[], response_format=response_format)


def from_model(model: str) -> ScriptedExchange:
    """An answer of `model` to a request for gpt-4o."""
    return chat({**TEXT, "model": model}, FINISH_TEXT, model="gpt-4o")


def with_total(tokens: int) -> ScriptedExchange:
    """An answer whose usage has this total for 9 and 2 tokens."""
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": tokens}
    return chat(TEXT, {**FINISH_TEXT, "usage": usage})


def gzipped(body: bytes) -> ScriptedExchange:
    """A gzip body with its `content-encoding`."""
    return replace(chat(body, done=False), headers=(("Content-Encoding", "gzip"),))


def closed_by_client(exchange: ScriptedExchange, end_s: float) -> ScriptedExchange:
    """`exchange` with a client that disconnected this long after its request."""
    return replace(exchange, reason=EndReason.CLIENT_CLOSED, end_s=end_s)


HELLO = chat(TEXT, FINISH_TEXT)
GREETED = anthropic(*GREETING)
HALF = (messages.start(), messages.tool_block(), messages.piece('{"a":'))
WHOLE = (*HALF, messages.piece("1}"), messages.stop(), *messages.END)
EVENTS = 32
CAFE, QUOTE = sse(choice({"content": "caf~"}), done=False).split(b"~")
PLAIN = sse(TEXT, FINISH_TEXT)
COMPLETED = (completed("Hello"), completed("", "stop"))
ERROR = {"error": {"message": "overloaded", "code": 502}}
ITEMS = [
    responses.created(),
    *responses.call(),
    responses.ended(responses.function('{"a":1}')),
]
GAP = [{**event, "sequence_number": at + (at > 2)} for at, event in enumerate(ITEMS)]
GEMINI = sample("gemini")

RECORDINGS: Recordings = {
    "S001": {
        "fires": replace(GEMINI, reads=GEMINI.reads[:-1]),
        "silent": GEMINI,
        "silent-client-left": closed_by_client(chat(TEXT, done=False), 0.3),
        "silent-recorder-lost-it": replace(HELLO, lost=frozenset({1, 2})),
    },
    "S002": {"fires": chat(*CALL, FINISH_TEXT), "silent": ONE_CALL},
    "S003": {"fires": chat(TEXT, FINISH), "silent": ONE_CALL},
    "S004": {"fires": chat(*CALL_REPLY, FINISH_TEXT), "silent": ONE_CALL},
    "S005": {
        "fires": chat(TEXT, ERROR, done=False),
        "silent": HELLO,
        "silent-no-endpoint": replace(
            error_reply(404, b'{"error":"not found"}'), target="/api/show", request={"name": "m"}
        ),
        "silent-web-page": error_reply(
            403, b"<html><title>Attention Required!</title></html>", "text/html"
        ),
        "silent-gateway": error_reply(
            404, b'{"error":{"message":"No endpoints found.","code":404}}'
        ),
        "silent-server-option": error_reply(
            400,
            b'{"object":"error","message":"\\"auto\\" tool choice requires'
            b' --enable-auto-tool-choice to be set","type":"BadRequestError","code":400}',
        ),
        "silent-key": error_reply(401, b'{"error":{"message":"Incorrect API key provided"}}'),
        "silent-too-long": error_reply(
            400,
            b'{"error":{"message":"This model\'s maximum context length is 8192 tokens.",'
            b'"type":"invalid_request_error","param":"messages"}}',
        ),
        "silent-limit-in-stream": chat(
            TEXT, {"error": {"code": "context_length_exceeded", "message": "Too long"}}, done=False
        ),
        "silent-rate-of-account": error_reply(
            429, b'{"error":{"message":"Rate limit reached for your organization"}}'
        ),
    },
    "S006": {"fires": chat(choice({"content": "Hel"}, ""), FINISH_TEXT), "silent": HELLO},
    "S007": {
        "fires": openai_responses(*GAP),
        "silent": openai_responses(*responses.numbered(*ITEMS)),
    },
    "S008": {
        "fires": openai_responses(*ITEMS[:-1], responses.ended()),
        "silent": openai_responses(*ITEMS),
    },
    "S009": {
        "fires": sample("ollama", edit=(b'"stop"', b'"length"')),
        "silent": sample("ollama"),
    },
    "S010": {
        "fires": chat(TEXT, FINISH, *CALL),
        "silent": chat(*CALL_REPLY, choice({"content": ""})),
    },
    "S011": {
        "fires": from_model("gpt-4o-mini-2024-07-18"),
        "silent": from_model("gpt-4o-2024-08-06"),
    },
    "S012": {"fires": with_total(5), "silent": with_total(11)},
    "S013": {
        "fires": in_format('```json\n{"city":"Gent"}\n```'),
        "silent": in_format('{"city":"Gent"}'),
        "silent-preamble": openai_responses(
            responses.created(),
            responses.added(responses.message()),
            responses.done(PREAMBLE),
            responses.added(responses.message(item_id="msg_2"), 1),
            responses.done(OBJECT, 1),
            responses.ended(PREAMBLE, OBJECT),
            request={"text": {"format": {"type": "json_object"}}},
        ),
    },
    "S014": {
        "fires": chat(*text_reply("Hello", "<|im_end|>\n<|im_start|>user")),
        "silent": chat(*text_reply("The t", "oken `<|im_end|>` ends a message.")),
    },
    "W001": {
        "fires": completion(*COMPLETED, DONE[:-1]),
        "silent": completion(*COMPLETED, DONE),
    },
    "W002": {
        "fires": chat(CAFE + b"\xc3" + QUOTE, FINISH_TEXT),
        "silent": chat(CAFE + b"\xc3", b"\xa9" + QUOTE, FINISH_TEXT),
    },
    "W003": {"fires": chat(b"\xef\xbb\xbf" + sse(TEXT, done=False), FINISH_TEXT), "silent": HELLO},
    "W004": {
        "fires": chat(TEXT, b"data: : KEEP-ALIVE\n\n", FINISH_TEXT),
        "silent": chat(TEXT, b": KEEP-ALIVE\n\n", FINISH_TEXT),
    },
    "W005": {
        "fires": error_reply(200, b"<html>Sign in to continue</html>", "text/html"),
        "silent": replace(
            error_reply(
                200,
                b'{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}',
            ),
            request={"model": "m", "messages": []},
        ),
    },
    "W006": {
        "fires": replace(anthropic(*HALF), reason=EndReason.UPSTREAM_RESET, end_s=2.0),
        "silent": anthropic(*WHOLE),
        "silent-user-stop": closed_by_client(anthropic(*HALF), 0.3),
        "silent-error-status": closed_by_client(
            error_reply(429, b'{"error":{"message":"slow', "text/event-stream"), 0.1
        ),
        "silent-error-event": closed_by_client(chat(TEXT, ERROR, done=False), 0.1),
        "silent-finish-reason": closed_by_client(chat(TEXT, FINISH_TEXT, done=False), 0.1),
        "silent-own-timeout": [
            closed_by_client(chat(TEXT, done=False), 5.0),
            chat(TEXT, FINISH_TEXT, at_s=6.0),
        ],
    },
    "W007": {
        "fires": chat((3.0, sse(*[TEXT] * EVENTS, FINISH_TEXT))),
        "silent": chat(
            *((3.0 + at * 0.1, sse(TEXT, done=False)) for at in range(EVENTS)), FINISH_TEXT
        ),
    },
    "W008": {"fires": anthropic(*GREETING, named=False), "silent": GREETED},
    "W009": {
        "fires": gzipped(PLAIN),
        "silent": gzipped(gzip.compress(PLAIN, mtime=0)),
    },
    "W010": {
        "fires": sample("bedrock-converse", edit=(b"look up", b"look\xefup")),
        "silent": sample("bedrock-converse"),
    },
    "X002": {
        "fires": replace(ONE_CALL, lost=frozenset({1})),
        "silent": ONE_CALL,
    },
}
