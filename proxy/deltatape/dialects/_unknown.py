"""The reply of an exchange that no dialect claims: no text, no calls, at most an error."""

from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._errors import error_message, may_fail
from deltatape.dialects._json import Frame, as_object
from deltatape.model.reply import Choice, Reply
from deltatape.model.stream import Event
from deltatape.wire.json_value import parse, read_object

UNKNOWN = "unknown"
"""The dialect's name in such a reply."""


class UnknownReducer:
    """Looks for an error and ignores the rest. See `Reducer`."""

    fast_path = NO_FAST_PATH

    def __init__(self) -> None:
        self._error: str | None = None

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        if self._error is not None:
            return
        frame = frame or read_object(event.data) or as_object(parse(event.data).value)
        if frame is not None and may_fail(frame, event):
            self._error = error_message(frame, event.type)

    def finish(self, *, cut: bool) -> Reply:
        empty = Choice(
            index=0, text="", reasoning="", refusal="", tool_calls=(), finish_reason_raw=None
        )
        return Reply(
            dialect=UNKNOWN,
            choices=(empty,),
            usage=None,
            model=None,
            error=self._error,
            terminated=not cut,
            terminator="the end of the body",
            observations=(),
        )
