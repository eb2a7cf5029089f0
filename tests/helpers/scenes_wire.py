"""Scenes about the wire and the stream: rules W and S."""

import gzip
from dataclasses import replace

from deltatape.model.exchange import EndReason
from helpers import messages, responses
from helpers.chat import FINISH, choice, sse
from helpers.scenes import (
    CALL,
    CITY,
    DONE,
    HEALTHY,
    STOP,
    TEXT,
    Pairs,
    Scene,
    asked,
    chat,
    pair,
    recordings,
    spared,
    spoken,
)
from helpers.scripted_tapes import Json, Staged

CAFE = sse(choice({"content": "caf~"}), done=False)
EVENTS = 32
ANTHROPIC = Staged(
    reads=[],
    request=messages.request(get={"type": "object"}),
    host="https://api.anthropic.com",
    target="/v1/messages",
)
RESPONSES = Staged(reads=[], target="/v1/responses")


def claude(*frames: messages.Frame, named: bool = True) -> Staged:
    """A stream of Anthropic's, an event per read."""
    return replace(ANTHROPIC, reads=[messages.sse(frame, named=named) for frame in frames])


def response(*events: responses.Object) -> Staged:
    """A stream of the Responses API, an event per read."""
    return replace(RESPONSES, reads=[responses.sse(event) for event in events])


def completion(*pieces: bytes) -> Staged:
    """A stream of the older API for plain completions, a piece per read."""
    request: Json = {"model": "m", "stream": True, "prompt": "Say hello."}
    return Staged(reads=pieces, request=request, target="/v1/completions")


def completed(text: str, finish: str | None = None) -> bytes:
    """An event of such a stream."""
    choices = [{"text": text, "index": 0, "finish_reason": finish}]
    return sse({"object": "text_completion", "choices": choices}, done=False)


CITY_FORMAT = {"type": "json_schema", "json_schema": {"name": "c", "schema": CITY, "strict": True}}
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
STRUCTURED = asked(tools=[], response_format=CITY_FORMAT)


def structured(text: str) -> list[object]:
    """An answer of two pieces."""
    return [choice({"content": piece}) for piece in (text[:5], text[5:])]


TEXTS = (completed("Hello"), completed("", "stop"))


def zipped(data: bytes) -> bytes:
    """`data` under gzip, the same each time."""
    return gzip.compress(data, mtime=0)


GREETING = (messages.start(), messages.text_block(), messages.text("Hello"), messages.stop())
GREETED = (*GREETING, messages.reason("end_turn"), messages.STOP)
HALF = (messages.start(), messages.tool_block(), messages.piece('{"a":'))
WHOLE = (*HALF, messages.piece("1}"), messages.stop(), *messages.END)
ITEMS = responses.call()
SAID = [responses.created(), *ITEMS, responses.ended(responses.function('{"a":1}'))]


def refused(status: int, body: bytes, media: str = "application/json") -> Staged:
    """An answer that is nothing but an error."""
    return replace(chat(body, done=False), status=status, content_type=media)


def gzipped(body: bytes) -> Staged:
    """A body that is under gzip, as its head says."""
    return replace(chat(body, done=False), headers=(("Content-Encoding", "gzip"),))


def _left(staged: Staged, end_s: float) -> Staged:
    """What its client left so long after it had asked."""
    return replace(staged, reason=EndReason.CLIENT_CLOSED, end_s=end_s)


@recordings
def wire() -> Pairs:
    """Rules about the wire."""
    plain = sse(TEXT, STOP)
    html = b"<html>Sign in to continue</html>"
    document = b'{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}'
    whole: Json = {"model": "m", "messages": []}
    error = {"error": {"message": "overloaded", "code": 502}}
    return {
        "W001": pair(completion(TEXTS[0], TEXTS[1], DONE[:-1]), completion(*TEXTS, DONE)),
        "W002": pair(
            chat(CAFE.replace(b"~", b"\xc3"), STOP),
            chat(CAFE.partition(b"~")[0] + b"\xc3", b"\xa9" + CAFE.partition(b"~")[2], STOP),
        ),
        "W003": pair(chat(b"\xef\xbb\xbf" + sse(TEXT, done=False), STOP), chat(TEXT, STOP)),
        "W004": pair(
            chat(TEXT, b"data: : KEEP-ALIVE\n\n", STOP), chat(TEXT, b": KEEP-ALIVE\n\n", STOP)
        ),
        "W005": pair(
            replace(chat(html, done=False), content_type="text/html"),
            replace(chat(document, done=False, request=whole), content_type="application/json"),
        ),
        "W006": spared(
            pair(
                replace(claude(*HALF), reason=EndReason.UPSTREAM_RESET, end_s=2.0),
                claude(*WHOLE),
                "S001",
                "T003",
            ),
            user_stop=_left(claude(*HALF), 0.3),
            error_status=_left(
                replace(chat(b'{"error":{"message":"slow', done=False), status=429), 0.1
            ),
            error_event=_left(chat(TEXT, error, done=False), 0.1),
            finish_reason=_left(chat(TEXT, STOP, done=False), 0.1),
            own_timeout=Scene(
                exchanges=[_left(chat(TEXT, done=False), 5.0), replace(chat(TEXT, STOP), at_s=6.0)]
            ),
        ),
        "W007": pair(
            chat((3.0, sse(*[TEXT] * EVENTS, STOP))),
            chat(*((3.0 + at * 0.1, sse(TEXT, done=False)) for at in range(EVENTS)), STOP),
        ),
        "W008": pair(claude(*GREETED, named=False), claude(*GREETED)),
        "W009": pair(gzipped(plain), gzipped(zipped(plain))),
        "W010": pair(
            spoken("bedrock-converse", lambda one: one.replace(b"look up", b"look\xefup")),
            spoken("bedrock-converse"),
        ),
    }


@recordings
def stream() -> Pairs:
    """Rules about the stream."""
    error = {"error": {"message": "overloaded", "code": 502}}
    gap = [{**event, "sequence_number": at + (at > 2)} for at, event in enumerate(SAID)]
    return {
        "S001": spared(
            pair(
                spoken("gemini", lambda one: b"" if b"finishReason" in one else one),
                spoken("gemini"),
            ),
            client_left=_left(chat(TEXT, done=False), 0.3),
            recorder_lost_it=replace(chat(TEXT, STOP), lost=frozenset({1, 2})),
        ),
        "S002": pair(chat(*CALL, STOP), chat(*HEALTHY)),
        "S003": pair(chat(TEXT, FINISH), chat(*HEALTHY)),
        "S004": pair(chat(*HEALTHY, STOP), chat(*HEALTHY)),
        "S005": spared(
            pair(chat(TEXT, error, done=False), chat(TEXT, STOP)),
            no_endpoint=replace(
                refused(404, b'{"error":"not found"}'), target="/api/show", request={"name": "m"}
            ),
            web_page=refused(403, b"<html><title>Attention Required!</title></html>", "text/html"),
            gateway=refused(404, b'{"error":{"message":"No endpoints found.","code":404}}'),
            server_option=refused(
                400,
                b'{"object":"error","message":"\\"auto\\" tool choice requires'
                b' --enable-auto-tool-choice to be set","type":"BadRequestError","code":400}',
            ),
            key=refused(401, b'{"error":{"message":"Incorrect API key provided"}}'),
            too_long=refused(
                400,
                b'{"error":{"message":"This model\'s maximum context length is 8192 tokens.",'
                b'"type":"invalid_request_error","param":"messages"}}',
            ),
        ),
        "S006": pair(chat(choice({"content": "Hel"}, ""), STOP), chat(TEXT, STOP)),
        "S007": pair(response(*gap), response(*responses.numbered(*SAID))),
        "S008": pair(response(*SAID[:-1], responses.ended()), response(*SAID)),
        "S009": pair(
            spoken("ollama", lambda one: one.replace(b'"stop"', b'"length"')), spoken("ollama")
        ),
        "S013": pair(
            chat(*structured('```json\n{"city":"Gent"}\n```'), STOP, request=STRUCTURED),
            chat(*structured('{"city":"Gent"}'), STOP, request=STRUCTURED),
        ),
        "S014": pair(
            chat(*structured("Hello<|im_end|>\n<|im_start|>user"), STOP),
            chat(*structured("The token `<|im_end|>` ends a message."), STOP),
        ),
        "S011": pair(
            chat({**TEXT, "model": "gpt-4o-mini-2024-07-18"}, STOP, request=asked(model="gpt-4o")),
            chat({**TEXT, "model": "gpt-4o-2024-08-06"}, STOP, request=asked(model="gpt-4o")),
        ),
        "S012": pair(
            chat(TEXT, {**STOP, "usage": {**USAGE, "total_tokens": 5}}),
            chat(TEXT, {**STOP, "usage": USAGE}),
        ),
        "S010": pair(chat(TEXT, FINISH, *CALL), chat(*HEALTHY, choice({"content": ""}))),
    }


@recordings
def recorder() -> Pairs:
    """What the recorder itself lost."""
    return {
        "X002": pair(replace(chat(*HEALTHY), lost=frozenset({1})), chat(*HEALTHY)),
    }
