"""Answers of models on Bedrock built in a line, for tests that write the wire out."""

import base64
import json

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.bedrock_invoke import BedrockInvoke
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers import eventstream

MODEL = "anthropic.claude-fake-v1:0"
HOST = "http://127.0.0.1"
Frame = dict[str, object]


def chunk(frame: object) -> bytes:
    """A message that carries `frame`: an object, or a text as it is."""
    text = frame if isinstance(frame, str) else json.dumps(frame)
    encoded = base64.b64encode(text.encode()).decode()
    return eventstream.event("chunk", {"bytes": encoded, "p": "abc"})


def streamed(*pieces: object, model: str = MODEL) -> Exchange:
    """An exchange whose answer consists of `pieces`: frames to carry, or whole messages."""
    body = b"".join(piece if isinstance(piece, bytes) else chunk(piece) for piece in pieces)
    return Exchange.from_body(
        body,
        content_type="application/vnd.amazon.eventstream",
        url=f"{HOST}/model/{model}/invoke-with-response-stream",
    )


def reply_to(*pieces: object) -> Reply:
    """The reply of such an answer."""
    return rebuild(streamed(*pieces))


def whole(value: object) -> Exchange:
    """An exchange whose answer is not streamed."""
    return Exchange.from_body(
        json.dumps(value).encode(),
        content_type="application/json",
        url=f"{HOST}/model/{MODEL}/invoke",
    )


def reduced(exchange: Exchange) -> Reply:
    """The reply in this dialect, without detecting it."""
    reducer = BedrockInvoke().reducer(NOTHING_ASKED)
    for event in decode(exchange).events:
        reducer.feed(event)
    return reducer.finish(cut=False)
