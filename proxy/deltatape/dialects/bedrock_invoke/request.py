"""Reads the request to a model on Bedrock: its path, and a body in the model's own format."""

from dataclasses import replace

from deltatape.dialects._anthropic import request as messages
from deltatape.dialects._chat import request as chat
from deltatape.dialects._converse.request import read_conversation, read_path
from deltatape.dialects._json import get_str
from deltatape.dialects._request import read_body, said
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary

_WHOLE = "invoke"
_STREAMED = "invoke-with-response-stream"
_NOVA = ("toolConfig", "inferenceConfig", "schemaVersion")
_PROMPTS = ("prompt", "inputText", "message")


def serves(path: str) -> bool:
    """Check whether `path` belongs to InvokeModel."""
    model, action = read_path(path)
    return model is not None and action in (_WHOLE, _STREAMED)


def read_request(body: bytes, path: str) -> RequestSummary:
    """Parse `body` for the model in `path`; return `NOTHING_ASKED` if it is not a JSON object."""
    asked = _read(body)
    if not asked.known or not serves(path):
        return asked
    model, action = read_path(path)
    return replace(asked, model=model, stream=action == _STREAMED)


def _read(body: bytes) -> RequestSummary:
    found = read_body(body)
    if found is None:
        return NOTHING_ASKED
    request = found.value
    if "anthropic_version" in request:
        return messages.read_request(body)
    if any(key in request for key in _NOVA):
        return read_conversation(body, model=None, stream=False)
    asked = chat.read_request(body)
    prompt = next((text for key in _PROMPTS if (text := get_str(request, key))), None)
    if asked.history or prompt is None:
        return asked
    message = said("user", prompt, {"role": "user", "content": prompt})
    return replace(asked, history=(message,))
