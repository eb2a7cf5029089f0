"""OpenAI Realtime: responses on a WebSocket whose conversation the server keeps.

Shapes: https://platform.openai.com/docs/api-reference/realtime-server-events. A response has output
items as in OpenAI Responses, and the same names for most events; it ends with `response.done`,
whatever its status, and what audio says comes as a transcript. Audio itself is not looked at. The
names of the beta (`response.text`, `response.audio_transcript`) are read as well.

A request is what `diagnose` makes of the session's settings and of the items that the client sent
since the last response, in the form of a request for OpenAI Responses.
"""

from collections.abc import Mapping

from deltatape.dialects._json import get_object
from deltatape.dialects.openai_responses.reducer import ResponseForm

REALTIME = ResponseForm(
    terminator="response.done",
    ends=("response.done",),
    details="status_details",
    transcripts=("response.output_audio_transcript", "response.audio_transcript"),
    texts=("response.text",),
)
"""Names in the events of OpenAI Realtime."""
_SESSION = ("session.", "conversation.", "input_audio_buffer.", "rate_limits.")
_OBJECT = "realtime.response"


def is_realtime(event: Mapping[str, object]) -> bool:
    """Return whether an event on a WebSocket is one of this API, not of OpenAI Responses."""
    kind = event.get("type")
    if not isinstance(kind, str):
        return False
    if kind.startswith(_SESSION):
        return True
    response = get_object(event, "response") or {}
    named = "event_id" in event and "sequence_number" not in event
    return response.get("object") == _OBJECT or (named and kind.startswith("response."))
